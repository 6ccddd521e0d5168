package tiles

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// MaxEntry is the largest entry that a bundle can hold.
const MaxEntry = math.MaxUint16

// FormatEntries encodes a bundle: each entry is preceded by its length in two bytes. It returns an error if an entry
// is longer than MaxEntry.
func FormatEntries(entries [][]byte) ([]byte, error) {
	var bundle []byte
	for i, entry := range entries {
		if len(entry) > MaxEntry {
			return nil, fmt.Errorf("entry %d of a bundle has %d bytes: %d is the most", i, len(entry), MaxEntry)
		}
		bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(entry))), entry...)
	}
	return bundle, nil
}

// ParseEntries reads a bundle of exactly n entries. It returns an error for any other bytes.
func ParseEntries(bundle []byte, n int) ([][]byte, error) {
	var entries [][]byte
	for len(bundle) >= 2 {
		length := int(binary.BigEndian.Uint16(bundle))
		if bundle = bundle[2:]; len(bundle) < length {
			break
		}
		entries, bundle = append(entries, bundle[:length:length]), bundle[length:]
		if len(entries) > n {
			return nil, fmt.Errorf("a bundle of entries has more than %d", n)
		}
	}
	if len(bundle) > 0 {
		return nil, errors.New("a bundle of entries ends in the middle of one")
	}
	if len(entries) != n {
		return nil, fmt.Errorf("a bundle of entries has %d: want %d", len(entries), n)
	}
	return entries, nil
}
