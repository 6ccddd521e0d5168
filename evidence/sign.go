package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Algorithm names how a payload is signed.
type Algorithm string

const (
	RS256   Algorithm = "RS256"   // RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2), 2048 to 8192 bits
	ES256   Algorithm = "ES256"   // ECDSA on P-256 with SHA-256, strict DER, low S
	Ed25519 Algorithm = "Ed25519" // RFC 8032, pure, over the canonical bytes themselves
)

// Algorithms lists every algorithm, in the order in which they are shown.
func Algorithms() []Algorithm { return []Algorithm{ES256, RS256, Ed25519} }

const (
	minRSABits = 2048
	maxRSABits = 8192 // a larger key only makes a verifier work for an attacker
)

// ErrSignature is in the chain of every error about a signature that its key did not make.
var ErrSignature = errors.New("the signature is not this key's over this payload")

// KeyID identifies a public key: the SHA-256 of its DER-encoded SubjectPublicKeyInfo.
type KeyID = Digest

// SignerInfo names, inside the signed payload, one signature that the record must have.
type SignerInfo struct {
	Algorithm Algorithm `json:"alg"`
	KeyID     KeyID     `json:"key_id"`
}

// A Signer signs payloads with one private key, wherever it is kept.
type Signer interface {
	Info() SignerInfo
	// Sign returns the signature over the canonical payload in the bytes that docs/format.md gives for the algorithm.
	Sign(canonical []byte) ([]byte, error)
}

// NewSigner makes a Signer of a private key: *rsa.PrivateKey, *ecdsa.PrivateKey on P-256, ed25519.PrivateKey, or
// anything that signs for such a public key (an HSM). A nil random makes ECDSA deterministic (RFC 6979).
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
	if s.info.Algorithm == Ed25519 {
		return s.key.Sign(s.random, canonical, crypto.Hash(0))
	}
	digest := sha256.Sum256(canonical)
	signature, err := s.key.Sign(s.random, digest[:], crypto.SHA256)
	if err != nil || s.info.Algorithm != ES256 {
		return signature, err
	}
	return lowS(signature)
}

// AlgorithmOf says how a key of this kind signs, and refuses keys that are too weak or of another kind.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return "", fmt.Errorf("an RSA key of %d bits: want %d to %d", bits, minRSABits, maxRSABits)
		}
		return RS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("an ECDSA key on %s: want P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize || isSmallOrder(key) {
			return "", errors.New("an Ed25519 key that is no key, or under which one signature fits many payloads")
		}
		return Ed25519, nil
	}
	return "", fmt.Errorf("a key of type %T: want RSA, ECDSA on P-256 or Ed25519", public)
}

// KeyIDOf returns the key's id.
func KeyIDOf(public crypto.PublicKey) (KeyID, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return KeyID{}, fmt.Errorf("encoding public key: %w", err)
	}
	return DigestOf(der), nil
}

// ParsePublicKey reads a DER SubjectPublicKeyInfo of a kind that signs payloads, in the one encoding that has the key's id.
func ParsePublicKey(der []byte) (crypto.PublicKey, error) {
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("parsing public key: %w", err)
	}
	if _, err := AlgorithmOf(public); err != nil {
		return nil, err
	}
	again, err := x509.MarshalPKIXPublicKey(public)
	if err != nil || !bytes.Equal(again, der) {
		return nil, errors.New("parsing public key: not the DER encoding of this key")
	}
	return public, nil
}

// CheckSignature verifies one signature over a canonical payload. Every failure has ErrSignature in its chain.
func CheckSignature(public crypto.PublicKey, want SignerInfo, canonical, signature []byte) error {
	algorithm, err := AlgorithmOf(public)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if algorithm != want.Algorithm {
		return fmt.Errorf("%w: the payload names %s, the key signs %s", ErrSignature, want.Algorithm, algorithm)
	}
	if id, err := KeyIDOf(public); err != nil || id != want.KeyID {
		return fmt.Errorf("%w: the payload names another key", ErrSignature)
	}
	digest := sha256.Sum256(canonical)
	ok := false
	switch key := public.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if err := strictECDSA(signature); err != nil {
			return fmt.Errorf("%w: %w", ErrSignature, err)
		}
		ok = ecdsa.VerifyASN1(key, digest[:], signature)
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, canonical, signature)
	}
	if !ok {
		return ErrSignature
	}
	return nil
}

var halfOrder = new(big.Int).Rsh(elliptic.P256().Params().N, 1)

// strictECDSA refuses the other encodings of a valid signature, so that nobody can make a second one from the first:
// (r, n-s) verifies wherever (r, s) does.
func strictECDSA(signature []byte) error {
	_, s, err := parseECDSA(signature)
	if err != nil {
		return err
	}
	if s.Cmp(halfOrder) > 0 {
		return errors.New("the ECDSA signature has a high S")
	}
	return nil
}

// lowS returns the one of the two equivalent signatures whose S is at most half the group order.
func lowS(signature []byte) ([]byte, error) {
	r, s, err := parseECDSA(signature)
	if err != nil {
		return nil, err
	}
	if s.Cmp(halfOrder) > 0 {
		s.Sub(elliptic.P256().Params().N, s)
	}
	return marshalECDSA(r, s)
}

// parseECDSA reads strict DER: cryptobyte takes the shortest lengths and numbers only.
func parseECDSA(signature []byte) (r, s *big.Int, err error) {
	r, s = new(big.Int), new(big.Int)
	input := cryptobyte.String(signature)
	var inner cryptobyte.String
	if !input.ReadASN1(&inner, asn1.SEQUENCE) || !input.Empty() ||
		!inner.ReadASN1Integer(r) || !inner.ReadASN1Integer(s) || !inner.Empty() {
		return nil, nil, errors.New("the ECDSA signature is not in DER")
	}
	return r, s, nil
}

func marshalECDSA(r, s *big.Int) ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1BigInt(r)
		b.AddASN1BigInt(s)
	})
	return b.Bytes()
}
