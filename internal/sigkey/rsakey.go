package sigkey

import (
	"crypto/rsa"
	"fmt"
	"math"
)

const (
	minBits = 2048
	// maxBits is the longest modulus with which anything is checked.
	maxBits = 8192

	minExponent = 3
	maxExponent = math.MaxInt32
	// maxCertified is the largest exponent of keys in certificates: all that are in use have it, or less.
	maxCertified = 1<<16 + 1
)

// checkRSA refuses what no record is signed with: a modulus of other than 2048 to 8192 bits, an exponent that is even or not from 3 to
// 2^31-1.
func checkRSA(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits < minBits || bits > maxBits {
		return fmt.Errorf("an RSA key of %d bits: want %d to %d", bits, minBits, maxBits)
	}
	return checkExponent(key, maxExponent)
}

// CheckCertified is Check for keys in certificates, whose exponent is at most 65537. It also refuses every larger
// exponent.
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
