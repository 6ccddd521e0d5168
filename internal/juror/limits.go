package juror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/jury"
)

// grace is how long a juror whose time is up is waited for all the same: not for its answer, which is too late, but for
// what it says about how it tried, such as what that cost.
const grace = time.Second

// Limits are how long answers may take. A juror whose time is up is left behind with an error that is
// context.DeadlineExceeded, even if it ignores its context; what it answers later is not heard.
type Limits struct {
	Each  time.Duration // one answer may take so long; 0 or less: as long as it takes
	Until time.Time     // after this moment nobody answers, and nobody is asked any more; zero: there is no such moment
}

// WithTimeout gives each call to a juror its own deadline. A timeout of zero or less is none.
func WithTimeout(j jury.Juror, d time.Duration) jury.Juror { return Limits{Each: d}.Juror(j) }

// JudgeWithTimeout does the same for a judge.
func JudgeWithTimeout(j jury.Judge, d time.Duration) jury.Judge { return Limits{Each: d}.Judge(j) }

// Juror holds a juror to the limits.
func (l Limits) Juror(j jury.Juror) jury.Juror {
	if l.none() {
		return j
	}
	return timedJuror{j, l}
}

// Judge holds a judge to the limits.
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

// A lateError is that the time is up.
type lateError string

func (e lateError) Error() string        { return string(e) }
func (e lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// deadline is when an answer that is asked for now comes too late, and what is said then.
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

// within runs a call and stops waiting when the time is up.
func within[T any](ctx context.Context, l Limits, b jury.Brief, ask func(context.Context, jury.Brief) (T, jury.Origin, error)) (T, jury.Origin, error) {
	var none T
	until, late := l.deadline()
	if !time.Now().Before(until) {
		return none, jury.Origin{}, late // nothing was asked, so nothing is paid
	}
	asking, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	type answer struct {
		value  T
		origin jury.Origin
		err    error
	}
	done := make(chan answer, 1) // buffered: a late juror must not wait for a reader that has left
	go func() {
		value, origin, err := ask(asking, b)
		done <- answer{value, origin, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() == nil && errors.Is(asking.Err(), context.DeadlineExceeded) {
			a.err = late // however the juror put it
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
