package evidence

import (
	"errors"
	"fmt"
	"math/big"
)

// rawHalf is the size of each of the two numbers of a P-256 signature.
const rawHalf = 32

// FromRawECDSA returns the signature that a record has for r and s, one after the other, as JWS (RFC 7518, section 3.4)
// and PKCS #11 have them. It returns an error if the length is not that of P-256.
func FromRawECDSA(raw []byte) ([]byte, error) {
	if len(raw) != 2*rawHalf {
		return nil, fmt.Errorf("the ECDSA signature has %d bytes instead of %d", len(raw), 2*rawHalf)
	}
	der, err := marshalECDSA(new(big.Int).SetBytes(raw[:rawHalf]), new(big.Int).SetBytes(raw[rawHalf:]))
	if err != nil {
		return nil, err
	}
	return lowS(der)
}

// RawECDSA returns r and s of a record's signature, one after the other. It returns an error if the signature is not
// DER, or one of the numbers is not of P-256.
func RawECDSA(signature []byte) ([]byte, error) {
	r, s, err := parseECDSA(signature)
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
