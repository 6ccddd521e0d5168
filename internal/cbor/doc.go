// Package cbor writes and reads the CBOR (RFC 8949) that COSE needs.
//
// [Encode] writes the deterministic encoding of RFC 8949, section 4.2.1: shortest lengths, no indefinite ones, map keys in
// the order of their encoded bytes. [Decode] is for input from strangers. It refuses what two readers could read
// differently: duplicate keys, indefinite lengths, lengths and integers that are longer than needed, bytes after the end.
// It accepts map keys in any order, because many encoders keep the order of insertion and nothing depends on it.
//
// # Why not a library
//
// The product signs and verifies these bytes, so they belong to the format and its own code, like the canonical JSON. The
// usual libraries judge it in tests (scitt/judges).
package cbor
