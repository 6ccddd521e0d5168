package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jurat/internal/listtest"
	"jurat/trustlist"
	"jurat/verify"
	"jurat/verify/trust"
)

// mandateWorld has the files around a mandate: the organisation's seal, the CA of its agents, an agent's key, and trusted lists.
type mandateWorld struct {
	t      *testing.T
	folder string
	data   string
}

func (w *mandateWorld) write(name string, content []byte) string {
	w.t.Helper()
	file := filepath.Join(w.folder, name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

func (w *mandateWorld) pem(name, kind string, der []byte) string {
	return w.write(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// key makes a key and writes its two halves: NAME.key and NAME.pub.
func (w *mandateWorld) key(name string) *ecdsa.PrivateKey {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		w.t.Fatal(err)
	}
	w.pem(name+".key", "PRIVATE KEY", private)
	w.pem(name+".pub", "PUBLIC KEY", public)
	return key
}

// certificate makes a certificate and writes it to NAME.pem. Without an issuer it is a CA's own.
func (w *mandateWorld) certificate(name string, template *x509.Certificate, key *ecdsa.PrivateKey, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey) *x509.Certificate {
	w.t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(2, 0, 0)
	if issuer == nil {
		issuer, issuerKey = template, key
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
		template.SubjectKeyId = []byte(name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		w.t.Fatal(err)
	}
	w.pem(name+".pem", "CERTIFICATE", der)
	return c
}

func (w *mandateWorld) file(name string) string { return filepath.Join(w.folder, name) }

func (w *mandateWorld) jurat(want int, args ...string) string {
	w.t.Helper()
	return doing(w.t, want, append([]string{"--data", w.data}, args...)...)
}

// into runs a command and writes what it prints.
func (w *mandateWorld) into(name string, args ...string) string {
	w.t.Helper()
	return w.write(name, []byte(w.jurat(0, args...)+"\n"))
}

// lists writes the lists of the EU and of QQ, whose one service is that of the CA of seals.
func (w *mandateWorld) lists(ca *x509.Certificate) {
	w.t.Helper()
	journal, operator := listtest.NewSigner(w.t, "journal"), listtest.NewSigner(w.t, "operator")
	lotl := listtest.List{Type: trustlist.ListOfLists, Territory: "EU", Sequence: 1, Issued: "2026-01-01T00:00:00Z", Next: "2136-10-01T00:00:00Z", URIs: []string{"https://journal.example/"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/", Type: trustlist.NationalList, Territory: "QQ", Signers: []*listtest.Signer{operator}}}}
	national := listtest.List{Type: trustlist.NationalList, Territory: "QQ", Sequence: 62, Issued: "2026-01-01T00:00:00Z", Next: "2136-10-01T00:00:00Z",
		Services: []listtest.Service{{TSP: "Alpha", Name: "seals", Type: trustlist.QualifiedCertificates, Certificates: [][]byte{ca.Raw},
			States:    []listtest.State{{Status: trustlist.Granted, From: "2020-01-01T00:00:00Z"}},
			Extension: `<Extension Critical="true"><AdditionalServiceInformation><URI xml:lang="en">http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/ForeSeals</URI></AdditionalServiceInformation></Extension>`}}}
	if err := os.Mkdir(w.file("lists"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	w.write("oj.pem", journal.PEM())
	w.write("lists/eu.xml", lotl.Sign(w.t, journal))
	w.write("lists/qq.xml", national.Sign(w.t, operator))
}

func newMandateWorld(t *testing.T) *mandateWorld {
	w := &mandateWorld{t: t, folder: t.TempDir()}
	w.data = w.file("data")
	statements := []byte{0x30, 0x1f, 0x30, 0x08, 0x06, 0x06, 0x04, 0x00, 0x8e, 0x46, 0x01, 0x01, // QcCompliance
		0x30, 0x13, 0x06, 0x06, 0x04, 0x00, 0x8e, 0x46, 0x01, 0x06, 0x30, 0x09, 0x06, 0x07, 0x04, 0x00, 0x8e, 0x46, 0x01, 0x06, 0x02} // QcType: seal
	sealsKey, sealKey, agentsKey, agentKey := w.key("seals"), w.key("seal"), w.key("agents"), w.key("agent")
	sealsCA := w.certificate("seals", &x509.Certificate{Subject: pkix.Name{CommonName: "Seals CA"}}, sealsKey, nil, nil)
	w.certificate("seal", &x509.Certificate{Subject: pkix.Name{Organization: []string{"Acme GmbH"}, Country: []string{"DE"}, CommonName: "Acme"}, KeyUsage: x509.KeyUsageContentCommitment,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 3}, Value: statements}}}, sealKey, sealsCA, sealsKey)
	agentsCA := w.certificate("agents", &x509.Certificate{Subject: pkix.Name{CommonName: "Acme Agents CA"}}, agentsKey, nil, nil)
	name, err := url.Parse("urn:jurat:agent:refund-bot")
	if err != nil {
		t.Fatal(err)
	}
	w.certificate("agent", &x509.Certificate{Subject: pkix.Name{CommonName: "refund-bot"}, KeyUsage: x509.KeyUsageDigitalSignature, URIs: []*url.URL{name},
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 36}}}, agentKey, agentsCA, agentsKey)
	w.lists(sealsCA)
	w.jurat(0, "init")
	w.jurat(0, "keys", "register", "agent", "refund-bot", "--public", w.file("agent.pub"), "--certificate", w.file("agent.pem"), "--reason", "a test", "--by", "tester")
	return w
}

// reader writes the trust file of a reader who believes the clock of the authority, and does not know the agent's key.
func (w *mandateWorld) reader() string {
	file, err := trust.Parse([]byte(w.jurat(0, "trust")))
	if err != nil {
		w.t.Fatal(err)
	}
	file.Authorities[0].Clock = trust.Independent
	kept := file.Keys[:0]
	for _, k := range file.Keys {
		if k.Name != "refund-bot" {
			kept = append(kept, k)
		}
	}
	file.Keys = kept
	doc, err := file.Marshal()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.write("reader.json", doc)
}

// TestMandate: an organisation's seal lets a CA certify an agent's key, and the agent's record is proved by that alone. Outside the mandate nothing is.
func TestMandate(t *testing.T) {
	w := newMandateWorld(t)
	year := time.Now().AddDate(1, 0, 0).Format(time.DateOnly)
	sign := func(name string, more ...string) string {
		return w.into(name, append([]string{"mandate", "sign", "--ca", w.file("agents.pem"), "--role", "agent", "--from", "2020-01-01", "--to", year,
			"--certificate", w.file("seal.pem"), "--key", w.file("seal.key")}, more...)...)
	}
	signed := sign("signed.json", "--name", "refund-bot")
	reader := w.reader()
	by := []string{"--oj", w.file("oj.pem"), "--lists", w.file("lists"), "--seal-revocation-unasked"}
	check := func(want int, file string, more ...string) string {
		return w.jurat(want, append(append([]string{"mandate", "check", file, "--trust", reader}, by...), more...)...)
	}
	if out := check(3, signed); !strings.Contains(out, "it has no time stamp") || !strings.Contains(out, "NOT PROVED") {
		t.Error(out)
	}
	stamped := w.into("stamped.json", "mandate", "stamp", signed)
	if out := check(0, stamped); !strings.Contains(out, "Acme GmbH") || !strings.Contains(out, "The list QQ 62 of 2026-01-01") {
		t.Error(out)
	}
	if out := check(0, stamped, "--json"); !strings.Contains(out, `"organisation": "Acme GmbH"`) {
		t.Error(out)
	}
	if out := w.jurat(3, "mandate", "check", stamped, "--trust", reader, "--json", "--oj", w.file("oj.pem"), "--lists", w.file("lists")); !strings.Contains(out, `"rule": "revocation"`) {
		t.Error(out)
	}
	spoiled := strings.Replace(readText(t, stamped), `"signature":"`, `"signature":"AAAA`, 1)
	check(1, w.write("spoiled.json", []byte(spoiled)))
	check(2, reader)
	w.jurat(2, "mandate", "check", stamped, "--trust", reader)

	// The installation keeps it, and gives it back.
	digest := w.jurat(0, "mandate", "seal", stamped, "--by", "Ann", "--reason", "the board")
	if shown := w.jurat(0, "mandate", "show", digest); shown != strings.TrimSpace(readText(t, stamped)) {
		t.Error(shown)
	}
	w.jurat(2, "mandate", "show", "sha256:"+strings.Repeat("1", 64))
	if out := w.jurat(0, "log", "case", "operator-mandates"); !strings.Contains(out, `"organisation":"Acme GmbH"`) {
		t.Error(out)
	}
	w.jurat(0, "log", "fsck")

	// What the agent signs is proved by the CA within the mandate.
	payload := w.write("payload.json", []byte(`{"agent_id":"refund-bot","request_id":"r","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"v","prompt":"p","response":"r","parameters":{}}`))
	record := w.into("record.json", "seal", w.into("signed-record.json", "sign", "--key", w.file("agent.key"), payload))
	ca := func(name, file string) string {
		return w.into(name, append([]string{"trust", "--ca", w.file("agents.pem"), "--role", "agent", "--custody", "owner", "--revocation", "none", "--mandate", file, "--with", reader}, by...)...)
	}
	w.jurat(3, "verify", "--trust", reader, record)
	out := w.jurat(0, "verify", "--trust", ca("with.json", stamped), "--require", "non-repudiation", record)
	for _, part := range []string{"agent refund-bot: Acme Agents CA certified the key, and its owner keeps it.", "Acme GmbH (DE) lets this CA", "(list QQ 62 of 2026-01-01)"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
			t.Errorf("%q is not in %s", part, out)
		}
	}
	var r verify.Report
	if err := json.Unmarshal([]byte(w.jurat(0, "verify", "--json", "--trust", w.file("with.json"), record)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Identities) != 1 || r.Identities[0].By != trust.ByCA || r.Identities[0].CA != "Acme Agents CA" || r.Identities[0].Organisation.Name != "Acme GmbH" || r.Policy != verify.Default {
		t.Errorf("%+v", r.Identities)
	}

	// Revocation is asked neither of the CA nor of the authority: strict does not accept that.
	r = verify.Report{}
	if err := json.Unmarshal([]byte(w.jurat(3, "verify", "--json", "--policy", "strict", "--trust", w.file("with.json"), record)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Policy != verify.Strict || r.Of(verify.Authentication).Rule != "certificate" || r.Of(verify.Time).Rule != "policy" || len(r.Uncounted) != 0 || len(r.Identities) != 0 {
		t.Errorf("%+v", r)
	}
	for lang, part := range map[string]string{"en": "lets this CA certify keys", "ja": "適格シール", "ru": "квалифицированной печатью"} {
		if out := w.jurat(0, "trust", "explain", w.file("with.json"), "--lang", lang); !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
			t.Errorf("%s: %s", lang, out)
		}
	}

	for name, more := range map[string][]string{"another name": {"--name", "other-bot"}, "another time": {"--to", "2021-01-01"}} {
		other := w.into("other.json", "mandate", "stamp", sign("other-signed.json", more...))
		out := w.jurat(3, "verify", "--json", "--trust", ca("other-trust.json", other), record)
		var r verify.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		if f := r.Of(verify.Authentication); f.Rule != "mandate" || f.Status != verify.NotProved {
			t.Errorf("%s: %+v", name, f)
		}
	}
	for _, args := range [][]string{
		{"trust", "--ca", w.file("seals.pem"), "--role", "agent", "--custody", "owner", "--mandate", stamped, "--with", reader},
		{"trust", "--ca", w.file("agents.pem"), "--role", "juror", "--custody", "owner", "--mandate", stamped, "--with", reader},
		{"trust", "--ca", w.file("agents.pem"), "--role", "agent", "--custody", "owner", "--mandate", signed, "--with", reader},
		{"trust", "--ca", w.file("agents.pem"), "--role", "agent", "--custody", "owner", "--mandate", stamped},
		{"trust", "--ca", w.file("agent.pem"), "--role", "agent", "--custody", "owner"},
		{"trust", "--ca", w.file("agents.pem"), "--role", "agent"},
		{"trust", "--role", "agent"},
	} {
		w.jurat(2, append(args, by...)...)
	}
	if twice := w.jurat(0, "trust", "--ca", w.file("agents.pem"), "--role", "agent", "--custody", "operator", "--with", w.file("with.json")); strings.Count(twice, `"roles"`) != 1 {
		t.Error(twice)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
