package jury

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/must"
)

func TestEffort(t *testing.T) {
	e := Effort{Peers: []string{"b", "a"}, Attempts: []Attempt{
		{Model: "m", FinishReason: "length", Problem: "malformed", Answer: "{", InputTokens: 10, OutputTokens: 1, Cost: 7, Latency: 12},
		{Model: "m", FinishReason: "stop", Latency: 3}}}
	doc := must.Get(e.Encode())(t)
	if _, err := evidence.Canonical(doc); err != nil {
		t.Errorf("it cannot be sealed: %v", err)
	}
	got := must.Get(ReadEffort(doc))(t)
	if diff := cmp.Diff(e, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if none, err := ReadEffort(nil); err != nil || len(none.Attempts) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := ReadEffort([]byte(`{"attempts":1}`)); err == nil {
		t.Error("nonsense is read")
	}
	if doc, err := (Effort{}).Encode(); err != nil || string(doc) != `{"attempts":[]}` {
		t.Errorf("%s, %v", doc, err)
	}
}
