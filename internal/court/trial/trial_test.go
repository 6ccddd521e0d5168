package trial_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// scripted returns the settings of a trial before jurattest's panel.
func scripted(h *jurattest.House, method jury.Method) trial.Config {
	jurors, judge := jurattest.Panel()
	settings := jurattest.Settings(method)
	if settings.Judge == nil {
		judge = nil
	}
	return trial.Config{Ledger: h.Ledger, Keys: h.Keys, Now: h.Now, Random: h.Random, Settings: settings, Jurors: jurors, Judge: judge}
}

// TestEventsAreProjectionsOfRecords: the live events are exactly those that a later reader gets from the records.
func TestEventsAreProjectionsOfRecords(t *testing.T) {
	h := jurattest.New(t)
	var live []trial.Event
	config := scripted(h, jury.FinalJudge)
	config.OnEvent = func(e trial.Event) { live = append(live, e) }
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	stored := must.Get(h.Ledger.Chain(t.Context(), done.ID))(t)
	projector := trial.NewView(nil)
	var later []trial.Event
	for _, r := range stored {
		events := must.Get(projector.Add(r))(t)
		later = append(later, events...)
	}
	must.Equal(t, cmp.Diff(live, later, cmp.Comparer(func(a, b evidence.Digest) bool { return a == b })), "")
	for i, e := range live {
		must.Hold(t, e.Head().Seq == int64(i+1) && e.Head().SubmissionID == done.ID && !e.Head().At.IsZero() && e.Head().Type != "",
			"event %d has the head %+v", i, e.Head())
	}
	again := must.Get(resultOf(stored))(t)
	must.Equal(t, cmp.Diff(done.Result, again), "")
}

// TestSourceEvents compares the members of the three events of the source document, name by name.
func TestSourceEvents(t *testing.T) {
	want := map[string][]string{
		"round_started":   {"submissionId", "round", "speakerOrder"},
		"juror_statement": {"submissionId", "round", "juror", "statement", "positionChanged", "newVerdict", "newScore"},
		"round_completed": {"submissionId", "round", "consensusStatus", "agreementLevel", "majorityPosition"},
	}
	h := jurattest.New(t)
	seen := map[string]int{}
	config := scripted(h, jury.MajorityVote)
	config.OnEvent = func(e trial.Event) {
		fields, ok := want[e.Head().Type]
		if !ok {
			return
		}
		seen[e.Head().Type]++
		doc := must.Get(json.Marshal(e))(t)
		members := map[string]any{}
		must.Do(t, json.Unmarshal(doc, &members))
		for _, name := range append([]string{"type", "seq", "at"}, fields...) {
			if _, ok := members[name]; !ok {
				t.Errorf("%s lacks %s: %s", e.Head().Type, name, doc)
			}
			delete(members, name)
		}
		if len(members) > 0 {
			t.Errorf("%s has members that the source document does not have: %v", e.Head().Type, members)
		}
	}
	_, err := trial.Run(t.Context(), config, jurattest.Case(t))
	must.Need(t, err == nil, "%v", err)
	for name := range want {
		must.Hold(t, seen[name] != 0, "there was no %s", name)
	}
}

// TestStatementTellsTheCurrentPosition: newVerdict and newScore are the juror's present ones, also if it changed
// nothing.
func TestStatementTellsTheCurrentPosition(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	got := map[string][]any{}
	config.OnEvent = func(e trial.Event) {
		if s, ok := e.(trial.JurorStated); ok && s.Round == 1 {
			got[s.Juror] = []any{s.PositionChanged, s.NewVerdict, s.NewScore}
		}
	}
	_, err := trial.Run(t.Context(), config, jurattest.Case(t))
	must.Need(t, err == nil, "%v", err)
	want := map[string][]any{
		"juror-a": {false, jury.SafePass, jurattest.Opine(jury.SafePass, 90).TotalScore},
		"juror-b": {true, jury.SafePass, jurattest.Opine(jury.SafePass, 80).TotalScore},
		"juror-c": {false, jury.SafePass, jurattest.Opine(jury.SafePass, 80).TotalScore},
	}
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "", "want -, got +:\n%s", diff)
}

// TestCancelledTrial: the sealed acts stay, no act follows, and there is no result.
func TestCancelledTrial(t *testing.T) {
	for stop := range 8 {
		h := jurattest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		config := scripted(h, jury.FinalJudge)
		heard := 0
		config.OnEvent = func(trial.Event) {
			if heard++; heard == stop+1 {
				cancel()
			}
		}
		done, err := trial.Run(ctx, config, jurattest.Case(t))
		must.Need(t, errors.Is(err, context.Canceled) && done != nil && done.Result == nil, "stopped after %d acts: %v, %+v", stop+1, err, done)
		stored, err := h.Ledger.Chain(t.Context(), done.ID)
		must.Hold(t, err == nil && len(stored) == len(done.Records) && len(stored) >= stop+1,
			"stopped after %d acts: %d sealed, %d events, %v", stop+1, len(stored), len(done.Records), err)
		must.Refuse(t, "", "stopped after", stop+1, "acts: there is a result")(resultOf(stored))
	}
}

// noKey is a keyring without one actor's key.
type noKey struct {
	ledger.Keys
	role evidence.Role
}

var errLost = errors.New("the key is lost")

func (k noKey) Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error) {
	if role == k.role {
		return nil, errLost
	}
	return k.Keys.Signers(ctx, role, name)
}

// TestNoRecordNoAct: a trial stops at the first act that cannot be sealed.
func TestNoRecordNoAct(t *testing.T) {
	for _, role := range []evidence.Role{evidence.RoleSubmitter, evidence.RoleClerk, evidence.RoleJuror, evidence.RoleJudge} {
		h := jurattest.New(t)
		config := scripted(h, jury.FinalJudge)
		config.Keys = noKey{h.Keys, role}
		done, err := trial.Run(t.Context(), config, jurattest.Case(t))
		must.Hold(t, errors.Is(err, errLost) && done.Result == nil, "without the key of the %s: %v, %+v", role, err, done)
		for _, r := range done.Records {
			must.Hold(t, r.Payload.Role() != role, "%s acted without a key", role)
		}
	}
}

func TestAbsentJurorsDegradeATrial(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	config.Jurors[1] = &jurattest.Juror{Err: errors.New("no connection")}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	must.Hold(t, done.Result.Degraded && !done.Result.Inconclusive && done.Result.FinalVerdict == jury.SafePass && len(done.Result.Absences) != 0,
		"one of three absent: %+v", done.Result)
	config = scripted(h, jury.FinalJudge)
	config.Jurors[0] = &jurattest.Juror{Err: jury.ErrBlocked}
	config.Jurors[1] = &jurattest.Juror{Err: errors.New("no connection")}
	done = must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	must.Hold(t, done.Result.Inconclusive && done.Result.FinalVerdict == jury.NeedsReview, "with one valid vote of three: %+v", done.Result)
}

func resultOf(chain []*evidence.Record) (*jury.Result, error) {
	v, err := trial.ViewOf(nil, chain)
	if err != nil {
		return nil, err
	}
	return v.Result()
}

// talkative is a juror whose evaluations have metadata, even with an error.
type talkative struct {
	jury.Juror
	err error
}

func (j talkative) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := j.Juror.Answer(ctx, b)
	if b.Phase != jury.Initial {
		return a, err
	}
	a.Origin.Metadata = jsontext.Value(`{"peers": ["juror-b"]}`)
	return a, errors.Join(err, j.err)
}

// TestMetadataIsSealed: the metadata of an answer or an absence is sealed with it.
func TestMetadataIsSealed(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	config.Jurors[0] = talkative{Juror: config.Jurors[0]}
	config.Jurors[1] = talkative{Juror: config.Jurors[1], err: errors.New("out of order")}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	told := map[evidence.ActionType]int{}
	for _, r := range done.Records {
		if r.Payload.Metadata == nil {
			continue
		}
		told[r.Payload.ActionType]++
		must.Equal(t, string(r.Payload.Metadata), `{"peers":["juror-b"]}`, r.Payload.ActionType)
	}
	must.Hold(t, told[evidence.Evaluation] == 1 && told[evidence.Absence] == 1 && len(told) == 2, "%v", told)
	r := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	must.Hold(t, r.Outcome == verify.Proved, "%s: %+v", r.Outcome, r.Details)
}

// TestNoRecordIsMadeUp: a finding on a conversation names no record, even if the juror named one.
func TestNoRecordIsMadeUp(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	liar := jurattest.Opine(jury.NeedsReview, 50)
	liar.Findings = []jury.Finding{{Message: 4, Quote: "in transit", Rule: "x", Axis: "safety", Severity: jury.Minor, Explanation: "y",
		Record: evidence.DigestOf([]byte("of my own making"))}}
	config.Jurors[0] = &jurattest.Juror{Opinion: liar}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	found := done.Result.Phase1Evaluations[0].Findings
	must.Hold(t, len(found) == 1 && found[0].Record == (evidence.Digest{}), "%+v", found)
	must.Hold(t, liar.Findings[0].Record != (evidence.Digest{}), "the juror's own findings were changed")
}

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
		must.Need(t, errors.Is(err, trial.ErrAdjourned) && left.Result == nil, "told at event %d: %v, %+v", stop, err, left)
		r := must.Get(trial.Reopen(t.Context(), h.Ledger, left.ID))(t)
		must.Hold(t, len(r.Waiting()) == 0 && len(r.Records) >= int(stop),
			"stopped at event %d: %v were asked and their answers are not recorded, after %d acts", stop, r.Waiting(), len(r.Records))
		done, err := trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r.ID, nil)
		must.Hold(t, err == nil && done.Result.FinalVerdict == jury.SafePass && !done.Result.Degraded, "told at event %d: %v, %+v", stop, err, done)
	}
}

// TestSubmit: a submission is in the log, and any process that finds it there can try it.
func TestSubmit(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.FinalJudge)
	id := must.Get(trial.Submit(t.Context(), config, jurattest.Case(t)))(t)
	r, err := trial.Reopen(t.Context(), h.Ledger, id)
	must.Need(t, err == nil && len(r.Records) == 1 && r.Settings == nil, "%v, %+v", err, r)
	done, err := trial.Resume(t.Context(), config, r.ID, nil)
	must.Need(t, err == nil && done.ID == id && done.Result.FinalVerdict == jury.SafePass, "%v, %+v", err, done)
	config.Settings.MaxRounds = -1
	size := must.Get(h.Ledger.Size(t.Context()))(t)
	_, err = trial.Run(t.Context(), config, jurattest.Case(t))
	must.Hold(t, err != nil && must.Get(h.Ledger.Size(t.Context()))(t) == size, "Run accepted a case for a jury that cannot sit")
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
		must.Hold(t, (name == "no juror is missing") != done.Result.Degraded, "%s: degraded is %t", name, done.Result.Degraded)
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
	must.Equal(t, cmp.Diff([]jury.Position{jury.SafePass, jury.UnsafeFail, jury.SafePass}, positions(votes.AfterPhase1)), "")
	agreed := []jury.Position{jury.SafePass, jury.SafePass, jury.SafePass}
	must.Equal(t, cmp.Diff(agreed, positions(votes.AfterDiscussion)), "")
	if votes.AfterPhase1.Verdict != done.Result.Phase1Verdict || votes.AfterDiscussion.Verdict != done.Result.DiscussionVerdict ||
		votes.Final.Verdict != done.Result.FinalVerdict || !cmp.Equal(votes.Final.Votes, done.Result.Phase3Judgment.Votes) {
		t.Errorf("%+v", votes)
	}
	for n, r := range done.Records {
		some := votesOf(t, done.Records[:n+1])
		closing := r.Payload.ActionType == evidence.TrialClosing
		must.Hold(t, (n >= 5 || some.AfterPhase1 == nil) && (some.Final == nil || closing || r.Payload.ActionType == evidence.FinalJudgment),
			"after %d acts: %+v", n+1, some)
	}
	settings := jurattest.Settings(jury.MajorityVote)
	settings.Collaborative = false
	jurors, _ := jurattest.Panel()
	silent := h.TryBefore(t, settings, jurors, nil)
	r := must.Get(trial.Reopen(t.Context(), h.Ledger, silent.ID))(t)
	votes = &r.Votes
	must.Hold(t, votes.AfterDiscussion == nil && votes.AfterPhase1 != nil && votes.Final != nil, "without a discussion: %+v", votes)
}

func votesOf(t *testing.T, records []*evidence.Record) *jury.Votes {
	t.Helper()
	v, err := trial.ViewOf(nil, records)
	must.Need(t, err == nil && v.Broken == "", "%v %v", err, v.Broken)
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
	must.Need(t, err == nil && len(chain) == len(done.Records)+1, "%v, %d records", err, len(chain))
	r, err := trial.Reopen(t.Context(), h.Ledger, done.ID)
	must.Need(t, err == nil && r.Over && len(r.Records) == len(done.Records), "%v, %+v", err, r)
	must.Fail(t, nil)(trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r.ID, nil))
}
