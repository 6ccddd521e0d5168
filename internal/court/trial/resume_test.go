package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
	"jurat/verify"
)

// brokenOff returns a trial that was cancelled after so many acts.
func brokenOff(t *testing.T, h *jurattest.House, acts int) *trial.Trial {
	t.Helper()
	return brokenOffOf(t, h, scripted(h, jury.FinalJudge), acts)
}

// brokenOffOf is brokenOff for a trial with this configuration.
func brokenOffOf(t *testing.T, h *jurattest.House, config trial.Config, acts int) *trial.Trial {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := 0
	config.OnEvent = func(trial.Event) {
		if heard++; heard == acts {
			cancel()
		}
	}
	partial, err := trial.Run(ctx, config, jurattest.Case(t))
	must.Need(t, errors.Is(err, context.Canceled), "%v", err)
	return must.Get(trial.Reopen(t.Context(), h.Ledger, partial.ID))(t)
}

// TestResume: an interrupted trial is resumed to its verdict. A listener gets all events, and the records verify.
func TestResume(t *testing.T) {
	for _, acts := range []int{1, 2, 4, 6, 9} {
		h := jurattest.New(t)
		r := brokenOff(t, h, acts)
		var heard []int64
		config := scripted(h, jury.FinalJudge)
		config.OnEvent = func(e trial.Event) { heard = append(heard, e.Head().Seq) }
		done, err := trial.Resume(t.Context(), config, r.ID, nil)
		must.Need(t, err == nil, "after %d acts: %v", acts, err)
		must.Hold(t, done.ID == r.ID && done.Result.FinalVerdict == jury.SafePass && !done.Result.Degraded, "after %d acts: %+v", acts, done.Result)
		for i, old := range r.Records {
			must.Hold(t, cmp.Equal(old.Canonical(), done.Records[i].Canonical()), "after %d acts: record %d has changed", acts, i)
		}
		must.Hold(t, slices.IsSorted(heard) && len(heard) == len(done.Records) && heard[0] == 1, "after %d acts: heard %v", acts, heard)
		report := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Order} {
			f := report.Of(g)
			must.Hold(t, f.Status == verify.Proved, "after %d acts: %s is %s: %s", acts, g, f.Status, f.Reason)
		}
	}
}

// TestResumeAfterTheEnd: a trial that began before a juror's model ended is continued after that, and is not degraded; and the other way round.
func TestResumeAfterTheEnd(t *testing.T) {
	for _, ended := range [][2]*jury.Ended{{nil, {On: "2026-10-23"}}, {{On: "2026-10-23", Successor: "m"}, nil}} {
		h := jurattest.New(t)
		config := scripted(h, jury.MajorityVote)
		config.Settings.Seats[1].Ended = ended[0]
		r := brokenOffOf(t, h, config, 4)
		config = scripted(h, jury.MajorityVote)
		config.Settings.Seats[1].Ended = ended[1]
		done, err := trial.Resume(t.Context(), config, r.ID, nil)
		must.Hold(t, err == nil && done.Result.Degraded == (ended[0] != nil), "%v, degraded %t", err, done.Result.Degraded)
	}
}

// TestResumeByLaterRules: a trial by the rules of an earlier program is resumed with the rules of this program. The
// settings stay those of the opening, each answer names its rules, and the records verify.
func TestResumeByLaterRules(t *testing.T) {
	h := jurattest.New(t)
	config := offline(h)
	earlier := evidence.DigestOf([]byte("the rules of an earlier program"))
	for i := range config.Settings.Seats {
		config.Settings.Seats[i].Template = earlier
	}
	config.Settings.Judge.Template = earlier
	r := brokenOffOf(t, h, config, 4)
	done := must.Get(trial.Resume(t.Context(), offline(h), r.ID, nil))(t)
	again, err := trial.Reopen(t.Context(), h.Ledger, done.ID)
	must.Hold(t, err == nil && again.Over && again.Settings.Seats[2].Template == earlier && again.Settings.Judge.Template == earlier, "%v, %+v", err, again)
	report := verify.Bundle(h.Bundle(t, done.Records...), h.Options(t))
	must.Hold(t, report.Outcome == verify.Proved, "%s: %+v", report.Outcome, report.Details)
}

// TestResumeOfWhatIsOver: resuming a finished trial asks no juror, seals nothing, and returns the verdict.
func TestResumeOfWhatIsOver(t *testing.T) {
	h := jurattest.New(t)
	done := h.Try(t, jury.FinalJudge)
	r, err := trial.Reopen(t.Context(), h.Ledger, done.ID)
	must.Need(t, err == nil && r.Over, "%v, %+v", err, r)
	config := scripted(h, jury.FinalJudge)
	config.Jurors = slices.Repeat([]jury.Juror{&jurattest.Juror{Err: errors.New("asked again")}}, 3)
	again := must.Get(trial.Resume(t.Context(), config, r.ID, nil))(t)
	diff := cmp.Diff(done.Result, again.Result)
	must.Hold(t, diff == "" && len(again.Records) == len(done.Records), "%d records, %s", len(again.Records), diff)
}

// TestResumeIsRefused: a trial is not resumed with other settings, while another process works on it, if who
// is asked refuses it, or if it does not exist.
func TestResumeIsRefused(t *testing.T) {
	h := jurattest.New(t)
	r := brokenOff(t, h, 3)
	for field, change := range map[string]func(*jury.Settings){
		"maxRounds was 2, and is now 1":                     func(s *jury.Settings) { s.MaxRounds = 1 },
		`seats[1].model was "scripted", and is now "other"`: func(s *jury.Settings) { s.Seats[1].Model = "other" },
		"seats[0].template was":                             func(s *jury.Settings) { s.Seats[0].Template = evidence.DigestOf([]byte("another prompt")) },
		"costCeiling was missing, and is now 5":             func(s *jury.Settings) { s.CostCeiling = 5 },
		`judge.parameters.seed was missing, and is now 7`:   func(s *jury.Settings) { s.Judge.Parameters = []byte(`{"seed":7}`) },
	} {
		config := scripted(h, jury.FinalJudge)
		change(&config.Settings)
		_, err := trial.Resume(t.Context(), config, r.ID, nil)
		must.Hold(t, errors.Is(err, trial.ErrSettings) && strings.Contains(err.Error(), field), "%s: %v", field, err)
	}
	busy := errors.New("busy")
	config := scripted(h, jury.FinalJudge)
	config.Locks = lockFunc{lock: func(_ context.Context, id string) (context.Context, func(), error) {
		must.Equal(t, id, r.ID)
		return nil, nil, busy
	}}
	must.Fail(t, busy)(trial.Resume(t.Context(), config, r.ID, nil))
	must.Get(trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r.ID, nil))(t)
	refused := errors.New("refused")
	must.Fail(t, refused)(trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r.ID, func(*trial.Trial, *trial.Config) error { return refused }))
	must.Fail(t, ledger.ErrNotFound)(trial.Reopen(t.Context(), h.Ledger, "trial-0"))
}

// lockFunc are locks that are taken by a function.
type lockFunc struct {
	lock.Alone
	lock func(context.Context, string) (context.Context, func(), error)
}

func (l lockFunc) Lock(ctx context.Context, name string) (context.Context, func(), error) {
	return l.lock(ctx, name)
}

// TestLostLock: a clerk that loses its lock seals no more acts, and returns the reason. Another can resume the trial.
func TestLostLock(t *testing.T) {
	h := jurattest.New(t)
	r := brokenOff(t, h, 3)
	lost := errors.New("lost")
	config := scripted(h, jury.FinalJudge)
	acts := len(r.Records)
	config.Locks = lockFunc{lock: func(ctx context.Context, _ string) (context.Context, func(), error) {
		held, lose := context.WithCancelCause(ctx)
		lose(lost)
		return held, func() {}, nil
	}}
	must.Fail(t, lost)(trial.Resume(t.Context(), config, r.ID, nil))
	now, err := h.Ledger.Chain(t.Context(), r.ID)
	must.Hold(t, err == nil && len(now) == acts, "%d acts, %v; there were %d", len(now), err, acts)
	must.Fail(t, nil)(trial.Resume(t.Context(), scripted(h, jury.FinalJudge), r.ID, nil))
}

// TestReopenRefusesWhatIsNoTrial: records that no trial can produce are not resumed.
func TestReopenRefusesWhatIsNoTrial(t *testing.T) {
	h := jurattest.New(t)
	r := brokenOff(t, h, 6)
	second := r.Records[1].Payload // the opening of phase 1, once more
	second.RecordID, second.Timestamp = "", evidence.FormatTime(h.Now())
	h.Seal(t, second)
	var wrong *jury.Discrepancy
	_, err := trial.Reopen(t.Context(), h.Ledger, r.ID)
	must.Hold(t, errors.As(err, &wrong) && wrong.Rule == jury.RuleSequence, "with two openings: %v", err)
	other := jurattest.New(t)
	h.Seal(t, evidence.Payload{ActionType: evidence.Submission, AgentID: "submitter", ChainID: "trial-x", ChainPosition: 1,
		Case: jurattest.Case(t).Digest(), Response: []byte(`{"agentCard":{"name":"Another"},"conversation":[{"role":"user","content":"Hello."}]}`),
		Timestamp: evidence.FormatTime(other.Now())})
	must.Refuse(t, "not the case", "with evidence that is not the case's")(trial.Reopen(t.Context(), h.Ledger, "trial-x"))
}

func TestListUnfinished(t *testing.T) {
	h := jurattest.New(t)
	first := brokenOff(t, h, 3)
	h.Try(t, jury.MajorityVote)
	second := brokenOff(t, h, 1)
	list := must.Get(trial.ListUnfinished(t.Context(), h.Ledger))(t)
	var got []string
	for i, u := range list {
		got = append(got, u.ID)
		r := []*trial.Trial{first, second}[i]
		must.Hold(t, u.Acts == len(r.Records) && u.Case == r.Case.Digest() && !u.Last.Before(u.Submitted), "%+v", u)
	}
	must.Hold(t, slices.Equal(got, []string{first.ID, second.ID}), "%v, want %s and %s", got, first.ID, second.ID)
	_, err := trial.Resume(t.Context(), scripted(h, jury.FinalJudge), first.ID, nil)
	must.Need(t, err == nil, "%v", err)
	list = must.Get(trial.ListUnfinished(t.Context(), h.Ledger))(t)
	must.Hold(t, len(list) == 1 && list[0].ID == second.ID, "%v", list)
}

// TestClocksDoNotRunBackwards: if the clock was set back between two parts of a trial, no act claims an earlier time
// than the acts that it names.
func TestClocksDoNotRunBackwards(t *testing.T) {
	h := jurattest.New(t)
	r := brokenOff(t, h, 5)
	config := scripted(h, jury.FinalJudge)
	config.Now = jurattest.New(t).Now // at the beginning again
	done := must.Get(trial.Resume(t.Context(), config, r.ID, nil))(t)
	for i := range done.Records[1:] {
		must.Hold(t, !done.Records[i+1].Payload.Time().Before(done.Records[i].Payload.Time()),
			"record %d claims an earlier time than the one before it", i+1)
	}
}

// costly is a juror whose evaluations cost something.
type costly struct{ jury.Juror }

func (c costly) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	a, err := c.Juror.Answer(ctx, b)
	if b.Phase == jury.Initial {
		a.Origin.Metadata, _ = jury.Effort{Attempts: []jury.Attempt{{Cost: 30}, {Cost: 12}}}.Encode()
	}
	return a, err
}

func TestSpent(t *testing.T) {
	h := jurattest.New(t)
	config := scripted(h, jury.MajorityVote)
	config.Jurors[0] = costly{config.Jurors[0]}
	config.Jurors[2] = costly{&jurattest.Juror{Err: errors.New("after two calls")}}
	done := must.Get(trial.Run(t.Context(), config, jurattest.Case(t)))(t)
	r := must.Get(trial.Reopen(t.Context(), h.Ledger, done.ID))(t)
	must.Hold(t, r.Bill.Cost == 84 && r.Bill.Calls != 0, "%d in %d calls", r.Bill.Cost, r.Bill.Calls)
}

// TestStoodStill: a clerk pauses at an act, loses its claim, and another clerk finishes the trial. When the first clerk
// goes on, it adds nothing, and its error says why.
func TestStoodStill(t *testing.T) {
	for at := int64(2); at <= 15; at++ {
		h := jurattest.New(t)
		first := scripted(h, jury.FinalJudge)
		id := must.Get(trial.Submit(t.Context(), first, jurattest.Case(t)))(t)
		stood, goOn := make(chan struct{}), make(chan struct{})
		first.OnEvent = func(e trial.Event) {
			if e.Head().Seq == at {
				close(stood)
				<-goOn
			}
		}
		ended := make(chan error)
		go func() { ended <- resume(t, h, first, id) }()
		<-stood
		err := resume(t, h, scripted(h, jury.FinalJudge), id)
		must.Need(t, err == nil, "at act %d: %v", at, err)
		close(goOn)
		err = <-ended
		must.Hold(t, (at < 15) == errors.Is(err, trial.ErrMoved), "at act %d: %v", at, err)
		wantWhole(t, h, id)
	}
}

// TestTwoClerks: two clerks conduct the same trial at the same time. They disturb each other, but the trial ends whole.
func TestTwoClerks(t *testing.T) {
	for range 50 {
		h := jurattest.New(t)
		id := must.Get(trial.Submit(t.Context(), scripted(h, jury.FinalJudge), jurattest.Case(t)))(t)
		for moved := 2; moved == 2; { // both may have stopped with ErrMoved
			moved = 0
			errs := make([]error, 2)
			var both sync.WaitGroup
			for i := range errs {
				both.Go(func() { errs[i] = resume(t, h, scripted(h, jury.FinalJudge), id) })
			}
			both.Wait()
			for _, err := range errs {
				if errors.Is(err, trial.ErrMoved) {
					moved++
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		wantWhole(t, h, id)
	}
}

func resume(t *testing.T, h *jurattest.House, c trial.Config, id string) error {
	r, err := trial.Reopen(t.Context(), h.Ledger, id)
	if err != nil {
		return err
	}
	_, err = trial.Resume(t.Context(), c, r.ID, nil)
	return err
}

// wantWhole checks that the trial has every act once.
func wantWhole(t *testing.T, h *jurattest.House, id string) {
	t.Helper()
	chain := must.Get(h.Ledger.Chain(t.Context(), id))(t)
	result, err := resultOf(chain)
	must.Hold(t, err == nil && len(chain) == 15 && !result.Degraded, "%v, %d acts", err, len(chain))
}

// TestResumeKeepsTheRoundsOfRules: a panel of rules that holds no rounds by now continues a trial that was opened with
// them as it was begun. A panel with a model does not.
func TestResumeKeepsTheRoundsOfRules(t *testing.T) {
	h := jurattest.New(t)
	config := offline(h)
	r := brokenOffOf(t, h, config, 4)
	now := offline(h)
	now.Settings.MaxRounds = 0
	now.Settings.Seats = slices.Clone(now.Settings.Seats)
	now.Settings.Seats[0].Provider = "openai"
	must.Fail(t, trial.ErrSettings)(trial.Resume(t.Context(), now, r.ID, nil))
	now = offline(h)
	now.Settings.MaxRounds = 0
	done, err := trial.Resume(t.Context(), now, r.ID, nil)
	must.Need(t, err == nil && done.Result.TotalRounds != 0, "%v, %+v", err, done)
}
