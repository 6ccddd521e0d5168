package mandate_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/eutrust"
	"jurat/internal/listtest"
	"jurat/internal/mandate"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/trustlist"
	"jurat/verify"
	"jurat/verify/trust"
)

// stamped is when the mandates of these tests got their time stamps.
var stamped = jurattest.Start

const (
	svcInfo = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/"
	quals   = "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#"
)

// seals is the extension by which a list says that a service is one for seals.
func seals(uri string) string {
	return `<Extension Critical="true"><AdditionalServiceInformation><URI xml:lang="en">` + svcInfo + uri + `</URI></AdditionalServiceInformation></Extension>`
}

// says is the extension by which a list says something of the certificates with a key usage.
func says(bit string, qualifiers ...string) string {
	text := `<Extension Critical="true"><q:Qualifications xmlns:q="` + quals + `"><q:QualificationElement><q:Qualifiers>`
	for _, q := range qualifiers {
		text += `<q:Qualifier uri="` + svcInfo + q + `"></q:Qualifier>`
	}
	return text + `</q:Qualifiers><q:CriteriaList assert="all"><q:KeyUsage><q:KeyUsageBit name="` + bit + `">true</q:KeyUsageBit></q:KeyUsage></q:CriteriaList></q:QualificationElement></q:Qualifications></Extension>`
}

// world is everything around one mandate. A test changes what it wants before it is built.
type world struct {
	seal      *x509.Certificate // template
	sealKey   crypto.Signer
	caKey     *ecdsa.PrivateKey
	ca        *x509.Certificate
	service   listtest.Service
	more      []listtest.Service // of the same CA
	next      string             // when the next list is due
	mandate   mandate.Mandate
	authority *timestamp.Authority
	grounds   mandate.Grounds
	after     func(*mandate.File) // changes the signed mandate
	revoked   []x509.RevocationListEntry
}

func sequence(t testing.TB, value any) []byte {
	t.Helper()
	der, err := asn1.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

type qc struct {
	ID   asn1.ObjectIdentifier
	Info asn1.RawValue `asn1:"optional"`
}

// qcStatements makes the extension qcStatements, with QcCompliance and QcType as they are wanted.
func qcStatements(t testing.TB, compliance bool, types ...int) pkix.Extension {
	var list []qc
	if compliance {
		list = append(list, qc{ID: asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 1}})
	}
	if len(types) > 0 {
		var ids []asn1.ObjectIdentifier
		for _, n := range types {
			ids = append(ids, asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 6, n})
		}
		list = append(list, qc{asn1.ObjectIdentifier{0, 4, 0, 1862, 1, 6}, asn1.RawValue{FullBytes: sequence(t, ids)}})
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 3}, Value: sequence(t, list)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newWorld(t testing.TB) *world {
	w := &world{sealKey: newKey(t), caKey: newKey(t), next: "2126-10-01T00:00:00Z"}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Trust Services"}, Country: []string{"QQ"}, CommonName: "Seals CA"},
		NotBefore: stamped.AddDate(-3, 0, 0), NotAfter: stamped.AddDate(20, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, w.caKey.Public(), w.caKey)
	if err != nil {
		t.Fatal(err)
	}
	if w.ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	w.seal = &x509.Certificate{SerialNumber: big.NewInt(7), NotBefore: stamped.AddDate(-1, 0, 0), NotAfter: stamped.AddDate(2, 0, 0), KeyUsage: x509.KeyUsageContentCommitment,
		Subject: pkix.Name{Organization: []string{"Acme GmbH"}, Country: []string{"DE"}, CommonName: "Acme seal",
			ExtraNames: []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{2, 5, 4, 97}, Value: "VATDE-123456789"}}},
		ExtraExtensions: []pkix.Extension{qcStatements(t, true, 2)}}
	w.service = listtest.Service{TSP: "Trust Services", Name: "Qualified seals", Type: trustlist.QualifiedCertificates, Certificates: [][]byte{w.ca.Raw},
		States: []listtest.State{{Status: trustlist.Granted, From: "2017-01-01T00:00:00Z"}}, Extension: seals("ForeSeals")}
	w.mandate = mandate.Mandate{Format: mandate.Format, CA: evidence.DigestOf([]byte("a CA")), Roles: []evidence.Role{evidence.RoleAgent}, Names: []string{"refund-bot"},
		From: stamped, To: stamped.AddDate(1, 0, 0)}
	w.authority = jurattest.Authority(t, "stranger", stamped)
	root := w.authority.Certificates()[len(w.authority.Certificates())-1]
	w.grounds = mandate.Grounds{At: stamped.AddDate(0, 1, 0), Trust: &trust.Trust{Authorities: []trust.Authority{{Name: "stranger", Certificate: root.Raw, Clock: trust.Independent}}}}
	return w
}

func (w *world) chain(t testing.TB) []*x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, w.seal, w.ca, w.sealKey.Public(), w.caKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{c, w.ca}
}

// sign signs and stamps the mandate.
func (w *world) sign(t testing.TB) *mandate.File {
	t.Helper()
	key, err := evidence.NewSigner(w.sealKey, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f, err := mandate.Sign(w.mandate, w.chain(t), key)
	if err != nil {
		t.Fatal(err)
	}
	token, err := w.authority.Issue(&timestamp.Request{Imprint: f.Imprint(), CertReq: true})
	if err != nil {
		t.Fatal(err)
	}
	f.Tokens = append(f.Tokens, token)
	if w.after != nil {
		w.after(f)
	}
	return f
}

// lists writes the lists and verifies them.
func (w *world) lists(t testing.TB) {
	t.Helper()
	journal, operator := listtest.NewSigner(t, "journal"), listtest.NewSigner(t, "operator")
	lotl := &listtest.List{Type: trustlist.ListOfLists, Territory: "EU", Sequence: 5, Issued: "2026-01-01T00:00:00Z", Next: w.next, URIs: []string{"https://lists.example/journal"},
		Pointers: []listtest.Pointer{{Location: "https://lists.example/QQ.xml", Type: trustlist.NationalList, Territory: "QQ", Signers: []*listtest.Signer{operator}}}}
	national := &listtest.List{Type: trustlist.NationalList, Territory: "QQ", Sequence: 62, Issued: "2026-01-01T00:00:00Z", Next: w.next, URIs: []string{"https://lists.example/"},
		Services: append([]listtest.Service{w.service}, w.more...)}
	files, err := eutrust.Read(fstest.MapFS{"a.xml": {Data: lotl.Sign(t, journal)}, "b.xml": {Data: national.Sign(t, operator)}})
	if err != nil {
		t.Fatal(err)
	}
	w.grounds.Journal = trustlist.Signers{sha256.Sum256(journal.Certificate)}
	if w.grounds.Lists, err = files.Verify(eutrust.Options{Journal: w.grounds.Journal}); err != nil {
		t.Fatal(err)
	}
}

// crl makes the CA's revocation list.
func (w *world) crl(t testing.TB) *x509.RevocationList {
	t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: w.grounds.At.Add(-time.Hour), NextUpdate: w.grounds.At.Add(time.Hour),
		RevokedCertificateEntries: w.revoked}, w.ca, w.caKey)
	if err != nil {
		t.Fatal(err)
	}
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (w *world) check(t testing.TB) (*trust.Mandate, error) {
	t.Helper()
	w.lists(t)
	var err error
	if w.grounds.Trust, err = w.grounds.Trust.Prepared(); err != nil {
		t.Fatal(err)
	}
	return w.sign(t).Check(w.grounds)
}

// TestCheck gives a mandate that holds, and for each rule one that breaks it alone.
func TestCheck(t *testing.T) {
	with := func(change func(*world)) func(*world) { return change }
	for name, test := range map[string]struct {
		change func(*world)
		rule   string
		status verify.Status
	}{
		"holds": {func(w *world) {}, "", ""},
		"holds, with an RSA key": {func(w *world) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			w.sealKey = key
		}, "", ""},
		"holds by the list alone": {func(w *world) {
			w.seal.ExtraExtensions = nil
			w.service.Extension += says("nonRepudiation", "QCStatement", "QCForESeal")
		}, "", ""},
		"holds, and the list says where the key is": {func(w *world) { w.service.Extension += says("nonRepudiation", "QCWithQSCD") }, "", ""},
		"holds, withdrawn later": {func(w *world) {
			w.service.States = append([]listtest.State{{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: stamped.AddDate(0, 0, 1).Format(time.RFC3339)}}, w.service.States...)
		}, "", ""},
		"holds, revoked later": {func(w *world) {
			w.revoked = []x509.RevocationListEntry{{SerialNumber: big.NewInt(7), RevocationTime: stamped.Add(time.Hour)}}
		}, "", ""},
		"holds, a stamp of another": {with(func(w *world) {
			w.after = func(f *mandate.File) {
				token, err := w.authority.Issue(&timestamp.Request{Imprint: sha256.Sum256([]byte("else")), CertReq: true})
				if err != nil {
					t.Fatal(err)
				}
				f.Tokens = append([][]byte{token}, f.Tokens...)
			}
		}), "", ""},

		"no time stamp":       {with(func(w *world) { w.after = func(f *mandate.File) { f.Tokens = nil } }), "time", verify.NotProved},
		"the operator's word": {func(w *world) { w.grounds.Trust.Authorities[0].Clock = trust.OperatorClock }, "time", verify.NotProved},
		"a stamp of another": {with(func(w *world) {
			w.after = func(f *mandate.File) {
				token, err := w.authority.Issue(&timestamp.Request{Imprint: sha256.Sum256([]byte("else")), CertReq: true})
				if err != nil {
					t.Fatal(err)
				}
				f.Tokens = [][]byte{token}
			}
		}), "time", verify.NotProved},
		"an unknown authority":          {func(w *world) { w.grounds.Trust.Authorities = nil }, "time", verify.NotProved},
		"stamped after the certificate": {func(w *world) { w.seal.NotAfter = stamped.Add(-time.Hour) }, "service", verify.NotProved},
		"another CA":                    {func(w *world) { w.service.Certificates = [][]byte{listtest.NewSigner(t, "other").Certificate} }, "service", verify.NotProved},
		"a service of another type":     {func(w *world) { w.service.Type = "http://uri.etsi.org/TrstSvc/Svctype/CA/PKC" }, "service", verify.NotProved},
		"withdrawn before": {func(w *world) {
			w.service.States = append([]listtest.State{{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: stamped.AddDate(0, 0, -1).Format(time.RFC3339)}}, w.service.States...)
		}, "status", verify.NotProved},
		"granted after the certificate": {func(w *world) { w.service.States[0].From = stamped.AddDate(0, 0, -1).Format(time.RFC3339) }, "status", verify.NotProved},
		"not for seals":                 {func(w *world) { w.service.Extension = seals("ForeSignatures") }, "status", verify.NotProved},
		"says nothing of itself":        {func(w *world) { w.seal.ExtraExtensions = nil }, "qualifier", verify.NotProved},
		"no QcCompliance":               {func(w *world) { w.seal.ExtraExtensions = []pkix.Extension{qcStatements(t, false, 2)} }, "qualifier", verify.NotProved},
		"for signatures":                {func(w *world) { w.seal.ExtraExtensions = []pkix.Extension{qcStatements(t, true, 1)} }, "qualifier", verify.NotProved},
		"for seals and signatures":      {func(w *world) { w.seal.ExtraExtensions = []pkix.Extension{qcStatements(t, true, 1, 2)} }, "qualifier", verify.NotProved},
		"unreadable statements":         {func(w *world) { w.seal.ExtraExtensions[0].Value = []byte{0x30, 1} }, "qualifier", verify.NotProved},
		"not qualified, by the list":    {func(w *world) { w.service.Extension += says("nonRepudiation", "NotQualified") }, "qualifier", verify.NotProved},
		"for signatures, by the list":   {func(w *world) { w.service.Extension += says("nonRepudiation", "QCForESig") }, "qualifier", verify.NotProved},
		"an unknown qualifier":          {func(w *world) { w.service.Extension += says("nonRepudiation", "QCForCats") }, "qualifier", verify.NotProved},
		"unknown criteria": {func(w *world) {
			w.service.Extension += strings.ReplaceAll(says("nonRepudiation", "QCStatement"), "q:KeyUsage>", "q:Other>")
		}, "qualifier", verify.NotProved},
		"two services disagree": {func(w *world) {
			other := w.service
			other.States = []listtest.State{{Status: "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn", From: "2017-01-01T00:00:00Z"}}
			w.more = append(w.more, other)
		}, "status", verify.NotProved},
		"out of date": {func(w *world) { w.next = stamped.AddDate(0, 0, 1).Format(time.RFC3339) }, "list", verify.NotProved},
		"revoked": {func(w *world) {
			w.revoked = []x509.RevocationListEntry{{SerialNumber: big.NewInt(7), RevocationTime: stamped}}
		}, "revoked", verify.NotProved},
		"no list of revocations":  {func(w *world) { w.grounds.CRLs = []*x509.RevocationList{} }, "revocation", verify.NotProved},
		"the certificate of a CA": {func(w *world) { w.seal.IsCA, w.seal.BasicConstraintsValid = true, true }, "certificate", verify.NotProved},
		"not for signing":         {func(w *world) { w.seal.KeyUsage = x509.KeyUsageKeyEncipherment }, "certificate", verify.NotProved},
		"of nobody":               {func(w *world) { w.seal.Subject.Organization = nil }, "certificate", verify.NotProved},
		"of two organisations":    {func(w *world) { w.seal.Subject.Organization = []string{"a", "b"} }, "certificate", verify.NotProved},
	} {
		w := newWorld(t)
		test.change(w)
		if w.grounds.CRLs == nil {
			w.grounds.CRLs = []*x509.RevocationList{w.crl(t)}
		}
		got, err := w.check(t)
		var finding *mandate.Finding
		switch {
		case test.rule == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.rule != "" && (!errors.As(err, &finding) || finding.Rule != test.rule || finding.Status != test.status):
			t.Errorf("%s: %+v, %v", name, finding, err)
		case test.rule == "" && (got.Organisation != "Acme GmbH" || got.Country != "DE" || got.Identifier != "VATDE-123456789" || !got.At.Equal(stamped) || got.Service.List.Sequence != 62 || got.Service.TSP != "Trust Services"):
			t.Errorf("%s: %+v", name, got)
		}
	}
	w := newWorld(t)
	w.grounds.Unasked = true
	if _, err := w.check(t); err != nil {
		t.Error(err)
	}
}

// TestNothingChanges: no changed byte of the payload, the header or the signature passes.
func TestNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.grounds.Unasked = true
	if _, err := w.check(t); err != nil {
		t.Fatal(err)
	}
	doc, err := w.sign(t).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"payload", "protected", "signature"} {
		raw, err := base64.RawURLEncoding.DecodeString(tree[member].(string))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(raw); i += max(len(raw)/40, 1) {
			changed := bytes.Clone(raw)
			changed[i] ^= 1
			spoiled := strings.Replace(string(doc), tree[member].(string), base64.RawURLEncoding.EncodeToString(changed), 1)
			f, err := mandate.Parse([]byte(spoiled))
			if err != nil {
				continue
			}
			var finding *mandate.Finding
			if _, err := f.Check(w.grounds); !errors.As(err, &finding) || finding.Status != verify.Refuted {
				t.Errorf("%s, byte %d: %v", member, i, err)
			}
		}
	}
}

// TestOpenSSLIsAJudge: the raw signature of a mandate is one by OpenSSL, and the time stamp one of the signature's text.
func TestOpenSSLIsAJudge(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	w := newWorld(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	w.sealKey = key
	chain := w.chain(t)
	f := w.sign(t)
	input, err := mandate.Input(w.mandate, chain)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put := func(name string, content []byte) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	openssl := func(args ...string) []byte {
		out, err := exec.Command("openssl", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
		return out
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	private := put("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	openssl("dgst", "-sha256", "-sign", private, "-out", filepath.Join(folder, "sig"), put("input", input))
	signature, err := os.ReadFile(filepath.Join(folder, "sig"))
	if err != nil {
		t.Fatal(err)
	}
	byHand, err := mandate.Assemble(w.mandate, chain, signature)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := byHand.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	// The other way: OpenSSL checks what Sign made.
	made, err := f.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Payload   string `json:"payload"`
		Protected string `json:"protected"`
		Signature string `json:"signature"`
		Header    struct {
			Timestamps [][]byte `json:"timestamps"`
		} `json:"header"`
	}
	if err := json.Unmarshal(made, &file); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(file.Signature)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	public := put("public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki}))
	openssl("dgst", "-sha256", "-verify", public, "-signature", put("sig2", raw), put("input2", []byte(file.Protected+"."+file.Payload)))
	root := w.authority.Certificates()[len(w.authority.Certificates())-1]
	openssl("ts", "-verify", "-data", put("text", []byte(file.Signature)), "-in", put("token", file.Header.Timestamps[0]), "-token_in",
		"-CAfile", put("root.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})), "-attime", strconv.FormatInt(stamped.Unix(), 10))
	if !bytes.Contains(doc, []byte(`"protected"`)) {
		t.Errorf("%s", doc)
	}
	if _, err := mandate.Assemble(w.mandate, chain, append(slices.Clone(signature[:255]), signature[255]^1)); err == nil {
		t.Error("a signature of nothing is put to a mandate")
	}
}

// TestParseRefuses takes each thing that is wrong with the form of a mandate.
func TestParseRefuses(t *testing.T) {
	w := newWorld(t)
	doc, err := w.sign(t).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	b64 := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	payload := func(text string) string { return strings.Replace(string(doc), tree["payload"].(string), b64(text), 1) }
	protected := func(text string) string {
		return strings.Replace(string(doc), tree["protected"].(string), b64(text), 1)
	}
	good := `{"ca":"` + w.mandate.CA.String() + `","format":"jurat/mandate/v1","from":"2026-01-01T00:00:00Z","names":["a","b"],"roles":["agent"],"to":"2027-01-01T00:00:00Z"}`
	if _, err := mandate.Parse([]byte(payload(good))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "another member": strings.Replace(string(doc), "{", `{"x":1,`, 1),
		"no signature":      strings.Replace(string(doc), tree["signature"].(string), "", 1),
		"padding":           strings.Replace(string(doc), tree["payload"].(string), tree["payload"].(string)+"=", 1),
		"other format":      payload(strings.Replace(good, "mandate/v1", "mandate/v2", 1)),
		"no CA":             payload(strings.Replace(good, `"ca":"`+w.mandate.CA.String()+`",`, "", 1)),
		"no roles":          payload(strings.Replace(good, `["agent"]`, `[]`, 1)),
		"an unknown role":   payload(strings.Replace(good, `["agent"]`, `["king"]`, 1)),
		"roles twice":       payload(strings.Replace(good, `["agent"]`, `["agent","agent"]`, 1)),
		"names unsorted":    payload(strings.Replace(good, `["a","b"]`, `["b","a"]`, 1)),
		"names empty":       payload(strings.Replace(good, `["a","b"]`, `[]`, 1)),
		"ends before":       payload(strings.Replace(good, `2027`, `2025`, 1)),
		"a space":           payload(strings.Replace(good, `{`, `{ `, 1)),
		"an unknown member": payload(strings.Replace(good, `{`, `{"a":1,`, 1)),
		"twice":             payload(strings.Replace(good, `{`, `{"ca":"x",`, 1)),
		"no certificate":    protected(`{"alg":"ES256"}`),
		"a bad certificate": protected(`{"alg":"ES256","x5c":["AA=="]}`),
		"critical":          protected(`{"alg":"ES256","crit":["b64"],"b64":false}`),
		"large":             `{"a":"` + strings.Repeat("a", mandate.MaxSize) + `"}`,
	} {
		if _, err := mandate.Parse([]byte(text)); !errors.Is(err, mandate.ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRealLists: a service of the Estonian list calls some of its certificates those of seals, and no published service issued the seal of these tests.
func TestRealLists(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "shared", "lists")
	journal, err := os.ReadFile(filepath.Join(folder, "oj-1.cert.pem"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("there is no ../shared/lists: the tests on real lists are skipped")
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := eutrust.Read(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	signers, err := eutrust.Journal(journal)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := files.Verify(eutrust.Options{Journal: signers})
	if err != nil {
		t.Fatal(err)
	}
	services := 0
	for _, l := range lists.National {
		services += len(l.Of(trustlist.QualifiedCertificates))
	}
	if len(lists.National) != 2 || services < 20 {
		t.Fatalf("%d lists with %d services", len(lists.National), services)
	}
	w := newWorld(t)
	w.grounds.Lists, w.grounds.Journal = lists, signers
	if w.grounds.Trust, err = w.grounds.Trust.Prepared(); err != nil {
		t.Fatal(err)
	}
	var finding *mandate.Finding
	if _, err := w.sign(t).Check(w.grounds); !errors.As(err, &finding) || finding.Rule != "service" {
		t.Error(err)
	}
}

// FuzzParse holds that what parses is written back alike, and that none of it is proved without the reader's grounds.
func FuzzParse(f *testing.F) {
	w := newWorld(f)
	doc, err := w.sign(f).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	w.lists(f)
	if w.grounds.Trust, err = (&trust.Trust{}).Prepared(); err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Fuzz(func(t *testing.T, doc []byte) {
		read, err := mandate.Parse(doc)
		if err != nil {
			return
		}
		once, err := read.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := mandate.Parse(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := again.Marshal(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s, then %s (%v)", once, twice, err)
		}
		if _, err := read.Check(w.grounds); err == nil {
			t.Fatal("proved without any trust")
		}
	})
}
