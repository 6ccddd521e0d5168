package incident_test

import (
	"fmt"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/words"
	"jurat/verify"
)

// TestFloodOfRecords: a statement on many unproved records takes time that grows linearly with their number. With
// quadratic time, this test took minutes.
func TestFloodOfRecords(t *testing.T) {
	const many = 30_000
	report := &verify.Report{Kind: verify.ManyRecords, Records: many}
	var records []*evidence.Record
	for n := range many {
		id := fmt.Sprintf("019b76da-a801-791b-aeb8-%012x", n)
		records = append(records, &evidence.Record{Payload: evidence.Payload{RecordID: id, ActionType: evidence.Message, AgentID: "a", Timestamp: "2026-01-01T00:00:00Z",
			Signers: []evidence.SignerInfo{{Algorithm: evidence.ES256}}}})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.NonRepudiation, verify.Time, verify.Order} {
			report.Details = append(report.Details, verify.Finding{Guarantee: g, Status: verify.NotProved, Record: id, Reason: "x"})
			if n == 0 {
				report.Guarantees = append(report.Guarantees, report.Details[len(report.Details)-1])
			}
		}
	}
	start := time.Now()
	if got := len(incident.Statement(records, report, words.English)); got <= many {
		t.Errorf("%d paragraphs on %d records", got, many)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
