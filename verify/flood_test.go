package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/verify"
)

// looked is how many time stamps of a record or checkpoint are checked at most.
const looked = 128

// TestFloodOfTimestamps: the sender of a file controls how many time stamps it has. If there are too many, even a
// good one proves nothing.
func TestFloodOfTimestamps(t *testing.T) {
	r, o := standalone(t, output("a"))
	stranger := newTSA(t, "stranger", on(1000))
	for len(r.Timestamps) < looked {
		r.Timestamps = append(r.Timestamps, stranger.plain(t, r, on(1).Add(time.Duration(len(r.Timestamps))*time.Second)))
	}
	if got := verify.Record(r, o).Of(verify.Time); got.Status != verify.Proved {
		t.Errorf("of %d: %+v", looked, got)
	}
	r.Timestamps = append(r.Timestamps, stranger.plain(t, r, on(2)))
	if got := verify.Record(r, o).Of(verify.Time); got.Status != verify.NotProved || got.Rule != "authority" || !strings.Contains(got.Reason, "none is checked") {
		t.Errorf("of one more: %+v", got)
	}
}

// TestFloodOfReviews: the time for as many deliveries as reviews, and for reviews of reviews, grows linearly. With
// quadratic growth these cases took minutes.
func TestFloodOfReviews(t *testing.T) {
	const many = 12_000
	numbered := func(n int, p evidence.Payload) *evidence.Record {
		p.RecordID, p.Timestamp = fmt.Sprintf("019b76da-a801-791b-aeb8-%012x", n), "2026-01-01T00:00:00Z"
		digest := evidence.DigestOf([]byte(p.RecordID))
		p.Signers = []evidence.SignerInfo{{Algorithm: evidence.ES256, KeyID: digest}}
		return &evidence.Record{Payload: p, Digest: digest, Signatures: [][]byte{{1}}}
	}
	review := func(n int, of *evidence.Record) *evidence.Record {
		return numbered(n, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "r", OriginalResponseID: of.Payload.RecordID,
			ApprovalStatus: evidence.Approved, ModifiedResponse: []byte(`"b"`), Saw: []evidence.Digest{of.Digest}})
	}
	refuted := func(t *testing.T, records []*evidence.Record, first *evidence.Record) {
		t.Helper()
		got := verify.Bundle(&evidence.Bundle{Records: records}, verify.Options{}).Of(verify.HumanReview)
		if got.Status != verify.Refuted || got.Rule != "approval" || got.Record != first.Payload.RecordID {
			t.Errorf("%+v", got)
		}
	}
	original := output("a")
	original.Response = []byte(`"a"`)
	first := numbered(0, original)
	t.Run("of one record", func(t *testing.T) {
		records := []*evidence.Record{first}
		for i := range many {
			records = append(records, numbered(1+i, evidence.Payload{ActionType: evidence.Delivery, AgentID: "d", Response: []byte(`"a"`),
				OriginalResponseID: first.Payload.RecordID, Saw: []evidence.Digest{first.Digest}}))
		}
		for i := range many {
			records = append(records, review(1+many+i, first))
		}
		refuted(t, records, records[1+many])
	})
	t.Run("of each other", func(t *testing.T) {
		records := []*evidence.Record{first}
		for i := range many {
			records = append(records, review(1+i, records[i]))
		}
		refuted(t, records, records[1])
	})
}
