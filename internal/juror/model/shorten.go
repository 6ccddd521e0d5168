package model

import (
	"slices"
	"sort"
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
