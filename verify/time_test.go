package verify_test

import (
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestIndependentTime: the report gives the earliest time, and the earliest one by an independent clock.
func TestIndependentTime(t *testing.T) {
	r, o := standalone(t, output("a"))
	later, root := laterToken(t, r)
	r.Timestamps = append(r.Timestamps, later)
	o.Trust = withAuthority(o.Trust, root)
	report := verify.Record(r, o)
	at, ok := report.TimeOf(r.Payload.RecordID)
	if !ok || at.Clock != trust.OperatorClock || !at.Time.Equal(jurattest.Start) {
		t.Errorf("earliest %+v", at)
	}
	if i := at.Independent; i == nil || i.Authority != "second" || i.Clock != trust.Independent || !i.Time.Equal(jurattest.Start.Add(time.Hour)) {
		t.Errorf("independent %+v", i)
	}
	note := report.Of(verify.Time).Reason
	if !strings.Contains(note, "only as far as the operator's clock") || !strings.Contains(note, "it existed by 2026-01-01T01:00:00Z, as stamped by second, whose clock is independent") {
		t.Error(note)
	}
	doc, err := report.Marshal()
	if err != nil || !strings.Contains(string(doc), `"independent": {`) {
		t.Errorf("%v\n%s", err, doc)
	}

	o.Trust.Authorities[0].Clock = trust.Independent
	if at, _ := verify.Record(r, o).TimeOf(r.Payload.RecordID); at.Clock != trust.Independent || at.Independent != nil {
		t.Errorf("independent from the first: %+v", at)
	}
}

// TestFuture: a token from after the moment of checking shows only that a clock is wrong.
func TestFuture(t *testing.T) {
	stamped := jurattest.Start
	for _, tt := range []struct {
		at     time.Time
		status verify.Status
		rule   string
	}{
		{time.Time{}, verify.Proved, ""},
		{stamped, verify.Proved, ""},
		{stamped.Add(-5 * time.Minute), verify.Proved, ""},
		{stamped.Add(-5*time.Minute - 1), verify.NotProved, "future"},
	} {
		r, o := standalone(t, output("a"))
		o.At = tt.at
		if got := verify.Record(r, o).Of(verify.Time); got.Status != tt.status || got.Rule != tt.rule {
			t.Errorf("at %v: %+v", tt.at, got)
		}
	}
	// The other token still counts.
	r, o := standalone(t, output("a"))
	later, root := laterToken(t, r)
	r.Timestamps = []evidence.Timestamp{later, r.Timestamps[0]}
	o.Trust, o.At = withAuthority(o.Trust, root), stamped
	report := verify.Record(r, o)
	if at, _ := report.TimeOf(r.Payload.RecordID); report.Of(verify.Time).Status != verify.Proved || at.Independent != nil {
		t.Errorf("%+v, %+v", report.Of(verify.Time), at)
	}
}
