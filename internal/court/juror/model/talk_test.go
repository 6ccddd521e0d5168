package model

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/juror/rules"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// TestErrorsOfModels: each kind of error leads to the right absence, after the right number of calls.
func TestErrorsOfModels(t *testing.T) {
	c := talked(t, plainWords)
	cutOff := llm.Answer{Text: `{"findings":[`, Model: "model-1", FinishReason: "length", Usage: llm.Usage{Input: 10, Output: 500}}
	for name, tt := range map[string]struct {
		err   error
		calls int
		is    error
		says  string
	}{
		"refused":           {llm.Fail(llm.Refused, 200, "SAFETY"), 1, jury.ErrBlocked, "refused (HTTP status 200): SAFETY"},
		"timed out":         {llm.Fail(llm.TimedOut, 0, "no answer within 1m"), 1, context.DeadlineExceeded, "timed out"},
		"rate limited":      {llm.Fail(llm.RateLimited, 429, "slow down"), 1, nil, "rate limited (HTTP status 429): slow down"},
		"unauthorised":      {llm.Fail(llm.Unauthorised, 401, "no key"), 1, nil, "unauthorised"},
		"unavailable":       {llm.Fail(llm.Unavailable, 503, ""), 1, nil, "unavailable"},
		"not taken":         {llm.Fail(llm.Malformed, 400, "no such parameter"), 1, nil, "no such parameter"},
		"malformed":         {llm.Fail(llm.Malformed, 200, "not the protocol"), 3, jury.ErrInvalid, "not the protocol"},
		"question too long": {llm.Fail(llm.TooLong, 400, "window"), 1, nil, "too long"},
		"answer too long":   {&llm.Error{Kind: llm.TooLong, Answer: cutOff}, 3, jury.ErrInvalid, "too long"},
		"something else":    {errDown, 1, errDown, "down"},
	} {
		m := &scripted{say: func(llm.Question, int) (llm.Answer, error) { return llm.Answer{}, tt.err }}
		_, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", c)))
		must.Hold(t, err != nil && (tt.is == nil || errors.Is(err, tt.is)) && strings.Contains(err.Error(), tt.says) && len(m.asked) == tt.calls,
			"%s: %v after %d calls", name, err, len(m.asked))
		for _, kind := range []error{jury.ErrBlocked, jury.ErrInvalid, context.DeadlineExceeded} {
			must.Hold(t, !errors.Is(err, kind) || errors.Is(tt.is, kind), "%s: %v is %v as well", name, err, kind)
		}
		effort := effortOf(t, origin)
		must.Hold(t, len(effort.Attempts) == tt.calls && effort.Attempts[0].Problem != "", "%s: %+v", name, effort)
	}
}

// TestCutOffAnswers: a juror whose answer was cut off is told so and sees its answer. After an empty answer, it gets the
// same question.
func TestCutOffAnswers(t *testing.T) {
	c := talked(t, plainWords)
	for said, messages := range map[string]int{`{"findings":[`: 3, "": 1} {
		m := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
			if n == 0 {
				return llm.Answer{}, &llm.Error{Kind: llm.TooLong, Answer: llm.Answer{Text: said, Usage: llm.Usage{Output: 500}}}
			}
			return answered(q, text(t, opinion(jury.SafePass, 80))), nil
		}}
		o, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", c)))
		if err != nil || o.TotalScore != 80 || len(m.asked[1].Messages) != messages {
			t.Errorf("%q: %v, %+v", said, err, m.asked[1].Messages[1:])
		}
		a := effortOf(t, origin).Attempts[0]
		must.Hold(t, a.Problem == "too long" && a.Answer == said && a.Cost == 5000, "%q: %+v", said, a)
	}
}

// TestCancelled: after a cancellation the juror returns that error, and makes no further call.
func TestCancelled(t *testing.T) {
	c := talked(t, plainWords)
	ctx, cancel := context.WithCancel(t.Context())
	m := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
		if n == 0 {
			return answered(q, text(t, opinion(jury.UnsafeFail, 20))), nil // to be asked about
		}
		cancel()
		return llm.Answer{}, ctx.Err()
	}}
	_, err := seat(t, m).Answer(ctx, seated(t, "x", c))
	must.Hold(t, errors.Is(err, context.Canceled) && len(m.asked) == 2, "%v after %d calls", err, len(m.asked))
}

// TestBudget: money is reserved before each call and settled after it. Without enough money, no call is made.
func TestBudget(t *testing.T) {
	c := talked(t, plainWords)
	good, doubtful := text(t, opinion(jury.SafePass, 80)), text(t, opinion(jury.UnsafeFail, 20))
	b := seated(t, "x", c)
	q := must.Get(Prompt(b))(t)
	estimate := q.Estimate(500).Input + 5000 // at one dollar per million read and ten per million written
	for name, tt := range map[string]struct {
		left    int64
		say     func(q llm.Question, n int) (llm.Answer, error)
		calls   int
		settled int64 // by the first call
		is      error
	}{
		"enough":           {estimate, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, good), nil }, 1, 2000, nil},
		"none":             {estimate - 1, nil, 0, 0, jury.ErrCeiling},
		"not for a second": {estimate + 1999, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, "no"), nil }, 1, 2000, jury.ErrCeiling},
		"not to ask about": {estimate, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, doubtful), nil }, 1, 2000, nil},
		"cut on the way": {estimate, func(llm.Question, int) (llm.Answer, error) {
			return llm.Answer{}, llm.Fail(llm.Unavailable, 0, "reset")
		}, 1, estimate, nil},
		"refused by status": {estimate, func(llm.Question, int) (llm.Answer, error) { return llm.Answer{}, llm.Fail(llm.Unauthorised, 401, "") }, 1, 0, nil},
		"blocked, and read": {estimate, func(llm.Question, int) (llm.Answer, error) {
			return llm.Answer{}, &llm.Error{Kind: llm.Refused, Answer: llm.Answer{Usage: llm.Usage{Input: 9}}}
		}, 1, 9, jury.ErrBlocked},
		"a model that fails": {estimate, func(llm.Question, int) (llm.Answer, error) { panic("out of order") }, 1, estimate, nil},
	} {
		money, m := llm.NewPurse(tt.left, 0), &scripted{say: tt.say}
		j := New(Config{Model: m, Settings: llm.Settings{Model: "model-1", MaxTokens: 500}, Prices: llm.Prices{{Model: "model-1", Rates: llm.Rates{Input: 1, Output: 10}}}, Budget: money})
		var err error
		func() {
			defer func() { _ = recover() }()
			_, err = j.Answer(t.Context(), b)
		}()
		must.Hold(t, len(m.asked) == tt.calls && (tt.is == nil || errors.Is(err, tt.is)), "%s: %v after %d calls", name, err, len(m.asked))
		must.Refuse(t, "", name, "less is spent than", tt.settled)(money.Reserve(tt.left - tt.settled + 1))
		must.Fail(t, nil, name, "what was set aside has not come back")(money.Reserve(tt.left - tt.settled))
	}
}

// TestWhatProvidersReportIsBounded: values that a provider reports are limited, so that the act can always be sealed.
func TestWhatProvidersReportIsBounded(t *testing.T) {
	m := &scripted{say: func(llm.Question, int) (llm.Answer, error) {
		return llm.Answer{Text: strings.Repeat("é\xff", 20000), Model: "m\x00\xff", FinishReason: strings.Repeat("x", 9999),
			Usage: llm.Usage{Input: 1 << 62, Output: -5}}, nil
	}}
	_, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", talked(t, plainWords))))
	must.Need(t, errors.Is(err, jury.ErrInvalid), "%v", err)
	a := effortOf(t, origin).Attempts[0]
	if len(a.Answer) > maxRecorded || len(a.Answer) < maxRecorded-4 || a.InputTokens != largestCounted || a.OutputTokens != 0 || len(a.FinishReason) > 400 || a.Model != "m \uFFFD" {
		t.Errorf("%d bytes, %+v", len(a.Answer), a.Model)
	}
}

// TestModelAndVersion: the record has the model's name and the snapshot that the provider reports, apart. The same holds
// if the provider's filter blocked the answer.
func TestModelAndVersion(t *testing.T) {
	c := talked(t, plainWords)
	for _, tt := range []struct{ configured, reported, fingerprint, model, version string }{
		{"model-1", "model-1", "", "model-1", ""},
		{"model-1", "model-1", "fp", "model-1", "fp"},
		{"model-1", "model-1-2026-01-02", "", "model-1", "model-1-2026-01-02"},
		{"model-1", "model-1-20260102", "fp", "model-1", "model-1-20260102"},
		{"model-1-2026-01-02", "model-1-2026-01-02", "", "model-1-2026-01-02", "model-1-2026-01-02"},
		{"model-1-2026-01-02", "model-1-2025-01-01", "", "model-1", "model-1-2025-01-01"},
		{"model-1", "model-1-mini", "", "model-1-mini", ""},
		{"model-1", "model-1-mini-2026-01-02", "", "model-1-mini", "model-1-mini-2026-01-02"},
		{"model-1", "", "", "", ""},
	} {
		for _, blocked := range []bool{false, true} {
			m := &scripted{say: func(q llm.Question, _ int) (llm.Answer, error) {
				a := answered(q, text(t, opinion(jury.SafePass, 80)))
				a.Model, a.Version = tt.reported, tt.fingerprint
				if blocked {
					return llm.Answer{}, &llm.Error{Kind: llm.Refused, Detail: "SAFETY", Answer: a}
				}
				return a, nil
			}}
			j := New(Config{Model: m, Settings: llm.Settings{Model: tt.configured}})
			_, origin, err := opinionOf(j.Answer(t.Context(), seated(t, "x", c)))
			must.Hold(t, (err != nil) == blocked && (!blocked || errors.Is(err, jury.ErrBlocked)) && origin.Model == tt.model && origin.ModelVersion == tt.version,
				"%+v, blocked %t: %q, %q, %v", tt, blocked, origin.Model, origin.ModelVersion, err)
			a := effortOf(t, origin).Attempts[0]
			must.Hold(t, a.Model == tt.reported && a.Version == tt.fingerprint, "%+v: %+v", tt, a)
		}
	}
}

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
	r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	must.Hold(t, r.Outcome == verify.Proved, "%s: %+v", r.Outcome, r.Details)
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
	must.Hold(t, len(r.Changes) == 1 && r.Changes[0].JurorID == "juror-c" && !r.Changes[0].Unsupported && len(r.Changes[0].Cites) == 1, "%+v", r.Changes)
	for _, s := range r.DiscussionRounds[1].Statements {
		must.Hold(t, s.UpdatedEvaluation == nil, "%s repeats its position, but has a new evaluation", s.JurorID)
	}
	cost := int64(0)
	for _, record := range done.Records {
		if record.Payload.Model == "" {
			continue
		}
		effort, err := jury.ReadEffort(record.Payload.Metadata)
		must.Hold(t, err == nil && len(effort.Attempts) == 1 && effort.Attempts[0].Latency == 7, "%s: %+v, %v", record.Payload.AgentID, effort, err)
		cost += effort.Attempts[0].Cost
		must.Hold(t, string(record.Payload.Parameters) == `{"temperature":0.2}` && record.Payload.ModelVersion == "fp",
			"%s: %s, %s", record.Payload.AgentID, record.Payload.Parameters, record.Payload.ModelVersion)
	}
	must.Equal(t, cost, 10*2000)
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
	must.Hold(t, r.Degraded && !r.Inconclusive && r.FinalVerdict == jury.NeedsReview && r.Phase1Evaluations[0].Fallback, "%+v", r)
	reasons := map[string]jury.AbsenceReason{}
	for _, a := range r.Absences {
		reasons[a.JurorID] += a.Reason
		must.Hold(t, a.JurorID != "juror-b" || strings.Contains(a.Detail, "canary"), "%+v", a)
	}
	diff := cmp.Diff(map[string]jury.AbsenceReason{"juror-a": jury.Blocked, "juror-b": jury.Invalid}, reasons)
	must.Hold(t, diff == "", "%v", diff)
	for _, s := range r.DiscussionRounds[0].Statements {
		must.Hold(t, s.JurorID != "juror-b" || len(s.UpdatedEvaluation.Findings) == 1 && s.UpdatedEvaluation.Findings[0].Rule == juror.InstructionsRule,
			"%+v", s.UpdatedEvaluation)
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
		diff := cmp.Diff(m.asked, got[who])
		must.Hold(t, diff == "", "the questions to %s differ from those that the records give (-asked +rebuilt):\n%s", who, diff)
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
	on := must.Get(subject.Load("../../../../examples/invoice-inbox"))(t)
	h := jurattest.New(t)
	seats, judgeSeat := rules.Seats()
	jurors, judge := rules.Jurors(nil)
	m := byPhase(t, opinion(jury.SafePass, 80), statement(jury.SafePass, 80))
	seats[1].Provider, seats[1].Model, seats[1].Template = "script", "model-1", Template()
	jurors[1] = seat(t, m)
	done := must.Get(trial.Run(t.Context(), trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Jurors: jurors, Judge: judge,
		Settings: jury.Settings{Seats: seats, Judge: &judgeSeat, Rubric: jury.DefaultRubric(), Collaborative: true, MaxRounds: 2, Threshold: 2, Method: jury.FinalJudge}}, on))(t)
	r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	must.Hold(t, r.Outcome == verify.Proved, "%s: %+v", r.Outcome, r.Details)
	for _, q := range m.asked {
		name := vendors.FindString(told(t, q))
		must.Hold(t, name == "", "%q is named", name)
	}
	must.Equal(t, len(m.asked), 3)
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
		on := must.Get(subject.Load("../../../../examples/" + name))(t)
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
	must.Hold(t, shorter != 0, "no example is long enough to be shortened")
}
