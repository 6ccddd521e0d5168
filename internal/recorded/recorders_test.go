package recorded

import (
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/jurattest"
)

// TestRecorders: the log says of each recorder when it began and ended, what it counted since, and what it missed or lost, wherever these acts stand.
func TestRecorders(t *testing.T) {
	h := jurattest.New(t)
	seconds := 0
	event := func(recorder, chain string, e observed.Event) {
		t.Helper()
		seconds++
		p, err := e.Payload(recorder, evidence.FormatTime(jurattest.Start.Add(time.Duration(seconds)*time.Second)), chain)
		if err != nil {
			t.Fatal(err)
		}
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

	list, err := Recorders(t.Context(), h.Ledger, nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	gate, other := list[0], list[1]
	if gate.Name != "gate" || gate.Calls != 7 || gate.Missed != 5 || gate.Gaps != 2 || gate.Stopped != "" || gate.Lost != 1 || gate.Of != 8 || gate.Heartbeat == "" || gate.LastGap == "" {
		t.Errorf("gate: %+v", gate)
	}
	if other.Reason != "the night" || other.Stopped == "" || other.Missed != 0 || other.Heartbeat != "" {
		t.Errorf("other: %+v", other)
	}
}
