package model

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"jurat/jury"
)

// Shorten is the rule that shortens evidence above a trial's limit. The length of evidence is the number of bytes of
// its texts: the card, the state of the task, and of each message its text and the names and arguments of its calls.
//
// Above the limit, the longest results of tools are cut to a common length: the greatest that suffices, but at least
// 400 bytes. If that does not suffice, the agent's own texts are cut in the same way. The texts of the user and the
// operator, and tool calls, are never cut, so evidence may stay above the limit. A cut text keeps its beginning and
// its end, half each, in whole characters. A line between them, which the record cannot write, says how many
// characters are left out. The result depends only on the evidence and the limit. Quotations are checked against the
// full text.
//
// Values in the part of a tool's result that is left out stay if a later message repeats them, each with its
// surroundings up to the next comma, bracket or line end. They take up to half of the length: first those that calls or
// the agent's words repeat, then those that only results repeat, in the order of the text. A value is a word of 3 to
// 128 bytes with a digit, or one of at least 4 bytes that occurs less than 4 times in the result. Names of members are no values.
const Shorten = "jurat/shorten/v2"

// shortestCut is the smallest length in bytes to which a text is cut.
const shortestCut = 400

// kind says whether a text may be cut, and in which order.
type kind int

const (
	kept kind = iota
	result
	narration
)

// A piece is one text of the evidence below its heading.
type piece struct {
	heading  string
	text     string
	kind     kind
	from, to int    // the part of the text that is left out; from == to: the whole text is kept
	stays    []span // what of that part stays all the same, in order
}

// omitted returns how many characters are left out.
func (p *piece) omitted() int {
	n := utf8.RuneCountInString(p.text[p.from:p.to])
	for _, s := range p.stays {
		n -= utf8.RuneCountInString(p.text[s.from:s.to])
	}
	return n
}

// shorten applies the rule to the pieces.
func shorten(pieces []piece, how *jury.Shortening) {
	if how == nil {
		return
	}
	excess := -how.Limit
	for i := range pieces {
		excess += len(pieces[i].text)
	}
	if excess <= 0 {
		return
	}
	l := laterOf(pieces)
	for _, k := range []kind{result, narration} {
		if excess > 0 {
			excess -= cut(pieces, k, excess, l)
		}
	}
}

// cut shortens the pieces of a kind to the greatest common length that saves enough, and returns how many bytes it
// saved.
func cut(pieces []piece, k kind, excess int, l *later) (saved int) {
	longest := 0
	for _, p := range pieces {
		if p.kind == k {
			longest = max(longest, len(p.text))
		}
	}
	if longest <= shortestCut {
		return 0
	}
	// The first cut, counted down from the longest text, that saves enough; the shortest where none does.
	n := sort.Search(longest-shortestCut, func(n int) bool { return saving(pieces, k, longest-n) >= excess })
	length := longest - n
	for i := range pieces {
		if p := &pieces[i]; p.kind == k && len(p.text) > length {
			p.cutTo(length)
			saved += p.to - p.from
			if k == result {
				l.keep(pieces, i, length)
			}
		}
	}
	return saved
}

// keep cuts a result again so that the values which later pieces repeat have room in the same length.
func (l *later) keep(pieces []piece, i, length int) {
	const line = len(bar) + 1 // each value stands on a line of its own
	p := &pieces[i]
	found := l.repeated(pieces, i, span{p.from, p.to})
	var stays []span
	room := length / 2
	for _, s := range found {
		if room -= s.to - s.from + line; room < 0 {
			break
		}
		stays = append(stays, s)
	}
	if stays == nil {
		return
	}
	slices.SortFunc(stays, func(a, b span) int { return a.from - b.from })
	p.stays = apart(stays)
	used := 0
	for _, s := range p.stays {
		used += s.to - s.from + line
	}
	p.cutTo(length - used)
}

// apart joins spans that overlap.
func apart(list []span) []span {
	joined := list[:1]
	for _, s := range list[1:] {
		if last := &joined[len(joined)-1]; s.from < last.to {
			last.to = max(last.to, s.to)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

func saving(pieces []piece, k kind, length int) (sum int) {
	for _, p := range pieces {
		if p.kind == k {
			sum += max(0, len(p.text)-length)
		}
	}
	return sum
}

// cutTo keeps that many bytes of a longer text, or a few less, because it splits no character.
func (p *piece) cutTo(length int) {
	p.from, p.to = length-length/2, len(p.text)-length/2
	for !utf8.RuneStart(p.text[p.from]) {
		p.from--
	}
	for p.to < len(p.text) && !utf8.RuneStart(p.text[p.to]) {
		p.to++
	}
}

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
