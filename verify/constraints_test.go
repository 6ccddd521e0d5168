package verify_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"math/big"
	"net/url"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// tlv is a value in DER of at most 127 bytes.
func tlv(tag byte, content ...[]byte) []byte {
	var all []byte
	for _, c := range content {
		all = append(all, c...)
	}
	if len(all) > 127 {
		panic("too long for a test")
	}
	return append([]byte{tag, byte(len(all))}, all...)
}

func email(text string) []byte    { return tlv(0x81, []byte(text)) }
func host(text string) []byte     { return tlv(0x82, []byte(text)) }
func uri(text string) []byte      { return tlv(0x86, []byte(text)) }
func address(b ...byte) []byte    { return tlv(0x87, b) }
func directory(n []byte) []byte   { return tlv(0xa4, n) }
func registered(b ...byte) []byte { return tlv(0x88, b) }
func other(id []byte, text string) []byte {
	return tlv(0xa0, tlv(6, id), tlv(0xa0, tlv(12, []byte(text))))
}

var (
	someID       = []byte{0x2a, 3, 4}
	smtpUTF8     = []byte{0x2b, 6, 1, 5, 5, 7, 8, 9}
	commonName   = []byte{0x55, 4, 3}
	organisation = []byte{0x55, 4, 10}
	mailInName   = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1}
)

// rdn is a relative distinguished name; tag is that of its string.
func rdn(id []byte, tag byte, text string) []byte {
	return tlv(0x31, tlv(0x30, tlv(6, id), tlv(tag, []byte(text))))
}

func distinguished(parts ...[]byte) []byte { return tlv(0x30, parts...) }

func wide(text string) string {
	var all []byte
	for _, r := range text {
		all = append(all, byte(r>>8), byte(r))
	}
	return string(all)
}

// subtrees writes name constraints.
func subtrees(permitted, excluded [][]byte) []byte {
	var lists [][]byte
	for i, list := range [][][]byte{permitted, excluded} {
		var all [][]byte
		for _, base := range list {
			all = append(all, tlv(0x30, base))
		}
		if len(all) > 0 {
			lists = append(lists, tlv(0xa0+byte(i), all...))
		}
	}
	return tlv(0x30, lists...)
}

// A constrained CA may certify some names only.
type constrained struct {
	name      string
	value     []byte
	unchecked bool // jurat does not check the kind, and refuses whatever OpenSSL says
}

func constraintCases() []constrained {
	bounded := tlv(0x30, tlv(0xa0, tlv(0x30, host("good.example"), tlv(0x80, []byte{1}))))
	good := distinguished(rdn(organisation, 12, "Good"))
	p := func(bases ...[]byte) []byte { return subtrees(bases, nil) }
	x := func(bases ...[]byte) []byte { return subtrees(nil, bases) }
	return []constrained{
		{"permitted directory", p(directory(good)), false},
		{"permitted directory, another string", p(directory(distinguished(rdn(organisation, 30, wide(" gOOD  "))))), false},
		{"permitted directory, deeper", p(directory(distinguished(rdn(organisation, 12, "Good"), rdn(commonName, 12, "signer")))), false},
		{"excluded directory", x(directory(good)), false},
		{"excluded directory, printable", x(directory(distinguished(rdn(organisation, 19, "GOOD")))), false},
		{"one of two directories", p(directory(distinguished(rdn(organisation, 12, "Best"))), directory(good)), false},
		{"permitted directory of two", p(directory(distinguished(tlv(0x31, tlv(0x30, tlv(6, commonName), tlv(12, []byte("good"))), tlv(0x30, tlv(6, organisation), tlv(19, []byte("GOOD"))))))), false},
		{"permitted Latin directory", p(directory(distinguished(rdn(organisation, 20, "good"), rdn(commonName, 12, "kelvin")))), false},
		{"permitted host of addresses", p(email("good.example")), false},
		{"permitted hosts of addresses", p(email(".good.example")), false},
		{"permitted address", p(email("a@good.example")), false},
		{"excluded host of addresses", x(email("good.example")), false},
		{"excluded address", x(email("a@good.example")), false},
		{"permitted host", p(host("good.example")), false},
		{"permitted hosts below", p(host(".good.example")), false},
		{"excluded host", x(host("good.example")), false},
		{"every host", p(host("")), false},
		{"permitted network", p(address(10, 0, 0, 0, 255, 0, 0, 0)), false},
		{"excluded network", x(address(10, 0, 0, 0, 255, 0, 0, 0)), false},
		{"permitted URI", p(uri("good.example")), false},
		{"excluded URI", x(uri("good.example")), false},
		{"hosts and directories", subtrees([][]byte{host("good.example"), directory(good)}, [][]byte{host("bad.good.example")}), false},
		{"permitted registered id", p(registered(someID...)), true},
		{"excluded registered id", x(registered(someID...)), true},
		{"permitted other name", p(other(someID, "x")), true},
		{"excluded other name", x(other(someID, "x")), true},
		{"a host and a registered id", p(host("good.example"), registered(someID...)), true},
		{"with a minimum", bounded, true},
	}
}

// A bearer is a signer with certain names beside that of the actor.
type bearer struct {
	name    string
	subject []byte
	names   [][]byte
}

func bearers() []bearer {
	plain := distinguished(rdn(commonName, 12, "signer"))
	good := distinguished(rdn(organisation, 12, "Good"), rdn(commonName, 12, "signer"))
	with := func(names ...[]byte) [][]byte { return names }
	return []bearer{
		{"plain", plain, nil},
		{"no subject", distinguished(), nil},
		{"good", good, nil},
		{"good, in another string", distinguished(rdn(organisation, 30, wide("good")), rdn(commonName, 19, "Signer ")), nil},
		{"evil", distinguished(rdn(organisation, 12, "Evil"), rdn(commonName, 12, "signer")), nil},
		{"good directory name", good, with(directory(good))},
		{"evil directory name", good, with(directory(distinguished(rdn(organisation, 12, "Evil"))))},
		{"good address in the subject", distinguished(rdn(organisation, 12, "Good"), rdn(mailInName, 22, "a@good.example")), nil},
		{"evil address in the subject", distinguished(rdn(organisation, 12, "Good"), rdn(mailInName, 22, "a@evil.example")), nil},
		{"address in another string", distinguished(rdn(mailInName, 12, "a@good.example")), nil},
		{"good address", good, with(email("a@good.example"))},
		{"address at a host below", good, with(email("a@sub.good.example"))},
		{"another address", good, with(email("A@GOOD.example"))},
		{"international address", good, with(other(smtpUTF8, "ä@good.example"))},
		{"host in the subject", distinguished(rdn(organisation, 12, "Good"), rdn(commonName, 12, "agent.evil.example")), nil},
		{"good host in the subject", distinguished(rdn(organisation, 12, "Good"), rdn(commonName, 12, "agent.good.example")), nil},
		{"host in the subject, and another", distinguished(rdn(organisation, 12, "Good"), rdn(commonName, 12, "agent.evil.example")), with(host("good.example"))},
		{"good host", good, with(host("a.good.example"))},
		{"evil host", good, with(host("notgood.example"))},
		{"host below an excluded one", good, with(host("x.bad.good.example"))},
		{"inside", good, with(address(10, 1, 2, 3))},
		{"outside", good, with(address(192, 168, 0, 1))},
		{"good URI", good, with(uri("https://good.example/x"))},
		{"URI below", good, with(uri("https://sub.good.example:8/x"))},
		{"URI with a colon in its path", good, with(uri("https://good.example/x:y"))},
		{"URI with a user", good, with(uri("https://a@good.example/"))},
		{"registered id", good, with(registered(someID...))},
		{"address without a host", good, with(email("good.example"))},
		{"Latin", distinguished(rdn(organisation, 20, "Good"), rdn(commonName, 20, "agent.good.example")), nil},
		{"other letters", distinguished(rdn(organisation, 12, "Good"), rdn(mailInName, 22, "a@GOOD.example"), rdn(commonName, 12, "\u212aelvin")), nil},
		{"two organisations in one", distinguished(tlv(0x31, tlv(0x30, tlv(6, commonName), tlv(12, []byte("Good"))), tlv(0x30, tlv(6, organisation), tlv(12, []byte("Good"))))), nil},
	}
}

// asBearer makes the signer of a world one, under a CA with constraints.
func (w *world) asBearer(c constrained, b bearer, critical bool) {
	w.actor = ""
	w.issuing.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 30}, Critical: critical, Value: c.value}}
	w.signer.RawSubject = b.subject
	names := append([][]byte{uri("urn:jurat:agent:a")}, b.names...)
	w.signer.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: len(b.subject) == 2, Value: tlv(0x30, names...)}}
}

// TestNameConstraintsAsOpenSSL: every kind of constraint, critical or not, on every kind of name. Of what jurat checks it says what OpenSSL says; the rest
// it refuses.
func TestNameConstraintsAsOpenSSL(t *testing.T) {
	r, o, public := certifiedRecord(t, output("a"))
	found := map[bool]int{}
	for _, c := range constraintCases() {
		for first := range 2 { // whether the constraints are critical
			var all []bearer
			var signers []*x509.Certificate
			w, record := newWorld(), *r
			var reader verify.Options
			for i, b := range bearers() {
				if i%2 != first {
					continue
				}
				if w.asBearer(c, b, first == 0); signers == nil {
					reader = w.build(t, &record, o, public)
				}
				all, signers = append(all, b), append(signers, certify(t, w.signer, public, w.made.issuing, w.made.issuingKey))
			}
			for i, says := range opensslAccepts(t, w.made.root, []*x509.Certificate{w.made.issuing}, w.made.lists, signers...) {
				record.Certificates = [][]byte{signers[i].Raw, w.made.issuing.Raw}
				got := verify.Record(&record, reader).Of(verify.Authentication)
				if want := says && !c.unchecked; want != (got.Status == verify.Proved) || got.Status == verify.Refuted {
					t.Errorf("%s, %s: openssl says %v, jurat %+v", c.name, all[i].name, says, got)
				}
				found[got.Status == verify.Proved]++
			}
		}
	}
	must.Hold(t, found[true] >= 100 && found[false] >= 100, "%d are proved, %d are not", found[true], found[false])
}

// A lineage is certificates from the root's to the signer's, each by the one before.
type lineage []*x509.Certificate

func newLineage(t *testing.T, public crypto.PublicKey, keys []crypto.Signer, templates ...*x509.Certificate) (all lineage) {
	t.Helper()
	signer := newWorld().signer
	signer.ExtraExtensions = []pkix.Extension{actorName(t, "urn:jurat:agent:a")}
	for i, template := range append(templates, signer) {
		template.SerialNumber = big.NewInt(int64(i + 1))
		of, by, name := public, 0, template
		if i < len(keys) {
			of = keys[i].Public()
		}
		if i > 0 {
			by, name = i-1, caTemplate(templates[i-1].Subject.CommonName, 1)
			// crypto/x509 writes no id of the issuer's key into a self-issued certificate.
			if of := templates[i-1].Subject.CommonName; of == template.Subject.CommonName && template.AuthorityKeyId == nil {
				template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 35}, Value: tlv(0x30, tlv(0x80, all[i-1].SubjectKeyId))})
			}
		}
		all = append(all, certify(t, template, of, certify(t, name, keys[by].Public(), name, keys[by]), keys[by]))
	}
	return all
}

// given puts the certificates into a record, and the root into the trust file.
func (l lineage) given(t *testing.T, r *evidence.Record, o verify.Options) verify.Options {
	r.Certificates = nil
	for _, c := range l[1:] {
		r.Certificates = append([][]byte{c.Raw}, r.Certificates...)
	}
	o.At = stamped
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Keys = nil
		trusted.CAs = []trust.CA{{Name: "root", Certificate: l[0].Raw, Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner, Revocation: trust.NotAsked}}
	})
	return o
}

// A lineageCase is a lineage, and whether it is accepted.
type lineageCase struct {
	name      string
	templates func() []*x509.Certificate
	keys      func(i int) crypto.Signer // nil: P-256
	proved    bool
	openssl   bool
}

func lineageCases(t *testing.T) []lineageCase {
	ca := func(name string, length int) *x509.Certificate {
		c := caTemplate(name, 1)
		c.MaxPathLen, c.MaxPathLenZero = length, length == 0
		return c
	}
	of := func(list ...*x509.Certificate) func() []*x509.Certificate {
		return func() []*x509.Certificate { return list }
	}
	limited := func(name string, value []byte) *x509.Certificate {
		c := caTemplate(name, 1)
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 30}, Value: value}}
		return c
	}
	rsaAt := func(at, bits int) func(int) crypto.Signer {
		return func(i int) crypto.Signer {
			if i != at {
				return newKey(t)
			}
			return must.Get(rsa.GenerateKey(rand.Reader, bits))(t)
		}
	}
	notA := subtrees(nil, [][]byte{directory(distinguished(rdn(commonName, 19, "A")))})
	return []lineageCase{
		{"one CA where one is allowed", of(ca("root", 1), ca("A", -1)), nil, true, true},
		{"two where one is allowed", of(ca("root", 1), ca("A", -1), ca("B", -1)), nil, false, false},
		{"a self-issued one more", of(ca("root", 1), ca("A", -1), ca("A", -1)), nil, true, true},
		{"a self-issued one where none is allowed below", of(ca("root", -1), ca("A", 0), ca("A", 0)), nil, true, true},
		{"another one where none is allowed below", of(ca("root", -1), ca("A", 0), ca("B", 0)), nil, false, false},
		{"the root, issued anew by itself", of(ca("root", 0), ca("root", 0)), nil, true, true},
		{"a self-issued one, and another", of(ca("root", 1), ca("A", -1), ca("A", -1), ca("B", -1)), nil, false, false},
		{"a CA of an excluded name", of(limited("root", notA), ca("A", -1)), nil, false, false},
		{"a self-issued CA of an excluded name", of(ca("root", -1), limited("A", notA), ca("A", -1)), nil, true, true},
		{"a self-issued root of an excluded name", of(limited("root", subtrees(nil, [][]byte{directory(distinguished(rdn(commonName, 19, "root")))})), ca("root", -1)), nil, true, true},
		{"a signer of an excluded name", of(ca("root", -1), limited("A", subtrees(nil, [][]byte{directory(distinguished(rdn(commonName, 19, "signer")))})), ca("A", -1)), nil, false, false},
		{"a self-issued one without the id of the other key", func() []*x509.Certificate {
			again := ca("A", -1)
			again.AuthorityKeyId = []byte{0}
			return []*x509.Certificate{ca("root", -1), ca("A", -1), again}
		}, nil, false, false},
		{"a CA of RSA-1024", of(ca("root", -1), ca("A", -1)), rsaAt(1, 1024), false, true},
		{"a root of RSA-1024", of(ca("root", -1), ca("A", -1)), rsaAt(0, 1024), false, true},
		{"a CA of RSA-2040", of(ca("root", -1), ca("A", -1)), rsaAt(1, 2040), false, true},
		{"a CA of RSA-2048", of(ca("root", -1), ca("A", -1)), rsaAt(1, 2048), true, true},
	}
}

func (l lineageCase) make(t *testing.T, public crypto.PublicKey) lineage {
	templates := l.templates()
	var keys []crypto.Signer
	for i := range templates {
		if l.keys == nil {
			keys = append(keys, newKey(t))
		} else {
			keys = append(keys, l.keys(i))
		}
	}
	return newLineage(t, public, keys, templates...)
}

// TestPathsAsOpenSSL: self-issued CAs count for no path length and are excepted from name constraints. Short keys vouch for nothing.
func TestPathsAsOpenSSL(t *testing.T) {
	for _, tt := range lineageCases(t) {
		r, o, public := certifiedRecord(t, output("a"))
		l := tt.make(t, public)
		got := verify.Record(r, l.given(t, r, o)).Of(verify.Authentication)
		says := opensslAccepts(t, l[0], l[1:len(l)-1], nil, l[len(l)-1])[0]
		must.Hold(t, says == tt.openssl && (got.Status == verify.Proved) == tt.proved, "%s: openssl says %v, jurat %+v", tt.name, says, got)
	}
}

// TestSecondVerifierOnPaths: the second verifier accepts the same paths.
func TestSecondVerifierOnPaths(t *testing.T) {
	t.Parallel()
	var demanded []demandedFile
	sealed, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
	public := must.Get(evidence.ParsePublicKey(o.Trust.Key(sealed.Payload.Signers[0].KeyID).PublicKey))(t)
	for _, tt := range lineageCases(t) {
		r := *sealed
		demanded = append(demanded, demandOf(t, tt.name, &r, tt.make(t, public).given(t, &r, o), "signed"))
	}
	n := 0
	for _, c := range constraintCases() {
		for i, b := range bearers() {
			if n++; n%29 != 0 {
				continue
			}
			r, w := *sealed, newWorld()
			w.trusted.Revocation = trust.NotAsked
			w.asBearer(c, b, i%2 == 0)
			o := w.build(t, &r, o, public)
			o.CRLs = nil
			demanded = append(demanded, demandOf(t, c.name+", "+b.name, &r, o, "signed"))
		}
	}
	for i, out := range several(t, demanded) {
		var found verify.Report
		err := json.Unmarshal([]byte(out), &found)
		want, got := demanded[i].report.Of(verify.Authentication), found.Of(verify.Authentication)
		if err != nil || got.Status != want.Status || got.Rule != want.Rule {
			t.Errorf("%s: %+v, want %+v: %v", demanded[i].name, got, want, err)
		}
	}
}

// stamped is the time of a House's records: its authority is the mock.
var stamped = jurattest.Start

var oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36}

// certify signs a certificate. If parent and key are the certificate's own, it is a root.
func certify(t testing.TB, template *x509.Certificate, public crypto.PublicKey, by *x509.Certificate, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der := must.Get(x509.CreateCertificate(rand.Reader, template, by, public, key))(t)
	return must.Get(x509.ParseCertificate(der))(t)
}

func caTemplate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(serial), NotBefore: stamped.AddDate(-1, 0, 0),
		NotAfter: stamped.AddDate(2, 0, 0), BasicConstraintsValid: true, IsCA: true, MaxPathLen: -1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
}

// A world is a record with a root that vouches for its signer through an issuing CA. A test changes one thing in it.
type world struct {
	actor   string // whom the signer's certificate names
	root    *x509.Certificate
	issuing *x509.Certificate // the other two are templates as well
	signer  *x509.Certificate
	lists   []*x509.RevocationList // templates of the root's and the issuing CA's
	trusted trust.CA
	clock   trust.Clock
	at      time.Time

	forgeIssuing bool // the issuing CA's certificate is not by the root
	forgeLists   bool // the lists are by others of the same names
	finish       func(*world, *evidence.Record, *verify.Options)

	made made
}

// made holds what build made from the templates.
type made struct {
	root, issuing, signer *x509.Certificate
	rootKey, issuingKey   *ecdsa.PrivateKey
	lists                 []*x509.RevocationList
}

func newWorld() *world {
	list := func() *x509.RevocationList {
		return &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(-time.Hour), NextUpdate: stamped.Add(48 * time.Hour)}
	}
	return &world{actor: "urn:jurat:agent:a", root: caTemplate("root", 1), issuing: caTemplate("issuing", 2),
		signer: &x509.Certificate{Subject: pkix.Name{CommonName: "signer"}, SerialNumber: big.NewInt(3), NotBefore: stamped.AddDate(0, -1, 0),
			NotAfter: stamped.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
			UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}},
		lists:   []*x509.RevocationList{list(), list()},
		trusted: trust.CA{Name: "Root CA", Roles: []evidence.Role{evidence.RoleAgent}, Custody: trust.ByOwner},
		clock:   trust.Independent, at: stamped.Add(24 * time.Hour)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// build makes certificates and lists from the templates, and puts them into the record and the options.
func (w *world) build(t testing.TB, r *evidence.Record, o verify.Options, public crypto.PublicKey) verify.Options {
	t.Helper()
	if w.actor != "" {
		uri := must.Get(url.Parse(w.actor))(t)
		w.signer.URIs = append(w.signer.URIs, uri)
	}
	rootKey, issuingKey := newKey(t), newKey(t)
	root := certify(t, w.root, rootKey.Public(), w.root, rootKey)
	certifier := rootKey
	if w.forgeIssuing {
		certifier = newKey(t)
	}
	// The signer here is a root with all rights: crypto/x509 refuses to make some certificates that the tests need.
	parent := certify(t, caTemplate(w.root.Subject.CommonName, 1), certifier.Public(), caTemplate(w.root.Subject.CommonName, 1), certifier)
	issuing := certify(t, w.issuing, issuingKey.Public(), parent, certifier)
	signer := certify(t, w.signer, public, issuing, issuingKey)

	w.made = made{root: root, issuing: issuing, signer: signer, rootKey: rootKey, issuingKey: issuingKey}
	for i, key := range []*ecdsa.PrivateKey{rootKey, issuingKey} {
		if i >= len(w.lists) || w.lists[i] == nil {
			continue
		}
		if w.forgeLists {
			key = newKey(t)
		}
		template := caTemplate([]string{w.root.Subject.CommonName, w.issuing.Subject.CommonName}[i], 1)
		by := certify(t, template, key.Public(), template, key)
		w.made.lists = append(w.made.lists, signList(t, w.lists[i], by, key))
	}
	r.Certificates = [][]byte{signer.Raw, issuing.Raw}
	w.trusted.Certificate = root.Raw
	o.At, o.CRLs = w.at, w.made.lists
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Keys, trusted.CAs = nil, []trust.CA{w.trusted}
		trusted.Authorities[0].Clock = w.clock
	})
	if w.finish != nil {
		w.finish(w, r, &o)
	}
	return o
}

func signList(t testing.TB, template *x509.RevocationList, by *x509.Certificate, key crypto.Signer) *x509.RevocationList {
	t.Helper()
	der := must.Get(x509.CreateRevocationList(rand.Reader, template, by, key))(t)
	return must.Get(trust.ParseCRL(der))(t)
}

// reread is the trust as its file has it.
func reread(t testing.TB, trusted *trust.Trust) *trust.Trust {
	t.Helper()
	return must.Get(trust.Parse(must.Get(trusted.Marshal())(t)))(t)
}

// changedTrust returns a changed copy of a trust file, parsed again.
func changedTrust(t testing.TB, trusted *trust.Trust, change func(*trust.Trust)) *trust.Trust {
	t.Helper()
	parsed := reread(t, trusted)
	change(parsed)
	return reread(t, parsed)
}

// certifiedRecord is a record, what its House trusts, and the key of its signer.
func certifiedRecord(t *testing.T, p evidence.Payload) (*evidence.Record, verify.Options, crypto.PublicKey) {
	t.Helper()
	r, o := standalone(t, p)
	public := must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)
	return r, o, public
}

// extension makes an unknown extension.
func extension(critical bool) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}, Critical: critical, Value: []byte{5, 0}}
}

// revocationOf makes a list's entry. The reason 0 is left out.
func revocationOf(serial int64, when time.Time, reason int, extensions ...pkix.Extension) x509.RevocationListEntry {
	return x509.RevocationListEntry{SerialNumber: big.NewInt(serial), RevocationTime: when, ReasonCode: max(reason, 0), ExtraExtensions: extensions}
}

// dateExtension is invalidityDate (24) of an entry, or expiredCertsOnCRL (60) of a list.
func dateExtension(t testing.TB, id int, when time.Time) pkix.Extension {
	t.Helper()
	value := must.Get(asn1.MarshalWithParams(when.UTC(), "generalized"))(t)
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, id}, Value: value}
}
