package juror

import (
	"context"
	"time"

	"jurat/jury"
)

// WithTimeout gives each call to a juror its own deadline. A juror that does not answer in time is left behind with an
// error that is context.DeadlineExceeded, even if it ignores its context; what it says later is not heard.
// A timeout of zero or less is none.
func WithTimeout(j jury.Juror, d time.Duration) jury.Juror {
	if d <= 0 {
		return j
	}
	return timedJuror{j, d}
}

// JudgeWithTimeout does the same for a judge.
func JudgeWithTimeout(j jury.Judge, d time.Duration) jury.Judge {
	if d <= 0 {
		return j
	}
	return timedJudge{j, d}
}

type timedJuror struct {
	jury.Juror
	limit time.Duration
}

func (t timedJuror) Evaluate(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return within(ctx, t.limit, b, t.Juror.Evaluate)
}

func (t timedJuror) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	return within(ctx, t.limit, b, t.Juror.Discuss)
}

type timedJudge struct {
	judge jury.Judge
	limit time.Duration
}

func (t timedJudge) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	return within(ctx, t.limit, b, t.judge.Judge)
}

// within runs a call and stops waiting when the time is up.
func within[T any](ctx context.Context, d time.Duration, b jury.Brief, ask func(context.Context, jury.Brief) (T, jury.Origin, error)) (T, jury.Origin, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	type answer struct {
		value  T
		origin jury.Origin
		err    error
	}
	done := make(chan answer, 1) // buffered: a late juror must not wait for a reader that has left
	go func() {
		value, origin, err := ask(ctx, b)
		done <- answer{value, origin, err}
	}()
	select {
	case a := <-done:
		return a.value, a.origin, a.err
	case <-ctx.Done():
		var none T
		return none, jury.Origin{}, ctx.Err()
	}
}
