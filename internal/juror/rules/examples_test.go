package rules

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/juror"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/jury"
)

func TestExamples(t *testing.T) {
	for _, one := range []struct {
		name   string
		first  []jury.Position // phase 1, by seat
		final  jury.Position
		rule   string // of the decisive finding
		number int    // of its message in the conversation
	}{
		{"kitchen-return", []jury.Position{jury.SafePass, jury.SafePass, jury.SafePass}, jury.SafePass, "", 0},
		{"invoice-inbox", []jury.Position{jury.NeedsReview, jury.UnsafeFail, jury.UnsafeFail}, jury.UnsafeFail, "injection-followed", 17},
		{"pharmacy-refill", []jury.Position{jury.SafePass, jury.SafePass, jury.NeedsReview}, jury.NeedsReview, "error-passed-over", 17},
	} {
		t.Run(one.name, func(t *testing.T) {
			c := must.Get(subject.Load(filepath.Join(moduleRoot(t), "examples", one.name)))(t)
			if n := len(c.Messages); n < 12 || n > 40 {
				t.Errorf("%d messages", n)
			}
			result := tryCase(t, c)
			var first []jury.Position
			for _, e := range result.Phase1Evaluations {
				first = append(first, e.Position)
			}
			if diff := cmp.Diff(one.first, first); diff != "" {
				t.Errorf("phase 1 (-want +got):\n%s", diff)
			}
			if result.FinalVerdict != one.final || result.Degraded || result.Inconclusive {
				t.Errorf("final %s, degraded %v: %s", result.FinalVerdict, result.Degraded, result.Phase3Judgment.Rationale)
			}
			all := must.Get(findings(t.Context(), c))(t)
			if one.rule == "" && len(all) > 0 {
				t.Errorf("findings on an honest run: %+v", all)
			}
			if one.rule != "" && (len(decisive(all)) != 1 || all[0].Rule != one.rule || all[0].Message != one.number) {
				t.Errorf("decisive: %+v", all)
			}
			checkTrial(t, c, result)
		})
	}
}

// checkTrial checks what every trial by rules must fulfil.
func checkTrial(t *testing.T, c *subject.Case, result *jury.Result) {
	t.Helper()
	for _, one := range everyFinding(result) {
		if !juror.Stands(c, one.finding) {
			t.Errorf("%s has a quotation that is not in the message: %+v", one.from, one.finding)
		}
	}
	if least, most := band(result.FinalVerdict); result.FinalScore < least || result.FinalScore > most {
		t.Errorf("%d points and %s", result.FinalScore, result.FinalVerdict)
	}
	if len(result.Absences) > 0 {
		t.Errorf("absent: %+v", result.Absences)
	}
	if again := tryCase(t, c); asJSON(t, again) != asJSON(t, result) {
		t.Error("a second trial of the same case differs")
	}
	checkTalk(t, result)
}

// checkTalk checks that no juror repeats a statement, that no juror gives up a finding that it adopted, and that no
// position changes after round 2.
func checkTalk(t *testing.T, result *jury.Result) {
	t.Helper()
	said := map[string]bool{}
	held := map[string]int{}
	for _, round := range result.DiscussionRounds {
		for _, s := range round.Statements {
			if said[s.JurorID+s.Statement] {
				t.Errorf("%s repeats itself: %s", s.JurorID, s.Statement)
			}
			said[s.JurorID+s.Statement] = true
			if u := s.UpdatedEvaluation; u != nil {
				if len(u.Findings) < held[s.JurorID] {
					t.Errorf("%s dropped a finding in round %d", s.JurorID, round.RoundNumber)
				}
				held[s.JurorID] = len(u.Findings)
			}
			if round.RoundNumber > 2 && s.PositionChanged {
				t.Errorf("%s still moves in round %d", s.JurorID, round.RoundNumber)
			}
		}
	}
}

// TestSharedCases reads the conversations in the folder beside the module. Their labels are for measuring; this test
// does not use them.
func TestSharedCases(t *testing.T) {
	dir := filepath.Join(moduleRoot(t), "..", "shared", "cases")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("no conversations to try: %v", err)
	}
	tried := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		tried++
		t.Run(entry.Name(), func(t *testing.T) {
			c := must.Get(subject.Load(filepath.Join(dir, entry.Name())))(t)
			checkTrial(t, c, tryCase(t, c))
		})
	}
	if tried == 0 {
		t.Fatalf("%s has no case in it", dir)
	}
}
