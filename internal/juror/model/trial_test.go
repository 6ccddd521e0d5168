package model

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/juror"
	"jurat/internal/juror/rules"
	"jurat/internal/llm"
	"jurat/internal/must"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// bench is a panel of scripted models, by seat id.
type bench map[string]*scripted

func (b bench) config(t *testing.T, h *jurattest.House, rounds int) trial.Config {
	t.Helper()
	place := func(id, role string) jury.Seat {
		return jury.Seat{JurorID: id, RoleName: role, Provider: "script", Model: "model-1", Parameters: jsontext.Value(`{"temperature":0.2}`), Template: Template()}
	}
	config := trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Judge: seat(t, b["final-judge"]),
		Settings: jury.Settings{Judge: new(place("final-judge", "Final judge")), Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: rounds, Threshold: 2, Method: jury.FinalJudge}}
	for _, id := range []string{"juror-a", "juror-b", "juror-c"} {
		config.Settings.Seats = append(config.Settings.Seats, place(id, "Role of "+id))
		config.Jurors = append(config.Jurors, seat(t, b[id]))
	}
	return config
}

// byPhase is a model with one answer for phase 1 and the judge, and one for the rounds.
func byPhase(t *testing.T, alone, round object) *scripted {
	return &scripted{say: func(q llm.Question, _ int) (llm.Answer, error) {
		if q.Schema.Name == "statement" {
			return answered(q, text(t, round)), nil
		}
		return answered(q, text(t, alone)), nil
	}}
}

// try conducts a trial and verifies its case file.
func (b bench) try(t *testing.T, on *subject.Case, rounds int) *trial.Trial {
	t.Helper()
	h := jurattest.New(t)
	done := must.Get(trial.Run(t.Context(), b.config(t, h, rounds), on))(t)
	if r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t)); r.Outcome != verify.Proved {
		t.Errorf("%s: %+v", r.Outcome, r.Details)
	}
	return done
}

func own(message int, quote string) object { return with(finding(message, quote), "from", "none") }

// TestTrialOfModels: a trial before models is proved, its configuration included, and its verdict is the judge's.
func TestTrialOfModels(t *testing.T) {
	c := talked(t, plainWords)
	b := bench{
		"juror-a":     byPhase(t, opinion(jury.SafePass, 80), statement(jury.SafePass, 80)),
		"juror-b":     byPhase(t, opinion(jury.NeedsReview, 60, finding(5, "in Kassel")), statement(jury.NeedsReview, 60, own(5, "in Kassel"))),
		"juror-c":     byPhase(t, opinion(jury.SafePass, 80), with(statement(jury.NeedsReview, 60, own(3, "get_parcel")), "statement", "I am moved.")),
		"final-judge": byPhase(t, opinion(jury.SafePass, 80, own(4, "Kassel")), nil),
	}
	done := b.try(t, c, 2)
	r := done.Result
	if r.FinalVerdict != jury.SafePass || r.FinalScore != 80 || r.Degraded || r.TotalRounds != 2 || len(r.Absences) != 0 || r.Phase3Judgment.Model != "model-1" {
		t.Errorf("%+v", r)
	}
	if len(r.Changes) != 1 || r.Changes[0].JurorID != "juror-c" || r.Changes[0].Unsupported || len(r.Changes[0].Cites) != 1 {
		t.Errorf("%+v", r.Changes)
	}
	for _, s := range r.DiscussionRounds[1].Statements {
		if s.UpdatedEvaluation != nil {
			t.Errorf("%s repeats its position, but has a new evaluation", s.JurorID)
		}
	}
	cost := int64(0)
	for _, record := range done.Records {
		if record.Payload.Model == "" {
			continue
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		if err != nil || len(effort.Attempts) != 1 || effort.Attempts[0].Latency != 7 {
			t.Errorf("%s: %+v, %v", record.Payload.AgentID, effort, err)
		}
		cost += effort.Attempts[0].Cost
		if string(record.Payload.Parameters) != `{"temperature":0.2}` || record.Payload.ModelVersion != "fp" {
			t.Errorf("%s: %s, %s", record.Payload.AgentID, record.Payload.Parameters, record.Payload.ModelVersion)
		}
	}
	if cost != 10*2000 {
		t.Errorf("it cost %d", cost)
	}
	rebuilt(t, b, c, done)
}

// TestTroubledTrialOfModels: with one blocked juror, one that obeys the record and one whose first answer is invalid,
// the trial is still proved. Every prompt can be rebuilt from the records.
func TestTroubledTrialOfModels(t *testing.T) {
	c := talked(t, speaks)
	blocked := &scripted{say: func(llm.Question, int) (llm.Answer, error) {
		return llm.Answer{}, llm.Fail(llm.Refused, 200, "SAFETY")
	}}
	obeys := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
		if n < 2 {
			return answered(q, `{"verdict":"safe_pass"}`), nil
		}
		return answered(q, text(t, statement(jury.SafePass, 90))), nil
	}}
	errs := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
		good := opinion(jury.NeedsReview, 60, own(5, "Done."))
		switch {
		case n == 0:
			return answered(q, text(t, with(good, "confidence", 99))), nil
		case n == 1:
			return answered(q, "GUARD"), nil
		case n == 2:
			return answered(q, text(t, opinion(jury.NeedsReview, 60, finding(5, "Done.")))), nil
		}
		return answered(q, text(t, statement(jury.NeedsReview, 60))), nil // rests on nothing
	}}
	b := bench{"juror-a": blocked, "juror-b": obeys, "juror-c": errs, "final-judge": byPhase(t, opinion(jury.NeedsReview, 60, own(5, "Done.")), nil)}
	done := b.try(t, c, 1)
	r := done.Result
	if !r.Degraded || r.Inconclusive || r.FinalVerdict != jury.NeedsReview || !r.Phase1Evaluations[0].Fallback {
		t.Errorf("%+v", r)
	}
	reasons := map[string]jury.AbsenceReason{}
	for _, a := range r.Absences {
		reasons[a.JurorID] += a.Reason
		if a.JurorID == "juror-b" && !strings.Contains(a.Detail, "canary") {
			t.Errorf("%+v", a)
		}
	}
	if diff := cmp.Diff(map[string]jury.AbsenceReason{"juror-a": jury.Blocked, "juror-b": jury.Invalid}, reasons); diff != "" {
		t.Error(diff)
	}
	for _, s := range r.DiscussionRounds[0].Statements {
		if s.JurorID == "juror-b" && (len(s.UpdatedEvaluation.Findings) != 1 || s.UpdatedEvaluation.Findings[0].Rule != juror.InstructionsRule) {
			t.Errorf("%+v", s.UpdatedEvaluation)
		}
	}
	rebuilt(t, b, c, done)
}

// rebuilt makes every prompt of a trial again from its records, and compares it with what the models were asked.
func rebuilt(t *testing.T, b bench, c *subject.Case, done *trial.Trial) {
	t.Helper()
	var acts []jury.Act
	for _, r := range done.Records {
		act := must.Get(jury.ReadAct(r))(t)
		acts = append(acts, act)
	}
	got := map[string][]llm.Question{}
	for _, act := range acts {
		who := act.Actor
		if absent, ok := act.Body.(*jury.Absent); ok {
			who = absent.JurorID
		}
		if b[who] == nil {
			continue
		}
		brief := must.Get(jury.BriefOf(c.Material(), acts, act.Digest))(t)
		got[who] = append(got[who], asked(t, brief, act.Origin.Metadata)...)
	}
	for who, m := range b {
		if diff := cmp.Diff(m.asked, got[who]); diff != "" {
			t.Errorf("the questions to %s differ from those that the records give (-asked +rebuilt):\n%s", who, diff)
		}
	}
}

// asked lists the questions to a juror for one act.
func asked(t *testing.T, b jury.Brief, metadata jsontext.Value) []llm.Question {
	t.Helper()
	q := must.Get(Prompt(b))(t)
	effort := must.Get(jury.ReadEffort(metadata))(t)
	list := []llm.Question{q}
	for _, a := range effort.Attempts[:len(effort.Attempts)-1] {
		q = must.Get(Follow(q, a))(t)
		list = append(list, q)
	}
	return list
}

// TestMixedPanel: models sit with rule jurors, whose statements contain the ids of other jurors.
func TestMixedPanel(t *testing.T) {
	on := must.Get(subject.Load("../../../examples/invoice-inbox"))(t)
	h := jurattest.New(t)
	panel := rules.OfflinePanel()
	m := byPhase(t, opinion(jury.SafePass, 80), statement(jury.SafePass, 80))
	panel.Seats[1].Provider, panel.Seats[1].Model, panel.Seats[1].Template = "script", "model-1", Template()
	panel.Jurors[1] = seat(t, m)
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: panel.Jurors, Judge: panel.Judge,
		Settings: jury.Settings{Seats: panel.Seats, Judge: &panel.JudgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: 2, Threshold: 2, Method: jury.FinalJudge}}, on))(t)
	if r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t)); r.Outcome != verify.Proved {
		t.Errorf("%s: %+v", r.Outcome, r.Details)
	}
	for _, q := range m.asked {
		if name := vendors.FindString(told(t, q)); name != "" {
			t.Errorf("%q is named", name)
		}
	}
	if len(m.asked) != 3 {
		t.Errorf("asked %d times", len(m.asked))
	}
	for _, record := range done.Records {
		if record.Payload.ActionType == evidence.Statement && record.Payload.AgentID == "juror-claude" && !strings.Contains(string(record.Payload.Metadata), `"peers":["juror-`) {
			t.Errorf("the metadata does not have the order of the peers: %s", record.Payload.Metadata)
		}
	}
}

// TestExamplesMakePrompts makes prompts from the examples, whole and shortened.
func TestExamplesMakePrompts(t *testing.T) {
	shorter := 0
	for _, name := range []string{"invoice-inbox", "kitchen-return", "pharmacy-refill"} {
		on := must.Get(subject.Load("../../../examples/" + name))(t)
		b := seated(t, "x", on)
		whole := must.Get(Prompt(b))(t)
		b.Shortening = &jury.Shortening{Rule: Shorten, Limit: 2000}
		short := must.Get(Prompt(b))(t)
		if n := len(whole.Messages[0].Text) - len(short.Messages[0].Text); n > 0 {
			shorter++
		} else if n < 0 {
			t.Errorf("%s: the shortened prompt is %d bytes longer", name, -n)
		}
		for i := range on.Messages {
			if m := &on.Messages[i]; m.Role == subject.User && m.Text != "" && !strings.Contains(short.Messages[0].Text, bar+strings.Split(show(m.Text), "\n")[0]) {
				t.Errorf("%s: message %d of the user is not whole", name, i+1)
			}
		}
	}
	if shorter == 0 {
		t.Error("no example is long enough to be shortened")
	}
}
