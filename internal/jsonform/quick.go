package jsonform

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// IsCanonical reports that Canonical would return a document as it is. It recognises what programs write, and this package above all, in one pass, and leaves
// the rest to Canonical: it is false for some documents that are canonical, such as those with fractions or with member names beyond ASCII.
func (b Bounds) IsCanonical(doc []byte) bool {
	if len(doc) == 0 || b.CheckSize(doc) != nil || !utf8.Valid(doc) {
		return false
	}
	s := scan{doc, 0}
	return s.value(b.Depth) && s.at == len(doc)
}

// A scan reads a document of valid UTF-8. Its methods report false where the document is not surely canonical.
type scan struct {
	doc []byte
	at  int
}

// next reads one character if it is c.
func (s *scan) next(c byte) bool {
	if s.at == len(s.doc) || s.doc[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *scan) value(depth int) bool {
	if s.at == len(s.doc) {
		return false
	}
	switch s.doc[s.at] {
	case '"':
		return s.text()
	case '{':
		return depth > 0 && s.object(depth-1)
	case '[':
		return depth > 0 && s.array(depth-1)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scan) word(word string) bool {
	rest := s.doc[s.at:]
	s.at += len(word)
	return len(rest) >= len(word) && string(rest[:len(word)]) == word
}

// number reads a whole number that is short enough to be exact.
func (s *scan) number() bool {
	const most = 15
	negative := s.next('-')
	begin := s.at
	for s.at < len(s.doc) && s.doc[s.at] >= '0' && s.doc[s.at] <= '9' {
		s.at++
	}
	length := s.at - begin
	if length == 0 || length > most {
		return false
	}
	return s.doc[begin] != '0' || length == 1 && !negative
}

func (s *scan) array(depth int) bool {
	s.at++
	if s.next(']') {
		return true
	}
	for s.value(depth) {
		if !s.next(',') {
			return s.next(']')
		}
	}
	return false
}

// object reads members whose names are plain ASCII: these sort by byte, as they do in UTF-16.
func (s *scan) object(depth int) bool {
	s.at++
	if s.next('}') {
		return true
	}
	for before, first := []byte(nil), true; ; first = false {
		begin := s.at
		if !s.text() {
			return false
		}
		name := s.doc[begin+1 : s.at-1]
		if !first && bytes.Compare(before, name) >= 0 || !isPlain(name) {
			return false
		}
		before = name
		if !s.next(':') || !s.value(depth) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

func isPlain(name []byte) bool {
	for _, c := range name {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// text reads a string whose escapes are the only ones that it may have.
func (s *scan) text() bool {
	if !s.next('"') {
		return false
	}
	for ; ; s.at++ {
		s.at += literal(s.doc[s.at:])
		if s.at == len(s.doc) {
			return false
		}
		switch c := s.doc[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			length := escapeLength(s.doc[s.at:])
			if length == 0 {
				return false
			}
			s.at += length - 1
		}
	}
}

// literal returns how many bytes at the beginning of a text, or fewer, stand for themselves. It looks at eight at once: most texts are long and plain.
func literal(text []byte) (n int) {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; n+8 <= len(text); n += 8 {
		word := binary.LittleEndian.Uint64(text[n:])
		quote, slash := word^each*'"', word^each*'\\'
		control := (word - each*' ') &^ word
		if (control|(quote-each)&^quote|(slash-each)&^slash)&high != 0 {
			return n
		}
	}
	return n
}

// escapeLength returns how long the escape is with which a text begins; 0: it is none, or a canonical text has another in its place.
func escapeLength(text []byte) int {
	const short, long = len(`\n`), len(`\u001f`)
	if len(text) >= short && strings.IndexByte(`"\bfnrt`, text[1]) >= 0 {
		return short
	}
	if len(text) < long || string(text[:len(`\u00`)]) != `\u00` || text[4] != '0' && text[4] != '1' {
		return 0
	}
	if low := text[5]; low >= '0' && low <= '9' || low >= 'a' && low <= 'f' {
		if text[4] == '1' || strings.IndexByte("89acd", low) < 0 { // those are \b, \t, \n, \f and \r
			return long
		}
	}
	return 0
}
