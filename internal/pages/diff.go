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
	trace, found := search(a, b)
	if !found {
		c.add(Removed, a...)
		c.add(Added, b...)
		return
	}
	var back []Change
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0 && (x > 0 || y > 0); d-- {
		px, py := 0, 0
		if d > 0 {
			px, py = from(trace[d-1], d, x-y)
		}
		end := x
		for x > px && y > py && a[x-1] == b[y-1] {
			x, y = x-1, y-1
		}
		back = append(back, Change{Same, strings.Join(a[x:end], "")}) // often empty
		switch {
		case d == 0:
		case x == px:
			y--
			back = append(back, Change{Added, b[y]})
		default:
			x--
			back = append(back, Change{Removed, a[x]})
		}
	}
	for _, change := range slices.Backward(back) {
		if change.Text != "" {
			c.add(change.Kind, change.Text)
		}
	}
}

// search increases the number of edits one by one, and stores how far each diagonal got; trace[d][k+d] is diagonal k
// after d edits.
func search(a, b []string) (trace [][]int, found bool) {
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		reached := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				px, py := from(trace[d-1], d, k)
				if x = px; px-py < k { // from the diagonal below: a word of a was removed
					x++
				}
			}
			for y := x - k; x < len(a) && y < len(b) && y >= 0 && a[x] == b[y]; y++ {
				x++
			}
			reached[k+d] = x
			if x >= len(a) && x-k >= len(b) {
				return append(trace, reached), true
			}
		}
		trace = append(trace, reached)
	}
	return nil, false
}

// from returns where the d-th edit to diagonal k began: on the neighbouring diagonal that was further.
func from(before []int, d, k int) (x, y int) {
	above, below := -1, -1 // k+1: by adding; k-1: by removing
	if i := k + 1 + d - 1; i < len(before) {
		above = before[i]
	}
	if i := k - 1 + d - 1; i >= 0 {
		below = before[i]
	}
	if k == -d || k != d && below < above {
		return above, above - (k + 1)
	}
	return below, below - (k - 1)
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
