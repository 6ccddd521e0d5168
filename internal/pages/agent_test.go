package pages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/reputation"
)

// agentOf makes the page of an agent of whom n records were tried, each with the position of its number. change may change
// the facts.
func agentOf(t testing.TB, n int, position func(int) jury.Position, change ...func(*reputation.Facts)) *Agent {
	t.Helper()
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Unix()
	const day = 86_400
	f := &reputation.Facts{Format: reputation.FactsFormat, At: start + 100*day, Policy: reputation.DefaultPolicy(),
		Identity: reputation.Identity{Name: "desk", By: "keys", Keys: []reputation.KeyOfRecord{{From: start, Revoked: start + 90*day}}}}
	panel := reputation.Panel{Digest: evidence.DigestOf([]byte("panel")), Method: jury.MajorityVote, Seats: []string{"openai/gpt-4o", "anthropic/claude"}, Judge: "google/gemini"}
	for i := range n {
		at := start + int64(i)*day
		exhibit, judgment := evidence.DigestOf(fmt.Appendf(nil, "record %d", i)), evidence.DigestOf(fmt.Appendf(nil, "judgment %d", i))
		f.Records = append(f.Records, reputation.RecordFact{Place: reputation.Place{Digest: exhibit, ID: "r", Origin: "log", Index: int64(2 * i)},
			Standing: reputation.Standing{Time: at, Proved: true}, By: "keys", Keys: []evidence.KeyID{{}}})
		f.Trials = append(f.Trials, reputation.TrialFact{Place: reputation.Place{Digest: judgment, ID: "j", Origin: "log", Index: int64(2*i + 1)},
			Standing: reputation.Standing{Time: at, Proved: true}, Position: position(i), Panel: panel, Exhibits: []evidence.Digest{exhibit},
			Raters: []reputation.Rater{{Role: evidence.RoleSubmitter, Name: "sam"}}})
		f.Counted = append(f.Counted, reputation.CountedFact{Origin: "log", Index: int64(2*i + 1), Of: reputation.OfSubject, Seq: int64(i + 1), Digest: judgment})
	}
	for _, c := range change {
		c(f)
	}
	v, err := f.View()
	check(t, err)
	a, err := NewAgent(v)
	check(t, err)
	return a
}

func passes(int) jury.Position { return jury.SafePass }

// everyAgent makes pages of agents: with a number, with too few, with missing judgments, with nothing.
func everyAgent(t testing.TB) map[string]Page {
	return map[string]Page{
		"agent": agentOf(t, 30, func(i int) jury.Position {
			return map[bool]jury.Position{true: jury.UnsafeFail, false: jury.SafePass}[i == 20]
		}, func(f *reputation.Facts) {
			f.Trials[3].Transcript, f.Trials[4].Proved, f.Trials[4].Rule = true, false, "content/signature"
		}),
		"agent-few":     agentOf(t, 9, passes),
		"agent-hole":    agentOf(t, 12, passes, func(f *reputation.Facts) { f.Counted = f.Counted[1:] }),
		"agent-nothing": agentOf(t, 0, passes),
	}
}

// TestAgentNumbers: there is a number, and a picture, only where there are enough observations and no judgment is missing.
func TestAgentNumbers(t *testing.T) {
	pages := everyAgent(t)
	for name, want := range map[string]struct {
		picture bool
		says    string
	}{
		"agent":         {true, "Between 81.86 % and 99.38 %"},
		"agent-few":     {false, "Too few for a number. At least 10 whole"},
		"agent-hole":    {false, "No number: judgments are missing."},
		"agent-nothing": {false, words.OfPages(words.English)["agent.unjudged"]},
	} {
		page := write(t, Frame{Lang: words.English, Path: "/agents/desk"}, pages[name])
		if got := strings.Contains(page, `<svg viewBox="-90`); got != want.picture {
			t.Errorf("%s: a picture: %v", name, got)
		}
		if !strings.Contains(page, want.says) {
			t.Errorf("%s does not say %q", name, want.says)
		}
		if !want.picture && strings.Contains(page, " %</td>") {
			t.Errorf("%s has bounds in its table, but no number", name)
		}
	}
}

// TestPicture: the lines begin where the number does, and each step is where the verdict is.
func TestPicture(t *testing.T) {
	at := time.Date(2026, 1, 11, 0, 0, 0, 0, time.UTC)
	move := func(day int, b *reputation.Bounds) Move {
		return Move{Move: &reputation.Move{Bounds: b}, When: at.AddDate(0, 0, day-10)}
	}
	got := picture([]Move{move(0, nil), move(0, &reputation.Bounds{Lower: 5000, Upper: 10_000}), move(5, &reputation.Bounds{Lower: 2500, Upper: 5000}),
		move(5, &reputation.Bounds{Lower: 7500, Upper: 10_000})}, at)
	want := Picture{Since: at.AddDate(0, 0, -10)}
	want.Lower, want.Upper, want.Band = "0,100 300,100 300,50 600,50 600,50", "0,0 300,0 300,0 600,0 600,0", "0,0 300,0 300,0 600,0 600,0 600,50 600,50 300,50 300,100 0,100"
	equal(t, got, want)
	equal(t, picture([]Move{move(0, &reputation.Bounds{}), move(1, nil)}, at), Picture{})
	equal(t, picture(nil, at), Picture{})
	one := picture([]Move{move(10, &reputation.Bounds{Lower: 1, Upper: 9999})}, at) // at the moment of asking
	if one.Band == "" {
		t.Error("no picture of a number that is new")
	}
}

// TestAgentCommand: no name can end the quotation.
func TestAgentCommand(t *testing.T) {
	a := agentOf(t, 0, passes, func(f *reputation.Facts) { f.Identity.Name = "it's $(x)" })
	equal(t, a.Command(), `jurat reputation 'it'\''s $(x)' --at 2026-04-11T12:00:00Z --json`)
}

// TestAgentWithoutAKey: of an agent that only recorders know, the page does not say that the trust file gives it keys.
func TestAgentWithoutAKey(t *testing.T) {
	texts := words.OfPages(words.English)
	byKeys, byRecorders := texts["agent.by_keys"], texts["agent.by_recorders"]
	for keyless, want := range map[bool]string{true: byRecorders, false: byKeys} {
		page := write(t, Frame{Lang: words.English, Path: "/agents/desk"}, agentOf(t, 0, passes, func(f *reputation.Facts) {
			if keyless {
				f.Identity.Keys = nil
			}
		}))
		if !strings.Contains(page, want) || strings.Contains(page, byRecorders) == strings.Contains(page, byKeys) {
			t.Errorf("without a key %t: %s", keyless, page)
		}
	}
}
