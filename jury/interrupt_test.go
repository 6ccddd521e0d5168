package jury

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"jurat/evidence"
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
			if last := n == longTrialActs-1; last != (err == nil) || !last && err != context.Canceled {
				t.Errorf("cancelled at act %d: %v", n, err)
			}
			if got := len(d.book().acts); got != n+1 {
				t.Errorf("cancelled at act %d, but there are %d acts", n, got)
			}
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
			if _, err := d.Run(t.Context()); !errors.Is(err, broken) {
				t.Errorf("act %d: %v", n, err)
			}
			synctest.Wait()
			if len(d.book().acts) != n || calls != n+1 {
				t.Errorf("act %d failed; %d are recorded, %d were tried", n, len(d.book().acts), calls)
			}
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
		if _, err := d.Run(t.Context()); !errors.Is(err, broken) {
			t.Error(err)
		}
		if a.ended != 1 || b.ended != 1 {
			t.Error("Run returned before the jurors had stopped")
		}
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
	if _, err := d.Run(ctx); err != context.Canceled {
		t.Error(err)
	}
}

// TestDeafJuror: a juror ignores its context. A cancellation still ends the trial at once.
func TestDeafJuror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ear := make(chan struct{})
		d := seated(MajorityVote, &script{initial: move{deaf: ear}}, &script{initial: holding(SafePass, 80)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := d.Run(ctx); err != context.DeadlineExceeded {
			t.Error(err)
		}
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("Run took %v", waited)
		}
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
		if _, err := d.Run(ctx); err != context.DeadlineExceeded {
			t.Error(err)
		}
		synctest.Wait()
		if len(d.book().acts) != 1 {
			t.Errorf("acts: %v", d.book().shape())
		}
	})
}
