package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A span is a part of a text, in bytes.
type span struct{ from, to int }

// Limits of what counts as a value that later messages repeat.
const (
	longestWord    = 128 // bytes; longer ones are data, not values
	longestSegment = 240 // bytes; a longer one stays as the neighbourhood of its value
	commonWord     = 4   // a word without a digit that occurs as often as this in one result distinguishes nothing
)

// later says of each word in which piece it occurs last, among all words and among those of calls and of the agent. Names of
// members do not count: results of the same tool always repeat them.
type later struct {
	last  map[string]int
	inAct map[string]int
}

func laterOf(pieces []piece) *later {
	l := &later{map[string]int{}, map[string]int{}}
	for i := range pieces {
		p := &pieces[i]
		words(p.text, func(w word) {
			if w.key {
				return
			}
			l.last[w.text] = i
			if p.kind != result {
				l.inAct[w.text] = i
			}
		})
	}
	return l
}

// A word is a run of letters, digits and the signs that stand inside identifiers, addresses and amounts.
type word struct {
	span
	text  string
	digit bool
	key   bool // the name of a member in JSON
}

// words calls each for every word of a text, in order.
func words(text string, each func(word)) {
	start, digit := -1, false
	end := func(to int) {
		from := start
		start = -1
		for to > from && strings.IndexByte(".-_@/+", text[to-1]) >= 0 { // the end of a sentence is not part of a value
			to--
		}
		if to-from >= 3 && to-from <= longestWord {
			each(word{span{from, to}, text[from:to], digit, isKey(text[to:])})
		}
	}
	for i, r := range text {
		if !inWord(r, start >= 0) {
			if start >= 0 {
				end(i)
			}
			continue
		}
		if start < 0 {
			start, digit = i, false
		}
		digit = digit || unicode.IsDigit(r)
	}
	if start >= 0 {
		end(len(text))
	}
}

func inWord(r rune, inside bool) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || inside && r < utf8.RuneSelf && strings.IndexByte(".-_@/+", byte(r)) >= 0
}

// isKey reports whether a colon follows the quotation mark that ends a name.
func isKey(rest string) bool {
	rest, quoted := strings.CutPrefix(rest, `"`)
	return quoted && strings.HasPrefix(strings.TrimLeft(rest[:min(len(rest), 4)], " "), ":")
}

// repeated returns the parts of piece i, between two places of its text, that hold a value which a later piece
// repeats: first what calls and the agent repeat, then what only results repeat. A part is the segment around the value,
// up to a comma, a bracket or a line end: in JSON, a member with its name.
func (l *later) repeated(pieces []piece, i int, within span) []span {
	text := pieces[i].text
	count := map[string]int{}
	words(text, func(w word) { count[w.text]++ })
	var acted, other []span
	words(text[within.from:within.to], func(w word) {
		if w.key || !w.digit && (len(w.text) < 4 || count[w.text] >= commonWord || literal(w.text)) {
			return
		}
		w.from, w.to = w.from+within.from, w.to+within.from
		list := &other
		switch {
		case l.inAct[w.text] > i:
			list = &acted
		case l.last[w.text] <= i:
			return
		}
		if n := len(*list); n > 0 && (*list)[n-1].to >= w.to {
			return // of the same segment
		}
		*list = append(*list, segment(text, w.span, within))
	})
	return append(acted, other...)
}

func literal(w string) bool { return w == "true" || w == "false" || w == "null" }

// segment returns the surroundings of a value.
func segment(text string, w, within span) span {
	low, high := max(within.from, w.from-longestSegment/2), min(within.to, w.to+longestSegment/2)
	s := w
	for s.from > low && strings.IndexByte(",;{}[]\n", text[s.from-1]) < 0 {
		s.from--
	}
	for s.to < high && strings.IndexByte(",;{}[]\n", text[s.to]) < 0 {
		s.to++
	}
	for s.from < w.from && !utf8.RuneStart(text[s.from]) {
		s.from++
	}
	for s.to > w.to && s.to < len(text) && !utf8.RuneStart(text[s.to]) {
		s.to--
	}
	for s.from < w.from && text[s.from] == ' ' {
		s.from++
	}
	return s
}
