package docket_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"jurat/internal/docket"
	"jurat/jurattest"
	"jurat/reputation"
)

// TestCache: a view is kept until the log counts something new of the agent, and for ten minutes at most.
func TestCache(t *testing.T) {
	h := settled(t, 2, 1)
	by := h.Options(t).Trust
	now := jurattest.Start.Add(48 * time.Hour)
	c := docket.NewConductCache(h.Ledger, func() time.Time { return now })
	took := 0
	ask := func(agent string) (*reputation.View, error) {
		took = 0
		return c.View(t.Context(), docket.ConductAsked{Agent: agent}, by, func(bytes int64) error { took += int(bytes); return nil })
	}
	first, err := ask("desk")
	check(t, err)
	if took == 0 || first.Completeness[0].Records.Known != 2 || first.Completeness[0].Judgments.Known != 2 { // the times are of a mock, so nothing has a number
		t.Fatalf("read %d bytes: %+v", took, first.Completeness)
	}
	others(t, h, 8)
	now = now.Add(9 * time.Minute)
	if again, err := ask("desk"); err != nil || again != first || took != 0 {
		t.Errorf("read %d bytes again, %v", took, err)
	}
	now = now.Add(time.Minute)
	later, err := ask("desk")
	check(t, err)
	if later.At == first.At || took == 0 {
		t.Errorf("after ten minutes the view is still of %s", later.At)
	}
	h.Seal(t, output(h, "desk", "new"))
	if newer, err := ask("desk"); err != nil || newer.Completeness[0].Records.Known != 3 {
		t.Errorf("a new record is not seen: %v", err)
	}
	if _, err := ask("nobody"); !errors.Is(err, docket.ErrUnknownAgent) {
		t.Errorf("an agent of whom the log has nothing: %v", err)
	}
	enough := errors.New("enough")
	now = now.Add(time.Hour)
	if _, err := c.View(t.Context(), docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("work goes on after take refused: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.View(ended, docket.ConductAsked{Agent: "desk"}, by, func(int64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader who is gone: %v", err)
	}
}

// TestTooMany: of an agent with too many records of its own nothing is verified, however often its page is opened. Judgments about it
// count, too.
func TestTooMany(t *testing.T) {
	h := settled(t, 5, 0) // and a review of one
	for most, want := range map[int]struct{ refused, verified bool }{4: {true, false}, 5: {true, true}, 1000: {false, true}} {
		c := docket.NewConductCache(h.Ledger, func() time.Time { return jurattest.Start.Add(48 * time.Hour) })
		c.Limit(most)
		verified := false
		_, err := c.View(t.Context(), docket.ConductAsked{Agent: "desk"}, h.Options(t).Trust, func(int64) error { verified = true; return nil })
		if errors.Is(err, docket.ErrTooMany) != want.refused || verified != want.verified || err != nil && !want.refused {
			t.Errorf("at most %d: %v, verified %t; want %+v", most, err, verified, want)
		}
	}
}
