package evidence

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"

	"jurat/internal/ecdsasig"
	"jurat/internal/mldsakey"
)

// Algorithm names a signature algorithm.
type Algorithm string

const (
	RS256   Algorithm = "RS256"     // RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2), 2048 to 8192 bits
	ES256   Algorithm = "ES256"     // ECDSA on P-256 with SHA-256, strict DER, low S
	Ed25519 Algorithm = "Ed25519"   // RFC 8032, pure, over the canonical bytes themselves
	MLDSA65 Algorithm = "ML-DSA-65" // FIPS 204, pure, over the canonical bytes themselves, with an empty context
)

// Algorithms lists every algorithm, in the order in which they are shown.
func Algorithms() []Algorithm { return []Algorithm{ES256, RS256, Ed25519, MLDSA65} }

// PostQuantum reports whether the algorithm is designed to withstand quantum computers. Use it together with another
// algorithm: it is young, and an ordinary computer may still break it.
func (a Algorithm) PostQuantum() bool { return a == MLDSA65 }

// ErrSignature is in the chain of every error about a signature that is not valid under its key.
var ErrSignature = errors.New("the signature is not this key's over this payload")

// SignerInfo names, inside the signed payload, one signature that the record must have.
type SignerInfo struct {
	Algorithm Algorithm `json:"alg"`
	KeyID     KeyID     `json:"key_id"`
}

// A Signer signs payloads with one private key, wherever the key is kept.
type Signer interface {
	Info() SignerInfo
	// Sign returns the signature over the canonical payload in the bytes that docs/format.md gives for the algorithm.
	Sign(canonical []byte) ([]byte, error)
}

// NewSigner makes a Signer of a private key: *rsa.PrivateKey, *ecdsa.PrivateKey on P-256, ed25519.PrivateKey, a key
// of NewMLDSA65, or anything that signs for such a public key (an HSM). A nil random makes ECDSA (RFC 6979) and
// ML-DSA (FIPS 204, section 3.4) deterministic. Its error is that of AlgorithmOf.
func NewSigner(key crypto.Signer, random io.Reader) (Signer, error) {
	algorithm, err := AlgorithmOf(key.Public())
	if err != nil {
		return nil, err
	}
	id, err := KeyIDOf(key.Public())
	if err != nil {
		return nil, err
	}
	return &keySigner{key: key, random: random, info: SignerInfo{Algorithm: algorithm, KeyID: id}}, nil
}

type keySigner struct {
	key    crypto.Signer
	random io.Reader
	info   SignerInfo
}

func (s *keySigner) Info() SignerInfo { return s.info }

func (s *keySigner) Sign(canonical []byte) ([]byte, error) {
	switch s.info.Algorithm {
	case Ed25519:
		return s.key.Sign(s.random, canonical, crypto.Hash(0))
	case MLDSA65:
		return mldsakey.Sign(s.key, s.random, canonical)
	}
	digest := sha256.Sum256(canonical)
	signature, err := s.key.Sign(s.random, digest[:], crypto.SHA256)
	if err != nil || s.info.Algorithm != ES256 {
		return signature, err
	}
	return ecdsasig.LowS(signature)
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
	algorithm, err := AlgorithmOf(public)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if algorithm != want.Algorithm {
		return fmt.Errorf("%w: the payload names %s, the key signs %s", ErrSignature, want.Algorithm, algorithm)
	}
	digest := sha256.Sum256(canonical)
	ok := false
	switch key := public.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if err := ecdsasig.Strict(signature); err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, err)
		}
		ok = ecdsa.VerifyASN1(key, digest[:], signature)
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, canonical, signature)
	case *mldsa65.PublicKey:
		ok = mldsa65.Verify(key, canonical, nil, signature)
	}
	if !ok {
		return ErrSignature
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
	return ecdsasig.LowS(signature)
}
