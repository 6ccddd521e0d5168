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

// JudgeWithTimeout gives each call to a judge its own deadline. A timeout of zero or less sets no limit.
func JudgeWithTimeout(j jury.Judge, d time.Duration) jury.Judge { return Limits{Each: d}.Judge(j) }

// Juror wraps a juror so that it keeps the limits.
func (l Limits) Juror(j jury.Juror) jury.Juror {
	if l.none() {
		return j
	}
	return timedJuror{j, l}
}

// Judge wraps a judge so that it keeps the limits.
func (l Limits) Judge(j jury.Judge) jury.Judge {
	if l.none() {
		return j
	}
	return timedJudge{j, l}
}

func (l Limits) none() bool { return l.Each <= 0 && l.Until.IsZero() }

type timedJuror struct {
	jury.Juror
	Limits
}

func (t timedJuror) Evaluate(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return within(ctx, t.Limits, b, t.Juror.Evaluate)
}

func (t timedJuror) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	return within(ctx, t.Limits, b, t.Juror.Discuss)
}

type timedJudge struct {
	judge jury.Judge
	Limits
}

func (t timedJudge) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return within(ctx, t.Limits, b, t.judge.Judge)
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

// within runs a call and returns the late error if the call takes longer than the limits allow.
func within[T any](ctx context.Context, l Limits, b jury.Brief, ask func(context.Context, jury.Brief) (T, jury.Origin, error)) (T, jury.Origin, error) {
	var none T
	until, late := l.deadline()
	if !time.Now().Before(until) {
		return none, jury.Origin{}, late // the juror was not asked, so there is no cost
	}
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	type answer struct {
		value  T
		origin jury.Origin
		err    error
	}
	done := make(chan answer, 1) // buffered, so that a late juror can send after within has returned
	go func() {
		value, origin, err := ask(asking, b)
		done <- answer{value, origin, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() == nil && errors.Is(asking.Err(), context.DeadlineExceeded) {
			a.err = late // whichever error the juror returned
		}
		return a.value, a.origin, a.err
	case <-asking.Done():
	}
	if ctx.Err() != nil {
		return none, jury.Origin{}, ctx.Err()
	}
	select {
	case a := <-done:
		return none, jury.Origin{Metadata: a.origin.Metadata}, late
	case <-ctx.Done():
		return none, jury.Origin{}, ctx.Err()
	case <-time.After(grace):
		return none, jury.Origin{}, late
	}
}
