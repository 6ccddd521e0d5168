package storage

import (
	"bytes"
	"encoding/hex"
	"errors"
)

// The bytes below, which no text in UTF-8 has, and the control characters, which no canonical JSON has, stand for what is
// frequent in payloads:
//
//	0x00                   "sha256:" and 64 hexadecimal digits; their 32 bytes are among the raw bytes
//	0x01                   the word that follows begins with a capital letter
//	0x02 … 0x1f            a space, and one of the first words of the dictionary
//	0xc0 0xc1 0xf5 … 0xff  a space, and one of the 256 words that a raw byte chooses
//
// The raw bytes are kept apart, because random bytes among letters would make each letter longer.
const (
	hashCode, capitalCode, firstCode = 0x00, 0x01, 0x02
	oneByte                          = ' ' - firstCode
	leadCodes                        = "\xc0\xc1\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff"
	maxWord, maxEnding               = 32, 4
)

const hashPrefix = "sha256:"

// lead returns the number of a byte in leadCodes, or -1.
func lead(c byte) int {
	switch {
	case c >= 0xf5:
		return int(c-0xf5) + 2
	case c == 0xc0 || c == 0xc1:
		return int(c - 0xc0)
	}
	return -1
}

// words are the words of a dictionary, the most frequent first.
type words struct {
	list  [][]byte // each after a space
	table []uint16 // their numbers, from 1 on, each in the first free slot from its word's hash on
}

const wordSlots = 1 << 13 // at least twice as many as there are words

// newWords reads words. It skips what is not letters alone.
func newWords(text []byte) *words {
	w := &words{table: make([]uint16, wordSlots)}
	for word := range bytes.FieldsSeq(text) {
		if len(word) < 2 || len(word) > maxWord || letters(word) < len(word) || len(w.list) == oneByte+256*len(leadCodes) {
			continue
		}
		hash := uint32(0)
		for _, c := range word {
			hash = hashed(hash, c)
		}
		if code, slot := w.lookup(hash, word); code < 0 {
			w.list = append(w.list, append([]byte{' '}, word...))
			w.table[slot] = uint16(len(w.list))
		}
	}
	return w
}

func hashed(hash uint32, c byte) uint32 { return (hash ^ uint32(c) + 1) * 0x9e3779b1 }

// lookup returns the number of a word, or -1 and the slot for it.
func (w *words) lookup(hash uint32, word []byte) (code int, slot uint32) {
	for slot = hash >> 19; ; slot = (slot + 1) % wordSlots {
		code = int(w.table[slot]) - 1
		if code < 0 || bytes.Equal(w.list[code][1:], word) {
			return code, slot
		}
	}
}

// letters returns how many letters a text begins with. A byte outside ASCII counts as a letter.
func letters(text []byte) (n int) {
	for n < len(text) && (text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' || text[n] >= 0x80) {
		n++
	}
	return n
}

// shorten replaces words and hashes by codes. It returns false if the text has bytes that would be read as codes.
func (w *words) shorten(b []byte) (short, raw []byte, ok bool) {
	short = make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c < ' ' || lead(c) >= 0:
			return b, nil, false
		case c == ' ':
			if code, capital, n := w.find(b[i+1:]); n > 0 {
				if capital {
					short = append(short, capitalCode)
				}
				if code < oneByte {
					short = append(short, byte(firstCode+code))
				} else {
					short, raw = append(short, leadCodes[(code-oneByte)>>8]), append(raw, byte(code-oneByte))
				}
				i += 1 + n
				continue
			}
		case c == hashPrefix[0] && bytes.HasPrefix(b[i:], []byte(hashPrefix)):
			if sum, n := hashIn(b[i:]); n > 0 {
				short, raw, i = append(short, hashCode), append(raw, sum[:]...), i+n
				continue
			}
		}
		short = append(short, b[i])
		i++
	}
	return short, raw, true
}

// hashIn reads a hash as digests are written, and returns its length in the text, or 0.
func hashIn(text []byte) (sum [32]byte, n int) {
	n = len(hashPrefix) + hex.EncodedLen(len(sum))
	if len(text) < n {
		return sum, 0
	}
	digits := text[len(hashPrefix):n]
	if _, err := hex.Decode(sum[:], digits); err != nil || bytes.ContainsAny(digits, "ABCDEF") {
		return sum, 0
	}
	return sum, n
}

// find looks for the word that a text begins with, and without its ending. It returns the length of what it found, or 0.
func (w *words) find(text []byte) (code int, capital bool, n int) {
	var small [maxWord + maxEnding]byte
	var hashes [len(small) + 1]uint32 // of its beginnings
	n = letters(text[:min(len(text), len(small)+1)])
	if n < 2 || n > len(small) || len(w.list) == 0 {
		return 0, false, 0
	}
	copy(small[:], text[:n])
	if capital = small[0] < 'a'; capital {
		small[0] |= 0x20
	}
	for i, c := range small[:n] {
		hashes[i+1] = hashed(hashes[i], c)
	}
	for least := max(n-maxEnding, 2); n >= least; n-- {
		if code, _ := w.lookup(hashes[n], small[:n]); code >= 0 {
			return code, capital, n
		}
		least = max(least, 3)
	}
	return 0, false, 0
}

var errDamagedWords = errors.New("it is damaged: its words are not in the dictionary")

// lengthen reverses shorten. The result has at most most bytes.
func (w *words) lengthen(short, raw []byte, most int) ([]byte, error) {
	b := make([]byte, 0, min(2*len(short), most))
	for i := 0; i < len(short) && len(b) <= most; i++ {
		c := short[i]
		if c == hashCode {
			if len(raw) < 32 {
				return nil, errDamagedWords
			}
			b, raw = hex.AppendEncode(append(b, hashPrefix...), raw[:32]), raw[32:]
			continue
		}
		capital := c == capitalCode && i+1 < len(short)
		if capital {
			i++
			c = short[i]
		}
		code, n := int(c)-firstCode, lead(c)
		switch {
		case n >= 0 && len(raw) > 0:
			code, raw = oneByte+n<<8+int(raw[0]), raw[1:]
		case c >= ' ' && n < 0 && !capital:
			b = append(b, c)
			continue
		case c >= ' ':
			return nil, errDamagedWords
		}
		if code < 0 || code >= len(w.list) {
			return nil, errDamagedWords
		}
		b = append(b, w.list[code]...)
		if capital {
			b[len(b)-len(w.list[code])+1] &^= 0x20
		}
	}
	if len(b) > most || len(raw) > 0 {
		return nil, errDamagedWords
	}
	return b, nil
}
