package sigkey

import (
	"crypto/elliptic"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

var halfOrder = new(big.Int).Rsh(elliptic.P256().Params().N, 1)

// StrictECDSA returns an error for the other encodings of a valid signature. Otherwise anyone could make a second one: (r, n-s) is
// valid if (r, s) is.
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

// ParseECDSA reads strict DER: cryptobyte accepts only the shortest lengths and numbers. It returns an error for
// anything else.
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

// ECDSAFromRaw returns the signature that a record has for r and s, one after the other, as JWS (RFC 7518, section 3.4)
// and PKCS #11 have them. It returns an error if the length is not that of P-256.
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

// RawECDSA returns r and s of a record's signature, one after the other. It returns an error if the signature is not
// DER, or one of the numbers is not of P-256.
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
