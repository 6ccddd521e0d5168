package ledger_test

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jurattest"
)

// TestReviewsThatWouldBeRefuted checks that a review that verification would refute is not sealed, if the reason is
// known then.
func TestReviewsThatWouldBeRefuted(t *testing.T) {
	h := jurattest.New(t)
	original := h.Seal(t, evidence.Payload{AgentID: "a", RequestID: "r", Timestamp: "2025-12-31T23:59:00Z", Model: "m", ModelVersion: "1",
		Prompt: jsontext.Value(`"Plan."`), Response: jsontext.Value(`{"road":"A9"}`), Parameters: jsontext.Value(`{}`)})
	for name, test := range map[string]struct {
		change func(*evidence.Payload)
		field  string
	}{
		"approved":                    {func(p *evidence.Payload) {}, ""},
		"approved, and the same text": {func(p *evidence.Payload) { p.ModifiedResponse = jsontext.Value(`{ "road": "A9" }`) }, ""},
		"approved, and another text":  {func(p *evidence.Payload) { p.ModifiedResponse = jsontext.Value(`"A3"`) }, "modified_response"},
		"modified": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.ApprovedWithModifications, jsontext.Value(`"A3"`)
		}, ""},
		"modified, and the same text": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.ApprovedWithModifications, jsontext.Value(`{"road":"A9"}`)
		}, "modified_response"},
		"rejected": {func(p *evidence.Payload) { p.ApprovalStatus = evidence.Rejected }, ""},
		"rejected, and a text": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse = evidence.Rejected, jsontext.Value(`"A3"`)
		}, "modified_response"},
		"rejected, a text, and unknown here": {func(p *evidence.Payload) {
			p.ApprovalStatus, p.ModifiedResponse, p.OriginalResponseID = evidence.Rejected, jsontext.Value(`"A3"`), "elsewhere"
		}, "modified_response"},
		"of one's own":    {func(p *evidence.Payload) { p.ReviewerID = "a" }, "reviewer_id"},
		"of another case": {func(p *evidence.Payload) { p.Case = evidence.DigestOf([]byte("x")) }, "case"},
	} {
		p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: "2025-12-31T23:59:30Z", OriginalResponseID: original.Payload.RecordID, ApprovalStatus: evidence.Approved}
		test.change(&p)
		draft, err := evidence.NewDraft(p)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = h.Ledger.Bind(t.Context(), draft)
		var field *evidence.FieldError
		if got := errors.As(err, &field); got != (test.field != "") || got && field.Field != test.field {
			t.Errorf("%s: %v, want one about %q", name, err, test.field)
		}
	}
}
