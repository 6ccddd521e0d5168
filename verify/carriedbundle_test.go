package verify_test

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

// certifiedBundle is a bundle of n records of one agent, whom only a CA of the reader's vouches for.
func certifiedBundle(t testing.TB, n int) (*evidence.Bundle, verify.Options, *world) {
	t.Helper()
	return certifiedBundleIn(t, jurattest.New(t), n)
}

func certifiedBundleIn(t testing.TB, h *jurattest.House, n int) (*evidence.Bundle, verify.Options, *world) {
	t.Helper()
	var records []*evidence.Record
	for range n {
		records = append(records, h.Seal(t, output("a")))
	}
	b, err := h.Ledger.Prove(t.Context(), records...)
	if err != nil {
		t.Fatal(err)
	}
	o := h.Options(t)
	public, err := evidence.ParsePublicKey(o.Trust.Key(b.Records[0].Payload.Signers[0].KeyID).PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	carrying(w, 48*time.Hour)
	w.finish = nil
	o = w.build(t, b.Records[0], o, public)
	for _, r := range b.Records {
		r.Certificates = b.Records[0].Certificates
	}
	return b, o, w
}

// TestCarriedInBundle: what a record carries counts for it and for every later one, however the bundle is read.
func TestCarriedInBundle(t *testing.T) {
	const n = 60
	for _, place := range []int{0, 1, n / 2, n - 1} {
		b, o, _ := certifiedBundle(t, n)
		carry(b.Records[place], &o)
		file, err := b.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		read, err := verify.Read(struct{ *bytes.Buffer }{bytes.NewBuffer(file)}, o)
		if err != nil {
			t.Fatal(err)
		}
		for name, report := range map[string]*verify.Report{"in memory": verify.Bundle(b, o), "as it comes in": read} {
			for i, r := range b.Records {
				got := report.For(verify.Authentication, r.Payload.RecordID)
				if i < place && got.Rule != "revocation" || i >= place && got.Status != verify.Proved {
					t.Errorf("%s: carried by record %d, record %d: %+v", name, place, i, got)
				}
			}
		}
	}
}

// TestCarriedTogether: what one file carries proves nothing in another file.
func TestCarriedTogether(t *testing.T) {
	b, o, _ := certifiedBundle(t, 2)
	o.Together = verify.NewTogether(o)
	lists := o.CRLs
	o.CRLs = nil
	one, other := *b, *b
	one.Records, other.Records = b.Records[:1], b.Records[1:]
	carry(one.Records[0], &verify.Options{CRLs: lists})
	if got := verify.Bundle(&one, o).Of(verify.Authentication); got.Status != verify.Proved {
		t.Errorf("the file that carries the lists: %+v", got)
	}
	if got := verify.Bundle(&other, o).Of(verify.Authentication); got.Rule != "revocation" {
		t.Errorf("the file that carries none: %+v", got)
	}
}

// TestCarriedOutOfBounds: what comes after more than a verifier keeps is not looked at.
func TestCarriedOutOfBounds(t *testing.T) {
	junk := func(n, length int) (records [][]evidence.Revocation) {
		for i := range n {
			if i%evidence.MaxRevocations == 0 || length == evidence.MaxRevocation && i%4 == 0 {
				records = append(records, nil)
			}
			value := make([]byte, length)
			copy(value, fmt.Sprint(i))
			last := &records[len(records)-1]
			*last = append(*last, evidence.Revocation{Kind: evidence.CRL, Value: value})
		}
		return records
	}
	for _, tt := range []struct {
		name      string
		n, length int
		proved    bool
	}{
		{"as many as are kept", 1022, 8, true},
		{"one more", 1023, 8, false},
		{"nearly as many bytes as are kept", 15, evidence.MaxRevocation, true},
		{"as many bytes as are kept", 16, evidence.MaxRevocation, false},
	} {
		b, o, _ := certifiedBundle(t, 18)
		for i, list := range junk(tt.n, tt.length) {
			b.Records[i].Revocations = list
		}
		last := b.Records[17]
		carry(last, &o)
		if got := verify.Bundle(b, o).For(verify.Authentication, last.Payload.RecordID); (got.Status == verify.Proved) != tt.proved {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// TestCarriedForAuthority: what a file carries says nothing of the certificates of time-stamping authorities.
func TestCarriedForAuthority(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	list := signList(t, &x509.RevocationList{Number: caTemplate("", 1).SerialNumber, ThisUpdate: stamped.AddDate(0, 0, 3), NextUpdate: stamped.AddDate(0, 1, 0)}, root, rootKey)
	o.At = stamped.AddDate(0, 0, 4)
	r.Revocations = []evidence.Revocation{{Kind: evidence.CRL, Value: list.Raw}}
	if got := verify.Record(r, o).Of(verify.Time); got.Rule != "revocation" {
		t.Errorf("carried: %+v", got)
	}
	o.CRLs = []*x509.RevocationList{list}
	if got := verify.Record(r, o).Of(verify.Time); got.Status != verify.Proved {
		t.Errorf("the reader's own: %+v", got)
	}
}

// TestSealedByCarriedList: the short form of verification finds the same.
func TestSealedByCarriedList(t *testing.T) {
	b, o, _ := certifiedBundle(t, 1)
	r := b.Records[0]
	carry(r, &o)
	if got := verify.Sealed(r, o); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
	r.Revocations = r.Revocations[:1]
	if got := verify.Sealed(r, o); got.Rule != "revocation" {
		t.Errorf("without the issuing CA's list: %+v", got)
	}
}

func TestParseOCSP(t *testing.T) {
	_, _, w := certifiedBundle(t, 1)
	doc := w.good(stamped).build(t)
	if _, err := trust.ParseOCSP(doc); err != nil {
		t.Fatal(err)
	}
	for i := range doc { // cut off anywhere, it is refused
		if _, err := trust.ParseOCSP(doc[:i]); err == nil {
			t.Fatalf("its first %d bytes are a response", i)
		}
	}
	for name, other := range map[string][]byte{
		"more data":           append(bytes.Clone(doc), 0),
		"no answer":           {0x30, 3, 0x0a, 1, 3},
		"too large":           make([]byte, evidence.MaxRevocation+1),
		"a revocation list":   smallList(t),
		"a time that is none": bytes.Replace(doc, []byte("20260101010000Z"), []byte("20260101010060Z"), 1),
		"a local time":        bytes.Replace(doc, []byte("20260101010000Z"), []byte("2026010101+0100"), 1),
	} {
		if _, err := trust.ParseOCSP(other); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
}

// TestFlippedOCSP: whatever byte of a response is changed, it proves nothing, or the same.
func TestFlippedOCSP(t *testing.T) {
	b, o, w := certifiedBundle(t, 1)
	r := b.Records[0]
	d := w.good(stamped.Add(48 * time.Hour))
	w.delegated(t, d, nil)
	doc := d.build(t)
	o.CRLs = o.CRLs[:1]
	carry(r, &o)
	for i := range doc {
		for _, bit := range []byte{1, 0x80} {
			changed := bytes.Clone(doc)
			changed[i] ^= bit
			r.Revocations = append(r.Revocations[:1:1], evidence.Revocation{Kind: evidence.OCSP, Value: changed})
			if verify.Record(r, o).Of(verify.Authentication).Status == verify.Proved {
				t.Errorf("byte %d may be %#x", i, changed[i])
			}
		}
	}
	r.Revocations[1].Value = doc
	if got := verify.Record(r, o).Of(verify.Authentication); got.Status != verify.Proved {
		t.Errorf("unchanged: %+v", got)
	}
}

// FuzzParseOCSP: every response that can be read can be used without a panic, and unsigned data proves nothing.
func FuzzParseOCSP(f *testing.F) {
	b, o, w := certifiedBundle(f, 1)
	var signed [][]byte
	add := func(d *ocspDraft) {
		f.Add(d.build(f))
		signed = append(signed, d.signed)
	}
	good := w.good(stamped.Add(48 * time.Hour))
	add(good)
	w.delegated(f, good, nil)
	good.extensions = append(good.extensions, extension(false))
	add(good)
	revoked := w.good(stamped.Add(48 * time.Hour))
	revoked.status, revoked.revoked, revoked.reason, revoked.byName = 1, stamped, 1, true
	revoked.single = append(revoked.single, dateExtension(f, 24, stamped.Add(-time.Hour)))
	add(revoked)
	o.CRLs = o.CRLs[:1]
	r := b.Records[0]
	carry(r, &o)
	f.Fuzz(func(t *testing.T, doc []byte) {
		response, err := trust.ParseOCSP(doc)
		if err != nil {
			return
		}
		with, reader := *r, o
		with.Revocations = append(r.Revocations[:1:1], evidence.Revocation{Kind: evidence.OCSP, Value: doc})
		reader.OCSPs = []*trust.Response{response}
		ours := slices.ContainsFunc(signed, func(part []byte) bool { return bytes.Contains(doc, part) })
		if got := verify.Record(&with, reader).Of(verify.Authentication); got.Status == verify.Proved && !ours {
			t.Fatalf("a response that no key here signed: %+v", got)
		}
	})
}

// opensslResponder is the configuration with which OpenSSL makes a CA, a signer and a responder.
const opensslResponder = `
[v3_responder]
basicConstraints = CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = OCSPSigning
noCheck = ignored
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`

// TestResponsesOfOpenSSL: jurat reads what OpenSSL answers, by the CA and by a responder, and OpenSSL what the tests here make.
func TestResponsesOfOpenSSL(t *testing.T) {
	dir := t.TempDir()
	must := func(args ...string) {
		t.Helper()
		if !openssl(t, dir, args...) {
			t.Fatal("openssl failed")
		}
	}
	for name, text := range map[string]string{"ca.cnf": opensslCA + opensslResponder, "index.txt": "", "crlnumber": "01\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	span := []string{"-startdate", "20250101000000Z", "-enddate", "20400101000000Z", "-notext", "-batch", "-config", "ca.cnf"}
	key := func(name string) {
		t.Helper()
		must("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", name+".key")
		must("req", "-new", "-config", "ca.cnf", "-subj", "/CN="+name, "-key", name+".key", "-out", name+".csr")
	}
	key("root")
	must(append([]string{"ca", "-selfsign", "-keyfile", "root.key", "-in", "root.csr", "-extensions", "v3_ca", "-out", "root.pem"}, span...)...)
	for name, extensions := range map[string]string{"signer": "v3_signer", "responder": "v3_responder", "clerk": "v3_signer"} {
		key(name)
		must(append([]string{"ca", "-in", name + ".csr", "-extensions", extensions, "-out", name + ".pem"}, span...)...)
	}
	must("pkcs8", "-topk8", "-nocrypt", "-in", "signer.key", "-outform", "DER", "-out", "signer.der")
	answer := func(by, out string) []byte {
		t.Helper()
		must("ocsp", "-index", "index.txt", "-CA", "root.pem", "-rsigner", by+".pem", "-rkey", by+".key", "-issuer", "root.pem", "-cert", "signer.pem",
			"-ndays", "1", "-no_nonce", "-noverify", "-respout", out)
		return []byte(read(t, filepath.Join(dir, out)))
	}
	r, o := sealedWith(t, output("a courier"), []byte(read(t, filepath.Join(dir, "signer.der"))))
	r.Certificates = [][]byte{pemOf(t, filepath.Join(dir, "signer.pem"))}
	o.At = time.Now().Add(time.Minute)
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Keys, trusted.Authorities[0].Clock = nil, trust.Independent
		trusted.CAs = []trust.CA{{Name: "OpenSSL's", Certificate: pemOf(t, filepath.Join(dir, "root.pem")), Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner}}
	})
	check := func(name string, doc []byte, rule string) {
		t.Helper()
		own := o
		own.OCSPs = []*trust.Response{parsedOCSP(t, doc)}
		carrying := *r
		carrying.Revocations = []evidence.Revocation{{Kind: evidence.OCSP, Value: doc}}
		for way, got := range map[string]verify.Finding{"the reader's": verify.Record(r, own).Of(verify.Authentication), "carried": verify.Record(&carrying, o).Of(verify.Authentication)} {
			if got.Rule != rule || (got.Status == verify.Proved) != (rule == "") {
				t.Errorf("%s, %s: %+v", name, way, got)
			}
		}
	}
	check("by the CA", answer("root", "root.ocsp"), "")
	check("by a responder", answer("responder", "responder.ocsp"), "")
	check("by a signer of documents", answer("clerk", "clerk.ocsp"), "revocation")
	must("ca", "-revoke", "signer.pem", "-crl_compromise", "20250601000000Z", "-config", "ca.cnf")
	check("revoked", answer("responder", "revoked.ocsp"), "revoked")

	for name, byKey := range map[string]bool{"by name": false, "by key": true} { // the other way round
		rootKey := ecKey(t, filepath.Join(dir, "root.key"))
		root := parsedCertificate(t, pemOf(t, filepath.Join(dir, "root.pem")))
		d := &ocspDraft{signer: rootKey, responder: root, byName: !byKey, certificate: parsedCertificate(t, r.Certificates[0]), issuer: root, reason: -1,
			from: time.Now().Add(-time.Minute).Truncate(time.Second), until: time.Now().Add(time.Hour).Truncate(time.Second)}
		if err := os.WriteFile(filepath.Join(dir, "ours.ocsp"), d.build(t), 0o600); err != nil {
			t.Fatal(err)
		}
		if !openssl(t, dir, "ocsp", "-respin", "ours.ocsp", "-issuer", "root.pem", "-cert", "signer.pem", "-CAfile", "root.pem", "-no_nonce") {
			t.Errorf("%s: OpenSSL does not take it", name)
		}
	}
}
