package model

import (
	"sort"
	"unicode/utf8"

	"jurat/jury"
)

// Shorten is the rule by which evidence is shortened that is longer than a trial's limit. What counts is the length in bytes
// of the texts of the evidence: the card, and of each message its text, and the names and arguments of its calls.
//
// Where they are longer together than the limit, the longest results of tools are cut down to a common length: the greatest
// that suffices, but none to less than 400 bytes. If that does not suffice, so are what the agent says. What the user and
// the operator say, and tool calls, are never cut; so evidence may stay longer than the limit. Of a text that is cut the
// beginning and the end are kept, half and half and whole characters, and a line of the clerk's between them says how many
// characters are left out. It is a function of evidence and limit alone. Quotations are held against the whole.
const Shorten = "jurat/shorten/v1"

// shortestCut is the least length in bytes to which a text is cut.
const shortestCut = 400

// kind says whether a text may be cut, and before which others.
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
	from, to int // what is left out of the text; from == to: nothing
}

// omitted is how many characters are left out.
func (p *piece) omitted() int { return utf8.RuneCountInString(p.text[p.from:p.to]) }

// shorten leaves out what the rule leaves out.
func shorten(pieces []piece, how *jury.Shortening) {
	if how == nil {
		return
	}
	excess := -how.Limit
	for i := range pieces {
		excess += len(pieces[i].text)
	}
	for _, k := range []kind{result, narration} {
		if excess > 0 {
			excess -= cut(pieces, k, excess)
		}
	}
}

// cut shortens the pieces of a kind to the greatest common length by which enough is saved, and returns how much that is.
func cut(pieces []piece, k kind, excess int) (saved int) {
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
		}
	}
	return saved
}

func saving(pieces []piece, k kind, length int) (sum int) {
	for _, p := range pieces {
		if p.kind == k {
			sum += max(0, len(p.text)-length)
		}
	}
	return sum
}

// cutTo keeps that many bytes of a longer text, or a few less, so that no character is cut in two.
func (p *piece) cutTo(length int) {
	p.from, p.to = length-length/2, len(p.text)-length/2
	for !utf8.RuneStart(p.text[p.from]) {
		p.from--
	}
	for p.to < len(p.text) && !utf8.RuneStart(p.text[p.to]) {
		p.to++
	}
}
