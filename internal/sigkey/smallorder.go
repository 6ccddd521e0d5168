package sigkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
)

// SmallOrder holds the encodings, without the sign bit, of the points of edwards25519 whose order divides 8,
// including two that are not reduced. Such a public key has no private key. Signatures can be made that are valid
// under it for many payloads, so its owner could deny every one. (RFC 8032 leaves it to the protocol to refuse them.)
var SmallOrder = [][]byte{
	unhex("0000000000000000000000000000000000000000000000000000000000000000"),
	unhex("0100000000000000000000000000000000000000000000000000000000000000"),
	unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
	unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
	unhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	unhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	unhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
}

func unhex(digits string) []byte {
	b, err := hex.DecodeString(digits)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return b
}

// isSmallOrder reports whether the key, which has 32 bytes, is one of these.
func isSmallOrder(key ed25519.PublicKey) bool {
	y := bytes.Clone(key)
	y[len(y)-1] &= 0x7f // the top bit is the sign of x
	return slices.ContainsFunc(SmallOrder, func(point []byte) bool { return bytes.Equal(point, y) })
}
