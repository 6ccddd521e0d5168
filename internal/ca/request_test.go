package ca

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

var testCheckpoint = operator.Checkpoint{Origin: "jurat/log/test", Size: 17, Root: tlog.Hash{1, 2, 3}}

func testChallenge(t testing.TB) *Challenge {
	t.Helper()
	c, err := ChallengeOf(testCheckpoint)
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func TestRequests(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"ES256": testKey(t), "RS256": rsaKey(t), "Ed25519": ed25519Key(t)} {
		for _, challenge := range []*Challenge{nil, testChallenge(t)} {
			for _, actor := range []string{"mia", "order desk / №1", strings.Repeat("n", 200)} {
				der, err := MakeRequest(key, evidence.RoleReviewer, actor, challenge)
				if err != nil {
					t.Fatal(err)
				}
				id, err := evidence.KeyIDOf(key.Public())
				if err != nil {
					t.Fatal(err)
				}
				for _, doc := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: PEMRequest, Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "NEW " + PEMRequest, Bytes: der})} {
					r, err := ParseRequest(doc)
					if err != nil || r.Role != evidence.RoleReviewer || r.Name != actor || r.KeyID != id || (r.Challenge == nil) != (challenge == nil) || challenge != nil && *r.Challenge != *challenge {
						t.Errorf("%s: %+v, %v", name, r, err)
					}
				}
			}
		}
	}
}

func TestSecondKeysHaveNoCertificates(t *testing.T) {
	var seed [32]byte
	_, err := MakeRequest(evidence.NewMLDSA65(&seed), evidence.RoleAgent, "mia", nil)
	var field *evidence.FieldError
	if !errors.As(err, &field) || field.Field != "subjectPublicKeyInfo" || !strings.Contains(field.Reason, "ML-DSA-65") {
		t.Error(err)
	}
	// Such a request by another program.
	spki, err := evidence.MarshalPublicKey(evidence.NewMLDSA65(&seed).Public())
	if err != nil {
		t.Fatal(err)
	}
	good, err := MakeRequest(testKey(t), evidence.RoleAgent, "mia", nil)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(good)
	if err != nil {
		t.Fatal(err)
	}
	var content asn1.RawValue
	if _, err := asn1.Unmarshal(parsed.RawTBSCertificateRequest, &content); err != nil {
		t.Fatal(err)
	}
	content.Bytes, content.FullBytes = bytes.Replace(content.Bytes, parsed.RawSubjectPublicKeyInfo, spki, 1), nil
	info, err := asn1.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := asn1.Marshal(struct {
		Info      asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: info}, pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3, 18}}, asn1.BitString{Bytes: make([]byte, 3309), BitLength: 8 * 3309}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseRequest(forged); !errors.As(err, &field) || field.Field != "subjectPublicKeyInfo" || !strings.Contains(field.Reason, "ML-DSA-65") {
		t.Error(err)
	}
}

// TestEveryByteOfARequestCounts: the signature covers all of it.
func TestEveryByteOfARequestCounts(t *testing.T) {
	der, err := MakeRequest(testKey(t), evidence.RoleAgent, "mia", testChallenge(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range der {
		changed := bytes.Clone(der)
		changed[i] ^= 1
		if r, err := ParseRequest(changed); err == nil {
			t.Errorf("byte %d: %+v", i, r)
		}
		if r, err := ParseRequest(der[:i]); err == nil {
			t.Errorf("cut at %d: %+v", i, r)
		}
	}
	if _, err := ParseRequest(append(bytes.Clone(der), 0)); err == nil {
		t.Error("a byte after it is accepted")
	}
}

// TestHostileRequests breaks each rule by itself, with a signature that holds.
func TestHostileRequests(t *testing.T) {
	key := testKey(t)
	uri := func(text string) []*url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return []*url.URL{u}
	}
	mia := uri("urn:jurat:agent:mia")
	extension := func(id asn1.ObjectIdentifier, value any) []pkix.Extension {
		der, err := asn1.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return []pkix.Extension{{Id: id, Value: der}}
	}
	p384, weak := p384Key(t), weakRSAKey(t)
	for _, test := range []struct {
		name, field string
		key         crypto.Signer
		template    x509.CertificateRequest
	}{
		{"as it should be", "", key, x509.CertificateRequest{URIs: mia}},
		{"what the CA gives anyway", "", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: append(append(
			extension(oidExtKeyUsage, []asn1.ObjectIdentifier{oidDocumentSigning}), extension(oidKeyUsage, asn1.BitString{Bytes: []byte{0x80}, BitLength: 1})...),
			extension(oidBasicConstraints, struct{}{})...)}},
		{"no name", "subjectAltName", key, x509.CertificateRequest{}},
		{"two names", "subjectAltName", key, x509.CertificateRequest{URIs: append(uri("urn:jurat:agent:ben"), mia...)}},
		{"a host beside it", "subjectAltName", key, x509.CertificateRequest{URIs: mia, DNSNames: []string{"mia.example"}}},
		{"another URI", "subjectAltName", key, x509.CertificateRequest{URIs: uri("https://mia.example")}},
		{"an unknown role", "subjectAltName", key, x509.CertificateRequest{URIs: uri("urn:jurat:boss:mia")}},
		{"no name after the role", "subjectAltName", key, x509.CertificateRequest{URIs: uri("urn:jurat:agent:")}},
		{"another form of the name", "subjectAltName", key, x509.CertificateRequest{URIs: uri("urn:jurat:agent:%6dia")}},
		{"capitals", "subjectAltName", key, x509.CertificateRequest{URIs: uri("urn:JURAT:agent:mia")}},
		{"a CA", "extensionRequest", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: extension(oidBasicConstraints, struct{ CA bool }{true})}},
		{"to sign certificates", "extensionRequest", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: extension(oidKeyUsage, asn1.BitString{Bytes: []byte{0x84}, BitLength: 6})}},
		{"to be a server", "extensionRequest", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: extension(oidExtKeyUsage, []asn1.ObjectIdentifier{oidDocumentSigning, {1, 3, 6, 1, 5, 5, 7, 3, 1}})}},
		{"never to be revoked", "extensionRequest", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: []pkix.Extension{{Id: oidNoRevAvail, Value: asn1.NullBytes}}}},
		{"an extension twice", "request", key, x509.CertificateRequest{URIs: mia, ExtraExtensions: append(extension(oidBasicConstraints, struct{}{}), extension(oidBasicConstraints, struct{}{})...)}},
		{"P-384", "subjectPublicKeyInfo", p384, x509.CertificateRequest{URIs: mia}},
		{"RSA of 1024 bits", "subjectPublicKeyInfo", weak, x509.CertificateRequest{URIs: mia}},
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &test.template, test.key)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		r, err := ParseRequest(der)
		var field *evidence.FieldError
		switch {
		case test.field == "" && (err != nil || r.Name != "mia"):
			t.Errorf("%s: %+v, %v", test.name, r, err)
		case test.field != "" && (!errors.As(err, &field) || field.Field != test.field):
			t.Errorf("%s: %v, want one about %s", test.name, err, test.field)
		}
	}
}

// TestHostileAttributes: the attributes that crypto/x509 does not read are read strictly.
func TestHostileAttributes(t *testing.T) {
	key := testKey(t)
	good := testChallenge(t).String()
	text := func(tag int, s string) []byte {
		der, err := asn1.Marshal(asn1.RawValue{Tag: tag, Bytes: []byte(s)})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	alternative, err := alternativeName(trust.Identity(evidence.RoleAgent, "mia"))
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := asn1.Marshal([]pkix.Extension{alternative})
	if err != nil {
		t.Fatal(err)
	}
	name := attribute(oidExtensionRequest, extensions)
	unstructured := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 2}
	for _, test := range []struct {
		name, field string
		attributes  [][]byte
	}{
		{"as it should be", "", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, good))}},
		{"as OpenSSL writes it", "", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagPrintableString, good))}},
		{"a password", "challengePassword", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, "secret"))}},
		{"no text", "challengePassword", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagOctetString, good))}},
		{"a size with a sign", "challengePassword", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, strings.Replace(good, "17", "+17", 1)))}},
		{"a size below zero", "challengePassword", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, strings.Replace(good, "17", "-17", 1)))}},
		{"a digest in capitals", "challengePassword", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, strings.ToUpper(good)))}},
		{"two challenges", "attributes", [][]byte{name, attribute(oidChallengePassword, text(asn1.TagUTF8String, good)), attribute(oidChallengePassword, text(asn1.TagUTF8String, good))}},
		{"two challenges in one", "attributes", [][]byte{name, attribute(oidChallengePassword, append(text(asn1.TagUTF8String, good), text(asn1.TagUTF8String, good)...))}},
		{"two names", "request", [][]byte{name, name}},
		{"an empty attribute", "attributes", [][]byte{name, attribute(oidChallengePassword, nil)}},
		{"an unknown attribute", "attributes", [][]byte{name, attribute(unstructured, text(asn1.TagUTF8String, "what"))}},
		{"none", "subjectAltName", nil},
	} {
		_, err := ParseRequest(signedRequest(t, key, test.attributes))
		var field *evidence.FieldError
		switch {
		case test.field == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.field != "" && (!errors.As(err, &field) || field.Field != test.field):
			t.Errorf("%s: %v, want one about %s", test.name, err, test.field)
		}
	}
}

// signedRequest is a request with these attributes.
func signedRequest(t *testing.T, key crypto.Signer, attributes [][]byte) []byte {
	t.Helper()
	spki, err := evidence.MarshalPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	info, err := asn1.Marshal(struct {
		Version    int
		Subject    pkix.RDNSequence
		Public     asn1.RawValue
		Attributes asn1.RawValue
	}{0, pkix.RDNSequence{}, asn1.RawValue{FullBytes: spki}, asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: bytes.Join(attributes, nil)}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := evidence.NewSigner(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(info)
	if err != nil {
		t.Fatal(err)
	}
	algorithm, err := algorithmID(evidence.ES256)
	if err != nil {
		t.Fatal(err)
	}
	der, err := asn1.Marshal(struct {
		Info, Algorithm asn1.RawValue
		Signature       asn1.BitString
	}{asn1.RawValue{FullBytes: info}, asn1.RawValue{FullBytes: algorithm}, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestChallenges(t *testing.T) {
	c := testChallenge(t)
	if again, err := ParseChallenge(c.String()); err != nil || again != *c {
		t.Errorf("%+v, %v", again, err)
	}
	other := testCheckpoint
	other.Origin = "another/log"
	if o, err := ChallengeOf(other); err != nil || o.Digest == c.Digest {
		t.Error("two logs have the same challenge")
	}
	for _, wrong := range []string{"", "checkpoint", "17 " + c.Digest.String(), "checkpoint 17", "checkpoint 17  " + c.Digest.String(), c.String() + " ", "checkpoint 9223372036854775808 " + c.Digest.String()} {
		if _, err := ParseChallenge(wrong); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

// FuzzParseRequest: what parses asks for an actor's certificate in the one form, whatever the bytes.
func FuzzParseRequest(f *testing.F) {
	for _, challenge := range []*Challenge{nil, testChallenge(f)} {
		der, err := MakeRequest(testKey(f), evidence.RoleAgent, "mia", challenge)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
		f.Add(pem.EncodeToMemory(&pem.Block{Type: PEMRequest, Bytes: der}))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, err := ParseRequest(doc)
		if err != nil {
			var field *evidence.FieldError
			if !errors.As(err, &field) || field.Reason == "" {
				t.Fatalf("%v names no part of the request", err)
			}
			return
		}
		role, name, err := trust.ParseIdentity(trust.Identity(r.Role, r.Name))
		if err != nil || role != r.Role || name != r.Name || r.Public == nil || r.KeyID.IsZero() {
			t.Fatalf("%+v, %v", r, err)
		}
	})
}

// FuzzRequestAttributes puts any bytes in place of the attributes, under a signature that holds.
func FuzzRequestAttributes(f *testing.F) {
	key := ed25519Key(f)
	alternative, err := alternativeName(trust.Identity(evidence.RoleAgent, "mia"))
	if err != nil {
		f.Fatal(err)
	}
	extensions, err := asn1.Marshal([]pkix.Extension{alternative})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(attribute(oidExtensionRequest, extensions))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, attributes []byte) {
		info, err := asn1.Marshal(struct {
			Content    asn1.RawValue
			Attributes asn1.RawValue
		}{asn1.RawValue{Tag: asn1.TagInteger, Bytes: []byte{0}}, asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: attributes}})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := attributesOf(info); err == nil && len(found) > 0 {
			t.Fatal("a request without a subject was read")
		}
		spki, err := evidence.MarshalPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		whole, err := asn1.Marshal(struct {
			Version    int
			Subject    pkix.RDNSequence
			Public     asn1.RawValue
			Attributes asn1.RawValue
		}{0, nil, asn1.RawValue{FullBytes: spki}, asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: attributes}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := attributesOf(whole)
		if err != nil {
			return
		}
		if value, is := found[oidChallengePassword.String()]; is {
			r := new(Request)
			if r.readChallenge(value) == nil && r.Challenge == nil {
				t.Fatal("a challenge was read and is not there")
			}
		}
	})
}
