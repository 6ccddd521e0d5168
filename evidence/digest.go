package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

const digestPrefix = "sha256:"

// Digest is a SHA-256 hash, written "sha256:" and 64 lower-case hexadecimal digits. The zero Digest means "none".
type Digest [sha256.Size]byte

// DigestOf hashes data.
func DigestOf(data []byte) Digest { return sha256.Sum256(data) }

// ParseDigest reads the written form. It accepts no other spelling of the same hash.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	hexadecimal, ok := strings.CutPrefix(text, digestPrefix)
	if !ok || len(hexadecimal) != hex.EncodedLen(len(d)) || strings.ToLower(hexadecimal) != hexadecimal {
		return d, fmt.Errorf("%q is not a digest: want %s and 64 lower-case hexadecimal digits", Abbreviate(text), digestPrefix)
	}
	if _, err := hex.Decode(d[:], []byte(hexadecimal)); err != nil {
		return Digest{}, fmt.Errorf("%q is not a digest: %w", text, err)
	}
	return d, nil
}

func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

func (d Digest) appendText(b []byte) []byte {
	return hex.AppendEncode(append(b, digestPrefix...), d[:])
}

// Short is the start of the digest, for people. It does not identify anything.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether d is "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText implements encoding.TextMarshaler. Its error is nil.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its errors are those of ParseDigest.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}
