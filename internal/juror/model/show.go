package model

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/internal/subject"
)

// bar begins each line of data, so that no such line can look like one of the frame's.
const bar = "| "

// hidden reports whether a character is invisible or changes how others show: controls, format characters such as
// those that reverse a line, zero-width characters and tags, variation selectors, fillers, private use, line
// separators.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '⟨': // so that text cannot imitate a written code point
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// show writes invisible characters as their code points.
func show(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var s strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&s, "⟨U+%04X⟩", r)
		} else {
			s.WriteRune(r)
		}
	}
	return s.String()
}

var codePoint = regexp.MustCompile(`⟨U\+([0-9A-F]{4,6})⟩`)

// unshow reverses show.
func unshow(shown string) string {
	return codePoint.ReplaceAllStringFunc(shown, func(written string) string {
		n, err := strconv.ParseUint(codePoint.FindStringSubmatch(written)[1], 16, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return written
		}
		return string(rune(n))
	})
}

// barred writes a text as lines of data.
func barred(s *strings.Builder, text string) {
	for line := range strings.SplitSeq(show(text), "\n") {
		s.WriteString(bar)
		s.WriteString(line)
		s.WriteByte('\n')
	}
}

// quoted finds a juror's quotation in a message, in its original or its shown form, and returns the passage as it stands
// there. It returns the quotation unchanged if the message does not have it.
func quoted(m *subject.Message, quote string) string {
	if m == nil {
		return quote
	}
	plain := unshow(quote)
	for _, text := range []string{quote, plain, strings.ReplaceAll(strings.TrimPrefix(plain, bar), "\n"+bar, "\n")} {
		if passage, found := m.Passage(text); found && strings.TrimSpace(passage) != "" {
			return passage
		}
	}
	return quote
}
