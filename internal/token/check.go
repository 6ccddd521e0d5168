package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"

	"jurat/evidence"
)

// checkSignature verifies what a helper or a token gives out as a signature over data: a SHA-256 digest for ES256 and RS256, the
// message itself for other algorithms.
func checkSignature(public crypto.PublicKey, data, signature []byte) error {
	ok := false
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		ok = len(data) == sha256.Size && ecdsa.VerifyASN1(key, data, signature)
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, data, signature) == nil
	case ed25519.PublicKey:
		ok = len(key) == ed25519.PublicKeySize && ed25519.Verify(key, data, signature)
	default:
		return checkMessage(public, data, signature)
	}
	if !ok {
		return evidence.ErrSignature
	}
	return nil
}

func checkMessage(public crypto.PublicKey, message, signature []byte) error {
	algorithm, err := evidence.AlgorithmOf(public)
	if err != nil {
		return fmt.Errorf("%w: %w", evidence.ErrSignature, err)
	}
	id, err := evidence.KeyIDOf(public)
	if err != nil {
		return fmt.Errorf("%w: %w", evidence.ErrSignature, err)
	}
	return evidence.CheckSignature(public, evidence.SignerInfo{Algorithm: algorithm, KeyID: id}, message, signature)
}
