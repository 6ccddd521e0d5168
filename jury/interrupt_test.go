package jury

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/test/must"
)

// longTrial has every kind of act: 3 seats, a juror who fails, a blocked one, two rounds, a judge.
func longTrial() *Deliberation {
	d := seated(FinalJudge,
		&script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass), turning(NeedsReview, 60)}},
		&script{initial: move{err: errors.New("down")}, rounds: []move{turning(UnsafeFail, 20), staying(UnsafeFail)}},
		&script{initial: move{err: ErrBlocked}, rounds: []move{turning(SafePass, 75), {err: ErrBlocked}}})
	d.Settings.MaxRounds = 2
	return d
}

const longTrialActs = 19

func TestCancellationAtEachAct(t *testing.T) {
	for n := range longTrialActs {
		synctest.Test(t, func(t *testing.T) {
			d := longTrial()
			ctx, cancel := context.WithCancel(t.Context())
			d.book().on = func(i int, _ Act) error {
				if i == n {
					cancel()
				}
				return nil
			}
			_, err := d.Run(ctx)
			synctest.Wait()
			last := n == longTrialActs-1
			must.Hold(t, last == (err == nil) && (last || err == context.Canceled), "cancelled at act %d: %v", n, err)
			must.Equal(t, len(d.book().acts), n+1, "cancelled at act", n)
		})
	}
}

func TestRecorderFailsAtEachAct(t *testing.T) {
	broken := errors.New("disk full")
	for n := range longTrialActs {
		synctest.Test(t, func(t *testing.T) {
			d := longTrial()
			calls := 0
			d.book().on = func(i int, _ Act) error {
				calls++
				if i == n {
					return broken
				}
				return nil
			}
			must.Fail(t, broken, "act", n)(d.Run(t.Context()))
			synctest.Wait()
			must.Hold(t, len(d.book().acts) == n && calls == n+1, "act %d failed; %d are recorded, %d were tried", n, len(d.book().acts), calls)
		})
	}
}

// TestRecorderErrorInterruptsAndWaits has two jurors who answer only when they are interrupted.
func TestRecorderErrorInterruptsAndWaits(t *testing.T) {
	broken := errors.New("disk full")
	synctest.Test(t, func(t *testing.T) {
		a, b := &script{initial: move{patient: true}}, &script{initial: move{patient: true}}
		d := seated(MajorityVote, a, &script{initial: holding(SafePass, 80)}, b)
		d.book().on = func(_ int, act Act) error {
			if act.Type == evidence.Evaluation {
				return broken
			}
			return nil
		}
		must.Fail(t, broken)(d.Run(t.Context()))
		must.Hold(t, a.ended == 1 && b.ended == 1, "Run returned before the jurors had stopped")
	})
}

func TestRecorderErrorBecauseOfCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := longTrial()
	d.book().on = func(i int, _ Act) error {
		if i == 2 {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	_, err := d.Run(ctx)
	must.Hold(t, err == context.Canceled, "%v", err)
}

// TestDeafJuror: a juror ignores its context. A cancellation still ends the trial at once.
func TestDeafJuror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ear := make(chan struct{})
		d := seated(MajorityVote, &script{initial: move{deaf: ear}}, &script{initial: holding(SafePass, 80)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := d.Run(ctx)
		must.Hold(t, err == context.DeadlineExceeded, "%v", err)
		must.Equal(t, time.Since(start), time.Minute, "Run took")
		close(ear)
		synctest.Wait()
		if len(d.book().acts) != 2 { // the opening and the other juror
			t.Errorf("acts: %v", d.book().shape())
		}
	})
}

// TestInterruptedJurorsAreNotAbsent: the trial's own deadline passes while jurors are still answering.
func TestInterruptedJurorsAreNotAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := seated(MajorityVote, &script{initial: move{patient: true}}, &script{initial: move{patient: true}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := d.Run(ctx)
		must.Hold(t, err == context.DeadlineExceeded, "%v", err)
		synctest.Wait()
		if len(d.book().acts) != 1 {
			t.Errorf("acts: %v", d.book().shape())
		}
	})
}

func TestAbsences(t *testing.T) {
	tests := map[string]struct {
		move   move
		reason AbsenceReason
		detail string
	}{
		"fails":        {move{err: errors.New("no route\x00\nto host\xff")}, Failed, "no route  to host\uFFFD"},
		"panics":       {move{panics: true}, Failed, "panicked: juror lost its temper"},
		"times out":    {move{err: fmt.Errorf("asking: %w", context.DeadlineExceeded)}, TimedOut, "asking: context deadline exceeded"},
		"gives up":     {move{err: context.Canceled}, Failed, "context canceled"},
		"never valid":  {move{err: fmt.Errorf("three times: %w", ErrInvalid)}, Invalid, "three times: invalid answer"},
		"talks a lot":  {move{err: errors.New(strings.Repeat("あ", 400))}, Failed, strings.Repeat("あ", 166)},
		"says nothing": {move{}, Invalid, ""},
	}
	for name, tt := range tests {
		d := seated(MajorityVote, &script{initial: tt.move, rounds: []move{tt.move}},
			&script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass)}},
			&script{initial: holding(SafePass, 90), rounds: []move{staying(SafePass)}})
		d.Settings.MaxRounds = 1
		r := run(t, d)
		if len(r.Absences) != 2 || !r.Degraded || r.Inconclusive || r.FinalScore != 85 || r.Phase1Consensus.ConsensusStatus != Majority {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		for i, a := range r.Absences {
			must.Hold(t, a.Reason == tt.reason && (tt.detail == "" || a.Detail == tt.detail) && utf8.ValidString(a.Detail) && a.RoundNumber == i,
				"%s: %+v", name, a)
		}
		v := r.Phase3Judgment.Votes[0]
		must.Hold(t, v.Position == nil && v.JurorID == "juror-0", "%s: vote %+v", name, v)
	}
}

func TestSilentJurorKeepsItsLastEvaluation(t *testing.T) {
	d := seated(MajorityVote, &script{initial: holding(SafePass, 80), rounds: []move{turning(UnsafeFail, 10), {err: ErrBlocked}, staying(SafePass)}},
		&script{initial: holding(UnsafeFail, 20), rounds: []move{staying(UnsafeFail), turning(SafePass, 90), turning(SafePass, 90)}})
	d.Settings.Threshold = 2
	d.Settings.Rubric = DefaultRubric()
	r := run(t, d)
	must.Need(t, r.TotalRounds == 1 && r.DiscussionRounds[0].ConsensusCheck.ConsensusStatus == Unanimous, "%+v", r)
	d = seated(MajorityVote, &script{initial: holding(SafePass, 80), rounds: []move{turning(UnsafeFail, 10), {err: ErrBlocked}, staying(SafePass)}},
		&script{initial: holding(NeedsReview, 50), rounds: []move{staying(NeedsReview), turning(SafePass, 90), turning(SafePass, 90)}})
	r = run(t, d)
	must.Hold(t, len(r.Absences) == 2 && r.Absences[0].Reason == Blocked && r.Absences[1].Reason == Invalid,
		"absences %+v", r.Absences) // in round 3 it repeats its position of two rounds before, without an update
	if last := r.DiscussionRounds[2].Statements[0]; last.JurorID != "juror-1" || last.UpdatedEvaluation != nil || last.StatementOrder != 1 {
		t.Errorf("an update that changes nothing is kept: %+v", last)
	}
	v := r.Phase3Judgment.Votes[0]
	must.Hold(t, *v.Position == UnsafeFail && v.TotalScore == 10 && !v.Fallback, "%+v", v)
}

func TestBlockedJuror(t *testing.T) {
	blocked := move{err: fmt.Errorf("finish_reason: %w", ErrBlocked)}
	other := func() *script { return &script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass)}} }
	t.Run("always", func(t *testing.T) {
		d := seated(MajorityVote, &script{initial: blocked, rounds: []move{blocked}}, other(), other())
		d.Settings.MaxRounds = 1
		r := run(t, d)
		e := r.Phase1Evaluations[0]
		want := Evaluation{JurorID: "juror-0", Phase: Initial, RoleName: "role 0", RoleFocus: "focus", Fallback: true,
			Opinion: Opinion{Position: NeedsReview, AxisScores: Scores{"task_completion": 20}, TotalScore: 50, Confidence: 0.5, Rationale: blockedRationale, Findings: []Finding{}}}
		must.Equal(t, cmp.Diff(want, e), "", "stand-in (-want +got)")
		must.Hold(t, r.Degraded && !r.Inconclusive && len(r.Absences) == 1 && r.Absences[0].Reason == Blocked && r.Phase3Judgment.Votes[0].Fallback,
			"%+v", r)
		b := d.Jurors[0].(*script).briefs[1]
		must.Hold(t, b.Last == nil && len(b.Evaluations) == 3, "a juror's brief has a stand-in as its own evaluation: %+v", b)
	})
	t.Run("first in a round, then back", func(t *testing.T) {
		lost := &script{initial: move{err: errors.New("down")}, rounds: []move{blocked, staying(NeedsReview), turning(UnsafeFail, 5)}}
		d := seated(MajorityVote, lost, other(), other())
		r := run(t, d)
		s := r.DiscussionRounds[0].Statements[0]
		must.Hold(t, s.UpdatedEvaluation != nil && s.UpdatedEvaluation.Fallback && s.Position == NeedsReview && !s.PositionChanged, "%+v", s)
		must.Hold(t, len(r.Absences) == 2 && r.Absences[1].RoundNumber == 2 && r.Absences[1].Reason == Invalid,
			"a juror with a stand-in must give an evaluation of its own: %+v", r.Absences)
		back := r.DiscussionRounds[2].Statements[0]
		must.Hold(t, back.PositionChanged && !r.Phase3Judgment.Votes[0].Fallback && r.Degraded, "%+v", back)
	})
	t.Run("no such axis", func(t *testing.T) {
		d := seated(MajorityVote, &script{initial: blocked}, &script{initial: blocked})
		d.Settings.Rubric = Rubric{{ID: "all", Max: 100}}
		d.Settings.Collaborative = false
		r := run(t, d)
		must.Hold(t, len(r.Phase1Evaluations[0].AxisScores) == 0 && r.Inconclusive && r.FinalScore == 50 && r.FinalVerdict == NeedsReview, "%+v", r)
	})
	t.Run("the judge", func(t *testing.T) {
		d := seated(FinalJudge, other(), other())
		d.Judge.(*script).judge = blocked
		r := run(t, d)
		j := r.Phase3Judgment
		must.Hold(t, j.Method == MajorityVote && j.Degraded && j.Model == "" && j.Position == SafePass && j.Score == 80 && r.Absences[0].JurorID == "judge",
			"%+v", r)
	})
}

func TestQuorum(t *testing.T) {
	down := move{err: errors.New("down")}
	tests := []struct {
		initial []move
		score   int
	}{
		{[]move{holding(SafePass, 80), down, down}, 80},
		{[]move{holding(SafePass, 80), {err: ErrBlocked}, down}, 65},
		{[]move{down, down, down}, 0},
	}
	for i, tt := range tests {
		d := seated(FinalJudge)
		for n, m := range tt.initial {
			d.Jurors = append(d.Jurors, &script{initial: m, rounds: []move{down}})
			d.Settings.Seats = append(d.Settings.Seats, Seat{JurorID: fmt.Sprint(n)})
		}
		r := run(t, d)
		j := r.Phase3Judgment
		if !r.Inconclusive || !j.Inconclusive || !r.Degraded || r.FinalVerdict != NeedsReview || r.FinalScore != tt.score || j.Method != MajorityVote {
			t.Errorf("%d: %+v", i, j)
		}
		must.Equal(t, len(d.Judge.(*script).briefs), 0, i)
		acts := d.book().acts
		o := acts[len(acts)-3].Body.(*Opening)
		must.Hold(t, len(o.Requests) == 0 && o.Phase == Judging, "%d: %+v", i, o)
	}
}

// TestNoQuorumEndsAtOnce: if fewer than two jurors can still give a valid vote, no round is held and no juror is
// asked again.
func TestNoQuorumEndsAtOnce(t *testing.T) {
	down := move{err: errors.New("no key")}
	late := move{err: context.DeadlineExceeded}
	blocked := move{err: ErrBlocked}
	valid := func() *script { return &script{initial: holding(SafePass, 80), rounds: []move{staying(SafePass)}} }
	for name, tt := range map[string]struct {
		others       []*script
		asked        int // the juror who can vote
		rounds       int
		inconclusive bool
	}{
		"two cannot answer":                   {[]*script{{initial: down}, {initial: down}}, 1, 0, true},
		"one cannot, one was late and comes":  {[]*script{{initial: down}, {initial: late, rounds: []move{turning(SafePass, 70)}}}, 4, 3, false},
		"one cannot, one was late and stays":  {[]*script{{initial: down}, {initial: late, rounds: []move{late}}}, 4, 3, true},
		"one cannot, one was late and breaks": {[]*script{{initial: down}, {initial: late, rounds: []move{down}}}, 2, 1, true},
		"one cannot, one was blocked":         {[]*script{{initial: down}, {initial: blocked, rounds: []move{blocked}}}, 4, 3, true},
		"one was blocked, and then breaks":    {[]*script{{initial: down}, {initial: blocked, rounds: []move{down}}}, 2, 1, true},
		"one of two cannot":                   {[]*script{{initial: down}}, 1, 0, true},
		"one cannot, and two can":             {[]*script{{initial: down, rounds: []move{down}}, {initial: holding(NeedsReview, 50), rounds: []move{staying(NeedsReview)}}}, 4, 3, false},
	} {
		first := valid()
		d := seated(FinalJudge, append([]*script{first}, tt.others...)...)
		r := run(t, d)
		must.Hold(t, r.TotalRounds == tt.rounds && len(first.briefs) == tt.asked && r.Inconclusive == tt.inconclusive && r.Degraded,
			"%s: %d rounds, asked %d times, inconclusive %t", name, r.TotalRounds, len(first.briefs), r.Inconclusive)
		asked := len(d.Judge.(*script).briefs) > 0
		must.Hold(t, asked != tt.inconclusive, "%s: the judge was asked: %t", name, asked)
		again, err := Replay(evidence.Digest{}, d.book().read(t))
		must.Hold(t, err == nil && again.Result.Inconclusive == tt.inconclusive, "%s, replayed: %v", name, err)
	}
}

// TestOtherRules: a trial by rules that this program does not know is replayed by none.
func TestOtherRules(t *testing.T) {
	d := seated(MajorityVote, &script{initial: holding(SafePass, 80)}, &script{initial: holding(SafePass, 80)}, &script{initial: holding(SafePass, 80)})
	run(t, d)
	for _, rules := range []string{"jurat/trial/v1", "jurat/trial/v2", "jurat/trial/v4", ""} {
		changed := d.book().read(t)
		for i := range changed {
			if o, ok := changed[i].Body.(*Opening); ok {
				o.Rules = rules
			}
		}
		must.Refuse(t, RuleSettings, "rules", rules)(Replay(evidence.Digest{}, changed))
	}
}
