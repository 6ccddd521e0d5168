package juror

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"jurat/jury"
)

// slow sleeps, with or without an eye on its context.
type slow struct {
	d    time.Duration
	deaf bool
}

func (s slow) wait(ctx context.Context) error {
	if s.deaf {
		time.Sleep(s.d)
		return nil
	}
	select {
	case <-time.After(s.d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) Evaluate(ctx context.Context, _ jury.Brief) (jury.Opinion, jury.Origin, error) {
	return jury.Opinion{}, origin(), s.wait(ctx)
}

func (s slow) Discuss(ctx context.Context, _ jury.Brief) (jury.Speech, jury.Origin, error) {
	return jury.Speech{}, origin(), s.wait(ctx)
}

func (s slow) Judge(ctx context.Context, _ jury.Brief) (jury.Opinion, jury.Origin, error) {
	return jury.Opinion{}, origin(), s.wait(ctx)
}

func TestWithTimeout(t *testing.T) {
	const limit = 10 * time.Second
	for _, one := range []struct {
		name string
		s    slow
		late bool
	}{
		{"in time", slow{d: 9 * time.Second}, false},
		{"late", slow{d: 11 * time.Second}, true},
		{"late and deaf", slow{d: time.Hour, deaf: true}, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, _, evaluating := WithTimeout(one.s, limit).Evaluate(t.Context(), jury.Brief{})
				_, _, speaking := WithTimeout(one.s, limit).Discuss(t.Context(), jury.Brief{})
				_, _, judging := JudgeWithTimeout(one.s, limit).Judge(t.Context(), jury.Brief{})
				for _, err := range []error{evaluating, speaking, judging} {
					if errors.Is(err, context.DeadlineExceeded) != one.late {
						t.Errorf("error %v", err)
					}
				}
				if took := time.Since(start); took > 3*limit {
					t.Errorf("waited %v", took)
				}
				time.Sleep(2 * time.Hour) // until the deaf have finished too
			})
		})
	}
	if _, wrapped := WithTimeout(slow{}, 0).(timedJuror); wrapped {
		t.Error("no timeout is a timeout")
	}
}
