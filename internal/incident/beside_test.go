package incident_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/must"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// turned is a trial in which talk turns the verdict: of three jurors who passed the agent, two follow the fourth, one of them with a finding.
func turned(t *testing.T, h *jurattest.House) []*evidence.Record {
	t.Helper()
	s := jurattest.Thorough(jury.MajorityVote)
	passed, failed := jurattest.Grade(jury.SafePass, 3), jurattest.Grade(jury.UnsafeFail, 0)
	cited := failed
	cited.Findings = []jury.Finding{{Message: 4, Quote: "now in Kassel", Rule: "unfounded-claim", Axis: s.Rubric[0].ID, Severity: jury.Major, Explanation: "Nobody looked."}}
	speech := func(o *jury.Opinion) []jury.Speech {
		return []jury.Speech{{Statement: "I see it now.", Position: o.Position, Reasoning: "As the other said.", Updated: o},
			{Statement: "I stay.", Position: o.Position, Reasoning: "As before."}}
	}
	return h.TryBefore(t, s, []jury.Juror{&jurattest.Juror{Opinion: passed, Speeches: speech(&cited)}, &jurattest.Juror{Opinion: passed, Speeches: speech(&failed)},
		&jurattest.Juror{Opinion: failed}}, nil).Records
}

func TestStatementSaysWhatStandsBesideTheVerdict(t *testing.T) {
	h := jurattest.New(t)
	jurors, judge := jurattest.ThoroughPanel()
	records := h.TryBefore(t, jurattest.Thorough(jury.FinalJudge), jurors, judge).Records
	moved := jurattest.New(t)
	talked := turned(t, moved)
	eachLang(t, func(t *testing.T, lang words.Lang) {
		says := words.Of(lang)
		text := trialText(t, lang, h, h.Options(t), records...)
		has(t, text, says.Say("statement.abstained", "juror", `"Second"`), says.Say("statement.votes_assumed", "votes", "1.00"),
			says.Say("statement.judge_alone", "position", says["sealed_position.safe_pass"], "score", jurattest.Grade(jury.SafePass, 2).TotalScore))
		has(t, trialText(t, lang, moved, moved.Options(t), talked...), says["statement.must_see.turned_by_talk"], `"First"`, `"Third"`, `"now in Kassel"`,
			says.Say("statement.talk", "changes", 2, "majority", 0, "conformity", "0.00"))
		b := moved.Bundle(t, talked...)
		if outcome := incident.Outcome(verify.Bundle(b, moved.Options(t)).TrialOutcome, lang); !strings.Contains(outcome, says["statement.must_see.turned_by_talk"]) {
			t.Errorf("the outcome does not say why a person must see it: %s", outcome)
		}
		for _, unproved := range []string{trialText(t, lang, moved, verify.Options{}, talked...), trialText(t, lang, moved, moved.Options(t), lying(t, moved, talked)...)} {
			for _, fact := range []string{says["statement.must_see.turned_by_talk"], `"now in Kassel"`, says.Say("statement.votes_assumed", "votes", "1.00")} {
				if strings.Contains(unproved, fact) {
					t.Errorf("states %q, which is not proved, in:\n%s", fact, unproved)
				}
			}
		}
	})
}

// lying changes the score of the final judgment, and leaves out what follows.
func lying(t *testing.T, h *jurattest.House, records []*evidence.Record) []*evidence.Record {
	t.Helper()
	honest := records[len(records)-2]
	var j jury.Judgment
	must.Do(t, json.Unmarshal(honest.Payload.Response, &j))
	j.Score++
	body := must.Get(jury.EncodeBody(&j))(t)
	forged := honest.Payload
	forged.RecordID, forged.Signers, forged.Response = "", nil, body
	return append(slices.Clone(records[:len(records)-2]), h.Seal(t, forged))
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("does not say %q, in:\n%s", part, text)
		}
	}
}
