package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"

	"jurat/internal/ed25519key"
	"jurat/internal/mldsakey"
	"jurat/internal/rsakey"
)

// KeyID identifies a public key: the SHA-256 of its DER-encoded SubjectPublicKeyInfo.
type KeyID = Digest

// AlgorithmOf returns the algorithm of a key. It returns an error for keys that are too weak or of another kind.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if err := rsakey.Check(key); err != nil {
			return "", err
		}
		return RS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("an ECDSA key on %s: want P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize || ed25519key.IsSmallOrder(key) {
			return "", errors.New("an Ed25519 key that is invalid, or under which one signature fits many payloads")
		}
		return Ed25519, nil
	case *mldsa65.PublicKey:
		return MLDSA65, mldsakey.Check(key)
	}
	return "", fmt.Errorf("a key of type %T: want RSA, ECDSA on P-256, Ed25519 or ML-DSA-65", public)
}

// KeyIDOf returns the key's id. Its errors are those of MarshalPublicKey.
func KeyIDOf(public crypto.PublicKey) (KeyID, error) {
	der, err := MarshalPublicKey(public)
	if err != nil {
		return KeyID{}, err
	}
	return DigestOf(der), nil
}

// MarshalPublicKey returns a key as DER SubjectPublicKeyInfo. The key's id is the digest of these bytes. It refuses a
// key of a type that x509 does not write.
func MarshalPublicKey(public crypto.PublicKey) ([]byte, error) {
	der, err := marshalPublic(public)
	if err != nil {
		return nil, fmt.Errorf("encoding public key: %w", err)
	}
	return der, nil
}

func marshalPublic(public crypto.PublicKey) ([]byte, error) {
	if key, ok := public.(*mldsa65.PublicKey); ok {
		return mldsakey.MarshalPublic(key)
	}
	return x509.MarshalPKIXPublicKey(public)
}

// ParsePublicKey reads a DER SubjectPublicKeyInfo of a kind that signs payloads. It accepts only the encoding that
// has the key's id. It refuses every other encoding and the keys that AlgorithmOf refuses.
func ParsePublicKey(der []byte) (crypto.PublicKey, error) {
	public, err := parsePublic(der)
	if err != nil {
		return nil, fmt.Errorf("parsing public key: %w", err)
	}
	if _, err := AlgorithmOf(public); err != nil {
		return nil, err
	}
	again, err := marshalPublic(public)
	if err != nil || !bytes.Equal(again, der) {
		return nil, errors.New("parsing public key: not the DER encoding of this key")
	}
	return public, nil
}

func parsePublic(der []byte) (crypto.PublicKey, error) {
	if mldsakey.IsPublic(der) {
		return mldsakey.ParsePublic(der)
	}
	return x509.ParsePKIXPublicKey(der)
}

// MarshalPrivateKey returns a private key that signs payloads as PKCS #8 in DER. An ML-DSA-65 key is written as its
// seed. It refuses such a key without its seed, and types that x509 does not write.
func MarshalPrivateKey(private crypto.Signer) ([]byte, error) {
	if key, ok := private.(*mldsa65.PrivateKey); ok {
		return mldsakey.MarshalPrivate(key)
	}
	return x509.MarshalPKCS8PrivateKey(private)
}

// ParsePrivateKey reads a private key in PKCS #8, as MarshalPrivateKey writes it. It refuses keys that cannot sign.
func ParsePrivateKey(der []byte) (crypto.Signer, error) {
	if mldsakey.IsPrivate(der) {
		return mldsakey.ParsePrivate(der)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parsing private key: %w", err)
	}
	private, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("parsing private key: a key of type %T cannot sign", key)
	}
	return private, nil
}

// NewMLDSA65 derives an ML-DSA-65 key pair from 32 secret bytes (FIPS 204, algorithm 6).
func NewMLDSA65(seed *[32]byte) crypto.Signer { return mldsakey.New(seed) }
