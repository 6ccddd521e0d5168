package verify_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// An ocspDraft is an OCSP response to be signed. Its zero members are left out.
type ocspDraft struct {
	signer    crypto.Signer
	responder *x509.Certificate   // by whose key it is signed
	byName    bool                // it names the responder by name, and not by key
	with      []*x509.Certificate // that come with it
	hash      crypto.Hash         // that names the issuer; zero: SHA-1
	weak      bool                // signed with SHA-1

	certificate, issuer *x509.Certificate
	status              int // 0: good, 1: revoked, 2: unknown
	revoked             time.Time
	reason              int // of a revocation; negative: none is stated
	from, until         time.Time
	produced            time.Time // zero: from
	single, extensions  []pkix.Extension
	twice               bool // it has its answer twice
	many                int  // so many answers about the same number of another CA's

	signed []byte // what build signed
}

type algorithmIdentifier struct {
	Algorithm  asn1.ObjectIdentifier
	Parameters asn1.RawValue `asn1:"optional"`
}

type certID struct {
	Hash   algorithmIdentifier
	Name   []byte
	Key    []byte
	Serial *big.Int
}

type singleResponse struct {
	ID         certID
	Status     asn1.RawValue
	From       time.Time        `asn1:"generalized"`
	Until      time.Time        `asn1:"generalized,explicit,tag:0,optional"`
	Extensions []pkix.Extension `asn1:"explicit,tag:1,optional"`
}

type responseData struct {
	Responder  asn1.RawValue
	Produced   time.Time `asn1:"generalized"`
	Answers    []singleResponse
	Extensions []pkix.Extension `asn1:"explicit,tag:1,optional"`
}

func der(t testing.TB, v any, params ...string) []byte {
	t.Helper()
	if len(params) == 0 {
		params = []string{""}
	}
	out, err := asn1.MarshalWithParams(v, params[0])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func keyBitsOf(t testing.TB, c *x509.Certificate) []byte {
	t.Helper()
	var spki struct {
		Algorithm algorithmIdentifier
		Bits      asn1.BitString
	}
	if _, err := asn1.Unmarshal(c.RawSubjectPublicKeyInfo, &spki); err != nil {
		t.Fatal(err)
	}
	return spki.Bits.Bytes
}

// wrapped is a value with a constructed context tag.
func wrapped(tag int, content []byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: true, Bytes: content}
}

func (d *ocspDraft) statusValue(t testing.TB) asn1.RawValue {
	switch d.status {
	case 1:
		content := der(t, d.revoked.UTC(), "generalized")
		if d.reason >= 0 {
			content = append(content, der(t, wrapped(0, der(t, asn1.Enumerated(d.reason))))...)
		}
		return wrapped(1, content)
	default:
		return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: d.status}
	}
}

// build signs the response.
func (d *ocspDraft) build(t testing.TB) []byte {
	t.Helper()
	hash, name := crypto.SHA1, asn1.ObjectIdentifier{1, 3, 14, 3, 2, 26}
	if d.hash == crypto.SHA256 {
		hash, name = d.hash, asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	}
	digest := func(h crypto.Hash, of []byte) []byte {
		sum := h.New()
		sum.Write(of)
		return sum.Sum(nil)
	}
	single := singleResponse{ID: certID{Hash: algorithmIdentifier{name, asn1.NullRawValue}, Name: digest(hash, d.certificate.RawIssuer), Key: digest(hash, keyBitsOf(t, d.issuer)),
		Serial: d.certificate.SerialNumber}, Status: d.statusValue(t), From: d.from.UTC(), Until: d.until.UTC(), Extensions: d.single}
	keyHash := sha1.Sum(keyBitsOf(t, d.responder))
	data := responseData{Responder: wrapped(2, der(t, keyHash[:])), Produced: d.produced.UTC(), Answers: []singleResponse{single}, Extensions: d.extensions}
	if d.byName {
		data.Responder = wrapped(1, d.responder.RawSubject)
	}
	if d.produced.IsZero() {
		data.Produced = d.from.UTC()
	}
	if d.twice {
		data.Answers = append(data.Answers, single)
	}
	for range d.many {
		other := single
		other.ID.Key, other.Until = nil, time.Time{}
		data.Answers = append(data.Answers, other)
	}
	tbs := der(t, data)
	d.signed = bytes.Clone(tbs)
	by, algorithm := crypto.SHA256, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	if d.weak {
		by, algorithm = crypto.SHA1, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1}
	}
	signature, err := d.signer.Sign(rand.Reader, digest(by, tbs), by)
	if err != nil {
		t.Fatal(err)
	}
	basic := append(tbs, der(t, algorithmIdentifier{Algorithm: algorithm})...)
	basic = append(basic, der(t, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)})...)
	if d.with != nil {
		var certificates []byte
		for _, c := range d.with {
			certificates = append(certificates, c.Raw...)
		}
		basic = append(basic, der(t, wrapped(0, sequence(t, certificates)))...)
	}
	body := append(der(t, asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}), der(t, sequence(t, basic))...)
	return sequence(t, append(der(t, asn1.Enumerated(0)), der(t, wrapped(0, sequence(t, body)))...))
}

func sequence(t testing.TB, content []byte) []byte {
	t.Helper()
	return der(t, asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSequence, IsCompound: true, Bytes: content})
}

// good is a response by the issuing CA itself, from a moment on, that the signer's certificate is not revoked.
func (w *world) good(from time.Time) *ocspDraft {
	return &ocspDraft{signer: w.made.issuingKey, responder: w.made.issuing, certificate: w.made.signer, issuer: w.made.issuing, reason: -1,
		from: from, until: from.Add(time.Hour)}
}

func parsedOCSP(t testing.TB, doc []byte) *trust.Response {
	t.Helper()
	r, err := trust.ParseOCSP(doc)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// delegated makes a certificate of a responder, with a template that a test may change, and has it sign.
func (w *world) delegated(t testing.TB, d *ocspDraft, change func(c *x509.Certificate)) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "responder"}, SerialNumber: big.NewInt(20), NotBefore: stamped, NotAfter: stamped.AddDate(0, 2, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}, Value: []byte{5, 0}}}}
	by, byKey := w.made.issuing, w.made.issuingKey
	if change != nil {
		change(template)
	}
	if template.Subject.CommonName == "of the root" {
		by, byKey = w.made.root, w.made.rootKey
	}
	// crypto/x509 refuses to sign with a CA that may not, so the issuer here is one of the same name and key that may.
	parent := certify(t, caTemplate(by.Subject.CommonName, 1), byKey.Public(), caTemplate(by.Subject.CommonName, 1), byKey)
	d.responder, d.signer = certify(t, template, key.Public(), parent, byKey), key
	d.with = []*x509.Certificate{d.responder}
}

func pemOf(t testing.TB, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(doc)
	if block == nil {
		t.Fatalf("%s is not PEM", name)
	}
	return block.Bytes
}

func parsedCertificate(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ecKey(t testing.TB, name string) crypto.Signer {
	t.Helper()
	key, err := evidence.ParsePrivateKey(pemOf(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
