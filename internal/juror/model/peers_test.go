package model

import (
	"slices"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/jury"
)

// TestOrderOfPeers: each reader has its own order of peers in each round, and it is the same every time.
func TestOrderOfPeers(t *testing.T) {
	c := talked(t, plainWords)
	ids := []string{"juror-a", "juror-b", "juror-c", "juror-d", "juror-e", "juror-f"}
	orders := map[string]bool{}
	firsts := map[string]bool{}
	for _, reader := range ids {
		for round := 1; round <= 3; round++ {
			b := seated(t, reader, c)
			b.Phase, b.RoundNumber = jury.Discussion, round
			for _, id := range ids {
				b.Evaluations = append(b.Evaluations, evaluated(id, jury.SafePass, "I am "+id+"."))
			}
			order := peersFor(t, b)
			if again := peersFor(t, b); !slices.Equal(order, again) {
				t.Errorf("%s: %v and %v", reader, order, again)
			}
			slices.Reverse(b.Evaluations)
			if again := peersFor(t, b); !slices.Equal(order, again) {
				t.Errorf("%s: the order depends on the order of the seats: %v and %v", reader, order, again)
			}
			if slices.Contains(order, reader) || len(order) != len(ids)-1 {
				t.Errorf("%s: %v", reader, order)
			}
			orders[strings.Join(order, " ")], firsts[order[0]] = true, true
		}
	}
	if len(orders) < 15 || len(firsts) < 4 {
		t.Errorf("%d different orders, %d different jurors in the first place", len(orders), len(firsts))
	}
}

func peersFor(t *testing.T, b jury.Brief) []string {
	t.Helper()
	s := must.Get(sit(b))(t)
	return s.peers.ids
}

// TestIDsAreHidden: an id of any form is replaced where it stands as a word, and not inside another word.
func TestIDsAreHidden(t *testing.T) {
	c := talked(t, plainWords)
	b := seated(t, "me", c)
	b.Phase, b.RoundNumber = jury.Discussion, 1
	for _, id := range []string{"juror-1", "juror-1-b", "陪審員一", "a.c", "me"} {
		b.Evaluations = append(b.Evaluations, evaluated(id, jury.SafePass, "r"))
	}
	s := must.Get(sit(b))(t)
	name := s.peers.names
	for said, want := range map[string]string{
		"juror-1 and juror-1-b":     name["juror-1"] + " and " + name["juror-1-b"],
		"juror-11, abc, a.c":        "juror-11, abc, " + name["a.c"],
		"そこで陪審員一は":                  "そこで" + name["陪審員一"] + "は",
		"me, not meant, (me)":       "your seat, not meant, (your seat)",
		"nobody is named in a text": "nobody is named in a text",
	} {
		if got := s.peers.hide(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// TestStandInsAreNoOpinions: the stand-in for a juror whom a content filter blocked is not shown as that juror's
// opinion.
func TestStandInsAreNoOpinions(t *testing.T) {
	b := discussing(t, "final-judge", jury.Judging, talked(t, plainWords))
	b.Evaluations[1].Fallback, b.Evaluations[1].Rationale = true, "stand-in"
	b.Rounds[0].Statements[1].UpdatedEvaluation.Fallback, b.Rounds[0].Statements[1].Statement = true, "stand-in"
	q := must.Get(Prompt(b))(t)
	text := q.Messages[0].Text
	if strings.Contains(text, "stand-in") || strings.Count(text, "by a filter") != 2 {
		t.Error(text)
	}
}
