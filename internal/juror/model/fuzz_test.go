package model

import (
	"errors"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/juror"
	"jurat/internal/must"
	"jurat/jury"
)

// FuzzAnswer: for any answer of a model in any phase, nothing panics, an accepted answer is valid, its quotations are in
// the evidence or marked, and its metadata can be sealed.
func FuzzAnswer(f *testing.F) {
	for _, one := range broken {
		if one.change != nil {
			f.Add(text(f, one.change(opinion(jury.SafePass, 80, finding(5, "in Kassel")))), "")
		}
	}
	for _, one := range obeying {
		f.Add(one.answer, text(f, opinion(jury.SafePass, 80)))
	}
	quote := with(finding(5, "in Kassel"), "from", "Juror A")
	f.Add(text(f, statement(jury.NeedsReview, 60, quote)), "{}")
	f.Add("no", text(f, opinion(jury.UnsafeFail, 20, with(quote, "quote", "⟨U+202E⟩"))))
	c := talked(f, speaks+"\u202E")
	f.Fuzz(func(t *testing.T, first, then string) {
		for _, phase := range []jury.Phase{jury.Initial, jury.Discussion, jury.Judging} {
			b := seated(t, "juror-gpt", c)
			if phase != jury.Initial {
				b = discussing(t, "juror-gpt", phase, c)
			}
			m := says(first, then)
			a, err := seat(t, m).Answer(t.Context(), b)
			if _, canonical := evidence.Canonical(a.Origin.Metadata); canonical != nil {
				t.Fatalf("it cannot be sealed: %v", canonical)
			}
			if len(m.asked) > MaxAsked {
				t.Fatalf("asked %d times", len(m.asked))
			}
			if err != nil {
				if !errors.Is(err, jury.ErrInvalid) {
					t.Fatal(err)
				}
				continue
			}
			check(t, b, &a)
		}
	})
}

func check(t *testing.T, b jury.Brief, r *jury.Answer) {
	t.Helper()
	s := must.Get(sit(b))(t)
	must.Do(t, s.validate(r))
	for _, f := range r.Opinion.Findings {
		if f.Unfounded == juror.Stands(s.c, f) {
			t.Fatalf("it is marked wrongly: %+v", f)
		}
		if f.From != "" && !strings.HasPrefix(f.From, "juror-") {
			t.Fatalf("from an unknown juror: %+v", f)
		}
	}
	if _, err := jury.EncodeBody(r.Opinion); err != nil {
		t.Fatal(err)
	}
}

// FuzzShow: any text is shown as lines of data without hidden characters, and can be read back.
func FuzzShow(f *testing.F) {
	for _, words := range hostile {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		words = strings.ToValidUTF8(words, "\uFFFD")
		shown := show(words)
		if unshow(shown) != words {
			t.Fatalf("%q is shown as %q", words, shown)
		}
		var data strings.Builder
		barred(&data, words)
		for _, line := range strings.Split(strings.TrimSuffix(data.String(), "\n"), "\n") {
			if !strings.HasPrefix(line, bar) {
				t.Fatalf("%q has the line %q", words, line)
			}
		}
	})
}
