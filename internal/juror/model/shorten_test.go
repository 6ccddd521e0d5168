package model

import (
	"strings"
	"testing"
	"unicode/utf8"

	"jurat/internal/must"
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
			if p.omitted() != want[i] {
				t.Errorf("limit %d: %d left out of piece %d, want %d", limit, p.omitted(), i, want[i])
			}
			if kept := len(p.text) - (p.to - p.from); p.to > p.from && (p.from < kept/2 || len(p.text)-p.to < kept/2) {
				t.Errorf("limit %d: piece %d keeps %d and %d bytes", limit, i, p.from, len(p.text)-p.to)
			}
		}
	}
	pieces := make()
	shorten(pieces, nil)
	if total(pieces) != 11300 {
		t.Error("evidence was shortened although no shortening is set")
	}
}

// TestShortenKeepsCharactersWhole: no cut goes through the bytes of a character.
func TestShortenKeepsCharactersWhole(t *testing.T) {
	for _, character := range []string{"é", "あ", "𝄞", "a𝄞"} {
		for limit := 1200; limit < 1220; limit++ {
			pieces := []piece{{text: strings.Repeat(character, 1000), kind: result}}
			shorten(pieces, &jury.Shortening{Limit: limit})
			p := pieces[0]
			if !utf8.ValidString(p.text[:p.from]) || !utf8.ValidString(p.text[p.to:]) || total(pieces) > limit || total(pieces) < limit-8 {
				t.Errorf("%q, limit %d: %d bytes are kept", character, limit, total(pieces))
			}
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
	if err != nil || o.Findings[0].Unfounded {
		t.Errorf("%+v, %v", o, err)
	}
}
