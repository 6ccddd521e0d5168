package schedule

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/trial"
)

var (
	// ErrNotWaiting says that no person has to decide on a trial, so no reviewer can take it.
	ErrNotWaiting = errors.New("the trial does not wait for a person")
	// ErrTaken says that another reviewer has taken a trial. It comes as a *TakenError.
	ErrTaken = errors.New("another reviewer has taken this case")
	// ErrNotTaken says that no reviewer has a trial, so it cannot be given back.
	ErrNotTaken = errors.New("no reviewer has taken this case")
)

// A TakenError says that another reviewer has taken a trial.
type TakenError struct{ trial.Taken }

func (e *TakenError) Error() string {
	return fmt.Sprintf("%v: %q has had it since %s", ErrTaken, e.Reviewer, evidence.FormatTime(e.At))
}

// Unwrap returns ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Take says in the log that a reviewer means to decide on a trial that waits for a person. by is the reviewer, or who assigns the trial
// to the reviewer; reason may be "". It changes nothing if the reviewer has the trial. It returns ErrUnknown, ErrNotWaiting, or a
// *TakenError if another reviewer has it.
func (d *Scheduler) Take(ctx context.Context, id, reviewer, by, reason string) error {
	e, err := d.waiting(ctx, id)
	if err != nil {
		return err
	}
	if e.Taken() == nil {
		if err := d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialTaken, Reason: reason, Trial: id, Reviewer: reviewer, Record: e.Waits()}); err != nil {
			return err
		}
		if e, err = d.waiting(ctx, id); err != nil { // another process may have been faster, and the log says which
			return err
		}
	}
	switch now := e.Taken(); {
	case now == nil:
		return fmt.Errorf("%w: somebody gave it back at the same moment", ErrNotTaken)
	case now.Reviewer != reviewer:
		return &TakenError{*now}
	}
	return nil
}

// GiveBack says in the log that the reviewer who has a trial does not mean to decide on it any more. Its errors
// are ErrUnknown, ErrNotWaiting and ErrNotTaken, and what may returns, which is asked first.
func (d *Scheduler) GiveBack(ctx context.Context, id, by, reason string, may func(trial.Taken) error) error {
	e, err := d.waiting(ctx, id)
	if err != nil {
		return err
	}
	now := e.Taken()
	if now == nil {
		return ErrNotTaken
	}
	if err := may(*now); err != nil {
		return err
	}
	return d.seal(ctx, operator.TrialEventBody{By: by, Event: operator.TrialLeft, Reason: reason, Trial: id, Reviewer: now.Reviewer, Record: e.Waits()})
}

// waiting returns a trial that waits for a person.
func (d *Scheduler) waiting(ctx context.Context, id string) (Entry, error) {
	e, err := d.Entry(ctx, id)
	if err == nil && e.Waits() == "" {
		err = ErrNotWaiting
	}
	return e, err
}
