package find

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/kit/fault"
	"jurat/internal/tap/traffic"
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
	if said, err := traffic.Project(traffic.CallOf(p.Observed, seen.Request, seen.Response)); err == nil && said.Output != nil {
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
	for low < len(text) && !utf8.RuneStart(text[low]) {
		low++
	}
	if strings.TrimSpace(Fold(text[:low])) != strings.TrimSpace(before) {
		return -1
	}
	return low
}

// around cuts out a stretch of text with what surrounds it, at whole characters.
func around(text string, begin, end int) string {
	from, to := begin, end
	for n := 0; n < excerptAround && from > 0; n++ {
		for from--; from > 0 && !utf8.RuneStart(text[from]); from-- {
		}
	}
	for n := 0; (n < excerptAround || to < len(text) && !utf8.RuneStart(text[to])) && to < len(text); n++ {
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

// Terms that say what a record is. Other terms are longer or shorter.
const (
	trialTerm    = "trial"    // it is in a trial
	recordedTerm = "recorded" // a recorder saw it, in a chain
	recorderTerm = "recorder" // a recorder sealed it
)

// What a hashed term stands for.
const (
	pieceOf  = 'p' // of a text
	nameOf   = 'n' // who acted, or whose act a recorder saw
	ownOf    = 'o' // an agent sealed it for itself
	actionOf = 'a'
	chainOf  = 'c'
)

var termEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// appendTerm appends the term of a value: a hash of 30 bits under the key of the file. So the file has no word of a record. Two
// values with one term are candidates together, and told apart in the records.
func (x *Index) appendTerm(out []byte, kind byte, value []byte) []byte {
	var room [64]byte
	sum := sha256.Sum256(append(append(append(room[:0], x.key...), kind), value...))
	return termEncoding.AppendEncode(out, sum[:5])[:len(out)+termLength]
}

const termLength = 6

func (x *Index) term(kind byte, value string) string {
	return string(x.appendTerm(nil, kind, []byte(value)))
}

func (x *Index) appendPiece(out []byte, p piece) []byte {
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], uint64(p))
	return x.appendTerm(out, pieceOf, value[:])
}

// A cachedPiece has the term of a piece, and the place of the last record with it.
type cachedPiece struct {
	term  []byte
	place int64
}

// maxCached is how many pieces are in a cache.
const maxCached = 1 << 18

// termsOf lists the terms of a record, with a space after each.
func (x *Index) termsOf(d *doc, cache map[piece]*cachedPiece) []byte {
	var out []byte
	add := func(kind byte, value string) {
		if value != "" {
			out = append(x.appendTerm(out, kind, []byte(value)), ' ')
		}
	}
	add(nameOf, d.actor)
	add(nameOf, d.agent)
	add(actionOf, string(d.action))
	add(chainOf, d.chain)
	if d.role == evidence.RoleAgent {
		add(ownOf, d.actor)
	}
	for term, is := range map[string]bool{trialTerm: inTrial(d.chain), recordedTerm: d.Sight != nil, recorderTerm: d.role == evidence.RoleRecorder} {
		if is {
			out = append(append(out, term...), ' ')
		}
	}
	for _, text := range d.texts {
		pieces(text, func(p piece) {
			c := cache[p]
			if c == nil {
				if len(cache) == maxCached {
					clear(cache)
				}
				c = &cachedPiece{append(x.appendPiece(nil, p), ' '), -1}
				cache[p] = c
			}
			if c.place != d.place {
				c.place, out = d.place, append(out, c.term...)
			}
		})
	}
	return out
}

// piecesOf returns the terms of pieces that a text has: at most maxQuery of them, evenly from all of the text.
func (x *Index) piecesOf(folded string) (terms []string) {
	var all []piece
	pieces(folded, func(p piece) {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	})
	step := max(1, (len(all)+maxQuery-1)/maxQuery)
	for i := 0; i < len(all); i += step {
		terms = append(terms, string(x.appendPiece(nil, all[i])))
	}
	return terms
}

// withText returns the places of the records with a term that may have a text, by chain.
func (x *Index) withText(ctx context.Context, term, text string) (_ map[string][]int64, err error) {
	defer fault.While(&err, "searching the log")
	type at struct {
		place int64
		chain string
	}
	found, err := list(ctx, x.db, func(a *at) []any { return []any{&a.place, &a.chain} },
		"SELECT place, chain FROM words CROSS JOIN records ON place = words.rowid WHERE words MATCH ? ORDER BY words.rowid",
		strings.Join(append(x.piecesOf(text), term), " AND "))
	places := map[string][]int64{}
	for _, a := range found {
		places[a.chain] = append(places[a.chain], a.place)
	}
	return places, err
}

func (x *Index) anyHas(ctx context.Context, places []int64, text string) (has bool, err error) {
	defer fault.While(&err, "searching the log")
	s := &searching{Index: x, q: &Records{Text: text}}
	for i := 0; i < len(places) && !has && err == nil; i++ {
		var looks []look
		looks, err = s.open(ctx, places[i:i+1])
		has = slices.ContainsFunc(looks, func(l look) bool { return l.has })
	}
	return has, err
}
