package tiles

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
)

const (
	height = 8
	// Width is how many hashes, or entries, a whole tile has.
	Width = 1 << height
	// EntriesLevel is the level of a Tile of entries instead of hashes.
	EntriesLevel = -1

	maxLevel = 63
	maxIndex = operator.MaxEntries / Width // index of the tile with the last possible entry
)

// Path returns the path of a tile below a log's URL: C2SP tlog-tiles writes tile/LEVEL/INDEX and tile/entries/INDEX,
// the index in groups of three digits, and .p/WIDTH after it for a partial tile.
func Path(t tlog.Tile) string {
	level := "entries"
	if t.L != EntriesLevel {
		level = strconv.Itoa(t.L)
	}
	index := fmt.Sprintf("%03d", t.N%1000)
	for n := t.N / 1000; n > 0; n /= 1000 {
		index = fmt.Sprintf("x%03d/%s", n%1000, index)
	}
	path := "tile/" + level + "/" + index
	if t.W != Width {
		path += ".p/" + strconv.Itoa(t.W)
	}
	return path
}

// Parse reads what Path writes after "tile/": the level, or "entries", and the rest. Each tile has exactly one path;
// Parse returns an error for any other spelling.
func Parse(level, rest string) (tlog.Tile, error) {
	t := tlog.Tile{H: height, L: EntriesLevel, W: Width}
	var err error
	if level != "entries" {
		if t.L, err = strconv.Atoi(level); err != nil || t.L < 0 || t.L > maxLevel {
			return t, fmt.Errorf("level %q: want entries, or a number from 0 to %d", level, maxLevel)
		}
	}
	index, width, partial := strings.Cut(rest, ".p/")
	if partial {
		if t.W, err = strconv.Atoi(width); err != nil || t.W < 1 || t.W >= Width {
			return t, fmt.Errorf("width %q: want a number from 1 to %d", width, Width-1)
		}
	}
	for group := range strings.SplitSeq(strings.ReplaceAll(index, "x", ""), "/") {
		n, err := strconv.ParseUint(group, 10, 63)
		if err != nil || t.N > (maxIndex-int64(n))/1000 {
			return t, fmt.Errorf("index %q: want groups of three digits such as x001/234", index)
		}
		t.N = t.N*1000 + int64(n)
	}
	if Path(t) != "tile/"+level+"/"+rest { // another number of digits, a sign, a superfluous x
		return t, fmt.Errorf("tile/%s/%s: not in the one form that this tile has", level, rest)
	}
	return t, nil
}

// In reports whether a tree of this size contains the whole tile.
func In(t tlog.Tile, size int64) bool {
	if shift := height * max(0, t.L); shift < 64 {
		return t.N <= maxIndex && t.N*Width+int64(t.W) <= size>>shift
	}
	return false
}

// Of returns the tile with an index at a level, as wide as a tree of this size has it. Its width is 0 if the tree
// does not have it.
func Of(level int, index, size int64) tlog.Tile {
	t := tlog.Tile{H: height, L: level, N: index}
	if shift := height * max(0, level); shift < 64 && index <= maxIndex {
		t.W = int(max(0, min(Width, size>>shift-index*Width)))
	}
	return t
}

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
