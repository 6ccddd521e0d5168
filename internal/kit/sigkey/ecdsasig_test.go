package sigkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"math"
	"math/big"
	"testing"

	"jurat/internal/test/must"
)

// TestRaw checks both directions, that a high S becomes a low one, and that what is not a signature of P-256 is refused.
func TestRaw(t *testing.T) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	digest := sha256.Sum256([]byte("payload"))
	either := must.Get(key.Sign(rand.Reader, digest[:], crypto.SHA256))(t)
	signature := must.Get(LowS(either))(t)
	raw, err := RawECDSA(signature)
	must.Need(t, err == nil && len(raw) == 64, "%x, %v", raw, err)
	if again, err := ECDSAFromRaw(raw); err != nil || !bytes.Equal(again, signature) {
		t.Errorf("%x, %v; want %x", again, err, signature)
	}
	r, s, err := ParseECDSA(signature)
	must.Do(t, err)
	must.Hold(t, bytes.Equal(raw[:32], r.FillBytes(make([]byte, 32))) && bytes.Equal(raw[32:], s.FillBytes(make([]byte, 32))), "%x is not r and s", raw)
	n := elliptic.P256().Params().N
	high := append(raw[:32:32], new(big.Int).Sub(n, s).FillBytes(make([]byte, 32))...)
	again, err := ECDSAFromRaw(high)
	must.Hold(t, err == nil && bytes.Equal(again, signature), "of a high S: %x, %v; want %x", again, err, signature)
	for _, wrong := range [][]byte{nil, raw[:63], append(raw[:64:64], 0)} {
		der, err := ECDSAFromRaw(wrong)
		must.Hold(t, err != nil, "%d bytes became %x", len(wrong), der)
	}
	large := must.Get(marshalECDSA(new(big.Int).Lsh(big.NewInt(1), 256), s))(t)
	negative := must.Get(marshalECDSA(big.NewInt(-5), s))(t)
	for name, wrong := range map[string][]byte{"large": large, "negative": negative, "not DER": []byte("x"), "empty": nil} {
		raw, err := RawECDSA(wrong)
		must.Hold(t, err != nil, "%s: %x", name, raw)
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		bits                          uint
		exponent                      int
		signs, certified, costly, not bool
	}{
		{2048, 65537, true, true, false, false},
		{2047, 65537, false, false, false, false},
		{4096, 3, true, true, false, false},
		{4097, 3, true, true, true, false},
		{8192, 65537, true, true, true, false},
		{8193, 65537, false, false, true, true},
		{2048, 1, false, false, false, true},
		{2048, 2, false, false, false, true},
		{2048, 65536, false, false, false, true},
		{2048, 65539, true, false, false, true},
		{2048, math.MaxInt32, true, false, false, true},
		{2048, math.MaxInt32 + 2, false, false, false, true},
		{2048, -3, false, false, false, true},
	} {
		key := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), test.bits-1), E: test.exponent}
		some, none := Costly(key)
		if signs, certified := checkRSA(key) == nil, CheckCertified(key) == nil; signs != test.signs || certified != test.certified || some != test.costly || none != test.not {
			t.Errorf("%+v: %v, %v, %v, %v", test, signs, certified, some, none)
		}
	}
}
