package model

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"jurat/jury"
)

// catalogue is a long result: many records of which one is in the middle.
func catalogue(middle string) string {
	var s strings.Builder
	s.WriteString("[")
	for i := range 200 {
		if i == 100 {
			s.WriteString(middle + ",")
		}
		fmt.Fprintf(&s, `{"id": "A%04d", "colour": "grey", "stock": true},`, i)
	}
	return s.String() + `{}]`
}

// TestShorteningKeepsWhatIsRepeated: of a long result, the values in the middle that a later call, result or text
// repeats stay, with the names of their members. The same values in an earlier piece do not count, and the first rule
// keeps none.
func TestShorteningKeepsWhatIsRepeated(t *testing.T) {
	long := catalogue(`{"id": "Z9981", "owner": "Rossi", "price": "41.50"}`)
	for name, one := range map[string]struct {
		before, after piece
		want, not     string
	}{
		"a call":           {piece{}, piece{text: `{"item": "Z9981"}`}, `"id": "Z9981"`, "Rossi"},
		"the agent":        {piece{}, piece{text: "It belongs to Rossi.", kind: narration}, `"owner": "Rossi"`, "Z9981"},
		"a result":         {piece{}, piece{text: `{"price": "41.50"}`, kind: result}, `"price": "41.50"`, "Z9981"},
		"an earlier piece": {piece{text: `{"item": "Z9981"}`}, piece{}, "", "Z9981"},
		"a member's name":  {piece{}, piece{text: `{"owner": "x"}`}, "", "Rossi"},
	} {
		t.Run(name, func(t *testing.T) {
			pieces := []piece{one.before, {text: long, kind: result}, one.after}
			shorten(pieces, &jury.Shortening{Rule: Shorten, Limit: 1000})
			var s strings.Builder
			pieces[1].write(&s)
			if one.want != "" && strings.Count(s.String(), "\n| "+one.want) != 1 || one.want == "" && pieces[1].stays != nil {
				t.Errorf("want %q in\n%s", one.want, &s)
			}
			if strings.Contains(s.String(), one.not) {
				t.Errorf("%q is kept, too:\n%s", one.not, &s)
			}
			if n := total(pieces); n > 1000 {
				t.Errorf("%d bytes", n)
			}
		})
	}
}

// TestShorteningKeepsActsFirst: if not everything fits, what calls repeat stays before what only results repeat, and all of it
// takes at most half of the length.
func TestShorteningKeepsActsFirst(t *testing.T) {
	long := catalogue(`{"id": "Z9981"}`)
	pieces := []piece{{text: long, kind: result}, {text: long, kind: result}, {text: `{"item": "Z9981"}`}}
	shorten(pieces, &jury.Shortening{Rule: Shorten, Limit: 1200})
	sum, there := 0, false
	for _, s := range pieces[0].stays {
		sum += s.to - s.from
		there = there || strings.Contains(pieces[0].text[s.from:s.to], "Z9981")
	}
	if !there || sum > 300 || len(pieces[0].stays) < 5 {
		t.Errorf("%d bytes in %d parts, the called one among them: %v", sum, len(pieces[0].stays), there)
	}
}

// TestShorteningOfHostileTexts: no text breaks a character or makes the evidence longer, whatever repeats in it.
func TestShorteningOfHostileTexts(t *testing.T) {
	for _, unit := range []string{"é1 ", "a1,", `{"k":`, "…1…", "\"", "𝄞𝄞𝄞1𝄞,", strings.Repeat("x", 300) + "1 ", "1.2.3.", "\n", "[[[["} {
		text := strings.Repeat(unit, 200_000/len(unit))
		pieces := []piece{{text: text, kind: result}, {text: text, kind: result}, {text: text}}
		shorten(pieces, &jury.Shortening{Rule: Shorten, Limit: 210_000})
		for i, p := range pieces {
			if !utf8.ValidString(p.text[:p.from]) || !utf8.ValidString(p.text[p.to:]) {
				t.Errorf("%q: piece %d is cut inside a character", unit, i)
			}
			for k, s := range p.stays {
				if !utf8.ValidString(p.text[s.from:s.to]) || s.from < p.from || s.to > p.to || k > 0 && s.from < p.stays[k-1].to {
					t.Fatalf("%q: piece %d keeps %q", unit, i, p.text[s.from:s.to])
				}
			}
		}
	}
}
