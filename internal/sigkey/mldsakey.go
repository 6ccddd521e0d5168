package sigkey

import (
	"bytes"
	"crypto"
	encoding "encoding/asn1"
	"errors"
	"fmt"
	"io"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// oid is id-ml-dsa-65 (RFC 9881, section 2), which has no parameters. crypto/x509 does not know it.
var oid = encoding.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 3, 18}

// MLDSASeedTag marks a private key that is given by its seed (RFC 9881, section 6: seed [0] IMPLICIT OCTET STRING).
var MLDSASeedTag = asn1.Tag(0).ContextSpecific()

// MLDSASeedSize is the size in bytes of what an ML-DSA-65 key is derived from (ξ in FIPS 204).
const MLDSASeedSize = mldsa65.SeedSize

// rhoSize is the size in bytes of the seed ρ at the start of an ML-DSA-65 public key. The rest are the polynomials
// t1.
const rhoSize = 32

// errMLDSA is for a key that Check refuses.
var errMLDSA = errors.New("an ML-DSA-65 key that is invalid, or under which anyone can sign")

// NewMLDSA derives an ML-DSA-65 key pair from 32 secret bytes (FIPS 204, algorithm 6).
func NewMLDSA(seed *[32]byte) crypto.Signer {
	_, private := mldsa65.NewKeyFromSeed(seed)
	return private
}

// checkMLDSA refuses keys whose t1 is zero. Under such a key, a signature made of the payload's hash alone, with z =
// 0, is valid (FIPS 204, algorithm 8). The zero value is one of these keys.
func checkMLDSA(key *mldsa65.PublicKey) error {
	if key == nil || bytes.Count(key.Bytes()[rhoSize:], []byte{0}) == mldsa65.PublicKeySize-rhoSize {
		return errMLDSA
	}
	return nil
}

// signMLDSA is ML-DSA.Sign with an empty context (FIPS 204, algorithm 2). Without random it is the deterministic
// variant, otherwise the hedged one. The library draws the hedge from the system itself.
func signMLDSA(key crypto.Signer, random io.Reader, message []byte) ([]byte, error) {
	private, ours := key.(*mldsa65.PrivateKey)
	if !ours {
		return key.Sign(random, message, crypto.Hash(0))
	}
	signature := make([]byte, mldsa65.SignatureSize)
	err := mldsa65.SignTo(private, message, nil, random != nil, signature)
	return signature, err
}

// marshalPublicMLDSA writes the SubjectPublicKeyInfo of RFC 9881, section 4: the key's bytes fill the bit string.
func marshalPublicMLDSA(key *mldsa65.PublicKey) ([]byte, error) {
	if key == nil {
		return nil, errMLDSA
	}
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addAlgorithm(b)
		b.AddASN1BitString(key.Bytes())
	})
	return b.Bytes()
}

// parsePublicMLDSA reads the SubjectPublicKeyInfo of an ML-DSA-65 key. It does not check the key.
func parsePublicMLDSA(der []byte) (crypto.PublicKey, error) {
	input := cryptobyte.String(der)
	var spki cryptobyte.String
	var raw []byte
	if !input.ReadASN1(&spki, asn1.SEQUENCE) || !input.Empty() || !readAlgorithm(&spki) ||
		!spki.ReadASN1BitStringAsBytes(&raw) || !spki.Empty() || len(raw) != mldsa65.PublicKeySize {
		return nil, errors.New("not the SubjectPublicKeyInfo of an ML-DSA-65 key")
	}
	key := new(mldsa65.PublicKey)
	return key, key.UnmarshalBinary(raw)
}

// isPublicMLDSA reports whether a SubjectPublicKeyInfo begins as that of an ML-DSA-65 key.
func isPublicMLDSA(der []byte) bool {
	input := cryptobyte.String(der)
	var spki cryptobyte.String
	return input.ReadASN1(&spki, asn1.SEQUENCE) && readAlgorithm(&spki)
}

// marshalPrivateMLDSA writes PKCS #8 with the seed. This is the shortest form of RFC 9881, section 6, and cannot
// contradict itself.
func marshalPrivateMLDSA(key *mldsa65.PrivateKey) ([]byte, error) {
	seed := key.Seed()
	if len(seed) != MLDSASeedSize {
		return nil, errors.New("the ML-DSA-65 key has lost its seed")
	}
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(0) // v1 of RFC 5958: without the public key
		addAlgorithm(b)
		b.AddASN1(asn1.OCTET_STRING, func(b *cryptobyte.Builder) {
			b.AddASN1(MLDSASeedTag, func(b *cryptobyte.Builder) { b.AddBytes(seed) })
		})
	})
	return b.Bytes()
}

// parsePrivateMLDSA reads PKCS #8 with the seed, in the form that MarshalPrivate writes.
func parsePrivateMLDSA(der []byte) (crypto.Signer, error) {
	input := cryptobyte.String(der)
	var info, inner, seed cryptobyte.String
	if !input.ReadASN1(&info, asn1.SEQUENCE) || !input.Empty() || !readVersion(&info) || !readAlgorithm(&info) ||
		!info.ReadASN1(&inner, asn1.OCTET_STRING) || !info.Empty() ||
		!inner.ReadASN1(&seed, MLDSASeedTag) || !inner.Empty() || len(seed) != MLDSASeedSize {
		return nil, fmt.Errorf("parsing private key: want the seed of an ML-DSA-65 key, %d bytes, and nothing else", MLDSASeedSize)
	}
	return NewMLDSA((*[MLDSASeedSize]byte)(seed)), nil
}

// isPrivateMLDSA reports whether a PKCS #8 private key begins as that of an ML-DSA-65 key.
func isPrivateMLDSA(der []byte) bool {
	input := cryptobyte.String(der)
	var info cryptobyte.String
	return input.ReadASN1(&info, asn1.SEQUENCE) && readVersion(&info) && readAlgorithm(&info)
}

func readVersion(s *cryptobyte.String) bool {
	var version int64
	return s.ReadASN1Integer(&version) && version == 0
}

func addAlgorithm(b *cryptobyte.Builder) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1ObjectIdentifier(oid) })
}

// readAlgorithm reads an AlgorithmIdentifier, and reports whether it is that of ML-DSA-65, with parameters absent.
func readAlgorithm(s *cryptobyte.String) bool {
	var algorithm cryptobyte.String
	var found encoding.ObjectIdentifier
	return s.ReadASN1(&algorithm, asn1.SEQUENCE) && algorithm.ReadASN1ObjectIdentifier(&found) &&
		found.Equal(oid) && algorithm.Empty()
}
