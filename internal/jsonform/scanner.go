package jsonform

import (
	"bytes"
	"fmt"
)

// A Scanner follows JSON far enough to know where an object ends. Opening the object checks whether it is JSON.
type Scanner struct {
	Depth    int // of objects
	InString bool
	escaped  bool
}

// Step takes in the next byte.
func (s *Scanner) Step(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.InString:
		s.escaped, s.InString = c == '\\', c != '"'
	case c == '"':
		s.InString = true
	case c == '{':
		s.Depth++
	case c == '}':
		s.Depth--
	}
}

// Skim scans a chunk until the object ends, and returns how many bytes it used.
func (s *Scanner) Skim(chunk []byte) int {
	for i := 0; i < len(chunk); i++ {
		if s.InString && !s.escaped {
			i += plain(chunk[i:])
			if i == len(chunk) {
				return i
			}
		}
		if s.Step(chunk[i]); s.Depth == 0 {
			return i + 1
		}
	}
	return len(chunk)
}

// plain counts the bytes up to the next quotation mark or backslash.
func plain(chunk []byte) int {
	end := bytes.IndexByte(chunk, '"')
	if end < 0 {
		end = len(chunk)
	}
	if escape := bytes.IndexByte(chunk[:end], '\\'); escape >= 0 {
		return escape
	}
	return end
}

// MaxValues bounds how many values one text of JSON that others wrote may have. An empty object takes two bytes there, and hundreds in memory.
const MaxValues = 1 << 18

// Values counts what a text of JSON has of commas and opening brackets outside of strings, so it has at most that many values and one more. A string ends at the
// end of a line, too: so the count is right for every part of a text that has several documents, such as a stream of events, whatever is broken before it.
func Values(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '[', '{':
			n++
		case '"':
			i = endOfString(text, i+1)
		}
	}
	return n
}

// endOfString returns where a string ends that has begun.
func endOfString(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '"', '\n', '\r':
			return i
		case '\\':
			if i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		}
	}
	return i
}

// CheckValues returns an *Error if a text has more than MaxValues. It takes no memory: it comes before a text is read into values.
func CheckValues(text []byte) error {
	if len(text) <= MaxValues || Values(text) <= MaxValues {
		return nil
	}
	return &Error{Reason: fmt.Sprintf("more than %d values: commas and opening brackets outside of strings", MaxValues)}
}
