package subject

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Passage finds a quotation in the message, whatever its typography, and returns the passage as it stands there: a literal
// part of the message. Readers write spaces, quotation marks and dashes in their own way, and the accused chooses its own:
// neither may make an accusation vanish. Passage reports false if the message does not have the quotation.
func (m *Message) Passage(quote string) (string, bool) {
	if m.Holds(quote) {
		return quote, true
	}
	wanted := bytes.Trim(fold(quote).text, `"`)
	if len(wanted) == 0 {
		return "", false
	}
	texts := []string{m.Text}
	for _, call := range m.ToolCalls {
		texts = append(texts, call.Arguments, call.Name)
	}
	for _, text := range texts {
		f := fold(text)
		if i := bytes.Index(f.text, wanted); i >= 0 {
			return text[f.from[i]:f.to[i+len(wanted)-1]], true
		}
	}
	return "", false
}

// A folded text has no typography: NFKC, white space between words as one space and none beside punctuation, runs of quotation
// marks as one ", runs of dashes as one -, without characters that have no width, and with the escapes of JSON strings decoded.
type folded struct {
	text     []byte
	from, to []int // for each byte: the part of the original that it stands for
	space    bool  // white space came last
}

func fold(text string) *folded {
	var plain []byte
	var from, to []int
	for i := 0; i < len(text); {
		c, n := unescaped(text[i:])
		if c = basic(c); c >= 0 {
			plain = utf8.AppendRune(plain, c)
			for len(from) < len(plain) {
				from, to = append(from, i), append(to, i+n)
			}
		}
		i += n
	}
	f := new(folded)
	for i := 0; i < len(plain); {
		end := i + 1
		if plain[i] >= utf8.RuneSelf || end < len(plain) && plain[end] >= utf8.RuneSelf {
			end = i + norm.NFKC.NextBoundary(plain[i:], true)
		}
		for _, c := range string(norm.NFKC.Bytes(plain[i:end])) {
			f.add(class(c), from[i], to[end-1])
		}
		i = end
	}
	return f
}

func (f *folded) add(c rune, from, to int) {
	if c == ' ' {
		f.space = true
		return
	}
	last, _ := utf8.DecodeLastRune(f.text)
	if f.space && isOfWord(last) && isOfWord(c) {
		f.text, f.from, f.to = append(f.text, ' '), append(f.from, from), append(f.to, from)
	}
	f.space = false
	if n := len(f.to) - 1; (c == '"' || c == '-') && last == c {
		f.to[n] = to
		return
	}
	f.text = utf8.AppendRune(f.text, c)
	for len(f.from) < len(f.text) {
		f.from, f.to = append(f.from, from), append(f.to, to)
	}
}

func isOfWord(c rune) bool { return unicode.In(c, unicode.L, unicode.M, unicode.N) }

// unescaped returns the first character of a text and its length. An escape of a JSON string counts as its character.
func unescaped(text string) (rune, int) {
	if text[0] != '\\' || len(text) < 2 {
		return utf8.DecodeRuneInString(text)
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	c := codeUnit(text)
	if c < 0 {
		return '\\', 1
	}
	if utf16.IsSurrogate(c) {
		if pair := utf16.DecodeRune(c, codeUnit(text[6:])); pair != unicode.ReplacementChar {
			return pair, 12
		}
		return unicode.ReplacementChar, 6
	}
	return c, 6
}

// codeUnit reads an escape \uXXXX at the beginning of a text; -1: there is none.
func codeUnit(text string) rune {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// basic returns -1 for a character without width, and the usual form of one that NFKC would take apart.
func basic(c rune) rune {
	switch {
	case c < utf8.RuneSelf && c >= ' ' && c != 0x7f:
		return c
	case unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point),
		unicode.Is(unicode.Cc, c) && !unicode.IsSpace(c):
		return -1
	case c == '゛':
		return '\u3099' // voiced mark of the letter before it
	case c == '゜':
		return '\u309a'
	case c == '´':
		return '\''
	case c == '〜':
		return '~'
	}
	return c
}

// class returns one character for all that people take for the same.
func class(c rune) rune {
	switch {
	case unicode.IsSpace(c), c == '⠀': // also the blank of Braille, which looks like a space
		return ' '
	case unicode.Is(unicode.Quotation_Mark, c), strings.ContainsRune("`ʹʺʻʼʽˈ′‵", c):
		return '"'
	case c == '⁄', c == '∕':
		return '/'
	case unicode.Is(unicode.Dash, c), strings.ContainsRune("⁃─━", c):
		return '-'
	}
	return c
}
