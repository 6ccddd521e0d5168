// Package sigkey knows the keys that sign: which are accepted, how they are written, and whether a signature is valid
// under one. What is signed, and whose key it is, is for its callers to know. It has ML-DSA-65 (FIPS 204, RFC 9881), which the standard
// library does not know, the forms of P-256 signatures, of which it accepts one, and bounds on RSA keys: the author of a file chooses the
// keys in it, and a large modulus or exponent makes one check take long enough to be an attack.
package sigkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Algorithm names a signature algorithm.
type Algorithm string

const (
	RS256   Algorithm = "RS256"     // RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017, section 8.2), 2048 to 8192 bits
	ES256   Algorithm = "ES256"     // ECDSA on P-256 with SHA-256, strict DER, low S
	Ed25519 Algorithm = "Ed25519"   // RFC 8032, pure, over the message itself
	MLDSA65 Algorithm = "ML-DSA-65" // FIPS 204, pure, over the message itself, with an empty context
)

// AlgorithmOf returns the algorithm of a key. It returns an error for keys that are too weak or of another kind.
func AlgorithmOf(public crypto.PublicKey) (Algorithm, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if err := checkRSA(key); err != nil {
			return "", err
		}
		return RS256, nil
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return "", fmt.Errorf("an ECDSA key on %s: want P-256", key.Curve.Params().Name)
		}
		return ES256, nil
	case ed25519.PublicKey:
		if len(key) != ed25519.PublicKeySize || isSmallOrder(key) {
			return "", errors.New("an Ed25519 key that is invalid, or under which one signature fits many payloads")
		}
		return Ed25519, nil
	case *mldsa65.PublicKey:
		return MLDSA65, checkMLDSA(key)
	}
	return "", fmt.Errorf("a key of type %T: want RSA, ECDSA on P-256, Ed25519 or ML-DSA-65", public)
}

// MarshalPublic returns a key as DER SubjectPublicKeyInfo, whose digest is the key's id. It refuses a key that x509 does not write.
func MarshalPublic(public crypto.PublicKey) (der []byte, err error) {
	if key, ok := public.(*mldsa65.PublicKey); !ok {
		der, err = x509.MarshalPKIXPublicKey(public)
	} else if err = errMLDSA; key != nil {
		return slices.Concat(publicMLDSA, key.Bytes()), nil
	}
	if err != nil {
		return nil, fmt.Errorf("encoding public key: %w", err)
	}
	return der, nil
}

// ParsePublic reads a DER SubjectPublicKeyInfo of a kind that signs payloads. It accepts only the encoding that
// has the key's id. It refuses every other encoding and the keys that AlgorithmOf refuses.
func ParsePublic(der []byte) (crypto.PublicKey, error) {
	read := x509.ParsePKIXPublicKey
	if isMLDSA(der) {
		read = parsePublicMLDSA
	}
	public, err := read(der)
	if err != nil {
		return nil, fmt.Errorf("parsing public key: %w", err)
	}
	if _, err := AlgorithmOf(public); err != nil {
		return nil, err
	}
	if key, is := public.(ed25519.PublicKey); is && !isPoint(key) {
		return nil, errors.New("parsing public key: an Ed25519 key that is no point of the curve")
	}
	again, err := MarshalPublic(public)
	if err != nil || !bytes.Equal(again, der) {
		return nil, errors.New("parsing public key: not the DER encoding of this key")
	}
	return public, nil
}

// MarshalPrivate returns a private key as PKCS #8 in DER, one of ML-DSA-65 as its seed. It refuses one without a seed, and types unknown to x509.
func MarshalPrivate(private crypto.Signer) ([]byte, error) {
	if key, ok := private.(*mldsa65.PrivateKey); ok {
		seed := key.Seed()
		if len(seed) != MLDSASeedSize {
			return nil, errors.New("the ML-DSA-65 key has lost its seed")
		}
		return slices.Concat(privateMLDSA, seed), nil
	}
	return x509.MarshalPKCS8PrivateKey(private)
}

// ParsePrivate reads a private key in PKCS #8, as MarshalPrivate writes it. It refuses keys that cannot sign.
func ParsePrivate(der []byte) (crypto.Signer, error) {
	if isMLDSA(der) {
		seed, is := bytes.CutPrefix(der, privateMLDSA)
		if !is || len(seed) != MLDSASeedSize {
			return nil, fmt.Errorf("parsing private key: want the seed of an ML-DSA-65 key, %d bytes, and nothing else", MLDSASeedSize)
		}
		return NewMLDSA((*[MLDSASeedSize]byte)(seed)), nil
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

// Check reports whether a signature of this algorithm is the key's over the message. A nil error says so; any other may say why not.
func Check(public crypto.PublicKey, algorithm Algorithm, message, signature []byte) error {
	of, err := AlgorithmOf(public)
	if err != nil {
		return err
	}
	if of != algorithm {
		return fmt.Errorf("the payload names %s, the key signs %s", algorithm, of)
	}
	digest := sha256.Sum256(message)
	ok := false
	switch key := public.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if err := StrictECDSA(signature); err != nil {
			return err
		}
		ok = ecdsa.VerifyASN1(key, digest[:], signature)
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, message, signature)
	case *mldsa65.PublicKey:
		ok = mldsa65.Verify(key, message, nil, signature)
	}
	if !ok {
		return ErrInvalid
	}
	return nil
}

// ErrInvalid says of a signature of the right form that it is not valid.
var ErrInvalid = errors.New("the signature is not valid")

// Sign returns a private key's signature over a message. A nil random makes ECDSA (RFC 6979) and ML-DSA (FIPS 204, section 3.4) deterministic.
func Sign(key crypto.Signer, algorithm Algorithm, random io.Reader, message []byte) ([]byte, error) {
	switch algorithm {
	case Ed25519:
		return key.Sign(random, message, crypto.Hash(0))
	case MLDSA65:
		return signMLDSA(key, random, message)
	}
	digest := sha256.Sum256(message)
	signature, err := key.Sign(random, digest[:], crypto.SHA256)
	if err != nil || algorithm != ES256 {
		return signature, err
	}
	return LowS(signature)
}

const (
	minBits = 2048
	// maxBits is the longest modulus with which anything is checked.
	maxBits = 8192

	minExponent = 3
	maxExponent = math.MaxInt32
	// maxCertified is the largest exponent of keys in certificates: all that are in use have it, or less.
	maxCertified = 1<<16 + 1
)

// checkRSA refuses a modulus of other than 2048 to 8192 bits, and an exponent that is even or not from 3 to 2^31-1: no record has them.
func checkRSA(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits < minBits || bits > maxBits {
		return fmt.Errorf("an RSA key of %d bits: want %d to %d", bits, minBits, maxBits)
	}
	return checkExponent(key, maxExponent)
}

// CheckCertified is Check for keys in certificates, whose exponent is at most 65537.
func CheckCertified(key *rsa.PublicKey) error {
	if err := checkRSA(key); err != nil {
		return err
	}
	return checkExponent(key, maxCertified)
}

func checkExponent(key *rsa.PublicKey, most int64) error {
	if e := int64(key.E); e < minExponent || e%2 == 0 || e > most {
		return fmt.Errorf("an RSA key with the exponent %d: want an odd number from %d to %d", e, minExponent, most)
	}
	return nil
}

// Costly reports whether signatures of a key in a certificate take so long to check that few such keys may stand in a path, or none.
func Costly(key *rsa.PublicKey) (some, none bool) {
	bits := key.N.BitLen()
	return bits > maxBits/2, bits > maxBits || checkExponent(key, maxCertified) != nil
}

// SmallOrder holds the encodings, without the sign bit, of the points of edwards25519 whose order divides 8,
// including two that are not reduced. Such a public key has no private key. Signatures can be made that are valid
// under it for many payloads, so its owner could deny every one. (RFC 8032 leaves it to the protocol to refuse them.)
var SmallOrder = [][]byte{
	unhex("0000000000000000000000000000000000000000000000000000000000000000"),
	unhex("0100000000000000000000000000000000000000000000000000000000000000"),
	unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
	unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
	unhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	unhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	unhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
}

func unhex(digits string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return b
}

// isSmallOrder reports whether the key, which has 32 bytes, is one of these.
func isSmallOrder(key ed25519.PublicKey) bool {
	y := bytes.Clone(key)
	y[len(y)-1] &= 0x7f // the top bit is the sign of x
	return slices.ContainsFunc(SmallOrder, func(point []byte) bool { return bytes.Equal(point, y) })
}

// isPoint reports whether RFC 8032, section 5.1.3, decodes a key. No signature is valid under one that it does not.
func isPoint(key ed25519.PublicKey) bool {
	encoded := bytes.Clone(key)
	encoded[len(encoded)-1] &= 0x7f
	slices.Reverse(encoded)
	one, y := big.NewInt(1), new(big.Int).SetBytes(encoded)
	p := new(big.Int).Lsh(one, 255)
	p.Sub(p, big.NewInt(19))
	d, _ := new(big.Int).SetString("37095705934669439343138083508754565189542113879843219016388785533085940283555", 10)
	yy := new(big.Int).Mul(y, y)
	u, v := new(big.Int).Sub(yy, one), d.Add(d.Mul(d, yy), one) // x² = u/v, which is a square if and only if u·v is; where x = 0, the order is small
	return y.Cmp(p) < 0 && big.Jacobi(u.Mod(u.Mul(u, v), p), p) == 1
}

// The DER of ML-DSA-65 keys (RFC 9881), which ends with their own bytes: a SubjectPublicKeyInfo (section 4), whose bit string the key fills, and
// PKCS #8 with the seed (section 6: seed [0] IMPLICIT OCTET STRING), the shortest form, which cannot contradict itself. Nothing in them varies.
var (
	algorithmMLDSA = unhex("300b0609608648016503040312") // id-ml-dsa-65, with parameters absent; crypto/x509 does not know it
	publicMLDSA    = slices.Concat(unhex("308207b2"), algorithmMLDSA, unhex("038207a100"))
	privateMLDSA   = slices.Concat(unhex("3034020100"), algorithmMLDSA, unhex("04228020"))
)

// isMLDSA reports whether a key in DER begins as one of ML-DSA-65, in this or another form.
func isMLDSA(der []byte) bool {
	return bytes.Contains(der[:min(len(der), len(publicMLDSA))], algorithmMLDSA)
}

// MLDSASeedSize is the size in bytes of what an ML-DSA-65 key is derived from (ξ in FIPS 204).
const MLDSASeedSize = mldsa65.SeedSize

// rhoSize is the size in bytes of the seed ρ at the start of an ML-DSA-65 public key. The rest are the polynomials t1.
const rhoSize = 32

// errMLDSA is for a key that Check refuses.
var errMLDSA = errors.New("an ML-DSA-65 key that is invalid, or under which anyone can sign")

// NewMLDSA derives an ML-DSA-65 key pair from 32 secret bytes (FIPS 204, algorithm 6).
func NewMLDSA(seed *[32]byte) crypto.Signer {
	_, private := mldsa65.NewKeyFromSeed(seed)
	return private
}

// checkMLDSA refuses keys whose t1 is zero, as in the zero value: a signature of the hash alone, with z = 0, is valid (FIPS 204, algorithm 8).
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

// parsePublicMLDSA reads the SubjectPublicKeyInfo of an ML-DSA-65 key. It does not check the key.
func parsePublicMLDSA(der []byte) (any, error) {
	raw, is := bytes.CutPrefix(der, publicMLDSA)
	if !is || len(raw) != mldsa65.PublicKeySize {
		return nil, errors.New("not the SubjectPublicKeyInfo of an ML-DSA-65 key")
	}
	key := new(mldsa65.PublicKey)
	return key, key.UnmarshalBinary(raw)
}

var halfOrder = new(big.Int).Rsh(elliptic.P256().Params().N, 1)

// StrictECDSA refuses the other encodings of a valid signature. Otherwise anyone could make a second one: (r, n-s) is valid if (r, s) is.
func StrictECDSA(signature []byte) error {
	_, s, err := ParseECDSA(signature)
	if err != nil {
		return err
	}
	if s.Cmp(halfOrder) > 0 {
		return errors.New("the ECDSA signature has a high S")
	}
	return nil
}

// LowS returns the equivalent signature whose S is at most half the group order. It returns an error for what is not DER.
func LowS(signature []byte) ([]byte, error) {
	r, s, err := ParseECDSA(signature)
	if err != nil {
		return nil, err
	}
	n := elliptic.P256().Params().N
	if s.Cmp(halfOrder) <= 0 || s.Cmp(n) >= 0 { // from n on it is not a signature
		return signature, nil // strict DER has no other form
	}
	return marshalECDSA(r, s.Sub(n, s))
}

// ParseECDSA reads strict DER, and nothing else: cryptobyte accepts only the shortest lengths and numbers.
func ParseECDSA(signature []byte) (r, s *big.Int, err error) {
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

// rawHalf is the size of each of the two numbers of a P-256 signature.
const rawHalf = 32

// ECDSAFromRaw returns a record's signature for r and s of P-256, one after the other, as JWS (RFC 7518, section 3.4) and PKCS #11 have them.
func ECDSAFromRaw(raw []byte) ([]byte, error) {
	if len(raw) != 2*rawHalf {
		return nil, fmt.Errorf("the ECDSA signature has %d bytes instead of %d", len(raw), 2*rawHalf)
	}
	der, err := marshalECDSA(new(big.Int).SetBytes(raw[:rawHalf]), new(big.Int).SetBytes(raw[rawHalf:]))
	if err != nil {
		return nil, err
	}
	return LowS(der)
}

// RawECDSA returns r and s of a record's signature, one after the other. It refuses one that is not DER, or not of P-256.
func RawECDSA(signature []byte) ([]byte, error) {
	r, s, err := ParseECDSA(signature)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 2*rawHalf)
	for i, n := range []*big.Int{r, s} {
		if n.Sign() < 0 || n.BitLen() > 8*rawHalf {
			return nil, errors.New("the ECDSA signature is not one of P-256")
		}
		n.FillBytes(raw[i*rawHalf : (i+1)*rawHalf])
	}
	return raw, nil
}
