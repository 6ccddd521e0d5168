package sigkey

import (
	"crypto/rsa"
	"math"
	"math/big"
	"testing"
)

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
