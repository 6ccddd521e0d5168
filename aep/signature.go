package aep

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"

	"jurat/evidence"
)

// ErrSignature says that a signature was not made with the key over the signed text.
var ErrSignature = errors.New("the signature is not this key's over canonical.bin")

// digestInfoWithoutNull begins the DigestInfo of a SHA-256 digest whose AlgorithmIdentifier has no parameters. RFC
// 8017 has NULL there; these packages were made without it.
const digestInfoWithoutNull = "\x30\x2f\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x04\x20"

// DigestInfo returns what the signatures of such packages cover instead of the DigestInfo of RFC 8017.
func (p *Package) DigestInfo() []byte {
	digest := sha256.Sum256(p.Canonical)
	return append([]byte(digestInfoWithoutNull), digest[:]...)
}

// CheckSignature verifies the RSA signature with the package's own key, and reports whether its DigestInfo has NULL.
// It compares the whole of both forms, so that no byte is unchecked. It returns ErrSignature if neither fits.
func (p *Package) CheckSignature() (null bool, err error) {
	if p.key == nil || len(p.Signature) == 0 {
		return false, ErrSignature
	}
	digest := sha256.Sum256(p.Canonical)
	if rsa.VerifyPKCS1v15(p.key, crypto.SHA256, digest[:], p.Signature) == nil {
		return true, nil
	}
	// Without a hash function, crypto/rsa compares everything after the padding.
	if rsa.VerifyPKCS1v15(p.key, crypto.Hash(0), p.DigestInfo(), p.Signature) == nil {
		return false, nil
	}
	return false, ErrSignature
}

// minExponent is the smallest RSA exponent of a key whose signature counts. A package does not sign its key, so an
// attacker can choose the signature S first, and text and key later: n = S^e − EM(text) is such a key if S^e is not
// longer than a modulus may be. With this exponent even S = 2 gives a number eight times as long as the longest
// modulus.
const minExponent = 1<<16 + 1

// CheckStrength refuses a key that can be made for an existing signature.
func (p *Package) CheckStrength() error {
	if p.key != nil && p.key.E < minExponent {
		return fmt.Errorf("its key has the exponent %d: with one below %d, a key and a text can be made for any number that was stamped before", p.key.E, minExponent)
	}
	return nil
}

// A Second is a second signature over the same text, designed to withstand quantum computers.
type Second struct {
	KeyID     evidence.KeyID // of the key in the package
	PublicKey []byte         // DER SubjectPublicKeyInfo
	Signature []byte

	key crypto.PublicKey
	err error
}

var secondFiles = []string{secondSignatureFile, secondKeyFile, secondKindFile}

// readSecond reads the second signature, if there is one. An error in it invalidates nothing else: no other signature
// covers it, so anyone can have added it.
func readSecond(members map[string][]byte) *Second {
	signature, there := members[secondSignatureFile]
	if !there {
		return nil
	}
	s := new(Second)
	if s.Signature, s.err = readBase64(signature); s.err != nil {
		s.err = fmt.Errorf("%s: %w", secondSignatureFile, s.err)
		return s
	}
	if s.err = s.readKey(members[secondKeyFile]); s.err != nil {
		s.err = fmt.Errorf("%s: %w", secondKeyFile, s.err)
	}
	return s
}

func (s *Second) readKey(member []byte) (err error) {
	if s.PublicKey, err = readPEM(member); err != nil {
		return err
	}
	s.KeyID = evidence.DigestOf(s.PublicKey)
	if s.key, err = evidence.ParsePublicKey(s.PublicKey); err != nil {
		return err
	}
	if algorithm, _ := evidence.AlgorithmOf(s.key); algorithm != evidence.MLDSA65 {
		return fmt.Errorf("a key of %s: want ML-DSA-65", algorithm)
	}
	return nil
}

// Readable says why an implementation of ML-DSA-65 cannot check the second signature; nil if it can. Some packages
// were signed with drafts of the algorithm, under other object identifiers.
func (s *Second) Readable() error { return s.err }

// CheckSecond verifies the second signature with the key beside it. It may be over canonical.bin or over the 32 bytes
// of its SHA-256: both are in use. It returns ErrSignature if the package has no second signature, if its key cannot
// be read, and if neither fits.
func (p *Package) CheckSecond() error {
	s := p.Second
	if s == nil || s.err != nil {
		return ErrSignature
	}
	info := evidence.SignerInfo{Algorithm: evidence.MLDSA65, KeyID: s.KeyID}
	digest := sha256.Sum256(p.Canonical)
	if evidence.CheckSignature(s.key, info, p.Canonical, s.Signature) == nil || evidence.CheckSignature(s.key, info, digest[:], s.Signature) == nil {
		return nil
	}
	return ErrSignature
}
