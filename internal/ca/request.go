package ca

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

var (
	oidChallengePassword = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}  // RFC 2985, section 5.4.1
	oidExtensionRequest  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14} // RFC 2985, section 5.4.2
	oidKeyUsage          = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidBasicConstraints  = asn1.ObjectIdentifier{2, 5, 29, 19}
	oidExtKeyUsage       = asn1.ObjectIdentifier{2, 5, 29, 37}
	oidSubjectKeyID      = asn1.ObjectIdentifier{2, 5, 29, 14}
)

// A Request is a certificate request (PKCS #10, RFC 2986) by the holder of a key.
type Request struct {
	Role      evidence.Role
	Name      string
	KeyID     evidence.KeyID
	Public    crypto.PublicKey
	Challenge *Challenge // what it knew of the log when it was made; nil: nothing
}

// A Challenge names a checkpoint of a log. Only a holder of that checkpoint knows its digest, so the request was made after it.
type Challenge struct {
	Size   int64           // of the log
	Digest evidence.Digest // of the checkpoint's text, as operator.FormatCheckpoint writes it
}

// ChallengeOf names a checkpoint. It returns an error for one that no log can sign.
func ChallengeOf(c operator.Checkpoint) (Challenge, error) {
	text, err := operator.FormatCheckpoint(c)
	if err != nil {
		return Challenge{}, err
	}
	return Challenge{Size: c.Size, Digest: evidence.DigestOf([]byte(text))}, nil
}

// challengePrefix begins the challengePassword of requests for a certificate of this kind.
const challengePrefix = "checkpoint "

// String writes a challenge as it stands in the attribute challengePassword.
func (c Challenge) String() string {
	return challengePrefix + strconv.FormatInt(c.Size, 10) + " " + c.Digest.String()
}

// ParseChallenge reads what String writes, and nothing else.
func ParseChallenge(text string) (Challenge, error) {
	var c Challenge
	size, digest, _ := strings.Cut(strings.TrimPrefix(text, challengePrefix), " ")
	var sizeErr, digestErr error
	c.Size, sizeErr = strconv.ParseInt(size, 10, 64)
	digestErr = c.Digest.UnmarshalText([]byte(digest))
	if sizeErr != nil || digestErr != nil || c.Size < 0 || c.String() != text {
		return Challenge{}, fmt.Errorf("%q is not %q, the size of a log, a blank and the digest of its checkpoint", evidence.Abbreviate(text), strings.TrimSpace(challengePrefix))
	}
	return c, nil
}

// PEMRequest is the type of a request in PEM.
const PEMRequest = "CERTIFICATE REQUEST"

// MakeRequest asks for a certificate for a key, which signs the request, and for this actor. It returns DER.
func MakeRequest(key crypto.Signer, role evidence.Role, name string, challenge *Challenge) ([]byte, error) {
	der, err := makeRequest(key, role, name, challenge)
	if err == nil {
		_, err = ParseRequest(der) // what is refused by every CA is refused here
	}
	if err != nil {
		return nil, fmt.Errorf("making certificate request: %w", err)
	}
	return der, nil
}

func makeRequest(key crypto.Signer, role evidence.Role, name string, challenge *Challenge) ([]byte, error) {
	signer, err := evidence.NewSigner(key, nil)
	if err != nil {
		return nil, err
	}
	algorithm, err := algorithmID(signer.Info().Algorithm)
	if err != nil {
		return nil, err
	}
	info, err := requestInfo(key.Public(), role, name, challenge)
	if err != nil {
		return nil, err
	}
	signature, err := signer.Sign(info)
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(struct {
		Info      asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: info}, asn1.RawValue{FullBytes: algorithm}, asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}})
}

// algorithmID is the AlgorithmIdentifier of a signature.
func algorithmID(algorithm evidence.Algorithm) ([]byte, error) {
	id := pkix.AlgorithmIdentifier{}
	switch algorithm {
	case evidence.ES256:
		id.Algorithm = asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}
	case evidence.RS256:
		id.Algorithm, id.Parameters = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, asn1.NullRawValue
	case evidence.Ed25519:
		id.Algorithm = asn1.ObjectIdentifier{1, 3, 101, 112}
	default:
		return nil, errSecondKey(algorithm)
	}
	return asn1.Marshal(id)
}

func errSecondKey(algorithm evidence.Algorithm) error {
	return &evidence.FieldError{Field: "subjectPublicKeyInfo", Reason: fmt.Sprintf("a key for %s: verifiers take no certificate for it. Register it beside the key that the certificate is for", algorithm)}
}

// requestInfo is the CertificationRequestInfo of RFC 2986, section 4.1. crypto/x509 cannot write the attribute challengePassword.
func requestInfo(public crypto.PublicKey, role evidence.Role, name string, challenge *Challenge) ([]byte, error) {
	spki, err := evidence.MarshalPublicKey(public)
	if err != nil {
		return nil, err
	}
	subject, err := asn1.Marshal(pkix.Name{CommonName: subject(&wish{name: name}).CommonName}.ToRDNSequence())
	if err != nil {
		return nil, err
	}
	alternative, err := alternativeName(trust.Identity(role, name))
	if err != nil {
		return nil, err
	}
	extensions, err := asn1.Marshal([]pkix.Extension{alternative})
	if err != nil {
		return nil, err
	}
	attributes := [][]byte{attribute(oidExtensionRequest, extensions)}
	if challenge != nil {
		var text cryptobyte.Builder
		text.AddASN1(cbasn1.UTF8String, func(b *cryptobyte.Builder) { b.AddBytes([]byte(challenge.String())) })
		attributes = append(attributes, attribute(oidChallengePassword, text.BytesOrPanic()))
	}
	slices.SortFunc(attributes, bytes.Compare) // a SET OF in DER
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(0) // v1
		b.AddBytes(subject)
		b.AddBytes(spki)
		b.AddASN1(cbasn1.Tag(0).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) {
			for _, one := range attributes {
				b.AddBytes(one)
			}
		})
	})
	return b.Bytes()
}

// attribute is an attribute with one value.
func attribute(id asn1.ObjectIdentifier, value []byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(id)
		b.AddASN1(cbasn1.SET, func(b *cryptobyte.Builder) { b.AddBytes(value) })
	})
	return b.BytesOrPanic()
}

// MaxRequest is the size in bytes of the largest request.
const MaxRequest = 16 << 10

// ParseRequest reads a request in DER, or in PEM, and checks that the holder of its key signed it. It refuses what the CA would not put
// into a certificate, rather than drop it. Its errors are *evidence.FieldError, with the part of the request that is wrong.
func ParseRequest(doc []byte) (*Request, error) {
	der, err := requestDER(doc)
	if err != nil {
		return nil, &evidence.FieldError{Field: "request", Reason: err.Error()}
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, &evidence.FieldError{Field: "request", Reason: err.Error()}
	}
	r := &Request{KeyID: evidence.DigestOf(parsed.RawSubjectPublicKeyInfo)}
	if r.Public, err = evidence.ParsePublicKey(parsed.RawSubjectPublicKeyInfo); err != nil {
		return nil, &evidence.FieldError{Field: "subjectPublicKeyInfo", Reason: err.Error()}
	}
	if algorithm, err := evidence.AlgorithmOf(r.Public); err != nil || algorithm.PostQuantum() {
		return nil, errSecondKey(algorithm)
	}
	if err := signed(parsed); err != nil {
		return nil, &evidence.FieldError{Field: "signature", Reason: err.Error()}
	}
	return r, r.readAttributes(parsed)
}

// requestDER returns the DER of a request.
func requestDER(doc []byte) ([]byte, error) {
	const sequence = 0x30 // with which every request in DER begins
	if len(doc) > MaxRequest {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(doc), MaxRequest)
	}
	if len(doc) > 0 && doc[0] == sequence {
		return doc, nil
	}
	block, rest := pem.Decode(doc)
	switch {
	case block == nil:
		return nil, errors.New("neither DER nor PEM")
	case block.Type != PEMRequest && block.Type != "NEW "+PEMRequest:
		return nil, fmt.Errorf("the PEM block is a %q: want %q", evidence.Abbreviate(block.Type), PEMRequest)
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more text after the PEM block: want one request")
	}
	return block.Bytes, nil
}

// signed checks the signature by which the sender shows that it holds the key.
func signed(r *x509.CertificateRequest) error {
	switch r.SignatureAlgorithm {
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519:
		return r.CheckSignature()
	}
	return fmt.Errorf("signed with %s", r.SignatureAlgorithm)
}

// readAttributes reads the attributes, which crypto/x509 reads only in part.
func (r *Request) readAttributes(parsed *x509.CertificateRequest) error {
	attributes, err := attributesOf(parsed.RawTBSCertificateRequest)
	if err != nil {
		return &evidence.FieldError{Field: "attributes", Reason: err.Error()}
	}
	for id, value := range attributes {
		switch id {
		case oidExtensionRequest.String():
		case oidChallengePassword.String():
			if err := r.readChallenge(value); err != nil {
				return &evidence.FieldError{Field: "challengePassword", Reason: err.Error()}
			}
		default:
			return &evidence.FieldError{Field: "attributes", Reason: "the attribute " + id + " is unknown: want extensionRequest and challengePassword"}
		}
	}
	return r.readExtensions(parsed)
}

// attributesOf returns each attribute's one value, by its identifier.
func attributesOf(info []byte) (map[string]cryptobyte.String, error) {
	input, found := cryptobyte.String(info), map[string]cryptobyte.String{}
	var content, attributes cryptobyte.String
	wrong := errors.New("they cannot be read: want each attribute once, with one value")
	if !input.ReadASN1(&content, cbasn1.SEQUENCE) || !content.SkipASN1(cbasn1.INTEGER) || !content.SkipASN1(cbasn1.SEQUENCE) || !content.SkipASN1(cbasn1.SEQUENCE) ||
		!content.ReadASN1(&attributes, cbasn1.Tag(0).ContextSpecific().Constructed()) || !content.Empty() {
		return nil, wrong
	}
	for !attributes.Empty() {
		var one, values, value cryptobyte.String
		var id asn1.ObjectIdentifier
		var tag cbasn1.Tag
		if !attributes.ReadASN1(&one, cbasn1.SEQUENCE) || !one.ReadASN1ObjectIdentifier(&id) || !one.ReadASN1(&values, cbasn1.SET) || !one.Empty() ||
			!values.ReadAnyASN1Element(&value, &tag) || !values.Empty() || found[id.String()] != nil {
			return nil, wrong
		}
		found[id.String()] = value
	}
	return found, nil
}

// readChallenge reads the value of a challengePassword. OpenSSL writes a PrintableString where it can.
func (r *Request) readChallenge(value cryptobyte.String) error {
	var text cryptobyte.String
	var tag cbasn1.Tag
	if !value.ReadAnyASN1(&text, &tag) || tag != cbasn1.UTF8String && tag != cbasn1.PrintableString || !utf8.Valid(text) {
		return errors.New("want a PrintableString or a UTF8String")
	}
	challenge, err := ParseChallenge(string(text))
	if err != nil {
		return err
	}
	r.Challenge = &challenge
	return nil
}

// readExtensions reads the name, and refuses extensions that ask for anything else than the CA gives.
func (r *Request) readExtensions(parsed *x509.CertificateRequest) error {
	asked := map[string]bool{}
	for _, e := range parsed.Extensions {
		id := e.Id.String()
		if asked[id] {
			return &evidence.FieldError{Field: "extensionRequest", Reason: "the extension " + id + " is there twice"}
		}
		asked[id] = true
		if err := r.readExtension(e); err != nil {
			return err
		}
	}
	if r.Name == "" {
		return &evidence.FieldError{Field: "subjectAltName", Reason: "missing: want one URI urn:jurat:ROLE:NAME"}
	}
	return nil
}

func (r *Request) readExtension(e pkix.Extension) (err error) {
	field := "extensionRequest"
	switch {
	case e.Id.Equal(oidSubjectAltName):
		field = "subjectAltName"
		err = r.readName(e.Value)
	case e.Id.Equal(oidKeyUsage):
		err = only(e.Value, []byte{0x03, 0x02, 0x07, 0x80}, "key usage: want digitalSignature alone")
	case e.Id.Equal(oidExtKeyUsage):
		want, failed := asn1.Marshal([]asn1.ObjectIdentifier{oidDocumentSigning})
		err = errors.Join(failed, only(e.Value, want, "extended key usage: want id-kp-documentSigning (1.3.6.1.5.5.7.3.36) alone"))
	case e.Id.Equal(oidBasicConstraints):
		err = only(e.Value, []byte{0x30, 0x00}, "basic constraints: want an end entity, CA:FALSE")
	case e.Id.Equal(oidSubjectKeyID): // a name of the key, which the CA makes itself
	default:
		err = fmt.Errorf("the extension %s is not one that this CA gives", e.Id)
	}
	if err != nil {
		return &evidence.FieldError{Field: field, Reason: err.Error()}
	}
	return nil
}

func only(value, want []byte, wish string) error {
	if !bytes.Equal(value, want) {
		return errors.New(wish)
	}
	return nil
}

// readName reads a subjectAltName with one URI.
func (r *Request) readName(value []byte) (err error) {
	input := cryptobyte.String(value)
	var all, uri cryptobyte.String
	if !input.ReadASN1(&all, cbasn1.SEQUENCE) || !input.Empty() || !all.ReadASN1(&uri, cbasn1.Tag(tagURI).ContextSpecific()) || !all.Empty() {
		return errors.New("want one URI urn:jurat:ROLE:NAME, and no other name")
	}
	r.Role, r.Name, err = trust.ParseIdentity(string(uri))
	return err
}
