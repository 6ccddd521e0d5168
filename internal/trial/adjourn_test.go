package trial_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// TestAdjourn stops a trial at every event before its last phase. Every juror who was asked by then answers and is
// recorded, no other is asked, and the trial can be resumed.
func TestAdjourn(t *testing.T) {
	for stop := int64(1); stop <= 11; stop++ {
		h := jurattest.New(t)
		config := scripted(h, jury.FinalJudge)
		adjourn := make(chan struct{})
		config.Adjourn = adjourn
		config.OnEvent = func(e trial.Event) {
			if e.Head().Seq == stop {
				close(adjourn)
			}
		}
		left, err := trial.Run(t.Context(), config, jurattest.Case(t))
		if !errors.Is(err, trial.ErrAdjourned) || left.Result != nil {
			t.Fatalf("told at event %d: %v, %+v", stop, err, left)
		}
		r := must.Get(trial.Reopen(t.Context(), h.Ledger, left.ID))(t)
		if len(r.State.Waiting) > 0 || len(r.Records) < int(stop) {
			t.Errorf("stopped at event %d: %v were asked and their answers are not recorded, after %d acts", stop, r.State.Waiting, len(r.Records))
		}
		done, err := trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r)
		if err != nil || done.Result.FinalVerdict != jury.SafePass || done.Result.Degraded {
			t.Errorf("told at event %d: %v, %+v", stop, err, done)
		}
	}
}

// TestSubmit: a submission is in the log, and any process that finds it there can try it.
func TestSubmit(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.FinalJudge)
	id := must.Get(trial.Submit(t.Context(), config, jurattest.Case(t)))(t)
	r, err := trial.Reopen(t.Context(), h.Ledger, id)
	if err != nil || len(r.Records) != 1 || r.State.Settings != nil {
		t.Fatalf("%v, %+v", err, r)
	}
	done, err := trial.Resume(t.Context(), config, r)
	if err != nil || done.ID != id || done.Result.FinalVerdict != jury.SafePass {
		t.Fatalf("%v, %+v", err, done)
	}
	config.Settings.MaxRounds = -1
	if _, err := trial.Submit(t.Context(), config, jurattest.Case(t)); err == nil {
		t.Error("Submit accepted a case for a jury that cannot sit")
	}
}

// TestDegradedIsAnEvent: there is exactly one event that a trial is degraded, at the first act that makes it so.
func TestDegradedIsAnEvent(t *testing.T) {
	for name, spoil := range map[string]func(*trial.Config){
		"no juror is missing": func(*trial.Config) {},
		"a model has ended":   func(c *trial.Config) { c.Settings.Seats[1].Ended = &jury.Ended{On: "2026-10-23"} },
		"a juror fails":       func(c *trial.Config) { c.Jurors[1] = &jurattest.Juror{Err: errors.New("no connection")} },
		"a juror is blocked": func(c *trial.Config) {
			c.Jurors[1] = &jurattest.Juror{Err: jury.ErrBlocked}
		},
		"the judge fails": func(c *trial.Config) { c.Judge = &jurattest.Juror{Err: errors.New("no connection")} },
	} {
		h := jurattest.New(t)
		config := scripted(h, jury.FinalJudge)
		spoil(&config)
		var told []trial.TrialDegraded
		var last int64
		config.OnEvent = func(e trial.Event) {
			if last++; e.Head().Seq != last {
				t.Errorf("%s: event %d comes as number %d", name, e.Head().Seq, last)
			}
			if d, ok := e.(trial.TrialDegraded); ok {
				told = append(told, d)
			}
		}
		done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
		switch {
		case !done.Result.Degraded && len(told) == 0:
		case !done.Result.Degraded || len(told) != 1:
			t.Errorf("%s: degraded %t, told %v", name, done.Result.Degraded, told)
		case told[0].Juror == "" || told[0].Reason == "" || told[0].Type != "trial_degraded":
			t.Errorf("%s: %+v", name, told[0])
		}
		if (name == "no juror is missing") == done.Result.Degraded {
			t.Errorf("%s: degraded is %t", name, done.Result.Degraded)
		}
	}
}

// TestVotes: the votes at three points of a trial, each available as soon as the trial reaches it.
func TestVotes(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	votes := votesOf(t, done.Records)
	positions := func(b *jury.Ballot) (list []jury.Position) {
		for _, v := range b.Votes {
			list = append(list, *v.Position)
		}
		return list
	}
	if diff := cmp.Diff([]jury.Position{jury.SafePass, jury.UnsafeFail, jury.SafePass}, positions(votes.AfterPhase1)); diff != "" {
		t.Error(diff)
	}
	agreed := []jury.Position{jury.SafePass, jury.SafePass, jury.SafePass}
	if diff := cmp.Diff(agreed, positions(votes.AfterDiscussion)); diff != "" {
		t.Error(diff)
	}
	if votes.AfterPhase1.Verdict != done.Result.Phase1Verdict || votes.AfterDiscussion.Verdict != done.Result.DiscussionVerdict ||
		votes.Final.Verdict != done.Result.FinalVerdict || !cmp.Equal(votes.Final.Votes, done.Result.Phase3Judgment.Votes) {
		t.Errorf("%+v", votes)
	}
	for n, r := range done.Records {
		some := votesOf(t, done.Records[:n+1])
		closing := r.Payload.ActionType == evidence.TrialClosing
		if n < 5 && some.AfterPhase1 != nil || some.Final != nil && !closing && r.Payload.ActionType != evidence.FinalJudgment {
			t.Errorf("after %d acts: %+v", n+1, some)
		}
	}
	settings := jurattest.Settings(jury.MajorityVote)
	settings.Collaborative = false
	jurors, _ := jurattest.Panel()
	silent := h.TryBefore(t, settings, jurors, nil)
	r := must.Get(trial.Reopen(t.Context(), h.Ledger, silent.ID))(t)
	if votes = &r.Votes; votes.AfterDiscussion != nil || votes.AfterPhase1 == nil || votes.Final == nil {
		t.Errorf("without a discussion: %+v", votes)
	}
}

func votesOf(t *testing.T, records []*evidence.Record) *jury.Votes {
	t.Helper()
	v, err := trial.ViewOf(nil, records)
	if err != nil || v.Broken != "" {
		t.Fatal(err, v.Broken)
	}
	return &v.Votes
}

// TestDecisionsAreNoActs: a person's decision on a trial does not change how the trial is read.
func TestDecisionsAreNoActs(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	judgment := done.Records[len(done.Records)-2]
	h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: judgment.Payload.RecordID,
		ApprovalStatus: evidence.Approved, ChainID: done.ID, PreviousRecord: judgment.Digest,
		ChainPosition: judgment.Payload.ChainPosition + 1, Timestamp: evidence.FormatTime(h.Now())})
	chain, err := h.Ledger.Chain(t.Context(), done.ID)
	if err != nil || len(chain) != len(done.Records)+1 {
		t.Fatalf("%v, %d records", err, len(chain))
	}
	r, err := trial.Reopen(t.Context(), h.Ledger, done.ID)
	if err != nil || !r.State.Finished || len(r.Records) != len(done.Records) {
		t.Fatalf("%v, %+v", err, r)
	}
	if _, err := trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r); err != nil {
		t.Error(err)
	}
}
