package operator

import (
	"testing"

	"jurat/evidence"
)

func TestTrialEvents(t *testing.T) {
	good := TrialEventBody{By: "b", Event: TrialCancelled, Reason: "r", Trial: evidence.TrialPrefix + "1"}
	body(t, evidence.TrialEvent, good)
	for name, c := range map[string]struct {
		change func(*TrialEventBody)
		good   bool
	}{
		"cancelled":    {func(*TrialEventBody) {}, true},
		"resumed":      {func(b *TrialEventBody) { b.Event = TrialResumed }, true},
		"no event":     {func(b *TrialEventBody) { b.Event = "" }, false},
		"other event":  {func(b *TrialEventBody) { b.Event = "paused" }, false},
		"nobody":       {func(b *TrialEventBody) { b.By = "" }, false},
		"no reason":    {func(b *TrialEventBody) { b.Reason = "" }, false},
		"no trial":     {func(b *TrialEventBody) { b.Trial = "" }, false},
		"no trial's":   {func(b *TrialEventBody) { b.Trial = "chain-1" }, false},
		"no name":      {func(b *TrialEventBody) { b.Trial = evidence.TrialPrefix + "a\nb" }, false},
		"operator's":   {func(b *TrialEventBody) { b.Trial = TrialsChain }, false},
		"not the form": {func(b *TrialEventBody) { b.Trial = "Trial-1" }, false},
	} {
		b := good
		c.change(&b)
		doc, err := Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: TrialsChain, Response: doc}); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	doc, err := Encode(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: AccessChain, Response: doc}); err == nil {
		t.Error("a trial event was accepted in another chain")
	}
}
