package juror

import (
	"math/bits"
	"strings"
)

// Runs are the stretches of a text that have a certain length and begin at the start of a word, by their hashes. A
// rolling hash finds them in another text in one pass.
type runs struct {
	text   string
	length int
	starts map[uint64][]int
}

func runsOf(text string, length int) *runs {
	s := &runs{text, length, map[uint64][]int{}}
	s.roll(text, func(at int, hash uint64) {
		if at > 0 && text[at-1] != ' ' && text[at-1] != '\n' || s.find(hash, text[at:at+length]) >= 0 {
			return
		}
		s.starts[hash] = append(s.starts[hash], at)
	})
	return s
}

// firstIn returns the first of the runs that another text repeats; "" if it repeats none.
func (s *runs) firstIn(other string) string {
	first := -1
	s.roll(other, func(at int, hash uint64) {
		if start := s.find(hash, other[at:at+s.length]); start >= 0 && (first < 0 || start < first) {
			first = start
		}
	})
	if first < 0 {
		return ""
	}
	return strings.ToValidUTF8(s.text[first:first+s.length], "")
}

// find returns the first place of a run, or -1.
func (s *runs) find(hash uint64, run string) int {
	for _, start := range s.starts[hash] {
		if s.text[start:start+s.length] == run {
			return start
		}
	}
	return -1
}

const (
	hashModulus = 1<<61 - 1 // a prime
	hashBase    = 0x1d8af066a3c5b7e1 % hashModulus
)

// roll goes through all stretches of a text with their polynomial hashes.
func (s *runs) roll(text string, each func(at int, hash uint64)) {
	var hash uint64
	top := uint64(1)
	for range s.length - 1 {
		top = timesMod(top, hashBase)
	}
	for i := range len(text) {
		if i >= s.length {
			hash = (hash + hashModulus - timesMod(top, uint64(text[i-s.length])+1)) % hashModulus
		}
		hash = (timesMod(hash, hashBase) + uint64(text[i]) + 1) % hashModulus
		if i >= s.length-1 {
			each(i-s.length+1, hash)
		}
	}
}

func timesMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	_, rest := bits.Div64(high, low, hashModulus)
	return rest
}
