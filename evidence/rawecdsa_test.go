package evidence

import (
	"bytes"
	"crypto/elliptic"
	"math/big"
	"testing"
)

// TestRawECDSA checks both directions, that a high S becomes a low one, and that what is not a signature of P-256 is refused.
func TestRawECDSA(t *testing.T) {
	signer := testSigner(t, ES256)
	signature, err := signer.Sign([]byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := RawECDSA(signature)
	if err != nil || len(raw) != 64 {
		t.Fatalf("%x, %v", raw, err)
	}
	if again, err := FromRawECDSA(raw); err != nil || !bytes.Equal(again, signature) {
		t.Errorf("%x, %v; want %x", again, err, signature)
	}
	r, s, err := parseECDSA(signature)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw[:32], r.FillBytes(make([]byte, 32))) || !bytes.Equal(raw[32:], s.FillBytes(make([]byte, 32))) {
		t.Errorf("%x is not r and s", raw)
	}
	n := elliptic.P256().Params().N
	high := append(raw[:32:32], new(big.Int).Sub(n, s).FillBytes(make([]byte, 32))...)
	if again, err := FromRawECDSA(high); err != nil || !bytes.Equal(again, signature) {
		t.Errorf("of a high S: %x, %v; want %x", again, err, signature)
	}
	for _, wrong := range [][]byte{nil, raw[:63], append(raw[:64:64], 0)} {
		if der, err := FromRawECDSA(wrong); err == nil {
			t.Errorf("%d bytes became %x", len(wrong), der)
		}
	}
	large, err := marshalECDSA(new(big.Int).Lsh(big.NewInt(1), 256), s)
	if err != nil {
		t.Fatal(err)
	}
	negative, err := marshalECDSA(big.NewInt(-5), s)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string][]byte{"large": large, "negative": negative, "not DER": []byte("x"), "empty": nil} {
		if raw, err := RawECDSA(wrong); err == nil {
			t.Errorf("%s: %x", name, raw)
		}
	}
}
