package recording

import (
	"context"
	"errors"
	"sync"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/relay"
)

// TestListsWhileTheLogStalls: while the answer of one server about its tools is being sealed, that of another is noted, and who waits with another of the same server waits no
// longer than its context.
func TestListsWhileTheLogStalls(t *testing.T) {
	d := newDesk(t, t.TempDir(), &shelf{}, nil)
	defer d.end()
	answer := func(server string) (*exchange, *observed.Act) {
		said := listOf(adds)
		return &exchange{recorder: d.recorder, call: &relay.Call{Upstream: server}}, &observed.Act{Type: evidence.ObservedTool, Ended: evidence.Complete, Protocol: "mcp/2025-06-18", Path: "/client",
			Upstream: &evidence.Upstream{Origin: server}, Request: &observed.Body{Kept: []byte(said[0])}, Response: &observed.Body{Kept: []byte(said[1])}}
	}
	note := func(ctx context.Context, server string) (func(), error) {
		e, act := answer(server)
		done, err := e.watched(ctx, act)
		if err == nil && done == nil {
			t.Fatal("it is not taken for a list of tools")
		}
		return done, err
	}
	sealing := must.Get(note(t.Context(), "stdio:one"))(t)
	other := must.Get(note(t.Context(), "stdio:two"))(t)
	other()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := note(ended, "stdio:one"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the error of the context", err)
			}
		})
	}
	all.Wait()
	sealing()
	last := must.Get(note(t.Context(), "stdio:one"))(t)
	last()
}
