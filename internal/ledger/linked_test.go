package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/jurattest"
	"jurat/verify"
)

// TestLinked checks that all records that name each other, by digest, id, chain or parent request, are gathered from
// any of them, and no others.
func TestLinked(t *testing.T) {
	h := jurattest.New(t)
	said := func(request, parent, chain, response string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "a", RequestID: request, ParentRequestID: parent, ChainID: chain,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(response),
			Parameters: jsontext.Value(`{}`)})
	}
	part := said("part", "whole", "", `"x"`) // a part is recorded before the whole
	stranger := said("else", "", "other", `"x"`)
	whole := said("whole", "", "", `"y"`)
	review := h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "u@example.com", Timestamp: "2026-01-01T00:00:05Z",
		OriginalResponseID: whole.Payload.RecordID, ApprovalStatus: evidence.Approved, Saw: []evidence.Digest{whole.Digest}})
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "a", Timestamp: "2026-01-01T00:00:06Z", Response: jsontext.Value(`"y"`),
		OriginalResponseID: whole.Payload.RecordID, Saw: []evidence.Digest{whole.Digest, review.Digest}})
	said("else", "", "", `"x"`) // a request_id alone links nothing
	h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "evil", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"z"`),
		Saw: []evidence.Digest{whole.Digest}}) // nor does a delivery by another agent that has a copy

	want := []*evidence.Record{part, whole, review, delivery}
	for _, from := range want {
		got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID)
		if err != nil || cut != nil {
			t.Fatal(err, cut)
		}
		if !slices.EqualFunc(got, want, func(a, b *evidence.Record) bool { return a.Digest == b.Digest }) {
			t.Errorf("from %s: %d records", from.Payload.ActionType, len(got))
		}
		if r := verify.Bundle(h.Bundle(t, got...), h.Options(t)); r.Outcome != verify.Proved {
			t.Errorf("from %s: %s, %+v", from.Payload.ActionType, r.Outcome, r.Details)
		}
	}
	if got, cut, err := h.Ledger.Linked(t.Context(), stranger.Payload.RecordID); err != nil || cut != nil || len(got) != 1 {
		t.Errorf("%d, %v", len(got), err)
	}
	if _, _, err := h.Ledger.Linked(t.Context(), "nothing"); !errors.Is(err, ledger.ErrNotFound) {
		t.Error(err)
	}
}

// TestLinkedByALaterActor checks that another actor's delivery counts once the case contains a record of that actor.
func TestLinkedByALaterActor(t *testing.T) {
	h := jurattest.New(t)
	said := func(agent, request, parent string) *evidence.Record {
		return h.Seal(t, evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: request, ParentRequestID: parent,
			Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"y"`),
			Parameters: jsontext.Value(`{}`)})
	}
	whole := said("a", "whole", "")
	delivery := h.Seal(t, evidence.Payload{ActionType: evidence.Delivery, AgentID: "b", Timestamp: "2026-01-01T00:00:07Z", Response: jsontext.Value(`"y"`),
		Saw: []evidence.Digest{whole.Digest}})
	if got, _, err := h.Ledger.Linked(t.Context(), whole.Payload.RecordID); err != nil || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
	part := said("b", "part", "whole")
	for _, from := range []*evidence.Record{whole, delivery, part} {
		if got, cut, err := h.Ledger.Linked(t.Context(), from.Payload.RecordID); err != nil || cut != nil || len(got) != 3 {
			t.Errorf("%d records, %v, %v", len(got), cut, err)
		}
	}
}
