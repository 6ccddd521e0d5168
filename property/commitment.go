package property

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// H is the second generator. Its logarithm is unknown to everyone: it is hash_to_curve of RFC 9380, suite P256_XMD:SHA-256_SSWU_RO_, of
// "jurat/property/v1/H" with the domain separation tag "jurat/property/v1/P256_XMD:SHA-256_SSWU_RO_".
func H() point { return h }

var h = func() point {
	b, err := hex.DecodeString("03dd1ae5015663ba8042c22e51aceb3956f8da3fff5d544f44d18a1f8f844eb13f")
	if err != nil {
		panic(err) // a constant
	}
	p, err := parsePoint(b)
	if err != nil {
		panic(err) // a constant
	}
	return p
}()

// SaltSize is the size in bytes of a salt: that of a commitment by HMAC.
const SaltSize = 32

// A Commitment is a Pedersen commitment.
type Commitment struct{ point point }

const commitmentPrefix = "p256:"

// ParseCommitment reads a commitment as a payload has it: "p256:" and 66 hexadecimal digits in lower case. It returns an error for any
// other form, and for what is no point of P-256.
func ParseCommitment(text string) (Commitment, error) {
	digits, is := strings.CutPrefix(text, commitmentPrefix)
	if !is || len(digits) != 2*pointSize || strings.ToLower(digits) != digits {
		return Commitment{}, fmt.Errorf("commitment %.80q: want %s and %d hexadecimal digits in lower case", text, commitmentPrefix, 2*pointSize)
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return Commitment{}, fmt.Errorf("commitment %.80q: %w", text, err)
	}
	point, err := parsePoint(b)
	if err != nil {
		return Commitment{}, fmt.Errorf("commitment %.80q: %w", text, err)
	}
	return Commitment{point}, nil
}

// String writes a commitment as a payload has it.
func (c Commitment) String() string { return commitmentPrefix + hex.EncodeToString(c.point.Bytes()) }

// Equal reports whether two commitments are the same.
func (c Commitment) Equal(d Commitment) bool { return c.point.Equal(d.point) }

// An Opening opens a commitment: a reader who has it knows the value.
type Opening struct {
	Value jsontext.Value // canonical JSON
	Salt  [SaltSize]byte
}

// Commit makes the commitment to a value at a pointer. The value is canonical JSON. It returns an error if the value is not of the kind.
func Commit(kind Kind, pointer string, o Opening) (Commitment, error) {
	v, r, err := o.open(kind, pointer)
	if err != nil {
		return Commitment{}, err
	}
	return Commitment{mulGenerator(v).Add(h.Mul(r))}, nil
}

// open returns the two numbers of a commitment.
func (o *Opening) open(kind Kind, pointer string) (v, r scalar, err error) {
	if err := kind.Check(); err != nil {
		return v, r, err
	}
	if v, err = kind.scalar(o.Value); err != nil {
		return v, r, err
	}
	r, err = blinding(o.Salt, pointer)
	return v, r, err
}

// blinding derives r from the salt. So there is one secret to keep, and one to destroy.
func blinding(salt [SaltSize]byte, pointer string) (scalar, error) {
	wide, err := hkdf.Key(sha256.New, salt[:], nil, "jurat/property/v1\x00"+pointer, 48)
	if err != nil {
		return scalar{}, fmt.Errorf("deriving the blinding of %s: %w", pointer, err)
	}
	return reduceScalar([48]byte(wide)), nil
}
