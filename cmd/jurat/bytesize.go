package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A byteSize is a number of bytes, which may be written with a unit: 1073741824, 1024MiB or 1GiB.
type byteSize int64

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for suffix, bytes := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = rest, bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: want bytes, or a number with KiB, MiB or GiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}
