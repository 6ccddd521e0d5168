package docket

import (
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/jurattest"
)

// TestRecorders: the log says of each recorder when it began and ended, what it counted since, and what it missed or lost, wherever these acts stand.
func TestRecorders(t *testing.T) {
	h := jurattest.New(t)
	seconds := 0
	event := func(recorder, chain string, e observed.Event) {
		t.Helper()
		seconds++
		p := must.Get(e.Payload(recorder, evidence.FormatTime(jurattest.Start.Add(time.Duration(seconds)*time.Second)), chain))(t)
		h.Seal(t, p)
	}
	start := observed.Event{Event: observed.Start, Mode: observed.Closed, Vantage: evidence.Proxy, Version: "1", Configuration: evidence.DigestOf([]byte("c"))}
	beat := observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(jurattest.Start), Calls: new(int64(7))}
	missed := func(n int64) observed.Event {
		return observed.Event{Event: observed.Gap, Reason: "the disk was full", Missed: []observed.Missed{{Agent: "mia", Calls: n, Minute: evidence.FormatTime(jurattest.Start)}}}
	}
	event("gate", "recorder/gate", start)
	event("gate", "recorder/gate", beat)
	event("gate", "recorded/mia/monday", missed(2))
	event("gate", "recorder/gate", observed.Event{Event: observed.Stop, Reason: "the shift ended"})
	event("other", "recorder/other", start)
	event("gate", "recorder/gate", start)
	event("gate", "recorder/gate", beat)
	event("gate", "recorder/gate", missed(3))
	event("other", "recorder/other", observed.Event{Event: observed.Stop, Reason: "the night"})
	lost := call(1, "recorded/mia/monday", "mia", "question", "")
	lost.Ended, lost.Response = evidence.LostInCrash, nil
	seal(t, h, lost)

	// Two of one name run at a time: their calls are counted together, and only the end of one that counted alone says how many there were.
	at := func() string {
		return evidence.FormatTime(jurattest.Start.Add(time.Duration(seconds) * time.Second))
	}
	ends := func(since string, calls int64) observed.Event {
		return observed.Event{Event: observed.Stop, Reason: "done", Since: since, Calls: &calls}
	}
	event("twin", "recorder/twin", start)
	first := at()
	event("twin", "recorder/twin", start)
	second := at()
	event("twin", "recorder/twin", observed.Event{Event: observed.Heartbeat, Since: first, Calls: new(int64(7))})
	event("twin", "recorder/twin", ends(second, 2))
	event("alone", "recorder/alone", start)
	since := at()
	event("alone", "recorder/alone", observed.Event{Event: observed.Heartbeat, Since: since, Calls: new(int64(7))})
	event("alone", "recorder/alone", ends(at(), 2))
	event("older", "recorder/older", start)
	event("older", "recorder/older", ends(evidence.FormatTime(jurattest.Start), 2))
	event("twins", "recorder/twins", start)
	first = at()
	event("twins", "recorder/twins", start)
	event("twins", "recorder/twins", ends(at(), 2))
	event("twins", "recorder/twins", observed.Event{Event: observed.Heartbeat, Since: first, Calls: new(int64(7))}) // the first one goes on
	event("without a start", "recorder/without", ends(at(), 2))

	list, err := Recorders(t.Context(), h.Ledger, nil)
	if err != nil || len(list) != 7 {
		t.Fatalf("%+v, %v", list, err)
	}
	for i, want := range map[int]struct {
		calls   int64
		counted bool
	}{0: {9, true}, 1: {7, false}, 2: {2, false}, 3: {0, false}, 4: {9, false}, 5: {9, false}, 6: {2, false}} {
		if list[i].Calls != want.calls || list[i].Counted != want.counted {
			t.Errorf("%s: %d calls, %v; want %+v", list[i].Name, list[i].Calls, list[i].Counted, want)
		}
	}
	gate, other := list[1], list[3]
	if gate.Name != "gate" || gate.Calls != 7 || gate.Missed != 5 || gate.Gaps != 2 || gate.Stopped != "" || gate.Lost != 1 || gate.Of != 8 || gate.Heartbeat == "" || gate.LastGap == "" {
		t.Errorf("gate: %+v", gate)
	}
	if list[5].Stopped != "" || list[2].Stopped == "" {
		t.Errorf("who goes on has stopped: %+v; who stopped goes on: %+v", list[5], list[2])
	}
	if other.Reason != "the night" || other.Stopped == "" || other.Missed != 0 || other.Heartbeat != "" {
		t.Errorf("other: %+v", other)
	}
}
