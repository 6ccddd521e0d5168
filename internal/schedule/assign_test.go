package schedule_test

import (
	"errors"
	"slices"
	"testing"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/must"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// undecided seats jurors who pass the agent, of whom one does not answer: a person must decide, and can also leave it open.
func undecided(c *trial.Config) {
	pass := &jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}
	c.Jurors, c.Judge = []jury.Juror{pass, pass, &jurattest.Juror{Err: errors.New("away")}}, pass
}

// holder returns who has a trial, by a scheduler; "": nobody.
func holder(t *testing.T, d *schedule.Scheduler, id string) string {
	t.Helper()
	if now := entry(t, d, id).Taken(); now != nil {
		return now.Reviewer
	}
	return ""
}

// judged seals a person's decision on a trial's verdict, which leaves it open or not.
func judged(t *testing.T, h *jurattest.House, id string, status evidence.ApprovalStatus) {
	t.Helper()
	for _, r := range recorded(t, h, id) {
		if r.Payload.ActionType != evidence.FinalJudgment {
			continue
		}
		h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: r.Payload.Timestamp, OriginalResponseID: r.Payload.RecordID,
			ApprovalStatus: status, Changes: []byte(`"because"`), ChainID: id, Saw: []evidence.Digest{r.Digest}, Case: r.Payload.Case})
	}
}

func anybody(trial.Taken) error { return nil }

// TestTakeACase: a reviewer has a case until it is given back or decided. Every process sees that, and one that starts later.
func TestTakeACase(t *testing.T) {
	h, b := jurattest.New(t), &bench{spoil: undecided}
	one, other := two(t, h, b)
	id := submit(t, one)
	if err := one.Take(t.Context(), id, "mia", "mia", ""); !errors.Is(err, schedule.ErrNotWaiting) {
		t.Fatalf("before there is a verdict: %v", err)
	}
	run(t, one)
	awaitState(t, one, id, api.Over)
	if err := one.Take(t.Context(), "trial-none", "mia", "mia", ""); !errors.Is(err, trial.ErrUnknown) {
		t.Errorf("a trial that is not there: %v", err)
	}
	if err := one.GiveBack(t.Context(), id, "mia", "", anybody); !errors.Is(err, schedule.ErrNotTaken) {
		t.Errorf("given back before it is taken: %v", err)
	}
	for range 2 { // the second time it changes nothing
		must.Do(t, one.Take(t.Context(), id, "mia", "otto", "she knows parcels"))
	}
	taken := &schedule.TakenError{}
	if err := other.Take(t.Context(), id, "ben", "ben", ""); !errors.As(err, &taken) || taken.Reviewer != "mia" || taken.By != "otto" || taken.Reason != "she knows parcels" || taken.At.IsZero() {
		t.Errorf("taken by a second reviewer: %v, %+v", err, taken)
	}
	refused := errors.New("not yours")
	if err := other.GiveBack(t.Context(), id, "ben", "", func(now trial.Taken) error {
		if now.Reviewer != "mia" {
			t.Errorf("%+v", now)
		}
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("given back by another: %v", err)
	}
	must.Do(t, other.GiveBack(t.Context(), id, "mia", "on leave", anybody))
	if got := holder(t, one, id); got != "" {
		t.Errorf("given back, and %q has it", got)
	}
	must.Do(t, one.Take(t.Context(), id, "ben", "ben", ""))
	later := func() *schedule.Scheduler { return open(t, config(h, b)) }
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		if got := holder(t, d, id); got != "ben" {
			t.Errorf("%q has it", got)
		}
	}
	judged(t, h, id, evidence.Rejected) // it still waits
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		if got := holder(t, d, id); got != "" || !entry(t, d, id).NeedsPerson() {
			t.Errorf("after a decision %q has it", got)
		}
	}
	must.Do(t, other.Take(t.Context(), id, "mia", "mia", ""))
	for _, d := range []*schedule.Scheduler{one, other, later()} {
		if got := holder(t, d, id); got != "mia" {
			t.Errorf("taken again, and %q has it", got)
		}
	}
	judged(t, h, id, evidence.Approved)
	if err := one.Take(t.Context(), id, "ben", "ben", ""); !errors.Is(err, schedule.ErrNotWaiting) {
		t.Errorf("after the last decision: %v", err)
	}
	var events []string
	for _, c := range changes(t, h) {
		events = append(events, string(c.Event)+" "+c.Reviewer+" "+c.By+" "+c.Reason)
	}
	if want := []string{"taken mia otto she knows parcels", "left mia mia on leave", "taken ben ben ", "taken mia mia "}; !slices.Equal(events, want) {
		t.Errorf("the log has %q", events)
	}
}

// TestActsThatComeTooLate: of two reviewers who take a case at the same moment the first in the log has it, and acts about a holder who
// has given it back, or about what was decided since, say nothing.
func TestActsThatComeTooLate(t *testing.T) {
	h, b := jurattest.New(t), &bench{spoil: undecided}
	d := open(t, config(h, b))
	run(t, d)
	id := submit(t, d)
	verdict := awaitState(t, d, id, api.Over).Waits()
	say := func(event operator.TrialChange, who, record string) {
		t.Helper()
		p := must.Get(ledger.OperatorAct(evidence.Payload{ActionType: evidence.TrialEvent, ChainID: operator.TrialsChain, Timestamp: "2026-01-01T00:00:00Z"},
			operator.TrialEventBody{By: who, Event: event, Trial: id, Reviewer: who, Record: record}))(t)
		must.Get((ledger.Operator{Ledger: h.Ledger, Keys: h.Keys}).Seal(t.Context(), p))(t)
	}
	has := func(want string) {
		t.Helper()
		for _, d := range []*schedule.Scheduler{d, open(t, config(h, b))} {
			if got := holder(t, d, id); got != want {
				t.Errorf("%q has it, want %q", got, want)
			}
		}
	}
	say(operator.TrialTaken, "mia", verdict)
	say(operator.TrialTaken, "ben", verdict)
	has("mia")
	say(operator.TrialLeft, "ben", verdict)
	has("mia")
	say(operator.TrialLeft, "mia", verdict)
	has("")
	judged(t, h, id, evidence.Rejected)
	say(operator.TrialTaken, "ben", verdict)
	has("")
	decision := entry(t, d, id).Waits()
	if decision == verdict {
		t.Fatal("the decision is not what waits")
	}
	say(operator.TrialTaken, "noa", decision)
	say(operator.TrialTaken, "ben", verdict)
	say(operator.TrialLeft, "noa", verdict)
	has("noa")
}
