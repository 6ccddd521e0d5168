package schedule_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"jurat/api"
	"jurat/internal/must"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
)

// TestWatchFromAnywhere: a watcher who asks for the events after a number gets exactly those, live and later, with the
// same bytes.
func TestWatchFromAnywhere(t *testing.T) {
	h, b := jurattest.New(t), &bench{delay: 2 * time.Millisecond}
	d := open(t, config(h, b))
	id := submit(t, d)
	var all sync.WaitGroup
	live := make([][]schedule.Frame, 50)
	for i := range live {
		all.Go(func() { live[i] = watched(t, d, id, int64(i%2)) })
	}
	run(t, d)
	all.Wait()
	whole := live[0]
	if len(whole) != 15 {
		t.Fatalf("%d events", len(whole))
	}
	for i, frames := range live {
		wantSame(t, frames, whole[i%2:])
	}
	for after := range whole {
		wantSame(t, watched(t, d, id, int64(after+1)), whole[after+1:])
	}
	other := open(t, config(h, b)) // a scheduler without memory of the trial
	wantSame(t, watched(t, other, id, 0), whole)
}

func wantSame(t *testing.T, got, want []schedule.Frame) {
	t.Helper()
	same := func(a, b schedule.Frame) bool {
		return a.Seq == b.Seq && a.Type == b.Type && a.Last == b.Last && bytes.Equal(a.JSON, b.JSON)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%d events, want %d: %+v", len(got), len(want), got)
	}
}

func TestWatchRefusals(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	done := h.Try(t, jury.FinalJudge)
	for _, c := range []struct {
		id    string
		after int64
		want  error
	}{
		{"trial-none", 0, trial.ErrUnknown}, {"", 0, trial.ErrUnknown}, {"chain-x", 0, trial.ErrUnknown},
		{id, 2, schedule.ErrAhead}, {id, -1, schedule.ErrAhead}, {done.ID, 16, schedule.ErrAhead},
	} {
		if _, err := d.Watch(t.Context(), c.id, c.after); !errors.Is(err, c.want) {
			t.Errorf("%q after %d: %v, want %v", c.id, c.after, err, c.want)
		}
	}
	if frames := watched(t, d, done.ID, 15); len(frames) > 0 {
		t.Errorf("after the last event: %+v", frames)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := must.Get(d.Watch(ctx, id, 0))(t)
	for f, err := range events.Frames {
		if err == nil && f.Seq != 1 || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("%+v, %v", f, err)
		}
		cancel()
	}
}

// TestSlowWatcher: a slow watcher blocks no one, and gets all events in the end.
func TestSlowWatcher(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	d := open(t, config(h, b))
	id := submit(t, d)
	run(t, d)
	events := must.Get(d.Watch(t.Context(), id, 0))(t)
	var seq int64
	for f, err := range events.Frames {
		if err != nil || f.Seq != seq+1 {
			t.Fatalf("%v, event %d after %d", err, f.Seq, seq)
		}
		if seq = f.Seq; seq == 1 {
			awaitState(t, d, id, api.Over)
		}
	}
	if seq != 15 {
		t.Errorf("%d events", seq)
	}
}

// TestWatchedAgainAtOnce: a watcher who comes while the last one leaves gets all events, although the read that was due
// ended with the one who left.
func TestWatchedAgainAtOnce(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	c := config(h, b)
	c.Gather = 20 * time.Millisecond
	d := open(t, c)
	id := submit(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	events := must.Get(d.Watch(ctx, id, 0))(t)
	run(t, d)
	awaitState(t, d, id, api.Over) // without a watcher
	for range events.Frames {
		break // a reading is due
	}
	n := 0
	for f, err := range events.Frames {
		if err != nil {
			t.Fatalf("after %d events: %v", n, err)
		}
		n = int(f.Seq)
	}
	if n != 15 {
		t.Errorf("%d events", n)
	}
}
