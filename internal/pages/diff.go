package pages

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Change is a run of words that both texts have, or only one of them.
type Change struct {
	Kind ChangeKind
	Text string
}

// ChangeKind says which text has the words.
type ChangeKind string

const (
	Same    ChangeKind = "same"
	Removed ChangeKind = "removed"
	Added   ChangeKind = "added"
)

// maxEdits bounds the search for the shortest difference, whose time and memory grow with the square of it.
const maxEdits = 1000

// diff finds the words to remove from one text and add to get the other (Myers, An O(ND) Difference Algorithm and Its
// Variations, 1986). If the texts differ too much, it removes and adds the whole middle.
func diff(before, after string) []Change {
	a, b := cut(before), cut(after)
	head := shared(a, b)
	slices.Reverse(a[head:])
	slices.Reverse(b[head:])
	tail := shared(a[head:], b[head:])
	slices.Reverse(a[head:])
	slices.Reverse(b[head:])

	var c changes
	c.add(Same, a[:head]...)
	c.middle(a[head:len(a)-tail], b[head:len(b)-tail])
	c.add(Same, a[len(a)-tail:]...)
	return c
}

func shared(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

type changes []Change

// add appends words to the last run if it has the same kind, and to a new run otherwise.
func (c *changes) add(kind ChangeKind, words ...string) {
	switch n := len(*c); {
	case len(words) == 0:
	case n > 0 && (*c)[n-1].Kind == kind:
		(*c)[n-1].Text += strings.Join(words, "")
	default:
		*c = append(*c, Change{kind, strings.Join(words, "")})
	}
}

func (c *changes) middle(a, b []string) {
	end := shortest(a, b)
	if end == nil {
		c.add(Removed, a...)
		c.add(Added, b...)
		return
	}
	var steps []*reach
	for at := end; at != nil; at = at.from {
		steps = append(steps, at)
	}
	x, y := 0, 0
	for _, at := range slices.Backward(steps) {
		switch {
		case at.from == nil:
		case at.added:
			c.add(Added, b[y])
			y++
		default:
			c.add(Removed, a[x])
			x++
		}
		c.add(Same, a[x:at.x]...)
		x, y = at.x, y+at.x-x
	}
}

// A reach is how far a diagonal got: by one edit, and the equal words after it.
type reach struct {
	x     int
	added bool   // the edit adds a word of b; false: it removes one of a
	from  *reach // nil: it begins, without an edit
}

// shortest increases the number of edits one by one until both texts are at their ends; nil: that takes too many.
func shortest(a, b []string) *reach {
	furthest := map[int]*reach{} // by diagonal: the words of a less those of b
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		for k := -d; k <= d; k += 2 {
			at, above, below := &reach{}, furthest[k+1], furthest[k-1]
			if k == -d && d > 0 || above != nil && below != nil && below.x < above.x {
				at = &reach{above.x, true, above}
			} else if d > 0 {
				at = &reach{below.x + 1, false, below}
			}
			for at.x < len(a) && at.x-k < len(b) && a[at.x] == b[at.x-k] {
				at.x++
			}
			if at.x == len(a) && at.x-k == len(b) {
				return at
			}
			furthest[k] = at
		}
	}
	return nil
}

// cut splits a text into words and the characters between them; joined, they are the text. In scripts without spaces
// between words, each character is a word.
func cut(text string) []string {
	var list []string
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if part := kind(r); part != alone {
			for n < len(text) {
				next, size := utf8.DecodeRuneInString(text[n:])
				if kind(next) != part {
					break
				}
				n += size
			}
		}
		list = append(list, text[:n])
		text = text[n:]
	}
	return list
}

const (
	alone = iota
	letter
	space
)

func kind(r rune) int {
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
		return alone
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return letter
	case r == ' ' || r == '\t':
		return space
	}
	return alone
}
