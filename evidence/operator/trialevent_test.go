package operator

import (
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
)

func TestTrialEvents(t *testing.T) {
	good := TrialEventBody{By: "b", Event: TrialCancelled, Reason: "r", Trial: evidence.TrialPrefix + "1"}
	body(t, evidence.TrialEvent, good)
	taken := TrialEventBody{By: "otto", Event: TrialTaken, Trial: evidence.TrialPrefix + "1", Reviewer: "mia", Record: "019b76da-a800-7af4-9dc1-0b1e7f1aa123"}
	take := func(change func(*TrialEventBody)) func(*TrialEventBody) {
		return func(b *TrialEventBody) { *b = taken; change(b) }
	}
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

		"taken":                   {take(func(*TrialEventBody) {}), true},
		"taken for a reason":      {take(func(b *TrialEventBody) { b.Reason = "r" }), true},
		"left":                    {take(func(b *TrialEventBody) { b.Event = TrialLeft }), true},
		"taken, nobody says":      {take(func(b *TrialEventBody) { b.By = "" }), false},
		"taken by nobody":         {take(func(b *TrialEventBody) { b.Reviewer = "" }), false},
		"taken by no name":        {take(func(b *TrialEventBody) { b.Reviewer = "m\nia" }), false},
		"nothing taken":           {take(func(b *TrialEventBody) { b.Record = "" }), false},
		"what is no record taken": {take(func(b *TrialEventBody) { b.Record = "trial-1" }), false},
		"of no trial taken":       {take(func(b *TrialEventBody) { b.Trial = "chain-1" }), false},
		"cancelled, a reviewer":   {func(b *TrialEventBody) { b.Reviewer = "mia" }, false},
		"cancelled, a record":     {func(b *TrialEventBody) { b.Record = taken.Record }, false},
	} {
		b := good
		c.change(&b)
		doc := must.Get(Encode(b))(t)
		if _, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: TrialsChain, Response: doc}); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	doc := must.Get(Encode(good))(t)
	if _, err := ReadTrialEvent(&evidence.Payload{ActionType: evidence.TrialEvent, ChainID: AccessChain, Response: doc}); err == nil {
		t.Error("a trial event was accepted in another chain")
	}
}
