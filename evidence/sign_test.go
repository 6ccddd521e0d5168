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
	"errors"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudflare/circl/sign/mldsa/mldsa65"
	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/kit/sigkey"
	"jurat/internal/test/must"
)

func TestSignAndCheck(t *testing.T) {
	payload := seal(t, testPayload, nil).Canonical()
	for _, algorithm := range Algorithms() {
		t.Run(string(algorithm), func(t *testing.T) {
			key, signer := testKey(t, algorithm), testSigner(t, algorithm)
			signature := must.Get(signer.Sign(payload))(t)
			check := func(payload, signature []byte) error {
				return CheckSignature(key.Public(), signer.Info(), payload, signature)
			}
			must.Do(t, check(payload, signature))
			for i := range payload {
				wantBadSignature(t, check(flipped(payload, i), signature))
			}
			for i := range signature {
				for _, bits := range ways(i, 1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80) {
					damaged := bytes.Clone(signature)
					damaged[i] ^= bits
					wantBadSignature(t, check(payload, damaged))
				}
				wantBadSignature(t, check(payload, signature[:i]))
				wantBadSignature(t, check(payload, signature[i+1:]))
			}
			wantBadSignature(t, check(payload, append(bytes.Clone(signature), 0)))
			wantBadSignature(t, check(payload, append([]byte{0}, signature...)))
			wantBadSignature(t, check(payload, nil))
			wantBadSignature(t, check(nil, signature))
		})
	}
}

func flipped(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 1
	return data
}

func wantBadSignature(t testing.TB, err error) {
	t.Helper()
	must.Need(t, errors.Is(err, ErrSignature), "error is %v, want ErrSignature", err)
}

// TestAnotherSigner checks a valid signature against a signer entry with another key or algorithm.
func TestAnotherSigner(t *testing.T) {
	payload := []byte("payload")
	for _, algorithm := range Algorithms() {
		signer, public := testSigner(t, algorithm), testKey(t, algorithm).Public()
		signature := must.Get(signer.Sign(payload))(t)
		for _, other := range Algorithms() {
			if other == algorithm {
				continue
			}
			wantBadSignature(t, CheckSignature(public, SignerInfo{other, signer.Info().KeyID}, payload, signature))
			wantBadSignature(t, CheckSignature(public, SignerInfo{algorithm, testSigner(t, other).Info().KeyID}, payload, signature))
			wantBadSignature(t, CheckSignature(testKey(t, other).Public(), signer.Info(), payload, signature))
			r := &Record{Payload: Payload{Signers: []SignerInfo{signer.Info()}}, Signatures: [][]byte{signature}, canonical: payload}
			wantBadSignature(t, r.CheckSignatureOf(0, testSigner(t, other).Info().KeyID, public))
		}
		wantBadSignature(t, CheckSignature(nil, signer.Info(), payload, signature))
		wantBadSignature(t, CheckSignature("a key", signer.Info(), payload, signature))
	}
}

// opaque is a private key whose bytes are not accessible, like one in an HSM.
type opaque struct{ inner crypto.Signer }

func (o opaque) Public() crypto.PublicKey { return o.inner.Public() }

func (o opaque) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return o.inner.Sign(random, digest, opts)
}

func TestOpaqueSigner(t *testing.T) {
	for _, algorithm := range Algorithms() {
		signer := must.Get(NewSigner(opaque{testKey(t, algorithm)}, rand.Reader))(t)
		must.Hold(t, signer.Info() == testSigner(t, algorithm).Info(), "%s: the signer is %v", algorithm, signer.Info())
		r := seal(t, testPayload, nil, signer)
		must.Want(t, r.CheckSignature(0, testKey(t, algorithm).Public()), nil, algorithm)
	}
}

// broken is an HSM that fails or returns an invalid signature.
type broken struct {
	crypto.Signer
	answer []byte
	err    error
}

func (b broken) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { return b.answer, b.err }

func TestBrokenSigner(t *testing.T) {
	draft := must.Get(ParseDraft([]byte(testPayload)))(t)
	outage := errors.New("the token was pulled out")
	for name, key := range map[string]broken{
		"error":     {testKey(t, RS256), nil, outage},
		"nothing":   {testKey(t, Ed25519), nil, nil},
		"not DER":   {testKey(t, ES256), []byte("nonsense"), nil},
		"very long": {testKey(t, RS256), make([]byte, maxSignature+1), nil},
	} {
		signer := must.Get(NewSigner(key, nil))(t)
		r, err := draft.Seal(Sealing{Signers: []Signer{signer}, RecordID: testID})
		must.Hold(t, r == nil && err != nil && (key.err == nil || errors.Is(err, outage)), "%s: record %v, error %v", name, r, err)
	}
}

// TestDeterministic: without randomness, ECDSA signs by RFC 6979. The other algorithms are deterministic, too.
func TestDeterministic(t *testing.T) {
	for _, algorithm := range Algorithms() {
		first, _ := testSigner(t, algorithm).Sign([]byte("payload"))
		second, _ := testSigner(t, algorithm).Sign([]byte("payload"))
		must.Hold(t, len(first) != 0 && bytes.Equal(first, second), "%s: two signatures over one payload differ", algorithm)
	}
	// RFC 6979, appendix A.2.5, P-256 with SHA-256 over "sample". Its S is high, so the S expected here is n minus it.
	d, _ := new(big.Int).SetString("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721", 16)
	key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, 32))))(t)
	signer := must.Get(NewSigner(key, nil))(t)
	signature := must.Get(signer.Sign([]byte("sample")))(t)
	wantR, _ := new(big.Int).SetString("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716", 16)
	wantS, _ := new(big.Int).SetString("F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8", 16)
	wantS.Sub(elliptic.P256().Params().N, wantS)
	r, s, err := sigkey.ParseECDSA(signature)
	must.Hold(t, err == nil && r.Cmp(wantR) == 0 && s.Cmp(wantS) == 0, "r, s are %X, %X, %v\nwant       %X, %X", r, s, err, wantR, wantS)
	wantBadSignature(t, CheckSignature(key.Public(), signer.Info(), []byte("sample"), derSignature(t, wantR,
		new(big.Int).Sub(elliptic.P256().Params().N, wantS))))
}

func TestRandomECDSA(t *testing.T) {
	signer := must.Get(NewSigner(testKey(t, ES256), rand.Reader))(t)
	for range 64 { // about half of them have a high S, which Sign must replace
		signature := must.Get(signer.Sign([]byte("payload")))(t)
		must.Do(t, CheckSignature(testKey(t, ES256).Public(), signer.Info(), []byte("payload"), signature))
	}
}

// TestOtherEncodings writes a valid ECDSA signature in other encodings. Each must be refused: a second signature over
// the same payload would have a second imprint, and so make a second record.
func TestOtherEncodings(t *testing.T) {
	public, signer := testKey(t, ES256).Public(), testSigner(t, ES256)
	right := must.Get(signer.Sign([]byte("payload")))(t)
	r, s, err := sigkey.ParseECDSA(right)
	must.Do(t, err)
	n := elliptic.P256().Params().N
	raw := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	for name, signature := range map[string][]byte{
		"high S":              derSignature(t, r, new(big.Int).Sub(n, s)),
		"S + n":               derSignature(t, r, new(big.Int).Add(n, s)),
		"R + n":               derSignature(t, new(big.Int).Add(n, r), s),
		"negative S":          derSignature(t, r, new(big.Int).Neg(s)),
		"negative R":          derSignature(t, new(big.Int).Neg(r), s),
		"zero":                derSignature(t, new(big.Int), new(big.Int)),
		"raw":                 raw,
		"long length":         append([]byte{0x30, 0x81}, right[1:]...),
		"indefinite length":   append(append([]byte{0x30, 0x80}, right[2:]...), 0, 0),
		"zero before R":       zeroBeforeR(right),
		"trailing byte":       append(bytes.Clone(right), 0),
		"third number":        append(append([]byte{0x30, right[1] + 3}, right[2:]...), 2, 1, 1),
		"set for a sequence":  append([]byte{0x31}, right[1:]...),
		"nothing":             nil,
		"sequence of nothing": {0x30, 0},
	} {
		err := CheckSignature(public, signer.Info(), []byte("payload"), signature)
		t.Run(name, func(t *testing.T) { wantBadSignature(t, err) })
	}
}

func derSignature(t *testing.T, r, s *big.Int) []byte {
	t.Helper()
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1BigInt(r)
		b.AddASN1BigInt(s)
	})
	return must.Get(b.Bytes())(t)
}

func zeroBeforeR(signature []byte) []byte {
	longer := bytes.Clone(signature[:4])
	longer[1]++
	longer[3]++
	return append(append(longer, 0), signature[4:]...)
}

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
		algorithm, err := AlgorithmOf(public)
		must.Hold(t, err != nil, "%s: accepted as %s", name, algorithm)
	}
	must.Refuse(t, "", "a signer on P-384")(NewSigner(p384, nil))
}

// TestSmallOrder makes signatures without a private key. A key of small order accepts them for any payload;
// CheckSignature must refuse the key.
func TestSmallOrder(t *testing.T) {
	identity := ed25519.PublicKey(append([]byte{1}, make([]byte, 31)...))
	signature := make([]byte, ed25519.SignatureSize)
	signature[0] = 1 // R is the identity too, S is 0
	for _, payload := range []string{"I recommend it", "I advise against it"} {
		must.Need(t, ed25519.Verify(identity, []byte(payload), signature), "the library refuses the forgery by itself, so this test tests nothing")
		info := SignerInfo{Algorithm: Ed25519, KeyID: DigestOf(spki(t, identity))}
		wantBadSignature(t, CheckSignature(identity, info, []byte(payload), signature))
	}
	for _, point := range sigkey.SmallOrder {
		for _, sign := range []byte{0, 0x80} {
			key := bytes.Clone(point)
			key[31] |= sign
			must.Refuse(t, "", key)(ParsePublicKey(spki(t, ed25519.PublicKey(key))))
		}
	}
	for _, none := range []byte{2, 0xf0} { // y = 2 has no x; 3 is written as p + 3
		key := append([]byte{none}, bytes.Repeat([]byte{none & 0x80 / 0x80 * 0xff}, 31)...)
		key[31] &= 0x7f
		must.Refuse(t, "no point", key)(ParsePublicKey(spki(t, ed25519.PublicKey(key))))
	}
	for range 100 {
		public, _, err := ed25519.GenerateKey(rand.Reader)
		must.Do(t, err)
		must.Get(ParsePublicKey(spki(t, public)))(t)
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
		id, err := KeyIDOf(public)
		must.Hold(t, err == nil && id == DigestOf(der) && id == testSigner(t, algorithm).Info().KeyID, "%s: key id is %s, %v", algorithm, id, err)
		for i := range der { // a changed key that still parses must have another id
			if other, err := ParsePublicKey(flipped(der, i)); err == nil {
				id, _ := KeyIDOf(other)
				must.Hold(t, id != DigestOf(der), "%s: with byte %d flipped it has the same id", algorithm, i)
			}
			must.Refuse(t, "", algorithm, "accepted cut off at", i)(ParsePublicKey(der[:i]))
		}
		must.Refuse(t, "", algorithm)(ParsePublicKey(append(bytes.Clone(der), 0)))
		var b cryptobyte.Builder // one more element inside: encoding/asn1 reads past it
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(inside(t, der))
			b.AddASN1NULL()
		})
		longer := b.BytesOrPanic()
		_, err = x509.ParsePKIXPublicKey(longer)
		must.Hold(t, err == nil || algorithm == MLDSA65, "%s: the library refuses the longer key, so this test tests nothing: %v", algorithm, err)
		must.Refuse(t, "", algorithm)(ParsePublicKey(longer))
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
	must.Need(t, input.ReadASN1(&contents, asn1.SEQUENCE), "not a sequence")
	return contents
}

// openssl runs the command in a folder, and reports whether it succeeded.
func openssl(t *testing.T, dir string, args ...string) bool {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "openssl is not installed; this test compares signatures with it")
		t.Skip("openssl is not installed; this test compares signatures with it")
	}
	cmd := exec.CommandContext(t.Context(), "openssl", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	t.Logf("openssl %s: %s", strings.Join(args, " "), strings.TrimSpace(string(out)))
	return err == nil
}

// judged returns the algorithms that this OpenSSL supports. It supports ML-DSA since version 3.5.
func judged(t *testing.T) []Algorithm {
	t.Helper()
	if !openssl(t, t.TempDir(), "pkey", "-in", absolute(t, keyFiles[MLDSA65]), "-noout") {
		t.Log("this OpenSSL does not know ML-DSA-65: only the other algorithms are tested")
		return slices.DeleteFunc(Algorithms(), Algorithm.PostQuantum)
	}
	return Algorithms()
}

func absolute(t *testing.T, keyFile string) string {
	t.Helper()
	return must.Get(filepath.Abs(filepath.Join("testdata", "keys", keyFile)))(t)
}

// hashes reports whether OpenSSL hashes the payload before it signs with this algorithm.
func hashes(algorithm Algorithm) bool { return algorithm == ES256 || algorithm == RS256 }

// TestOpenSSLVerifies gives OpenSSL signatures made by this package, with the right payload and with a changed one.
func TestOpenSSLVerifies(t *testing.T) {
	for _, algorithm := range judged(t) {
		t.Run(string(algorithm), func(t *testing.T) {
			dir := keyFolder(t, algorithm)
			r := seal(t, testPayload, nil, testSigner(t, algorithm))
			writeFile(t, dir, "payload.json", r.Canonical())
			writeFile(t, dir, "signature.bin", r.Signatures[0])
			verify := []string{"dgst", "-sha256", "-verify", "public.pem", "-signature", "signature.bin", "payload.json"}
			if !hashes(algorithm) {
				verify = []string{"pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in", "payload.json", "-sigfile", "signature.bin"}
			}
			must.Hold(t, openssl(t, dir, verify...), "OpenSSL refuses the signature")
			writeFile(t, dir, "payload.json", flipped(r.Canonical(), 10))
			must.Hold(t, !openssl(t, dir, verify...), "OpenSSL accepts the signature over another payload")
		})
	}
}

// TestOpenSSLSigns gives this package signatures made by OpenSSL. About half of OpenSSL's ECDSA signatures have a high
// S.
func TestOpenSSLSigns(t *testing.T) {
	payload := seal(t, testPayload, nil).Canonical()
	for _, algorithm := range judged(t) {
		t.Run(string(algorithm), func(t *testing.T) {
			dir := keyFolder(t, algorithm)
			writeFile(t, dir, "payload.json", payload)
			sign := []string{"dgst", "-sha256", "-sign", "private.pem", "-out", "signature.bin", "payload.json"}
			if !hashes(algorithm) {
				sign = []string{"pkeyutl", "-sign", "-inkey", "private.pem", "-rawin", "-in", "payload.json", "-out", "signature.bin"}
			}
			must.Need(t, openssl(t, dir, sign...), "OpenSSL does not sign")
			signature := readFile(t, filepath.Join(dir, "signature.bin"))
			if algorithm == ES256 {
				signature = must.Get(sigkey.LowS(signature))(t)
			}
			info := testSigner(t, algorithm).Info()
			must.Want(t, CheckSignature(testKey(t, algorithm).Public(), info, payload, signature), nil)
		})
	}
}

// keyFolder returns a folder with a test key as private.pem, and its public key, written by OpenSSL, as public.pem.
func keyFolder(t *testing.T, algorithm Algorithm) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "private.pem", readFile(t, filepath.Join("testdata", "keys", keyFiles[algorithm])))
	must.Need(t, openssl(t, dir, "pkey", "-in", "private.pem", "-pubout", "-out", "public.pem"), "OpenSSL does not read the key")
	must.Need(t, openssl(t, dir, "pkey", "-pubin", "-in", "public.pem", "-outform", "DER", "-out", "public.der"), "OpenSSL does not write the key")
	must.Equal(t, DigestOf(readFile(t, filepath.Join(dir, "public.der"))), testSigner(t, algorithm).Info().KeyID, "the key id by OpenSSL is")
	return dir
}

func writeFile(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}
