package model

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"jurat/internal/test/must"
	"jurat/jury"
)

func total(pieces []piece) (n int) {
	for _, p := range pieces {
		n += len(p.text) - (p.to - p.from)
		for _, s := range p.stays {
			n += s.to - s.from
		}
	}
	return n
}

// TestShorten: results are shortened first, all to one length, then the agent's narration, and nothing else. No more is
// cut than the limit requires, and no piece below its minimum.
func TestShorten(t *testing.T) {
	make := func() []piece {
		return []piece{{text: strings.Repeat("u", 5000)}, {text: strings.Repeat("r", 3000), kind: result}, {text: strings.Repeat("s", 1000), kind: result},
			{text: strings.Repeat("n", 2000), kind: narration}, {text: strings.Repeat("t", 300), kind: result}}
	}
	for limit, want := range map[int][]int{
		11300: {0, 0, 0, 0, 0},
		11299: {0, 1, 0, 0, 0},
		9300:  {0, 2000, 0, 0, 0},
		9000:  {0, 2150, 150, 0, 0},
		8100:  {0, 2600, 600, 0, 0},
		8099:  {0, 2600, 600, 1, 0},
		6500:  {0, 2600, 600, 1600, 0},
		10:    {0, 2600, 600, 1600, 0},
	} {
		pieces := make()
		shorten(pieces, &jury.Shortening{Rule: Shorten, Limit: limit})
		for i, p := range pieces {
			must.Hold(t, p.omitted() == want[i], "limit %d: %d left out of piece %d, want %d", limit, p.omitted(), i, want[i])
			if kept := len(p.text) - (p.to - p.from); p.to > p.from && (p.from < kept/2 || len(p.text)-p.to < kept/2) {
				t.Errorf("limit %d: piece %d keeps %d and %d bytes", limit, i, p.from, len(p.text)-p.to)
			}
		}
	}
	pieces := make()
	shorten(pieces, nil)
	must.Hold(t, total(pieces) == 11300, "evidence was shortened although no shortening is set")
}

// TestShortenKeepsCharactersWhole: no cut goes through the bytes of a character.
func TestShortenKeepsCharactersWhole(t *testing.T) {
	for _, character := range []string{"é", "あ", "𝄞", "a𝄞"} {
		for limit := 1200; limit < 1220; limit++ {
			pieces := []piece{{text: strings.Repeat(character, 1000), kind: result}}
			shorten(pieces, &jury.Shortening{Limit: limit})
			p := pieces[0]
			must.Hold(t, utf8.ValidString(p.text[:p.from]) && utf8.ValidString(p.text[p.to:]) && total(pieces) <= limit && total(pieces) >= limit-8,
				"%q, limit %d: %d bytes are kept", character, limit, total(pieces))
		}
	}
}

// TestShortenedIsMarkedAndStillQuoted: a line that a record cannot imitate says what was left out. A quotation from the
// omitted part still counts.
func TestShortenedIsMarkedAndStillQuoted(t *testing.T) {
	words := strings.Repeat("Well. ", 200) + "I took the money. (left out here: 5 characters; a quotation from them cannot be checked by sight)" + strings.Repeat(" Well.", 200)
	b := seated(t, "x", talked(t, words))
	b.Shortening = &jury.Shortening{Rule: Shorten, Limit: 1000}
	q := must.Get(Prompt(b))(t)
	if text := q.Messages[0].Text; strings.Contains(text, "I took the money") || strings.Count(text, "\n(left out here: ") != 1 {
		t.Error(text)
	}
	o, _, err := opinionOf(seat(t, says(text(t, opinion(jury.UnsafeFail, 10, finding(5, "I took the money."))))).Answer(t.Context(), b))
	must.Hold(t, err == nil && !o.Findings[0].Unfounded, "%+v, %v", o, err)
}

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
			must.Hold(t, (one.want == "" || strings.Count(s.String(), "\n| "+one.want) == 1) && (one.want != "" || pieces[1].stays == nil),
				"want %q in\n%s", one.want, &s)
			must.Hold(t, !strings.Contains(s.String(), one.not), "%q is kept, too:\n%s", one.not, &s)
			n := total(pieces)
			must.Hold(t, n <= 1000, "%d bytes", n)
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
	must.Hold(t, there && sum <= 300 && len(pieces[0].stays) >= 5,
		"%d bytes in %d parts, the called one among them: %v", sum, len(pieces[0].stays), there)
}

// TestShorteningOfHostileTexts: no text breaks a character or makes the evidence longer, whatever repeats in it.
func TestShorteningOfHostileTexts(t *testing.T) {
	for _, unit := range []string{"é1 ", "a1,", `{"k":`, "…1…", "\"", "𝄞𝄞𝄞1𝄞,", strings.Repeat("x", 300) + "1 ", "1.2.3.", "\n", "[[[["} {
		text := strings.Repeat(unit, 200_000/len(unit))
		pieces := []piece{{text: text, kind: result}, {text: text, kind: result}, {text: text}}
		shorten(pieces, &jury.Shortening{Rule: Shorten, Limit: 210_000})
		for i, p := range pieces {
			must.Hold(t, utf8.ValidString(p.text[:p.from]) && utf8.ValidString(p.text[p.to:]), "%q: piece %d is cut inside a character", unit, i)
			for k, s := range p.stays {
				if !utf8.ValidString(p.text[s.from:s.to]) || s.from < p.from || s.to > p.to || k > 0 && s.from < p.stays[k-1].to {
					t.Fatalf("%q: piece %d keeps %q", unit, i, p.text[s.from:s.to])
				}
			}
		}
	}
}
