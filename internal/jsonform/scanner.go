package jsonform

import "bytes"

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
