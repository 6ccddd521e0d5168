package find

import (
	"encoding/binary"
	"math/bits"
)

// stretchRecords is how many places of the log a stretch covers at most.
const stretchRecords = 4096

// stretchBytes is how much folded text a stretch has, after which it ends.
const stretchBytes = 8 << 20

// slotOf returns the block and the slot to which a stretch belongs that begins at a place.
func slotOf(begin int64) (block, slot int64) {
	n := begin / stretchRecords
	return n / 64, 1 << (n % 64)
}

// A set holds offsets in a stretch.
type set [stretchRecords / 64]uint64

func (s *set) add(n int) { s[n/64] |= 1 << (n % 64) }

func (s *set) has(n int) bool { return s[n/64]>>(n%64)&1 == 1 }

func (s *set) empty() bool { return *s == set{} }

func (s *set) and(o *set) {
	for i := range s {
		s[i] &= o[i]
	}
}

// offsets lists the members, in order.
func (s *set) offsets() (list []int) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			list = append(list, i*64+bits.TrailingZeros64(w))
		}
	}
	return list
}

// everything has all offsets.
func everything() *set {
	s := new(set)
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}

// setBytes is the length of a set that is written as bits.
const setBytes = stretchRecords / 8

// encode writes a list of ascending offsets as two bytes each, or as bits if that is shorter.
func encode(offsets []uint16) []byte {
	if 2*len(offsets) < setBytes {
		out := make([]byte, 0, 2*len(offsets))
		for _, n := range offsets {
			out = binary.LittleEndian.AppendUint16(out, n)
		}
		return out
	}
	s := new(set)
	for _, n := range offsets {
		s.add(int(n))
	}
	out := make([]byte, 0, setBytes)
	for _, w := range s {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// decode reads what encode wrote. A row of another form has no offsets.
func decode(doc []byte) *set {
	s := new(set)
	if len(doc) == setBytes {
		for i := range s {
			s[i] = binary.LittleEndian.Uint64(doc[8*i:])
		}
		return s
	}
	for ; len(doc) >= 2; doc = doc[2:] {
		if n := int(binary.LittleEndian.Uint16(doc)); n < stretchRecords {
			s.add(n)
		}
	}
	return s
}

// A numberSet holds numbers of trials.
type numberSet []uint64

func (s *numberSet) add(n int64) {
	for int64(len(*s)) <= n/64 {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

func (s numberSet) has(n int64) bool { return n/64 < int64(len(s)) && s[n/64]>>(n%64)&1 == 1 }

// or returns the members of both, in a set of its own.
func (s numberSet) or(o numberSet) numberSet {
	sum := make(numberSet, max(len(s), len(o)))
	copy(sum, s)
	for i, w := range o {
		sum[i] |= w
	}
	return sum
}
