package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"math/big"
	"testing"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
	"jurat/internal/sigkey"
)

func TestKeysRefused(t *testing.T) {
	p384 := must.Get(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))(t)
	for name, public := range map[string]crypto.PublicKey{
		"RSA of 2047 bits": &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2046), E: 65537},
		"RSA of 1024 bits": &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 1023), E: 65537},
		"RSA of 8193 bits": &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 8192), E: 65537},
		"P-384":            &p384.PublicKey,
		"short Ed25519":    ed25519.PublicKey(make([]byte, 31)),
		"no ML-DSA-65 key": new(mldsa65.PublicKey),
		"nil ML-DSA-65":    (*mldsa65.PublicKey)(nil),
		"no key":           nil,
		"RSA by value":     rsa.PublicKey{},
	} {
		if algorithm, err := AlgorithmOf(public); err == nil {
			t.Errorf("%s: accepted as %s", name, algorithm)
		}
	}
	if _, err := NewSigner(p384, nil); err == nil {
		t.Error("a signer on P-384")
	}
}

// TestSmallOrder makes signatures without a private key. A key of small order accepts them for any payload;
// CheckSignature must refuse the key.
func TestSmallOrder(t *testing.T) {
	identity := ed25519.PublicKey(append([]byte{1}, make([]byte, 31)...))
	signature := make([]byte, ed25519.SignatureSize)
	signature[0] = 1 // R is the identity too, S is 0
	for _, payload := range []string{"I recommend it", "I advise against it"} {
		if !ed25519.Verify(identity, []byte(payload), signature) {
			t.Fatal("the library refuses the forgery by itself, so this test tests nothing")
		}
		info := SignerInfo{Algorithm: Ed25519, KeyID: DigestOf(spki(t, identity))}
		wantBadSignature(t, CheckSignature(identity, info, []byte(payload), signature))
	}
	for _, point := range sigkey.SmallOrder {
		for _, sign := range []byte{0, 0x80} {
			key := bytes.Clone(point)
			key[31] |= sign
			if _, err := ParsePublicKey(spki(t, ed25519.PublicKey(key))); err == nil {
				t.Errorf("%x: accepted", key)
			}
		}
	}
}

func spki(t *testing.T, public crypto.PublicKey) []byte {
	t.Helper()
	return must.Get(MarshalPublicKey(public))(t)
}

func TestParsePublicKey(t *testing.T) {
	for _, algorithm := range Algorithms() {
		der := spki(t, testKey(t, algorithm).Public())
		public := must.Get(ParsePublicKey(der))(t)
		if id, err := KeyIDOf(public); err != nil || id != DigestOf(der) || id != testSigner(t, algorithm).Info().KeyID {
			t.Errorf("%s: key id is %s, %v", algorithm, id, err)
		}
		for i := range der { // a changed key that still parses must have another id
			if other, err := ParsePublicKey(flipped(der, i)); err == nil {
				if id, _ := KeyIDOf(other); id == DigestOf(der) {
					t.Errorf("%s: with byte %d flipped it has the same id", algorithm, i)
				}
			}
			if _, err := ParsePublicKey(der[:i]); err == nil {
				t.Errorf("%s: accepted cut off at %d", algorithm, i)
			}
		}
		if _, err := ParsePublicKey(append(bytes.Clone(der), 0)); err == nil {
			t.Errorf("%s: accepted with a byte more", algorithm)
		}
		var b cryptobyte.Builder // one more element inside: encoding/asn1 reads past it
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(inside(t, der))
			b.AddASN1NULL()
		})
		longer := b.BytesOrPanic()
		if _, err := x509.ParsePKIXPublicKey(longer); err != nil && algorithm != MLDSA65 {
			t.Errorf("%s: the library refuses the longer key, so this test tests nothing: %v", algorithm, err)
		}
		if _, err := ParsePublicKey(longer); err == nil {
			t.Errorf("%s: accepted with an element more", algorithm)
		}
	}
}

// TestEd25519IsPure checks that Ed25519 signs the payload itself, not a hash of it.
func TestEd25519IsPure(t *testing.T) {
	key := testKey(t, Ed25519).(ed25519.PrivateKey)
	sum256, sum512 := sha256.Sum256([]byte("payload")), sha512.Sum512([]byte("payload"))
	prehashed := must.Get(key.Sign(nil, sum512[:], crypto.SHA512))(t)
	info := testSigner(t, Ed25519).Info()
	wantBadSignature(t, CheckSignature(key.Public(), info, []byte("payload"), prehashed))
	wantBadSignature(t, CheckSignature(key.Public(), info, []byte("payload"), ed25519.Sign(key, sum256[:])))
}

// inside returns the contents of a DER sequence.
func inside(t *testing.T, der []byte) []byte {
	t.Helper()
	input := cryptobyte.String(der)
	var contents cryptobyte.String
	if !input.ReadASN1(&contents, asn1.SEQUENCE) {
		t.Fatal("not a sequence")
	}
	return contents
}
