package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/subject"
	"jurat/internal/trial"
)

// How long, and how often, a submission waits for another with the same key that is being sealed. A browser whose
// button was pressed twice shows the answer to the second request.
const (
	twinWait  = 5 * time.Second
	twinPause = 20 * time.Millisecond
)

// SubmitOnce submits a case. If a case was already submitted with the same idempotency key, it returns that trial,
// even while the trial is under way or the queue is full. It returns api.ErrKeyReused if that was another case, and otherwise the errors of Submit.
func (d *Scheduler) SubmitOnce(ctx context.Context, o Order) (string, error) {
	id := evidence.TrialPrefix + o.ID
	if o.ID != "" {
		if err := d.submittedBefore(ctx, id, o.Case); !errors.Is(err, trial.ErrUnknown) {
			return id, err
		}
	}
	made, err := d.Submit(ctx, o)
	for until := time.Now().Add(twinWait); errors.Is(err, lock.ErrTaken) && time.Now().Before(until); { // another request with the same key is being sealed
		select {
		case <-ctx.Done():
			return id, ctx.Err()
		case <-time.After(twinPause):
		}
		if err := d.submittedBefore(ctx, id, o.Case); !errors.Is(err, trial.ErrUnknown) {
			return id, err
		}
		made, err = d.Submit(ctx, o)
	}
	switch {
	case errors.Is(err, ledger.ErrDuplicate): // another request with the same key was faster, or another record has this id
		if err = d.submittedBefore(ctx, id, o.Case); errors.Is(err, trial.ErrUnknown) {
			err = fmt.Errorf("%w: it made another record", api.ErrKeyReused)
		}
		return id, err
	case errors.Is(err, lock.ErrTaken):
		return id, fmt.Errorf("%w: the same submission is being sealed at this moment: try again", api.ErrUnavailable)
	}
	return made, err
}

// submittedBefore returns nil if the same evidence was submitted as this trial, and trial.ErrUnknown if there is no
// such trial.
func (d *Scheduler) submittedBefore(ctx context.Context, id string, on *subject.Case) error {
	e, err := d.Entry(ctx, id)
	if err == nil && e.Case != on.Digest() {
		err = fmt.Errorf("%w: it made %s, which is about other evidence", api.ErrKeyReused, id)
	}
	return err
}
