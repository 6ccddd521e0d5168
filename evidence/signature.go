package evidence

import (
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/kit/sigkey"
)

// Algorithm names a signature algorithm.
type Algorithm string

const (
	RS256   = Algorithm(sigkey.RS256)   // RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2), 2048 to 8192 bits
	ES256   = Algorithm(sigkey.ES256)   // ECDSA on P-256 with SHA-256, strict DER, low S
	Ed25519 = Algorithm(sigkey.Ed25519) // RFC 8032, pure, over the canonical bytes themselves
	MLDSA65 = Algorithm(sigkey.MLDSA65) // FIPS 204, pure, over the canonical bytes themselves, with an empty context
)

// PostQuantum reports whether the algorithm is to withstand quantum computers. Use it beside another: it is young, and may still be broken.
func (a Algorithm) PostQuantum() bool { return a == MLDSA65 }

// Algorithms lists every algorithm, in the order in which they are shown.
func Algorithms() []Algorithm { return []Algorithm{ES256, RS256, Ed25519, MLDSA65} }

// ErrSignature is in the chain of every error about a signature that is not valid under its key.
var ErrSignature = errors.New("the signature is not this key's over this payload")

// SignerInfo names, inside the signed payload, one signature that the record must have.
type SignerInfo struct {
	Algorithm Algorithm `json:"alg"`
	KeyID     KeyID     `json:"key_id"`
}

// CheckSignature verifies one signature over a canonical payload. Every failure has ErrSignature in its chain.
func CheckSignature(public crypto.PublicKey, want SignerInfo, canonical, signature []byte) error {
	if id, err := KeyIDOf(public); err != nil || id != want.KeyID {
		return fmt.Errorf("%w: the payload names another key", ErrSignature)
	}
	return checkSignature(public, want, canonical, signature)
}

// checkSignature is CheckSignature for a key that is known to have the wanted id.
func checkSignature(public crypto.PublicKey, want SignerInfo, canonical, signature []byte) error {
	if err := sigkey.Check(public, sigkey.Algorithm(want.Algorithm), canonical, signature); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return nil
}

// NormalSignature returns the form of a signature that records have. It changes only ECDSA signatures: other programs
// make (r, n-s) as often as (r, s), and each follows from the other. It returns an error if an ECDSA signature is not
// DER.
func NormalSignature(algorithm Algorithm, signature []byte) ([]byte, error) {
	if algorithm != ES256 {
		return signature, nil
	}
	return sigkey.LowS(signature)
}

// KeyID identifies a public key: the SHA-256 of its DER-encoded SubjectPublicKeyInfo.
type KeyID = Digest

// KeyIDOf returns the key's id. Its errors are those of MarshalPublicKey.
func KeyIDOf(public crypto.PublicKey) (KeyID, error) {
	der, err := MarshalPublicKey(public)
	if err != nil {
		return KeyID{}, err
	}
	return DigestOf(der), nil
}

// AlgorithmOf returns the algorithm of a key. It returns an error for keys that are too weak or of another kind.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) {
	algorithm, err := sigkey.AlgorithmOf(public)
	return Algorithm(algorithm), err
}

// MarshalPublicKey returns a key as DER SubjectPublicKeyInfo. The key's id is the digest of these bytes. It refuses a
// key of a type that x509 does not write.
func MarshalPublicKey(public crypto.PublicKey) ([]byte, error) { return sigkey.MarshalPublic(public) }

// ParsePublicKey reads a DER SubjectPublicKeyInfo of a kind that signs payloads. It accepts only the encoding that
// has the key's id. It refuses every other encoding and the keys that AlgorithmOf refuses.
func ParsePublicKey(der []byte) (crypto.PublicKey, error) { return sigkey.ParsePublic(der) }

// MarshalPrivateKey returns a private key that signs payloads as PKCS #8 in DER. An ML-DSA-65 key is written as its
// seed. It refuses such a key without its seed, and types that x509 does not write.
func MarshalPrivateKey(private crypto.Signer) ([]byte, error) { return sigkey.MarshalPrivate(private) }

// ParsePrivateKey reads a private key in PKCS #8, as MarshalPrivateKey writes it. It refuses keys that cannot sign.
func ParsePrivateKey(der []byte) (crypto.Signer, error) { return sigkey.ParsePrivate(der) }

// NewMLDSA65 derives an ML-DSA-65 key pair from 32 secret bytes (FIPS 204, algorithm 6).
func NewMLDSA65(seed *[32]byte) crypto.Signer { return sigkey.NewMLDSA(seed) }

// FormatTime writes a time in the form of payloads: RFC 3339, UTC, milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// marshal encodes values that this package made.
func marshal(v any) jsontext.Value {
	doc, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("evidence: encoding %T: %v", v, err)) // cannot happen: names and values were checked on input
	}
	return doc
}

// quote encodes a text that this package made.
func quote[Text ~string | ~[]byte](s Text) jsontext.Value {
	return quoteIn(len(s)+len(s)/4+len(`""`), s)
}

// quoteIn encodes a text whose form is about as long as expected.
func quoteIn[Text ~string | ~[]byte](expected int, s Text) jsontext.Value {
	text, err := jsontext.AppendQuote(make([]byte, 0, expected), s)
	if err != nil {
		panic(fmt.Sprintf("evidence: quoting %q: %v", s, err)) // cannot happen: texts were checked on input
	}
	return text
}
