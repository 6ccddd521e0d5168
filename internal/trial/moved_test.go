package trial_test

import (
	"errors"
	"sync"
	"testing"

	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

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
		if err := resume(t, h, scripted(h, jury.FinalJudge), id); err != nil {
			t.Fatalf("at act %d: %v", at, err)
		}
		close(goOn)
		if err := <-ended; (at < 15) != errors.Is(err, trial.ErrMoved) {
			t.Errorf("at act %d: %v", at, err)
		}
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
	_, err = trial.Resume(t.Context(), c, r)
	return err
}

// wantWhole checks that the trial has every act once.
func wantWhole(t *testing.T, h *jurattest.House, id string) {
	t.Helper()
	chain := must.Get(h.Ledger.Chain(t.Context(), id))(t)
	result, err := resultOf(chain)
	if err != nil || len(chain) != 15 || result.Degraded {
		t.Errorf("%v, %d acts", err, len(chain))
	}
}
