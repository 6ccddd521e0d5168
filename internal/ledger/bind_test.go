package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/ledger"
)

func TestBind(t *testing.T) {
	l := must(ledger.Create(t.Context(), config(fresh(t))))
	defer l.Close()
	seal := func(response string) *evidence.Record {
		draft := must(evidence.NewDraft(evidence.Payload{AgentID: "a", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m",
			ModelVersion: "v", Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(response), Parameters: jsontext.Value("{}")}))
		return must(l.Seal(t.Context(), draft, actor))
	}
	original, other := seal(`"one"`), seal(`"two"`)
	unknown := evidence.DigestOf(nil)
	id := original.Payload.RecordID
	tried := must(l.Seal(t.Context(), must(evidence.NewDraft(evidence.Payload{ActionType: evidence.Submission, AgentID: "sam", ChainID: "trial-1", ChainPosition: 1,
		Timestamp: "2026-01-01T00:00:00Z", Case: evidence.DigestOf([]byte("a case")), Response: jsontext.Value("{}")})), actor))

	tests := []struct {
		name     string
		action   evidence.ActionType
		id       string
		previous evidence.Digest
		chain    string
		saw      []evidence.Digest
		want     []evidence.Digest
		bound    bool
		refusal  string // the member that is refused
	}{
		{name: "filled in", action: evidence.HumanReview, id: id, want: []evidence.Digest{original.Digest}, bound: true},
		{name: "filled in beside another record before", action: evidence.HumanReview, id: id, previous: other.Digest,
			want: []evidence.Digest{original.Digest}, bound: true},
		{name: "bound by the record before", action: evidence.HumanReview, id: id, previous: original.Digest, bound: true},
		{name: "bound by the actor", action: evidence.HumanReview, id: id, saw: []evidence.Digest{other.Digest, original.Digest},
			want: []evidence.Digest{other.Digest, original.Digest}, bound: true},
		{name: "another version", action: evidence.HumanReview, id: id, saw: []evidence.Digest{unknown}, refusal: "saw"},
		{name: "another record", action: evidence.HumanReview, id: id, saw: []evidence.Digest{other.Digest}, refusal: "saw"},
		{name: "an id of elsewhere", action: evidence.HumanReview, id: "uuid-from-record-A"},
		{name: "a record of elsewhere", action: evidence.HumanReview, id: "uuid-from-record-A", saw: []evidence.Digest{unknown},
			want: []evidence.Digest{unknown}},
		{name: "an id of elsewhere for a record of this log", action: evidence.HumanReview, id: "uuid-from-record-A",
			saw: []evidence.Digest{other.Digest}, refusal: "original_response_id"},
		{name: "a delivery", action: evidence.Delivery, id: id, saw: []evidence.Digest{original.Digest, unknown},
			want: []evidence.Digest{original.Digest, unknown}, bound: true},
		{name: "a delivery of what it saw", action: evidence.Delivery, saw: []evidence.Digest{unknown},
			want: []evidence.Digest{unknown}, bound: true},
		{name: "a delivery of another version", action: evidence.Delivery, id: id, saw: []evidence.Digest{unknown}, refusal: "saw"},
		{name: "on a trial", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "trial-1", want: []evidence.Digest{tried.Digest}, bound: true},
		{name: "on a trial, elsewhere", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "desk", want: []evidence.Digest{tried.Digest}, bound: true},
		{name: "in a trial, on something else", action: evidence.HumanReview, id: id, chain: "trial-1", refusal: "chain_id"},
		{name: "in a trial, on what is not here", action: evidence.HumanReview, id: "uuid-from-record-A", chain: "trial-1", refusal: "chain_id"},
		{name: "in a trial that is not here", action: evidence.HumanReview, id: tried.Payload.RecordID, chain: "trial-2", refusal: "chain_id"},
		{name: "a delivery in a trial", action: evidence.Delivery, chain: "trial-1", saw: []evidence.Digest{unknown, tried.Digest},
			want: []evidence.Digest{unknown, tried.Digest}, bound: true},
		{name: "a delivery in a trial of something else", action: evidence.Delivery, chain: "trial-1", saw: []evidence.Digest{original.Digest, unknown}, refusal: "chain_id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := evidence.Payload{ActionType: tt.action, Timestamp: "2026-01-01T00:00:00Z", OriginalResponseID: tt.id, ChainID: tt.chain,
				PreviousRecord: tt.previous, Saw: tt.saw, Metadata: jsontext.Value(`{"kept":1.0}`)}
			if tt.action == evidence.HumanReview {
				p.ReviewerID, p.ApprovalStatus = "user@example.com", evidence.Approved
			} else {
				p.AgentID, p.Response = "a", jsontext.Value(`"one"`)
			}
			draft, bound, err := l.Bind(t.Context(), must(evidence.NewDraft(p)))
			var refused *evidence.FieldError
			if tt.refusal != "" {
				if !errors.As(err, &refused) || refused.Field != tt.refusal || !strings.Contains(err.Error(), map[string]string{"saw": "record " + id, "chain_id": "outside it"}[tt.refusal]) {
					t.Errorf("%v; want field %s refused", err, tt.refusal)
				}
				return
			}
			if err != nil || bound != tt.bound || !slices.Equal(draft.Saw, tt.want) || string(draft.Metadata) != `{"kept":1}` {
				t.Errorf("%v, bound %v, saw %v", err, bound, draft.Saw)
			}
		})
	}
	draft := must(evidence.NewDraft(evidence.Payload{AgentID: "a", RequestID: "r", Response: jsontext.Value(`"x"`), ChainPosition: 1}))
	if same, bound, err := l.Bind(t.Context(), draft); same != draft || !bound || err != nil {
		t.Errorf("a chain step: bound %v, %v", bound, err)
	}
}
