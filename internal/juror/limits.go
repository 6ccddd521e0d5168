package juror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/jury"
)

// grace is how much longer the caller waits for a juror after its deadline. The answer is too late, but the origin
// that comes with it tells what the attempts cost.
const grace = time.Second

// Limits bound how long answers may take. A call that takes longer returns an error that is context.DeadlineExceeded,
// even if the juror ignores its context. A later answer is discarded.
type Limits struct {
	Each  time.Duration // time for one answer; 0 or less: no limit
	Until time.Time     // end of all answers: no call begins after it, and none continues; zero: no limit
}

// WithTimeout gives each call to a juror its own deadline. A timeout of zero or less sets no limit.
func WithTimeout(j jury.Juror, d time.Duration) jury.Juror { return Limits{Each: d}.Juror(j) }

// Juror wraps a juror so that it keeps the limits.
func (l Limits) Juror(j jury.Juror) jury.Juror {
	if l.Each <= 0 && l.Until.IsZero() {
		return j
	}
	return timed{j, l}
}

type timed struct {
	juror  jury.Juror
	limits Limits
}

// A lateError says that the time is over.
type lateError string

func (e lateError) Error() string        { return string(e) }
func (e lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// deadline returns the moment at which a call that begins now must end, and the error for a call that does not.
func (l Limits) deadline() (time.Time, error) {
	const over = lateError("the time for the whole trial is up")
	if l.Each <= 0 {
		return l.Until, over
	}
	each := time.Now().Add(l.Each)
	if !l.Until.IsZero() && l.Until.Before(each) {
		return l.Until, over
	}
	return each, lateError(fmt.Sprintf("no answer within %v", l.Each))
}

// Answer implements jury.Juror. It returns the late error if the juror takes longer than the limits allow.
func (t timed) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	until, late := t.limits.deadline()
	if !time.Now().Before(until) {
		return jury.Answer{}, late // the juror was not asked, so there is no cost
	}
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	type result struct {
		answer jury.Answer
		err    error
	}
	done := make(chan result, 1) // buffered, so that a late juror can send after Answer has returned
	go func() {
		answer, err := t.juror.Answer(asking, b)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() == nil && errors.Is(asking.Err(), context.DeadlineExceeded) {
			r.err = late // whichever error the juror returned
		}
		return r.answer, r.err
	case <-asking.Done():
	}
	if ctx.Err() != nil {
		return jury.Answer{}, ctx.Err()
	}
	select {
	case r := <-done:
		return jury.Answer{Origin: jury.Origin{Metadata: r.answer.Origin.Metadata}}, late
	case <-ctx.Done():
		return jury.Answer{}, ctx.Err()
	case <-time.After(grace):
		return jury.Answer{}, late
	}
}
