package find

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
)

// A Passage is a string in a payload.
type Passage struct {
	Pointer string // JSON pointer into the payload
	Text    string
}

// Said reports whether the passage is the actor's own output, and not what the actor was given.
func (p Passage) Said() bool {
	for _, own := range []string{"/response", "/modified_response", "/changes"} {
		if p.Pointer == own || strings.HasPrefix(p.Pointer, own+"/") {
			return true
		}
	}
	return false
}

// Passages lists the strings of a payload that are searched. Values that are sealed apart are left out: the payload has
// only commitments to them.
func Passages(p *evidence.Payload) []Passage {
	w := &walk{apart: map[string]bool{}}
	for _, pointer := range p.SealedApart {
		w.apart[pointer] = true
	}
	for _, member := range []struct {
		name  string
		value jsontext.Value
	}{{"response", p.Response}, {"modified_response", p.ModifiedResponse}, {"changes", p.Changes}, {"prompt", p.Prompt},
		{"context", p.Context}, {"tools_used", p.ToolsUsed}, {"metadata", p.Metadata}} {
		if len(member.value) > 0 {
			w.value(jsontext.Pointer("").AppendToken(member.name), member.value)
		}
	}
	if p.Observed != nil {
		w.seen(p)
	}
	return w.found
}

// seen adds what the answer says that a recorder saw, where its bytes stand in clear in the record alone.
func (w *walk) seen(p *evidence.Payload) {
	seen := new(observed.Window).Read(observed.Open(&evidence.Record{Payload: *p}))
	if said, err := observe.Project(observe.CallOf(p.Observed, seen.Request, seen.Response)); err == nil && said.Output != nil {
		w.value("/response", said.Output)
	}
}

// walk collects the strings of a value.
type walk struct {
	apart map[string]bool
	found []Passage
}

// value walks through a value with one decoder, so that nesting costs no copies. What is no JSON has no strings: the log has none.
func (w *walk) value(at jsontext.Pointer, value jsontext.Value) {
	if w.apart[string(at)] {
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return
		}
		here := at + d.StackPointer()
		kind, length := d.StackIndex(d.StackDepth())
		name := kind == '{' && length%2 == 1
		switch {
		case name && w.apart[string(here)]: // its value is a commitment
			if d.SkipValue() != nil {
				return
			}
		case token.Kind() == '"' && !name:
			w.found = append(w.found, Passage{string(here), token.String()})
		}
	}
}

// folder makes letter case irrelevant.
var folder = cases.Fold()

// Fold returns the form in which texts are compared: compatible forms are one (NFKC), letter case does not count, and
// white space and control characters are single spaces.
func Fold(text string) string {
	if folded, ok := foldCharacters(text); ok {
		return folded
	}
	var b strings.Builder
	b.Grow(len(text))
	space := false
	for _, c := range folder.String(norm.NFKC.String(text)) {
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			space = true
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(c)
	}
	return b.String()
}

// foldCharacters is Fold in a tenth of the time, for texts whose characters can be folded one by one, as those of most texts can.
func foldCharacters(text string) (folded string, ok bool) {
	out, space := make([]byte, 0, len(text)), false
	for _, c := range text {
		if c <= ' ' || c == 0x7f {
			space = true
			continue
		}
		if c, ok = foldCharacter(c); !ok {
			return "", false
		}
		if space && len(out) > 0 {
			out = append(out, ' ')
		}
		out, space = utf8.AppendRune(out, c), false
	}
	return string(out), true
}

// foldCharacter folds a character that has one form and joins with no other: of ASCII, Russian, kana, or a common Chinese one.
func foldCharacter(c rune) (folded rune, ok bool) {
	switch {
	case 'A' <= c && c <= 'Z', 'А' <= c && c <= 'Я':
		return c + 0x20, true
	case c < 0x80, 'а' <= c && c <= 'я', 'ぁ' <= c && c <= 'ゖ', 'ァ' <= c && c <= 'ヺ', '一' <= c && c <= 0x9fff:
		return c, true
	}
	return c, false
}

// A piece is two or three characters of folded text.
type piece uint64

const runeBits = 21

// pieces calls found for each piece of a folded text, also repeatedly.
func pieces(folded string, found func(piece)) {
	var a, b rune = -1, -1 // the two characters before
	for _, c := range folded {
		switch {
		case b >= 0 && (dense(b) || dense(c)):
			found(piece(b)<<runeBits | piece(c))
		case a >= 0 && !dense(a):
			found(piece(a)<<(2*runeBits) | piece(b)<<runeBits | piece(c))
		}
		a, b = b, c
	}
}

// dense reports whether a character is of a script that is written without spaces between words.
func dense(c rune) bool {
	return c >= 0x0e00 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// excerptAround is how many characters an excerpt shows before and after what was found.
const excerptAround = 80

// Excerpt returns the part of a text around a folded query, and reports whether the text has it.
func Excerpt(text, query string) (string, bool) {
	folded := Fold(text)
	at := strings.Index(folded, query)
	if at < 0 {
		return "", false
	}
	if begin := strings.Index(text, query); begin >= 0 { // as it was written
		return around(text, begin, begin+len(query)), true
	}
	if begin := originally(text, folded[:at]); begin >= 0 {
		return around(text, begin, min(len(text), begin+len(query))), true
	}
	return around(folded, at, at+len(query)), true
}

// originally finds the byte of a text at which a folded beginning of it ends. It returns -1 if that is inside of a
// character.
func originally(text, before string) int {
	low, high := 0, len(text)
	for low < high { // the folded length grows with the text's
		middle := (low + high) / 2
		if len(Fold(text[:middle])) < len(before) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for low < len(text) && !isStart(text[low]) {
		low++
	}
	if strings.TrimSpace(Fold(text[:low])) != strings.TrimSpace(before) {
		return -1
	}
	return low
}

func isStart(b byte) bool { return b < 0x80 || b >= 0xc0 }

// around cuts out a stretch of text with what surrounds it, at whole characters.
func around(text string, begin, end int) string {
	from, to := begin, end
	for n := 0; n < excerptAround && from > 0; n++ {
		for from--; from > 0 && !isStart(text[from]); from-- {
		}
	}
	for n := 0; (n < excerptAround || to < len(text) && !isStart(text[to])) && to < len(text); n++ {
		to++
	}
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}
