package juror

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"jurat/jury"
)

// slow waits before it answers. If it is deaf, it ignores its context.
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

func (s slow) Answer(ctx context.Context, _ jury.Brief) (jury.Answer, error) {
	return jury.Answer{}, s.wait(ctx)
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
		{"late, ignoring its context", slow{d: time.Hour, deaf: true}, true},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if _, err := WithTimeout(one.s, limit).Answer(t.Context(), jury.Brief{}); errors.Is(err, context.DeadlineExceeded) != one.late {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took > limit+grace {
					t.Errorf("waited %v", took)
				}
				time.Sleep(2 * time.Hour) // until the jurors that ignore their context have finished, too
			})
		})
	}
	if _, wrapped := WithTimeout(slow{}, 0).(timed); wrapped {
		t.Error("no timeout is a timeout")
	}
}

// TestUntil: when the time for the whole trial is up, open calls return an error, and no juror is asked any more.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Each: time.Minute, Until: time.Now().Add(90 * time.Second)}
		asked := &askedJuror{slow: slow{d: 50 * time.Second}}
		j := limits.Juror(asked)
		if _, err := j.Answer(t.Context(), jury.Brief{}); err != nil {
			t.Errorf("in time: %v", err)
		}
		if _, err := j.Answer(t.Context(), jury.Brief{}); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "the time for the whole trial is up" {
			t.Errorf("beyond it: %v", err)
		}
		if asked.n != 2 {
			t.Fatalf("asked %d times", asked.n)
		}
		if _, err := j.Answer(t.Context(), jury.Brief{}); !errors.Is(err, context.DeadlineExceeded) || asked.n != 2 {
			t.Errorf("afterwards: %v, asked %d times", err, asked.n)
		}
	})
}

// askedJuror is slow, and counts its calls. It returns its metadata also when it is interrupted.
type askedJuror struct {
	slow
	n int
}

func (c *askedJuror) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	c.n++
	a, err := c.slow.Answer(ctx, b)
	a.Origin.Metadata = []byte(`{"attempts":[]}`)
	return a, err
}

// TestLateEffort: from a juror that exceeds its time, only the metadata of its attempts is kept.
func TestLateEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, j := range []*askedJuror{{slow: slow{d: time.Minute}}, {slow: slow{d: 1100 * time.Millisecond, deaf: true}}} {
			a, err := WithTimeout(j, time.Second).Answer(t.Context(), jury.Brief{})
			if err == nil || err.Error() != "no answer within 1s" || a.Opinion.Rationale != "" || string(a.Origin.Metadata) != `{"attempts":[]}` {
				t.Errorf("%+v, %v", a, err)
			}
		}
	})
}

// TestInterruptedIsNotLate: if the caller cancels the trial, the juror returns at once with that error, and is not
// counted as late.
func TestInterruptedIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := WithTimeout(slow{d: time.Minute, deaf: true}, 10*time.Second).Answer(ctx, jury.Brief{})
		if !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Hour)
	})
}
