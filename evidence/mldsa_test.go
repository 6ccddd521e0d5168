package evidence

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha3"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/kit/sigkey"
	"jurat/internal/test/must"
)

// TestMLDSAKnownAnswer derives keys from a stream of seeds and signs an empty message with each, without randomness. It
// compares the hash of all keys and signatures with the value that independent implementations of FIPS 204 give for this
// procedure. Go's own is one of them.
func TestMLDSAKnownAnswer(t *testing.T) {
	n, want := 100, "8358a1843220194417cadbc2651295cd8fc65125b5a5c1a239a16dc8b57ca199"
	if os.Getenv("JURAT_TEST_LONG") != "" {
		n, want = 10000, "5ff5e196f0b830c3b10a9eb5358e7c98a3a20136cb677f3ae3b90175c3ace329"
	}
	seeds, all := sha3.NewSHAKE128(), sha3.NewSHAKE128()
	for range n {
		var seed [sigkey.MLDSASeedSize]byte
		seeds.Read(seed[:])
		signer := must.Get(NewSigner(NewMLDSA65(&seed), nil))(t)
		der := must.Get(MarshalPublicKey(signer.(*keySigner).key.Public()))(t)
		all.Write(der[len(der)-mldsa65.PublicKeySize:])
		signature := must.Get(signer.Sign(nil))(t)
		all.Write(signature)
	}
	var sum [32]byte
	all.Read(sum[:])
	must.Equal(t, hex.EncodeToString(sum[:]), want)
}

// TestMLDSASizes checks the sizes that the format states, and the bytes that RFC 9881 puts before a public key.
func TestMLDSASizes(t *testing.T) {
	der := spki(t, testKey(t, MLDSA65).Public())
	const before = "MIIHsjALBglghkgBZQMEAxIDggehAE" // of 22 bytes and the first bits of the key
	if text := base64.StdEncoding.EncodeToString(der); len(der) != 22+1952 || !strings.HasPrefix(text, before) {
		t.Errorf("%d bytes: %s…", len(der), text[:40])
	}
	signature, err := testSigner(t, MLDSA65).Sign([]byte("payload"))
	must.Hold(t, err == nil && len(signature) == 3309, "the signature has %d bytes, %v", len(signature), err)
}

// TestMLDSAContext checks that signatures use an empty context and that the payload is not hashed first.
func TestMLDSAContext(t *testing.T) {
	key, info := testKey(t, MLDSA65).(*mldsa65.PrivateKey), testSigner(t, MLDSA65).Info()
	signature := make([]byte, mldsa65.SignatureSize)
	must.Do(t, mldsa65.SignTo(key, []byte("payload"), []byte("jurat"), false, signature))
	wantBadSignature(t, CheckSignature(key.Public(), info, []byte("payload"), signature))
	digest := DigestOf([]byte("payload"))
	must.Do(t, mldsa65.SignTo(key, digest[:], nil, false, signature))
	wantBadSignature(t, CheckSignature(key.Public(), info, []byte("payload"), signature))
}

// TestMLDSAHedged checks that with randomness two signatures over one payload differ, and that both are valid.
func TestMLDSAHedged(t *testing.T) {
	key := testKey(t, MLDSA65)
	signer := must.Get(NewSigner(key, rand.Reader))(t)
	seen := map[string]bool{}
	for range 8 {
		signature := must.Get(signer.Sign([]byte("payload")))(t)
		seen[string(signature)] = true
		must.Do(t, CheckSignature(key.Public(), signer.Info(), []byte("payload"), signature))
	}
	must.Equal(t, len(seen), 8)
}

// TestMLDSAZeroKey makes signatures without a private key. A key with t1 = 0 accepts them; jurat must refuse the key.
func TestMLDSAZeroKey(t *testing.T) {
	raw := make([]byte, mldsa65.PublicKeySize)
	copy(raw, "any seed")
	var public mldsa65.PublicKey
	must.Do(t, public.UnmarshalBinary(raw))
	info := SignerInfo{Algorithm: MLDSA65, KeyID: DigestOf(spki(t, &public))}
	for _, payload := range []string{"I recommend it", "I advise against it"} {
		signature := withoutKey(raw, payload)
		must.Need(t, mldsa65.Verify(&public, []byte(payload), nil, signature), "the library refuses the forgery by itself, so this test tests nothing")
		wantBadSignature(t, CheckSignature(&public, info, []byte(payload), signature))
	}
	must.Refuse(t, "", "the key is read")(ParsePublicKey(spki(t, &public)))
}

// withoutKey returns the signature with z = 0 and no hints (FIPS 204, algorithms 8, 26 and 28). Then w1 is zero, too.
func withoutKey(public []byte, payload string) []byte {
	hash := func(size int, parts ...[]byte) []byte {
		h, sum := sha3.NewSHAKE256(), make([]byte, size)
		h.Write(bytes.Join(parts, nil))
		h.Read(sum)
		return sum
	}
	mu := hash(64, hash(64, public), []byte{0, 0}, []byte(payload))
	challenge := hash(48, mu, make([]byte, 6*128))
	z := bytes.Repeat([]byte{0, 0, 8, 0, 0x80}, 5*128) // two coefficients in 40 bits, each encoded as 2^19 minus its value
	return bytes.Join([][]byte{challenge, z, make([]byte, 55+6)}, nil)
}

// TestMLDSAPublicEncodings writes a public key in other encodings. Each must be refused.
func TestMLDSAPublicEncodings(t *testing.T) {
	der := spki(t, testKey(t, MLDSA65).Public())
	key := der[22:]
	form := func(oid, parameters, bits []byte) []byte {
		return sequence(sequence(element(asn1.OBJECT_IDENTIFIER, oid), parameters), element(asn1.BIT_STRING, bits))
	}
	oid, bits := der[8:17], append([]byte{0}, key...)
	must.Need(t, bytes.Equal(form(oid, nil, bits), der), "the test's own encoder does not write the correct form")
	other := bytes.Clone(oid)
	other[8]++ // ML-DSA-87
	for name, form := range map[string][]byte{
		"parameters NULL":     form(oid, []byte{5, 0}, bits),
		"another parameter":   form(other, nil, bits),
		"short key":           form(oid, nil, bits[:len(bits)-1]),
		"long key":            form(oid, nil, append(bytes.Clone(bits), 0)),
		"unused bits":         form(oid, nil, append([]byte{1}, bits[1:]...)),
		"no bits":             form(oid, nil, nil),
		"octet string inside": form(oid, nil, append([]byte{0}, element(asn1.OCTET_STRING, key)...)),
		"octet string":        sequence(sequence(element(asn1.OBJECT_IDENTIFIER, oid)), element(asn1.OCTET_STRING, key)),
		"no key":              sequence(sequence(element(asn1.OBJECT_IDENTIFIER, oid))),
		"long length":         append([]byte{0x30, 0x83, 0}, der[2:]...),
		"indefinite length":   append(append([]byte{0x30, 0x80}, der[4:]...), 0, 0),
		"the key alone":       key,
	} {
		public, err := ParsePublicKey(form)
		must.Hold(t, err != nil, "%s: read as %T", name, public)
	}
}

// TestMLDSAPrivateEncodings writes a private key with one bit changed, cut off, longer, and in the forms of RFC 9881
// that jurat does not use. Each must be refused.
func TestMLDSAPrivateEncodings(t *testing.T) {
	private := testKey(t, MLDSA65).(*mldsa65.PrivateKey)
	der := must.Get(MarshalPrivateKey(private))(t)
	again, err := ParsePrivateKey(der)
	must.Need(t, err == nil && private.Equal(again), "reads back as another key: %v", err)
	for i := range der[:len(der)-sigkey.MLDSASeedSize] {
		for bit := range 8 {
			damaged := bytes.Clone(der)
			damaged[i] ^= 1 << bit
			must.Refuse(t, "", "read with bit", bit, "of byte", i)(ParsePrivateKey(damaged))
		}
	}
	for i := range der {
		must.Refuse(t, "", "read cut off at", i)(ParsePrivateKey(der[:i]))
	}
	oid := sequence(element(asn1.OBJECT_IDENTIFIER, der[9:18]))
	form := func(inner []byte, more ...[]byte) []byte {
		return sequence(append([][]byte{{2, 1, 0}, oid, element(asn1.OCTET_STRING, inner)}, more...)...)
	}
	tag := asn1.Tag(0).ContextSpecific()
	seed := element(tag, private.Seed())
	must.Need(t, bytes.Equal(form(seed), der), "the test's own encoder does not write the correct form")
	expanded := element(asn1.OCTET_STRING, private.Bytes())
	for name, form := range map[string][]byte{
		"trailing byte":     append(bytes.Clone(der), 0),
		"expanded":          form(expanded),
		"both":              form(sequence(element(asn1.OCTET_STRING, private.Seed()), expanded)),
		"bare seed":         form(private.Seed()),
		"attributes":        form(seed, []byte{0xa0, 0}),
		"two seeds":         form(append(bytes.Clone(seed), seed...)),
		"short seed":        form(element(tag, private.Seed()[1:])),
		"constructed seed":  form(element(tag.Constructed(), private.Seed())),
		"public key inside": form(seed, element(asn1.Tag(1).ContextSpecific(), append([]byte{0}, private.Public().(*mldsa65.PublicKey).Bytes()...))),
	} {
		must.Refuse(t, "", name)(ParsePrivateKey(form))
	}
	var expandedKey mldsa65.PrivateKey
	must.Do(t, expandedKey.UnmarshalBinary(private.Bytes()))
	must.Refuse(t, "", "MarshalPrivateKey accepted a key without its seed")(MarshalPrivateKey(&expandedKey))
}

// TestPrivateKeysAreReadBack checks that the keys of all algorithms marshal to the committed bytes.
func TestPrivateKeysAreReadBack(t *testing.T) {
	for _, algorithm := range Algorithms() {
		block, _ := pem.Decode(readFile(t, filepath.Join("testdata", "keys", keyFiles[algorithm])))
		der, err := MarshalPrivateKey(testKey(t, algorithm))
		must.Hold(t, err == nil && bytes.Equal(der, block.Bytes), "%s: written as %x, %v", algorithm, der, err)
	}
	for name, der := range map[string][]byte{"nothing": nil, "a public key": spki(t, testKey(t, ES256).Public()), "an ECDH key": x25519(t)} {
		key, err := ParsePrivateKey(der)
		must.Hold(t, err != nil, "%s is read as %T", name, key)
	}
}

// x25519 returns a private key that cannot sign.
func x25519(t *testing.T) []byte {
	t.Helper()
	der := must.Get(hex.DecodeString("302e020100300506032b656e04220420" + strings.Repeat("42", 32)))(t)
	must.Get(x509.ParsePKCS8PrivateKey(der))(t)
	return der
}

func element(of asn1.Tag, content []byte) []byte {
	var b cryptobyte.Builder
	b.AddASN1(of, func(b *cryptobyte.Builder) { b.AddBytes(content) })
	return b.BytesOrPanic()
}

func sequence(parts ...[]byte) []byte { return element(asn1.SEQUENCE, bytes.Join(parts, nil)) }

// TestSecondSignature seals with two keys, and then removes, damages or swaps the second signature.
func TestSecondSignature(t *testing.T) {
	r := seal(t, testPayload, nil, testSigner(t, ES256), testSigner(t, MLDSA65))
	keys := []crypto.PublicKey{testKey(t, ES256).Public(), testKey(t, MLDSA65).Public()}
	file := marshalRecord(t, r)
	opened, err := Open(file)
	must.Need(t, err == nil && bytes.Equal(marshalRecord(t, opened), file), "what was opened marshals to another file: %v", err)
	for i, key := range keys {
		must.Want(t, opened.CheckSignature(i, key), nil, "signature", i)
		wantBadSignature(t, opened.CheckSignature(1-i, key))
	}
	must.Equal(t, opened.Imprint(), DigestOf(bytes.Join(r.Signatures, nil)))
	swapped := *opened
	swapped.Signatures = [][]byte{r.Signatures[1], r.Signatures[0]}
	for i, key := range keys {
		wantBadSignature(t, swapped.CheckSignature(i, key))
	}
	// Without the second signature the record does not open. And the first signature is not valid for a payload that
	// names only one signer.
	text := base64.StdEncoding.EncodeToString(r.Signatures[1])
	stripped := strings.Replace(string(file), `,"`+text+`"`, "", 1)
	must.Refuse(t, "2 signers, the record has 1", "without the second signature")(Open([]byte(stripped)))
	alone := seal(t, testPayload, nil, testSigner(t, ES256))
	alone.Signatures = r.Signatures[:1]
	wantBadSignature(t, alone.CheckSignature(0, keys[0]))
}

// TestOpaqueMLDSAIsGivenThePayload checks that a key in an HSM gets the payload itself, because jurat uses pure ML-DSA.
func TestOpaqueMLDSAIsGivenThePayload(t *testing.T) {
	var asked []byte
	key := recording{testKey(t, MLDSA65), &asked}
	signer := must.Get(NewSigner(key, nil))(t)
	_, err := signer.Sign([]byte("payload"))
	must.Hold(t, err == nil && string(asked) == "payload", "the HSM was asked to sign %q, %v", asked, err)
}

type recording struct {
	crypto.Signer
	asked *[]byte
}

func (r recording) Sign(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	*r.asked = message
	return r.Signer.Sign(random, message, opts)
}
