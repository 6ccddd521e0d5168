package evidence

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"math/big"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
	"jurat/internal/sigkey"
)

// TestDeterministic: without randomness, ECDSA signs by RFC 6979. The other algorithms are deterministic, too.
func TestDeterministic(t *testing.T) {
	for _, algorithm := range Algorithms() {
		first, _ := testSigner(t, algorithm).Sign([]byte("payload"))
		second, _ := testSigner(t, algorithm).Sign([]byte("payload"))
		if len(first) == 0 || !bytes.Equal(first, second) {
			t.Errorf("%s: two signatures over one payload differ", algorithm)
		}
	}
	// RFC 6979, appendix A.2.5, P-256 with SHA-256 over "sample". Its S is high, so the S expected here is n minus it.
	d, _ := new(big.Int).SetString("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721", 16)
	key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), d.FillBytes(make([]byte, 32))))(t)
	signer := must.Get(NewSigner(key, nil))(t)
	signature := must.Get(signer.Sign([]byte("sample")))(t)
	wantR, _ := new(big.Int).SetString("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716", 16)
	wantS, _ := new(big.Int).SetString("F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8", 16)
	wantS.Sub(elliptic.P256().Params().N, wantS)
	if r, s, err := sigkey.ParseECDSA(signature); err != nil || r.Cmp(wantR) != 0 || s.Cmp(wantS) != 0 {
		t.Errorf("r, s are %X, %X, %v\nwant       %X, %X", r, s, err, wantR, wantS)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
