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
	return jury.Opinion{}, jury.Origin{}, s.wait(ctx)
}

func (s slow) Discuss(ctx context.Context, _ jury.Brief) (jury.Speech, jury.Origin, error) {
	return jury.Speech{}, jury.Origin{}, s.wait(ctx)
}

func (s slow) Judge(ctx context.Context, _ jury.Brief) (jury.Opinion, jury.Origin, error) {
	return jury.Opinion{}, jury.Origin{}, s.wait(ctx)
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
				if took := time.Since(start); took > 3*(limit+grace) {
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

// TestUntil: when the time of the whole trial is up, nobody answers any more, and nobody is asked.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Each: time.Minute, Until: time.Now().Add(90 * time.Second)}
		asked := &askedJuror{slow: slow{d: 50 * time.Second}}
		j := limits.Juror(asked)
		if _, _, err := j.Evaluate(t.Context(), jury.Brief{}); err != nil {
			t.Errorf("in time: %v", err)
		}
		if _, _, err := j.Discuss(t.Context(), jury.Brief{}); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "the time for the whole trial is up" {
			t.Errorf("beyond it: %v", err)
		}
		if asked.n != 2 {
			t.Fatalf("asked %d times", asked.n)
		}
		if _, _, err := j.Discuss(t.Context(), jury.Brief{}); !errors.Is(err, context.DeadlineExceeded) || asked.n != 2 {
			t.Errorf("afterwards: %v, asked %d times", err, asked.n)
		}
		if _, _, err := limits.Judge(asked).Judge(t.Context(), jury.Brief{}); !errors.Is(err, context.DeadlineExceeded) || asked.n != 2 {
			t.Errorf("the judge: %v, asked %d times", err, asked.n)
		}
	})
}

// askedJuror is slow, and counts how often it is asked. It tells its effort also when it is interrupted.
type askedJuror struct {
	slow
	n int
}

func (c *askedJuror) Evaluate(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	c.n++
	opinion, origin, err := c.slow.Evaluate(ctx, b)
	origin.Metadata = []byte(`{"attempts":[]}`)
	return opinion, origin, err
}

func (c *askedJuror) Discuss(ctx context.Context, b jury.Brief) (jury.Speech, jury.Origin, error) {
	c.n++
	return c.slow.Discuss(ctx, b)
}

func (c *askedJuror) Judge(ctx context.Context, b jury.Brief) (jury.Opinion, jury.Origin, error) {
	c.n++
	return c.slow.Judge(ctx, b)
}

// TestLateEffort: a juror whose time is up is heard on what it tried, and on nothing else.
func TestLateEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, j := range []*askedJuror{{slow: slow{d: time.Minute}}, {slow: slow{d: 1100 * time.Millisecond, deaf: true}}} {
			opinion, origin, err := WithTimeout(j, time.Second).Evaluate(t.Context(), jury.Brief{})
			if err == nil || err.Error() != "no answer within 1s" || opinion.Rationale != "" || string(origin.Metadata) != `{"attempts":[]}` {
				t.Errorf("%+v, %+v, %v", opinion, origin, err)
			}
		}
	})
}

// TestInterruptedIsNotLate: whoever stops the trial is answered at once, and it is no juror's fault.
func TestInterruptedIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, _, err := WithTimeout(slow{d: time.Minute, deaf: true}, 10*time.Second).Evaluate(ctx, jury.Brief{})
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Hour)
	})
}
