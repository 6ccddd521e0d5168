package verify_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/verify"
	"jurat/verify/trust"
)

// TestAnswers: the index gives the same answers as the report.
func TestAnswers(t *testing.T) {
	f := func(g verify.Guarantee, s verify.Status, record, reason string) verify.Finding {
		return verify.Finding{Guarantee: g, Status: s, Record: record, Reason: reason}
	}
	r := &verify.Report{
		Guarantees: []verify.Finding{f(verify.Content, verify.NotProved, "b", "1"), f(verify.Authentication, verify.Refuted, "", "3"), f(verify.Time, verify.Proved, "", ""), f(verify.Order, verify.NotProved, "", "no details")},
		Details: []verify.Finding{f(verify.Content, verify.NotProved, "b", "1"), f(verify.Authentication, verify.NotProved, "a", "2"), f(verify.Authentication, verify.Refuted, "", "3"),
			f(verify.Authentication, verify.Refuted, "a", "4"), f(verify.Content, verify.NotProved, "b", "5")},
		Times: []trust.TimeOf{{Record: "a", ProvedTime: trust.ProvedTime{Authority: "x"}}, {Record: "a", ProvedTime: trust.ProvedTime{Authority: "y"}}},
	}
	answers := r.Answers()
	for _, record := range []string{"a", "b", "c", ""} {
		for _, g := range verify.Guarantees() {
			if diff := cmp.Diff(r.For(g, record), answers.For(g, record)); diff != "" {
				t.Errorf("%s of %q: %s", g, record, diff)
			}
		}
		want, wantOK := r.TimeOf(record)
		if got, ok := answers.TimeOf(record); ok != wantOK || !cmp.Equal(got, want) {
			t.Errorf("the time of %q: %+v, %v", record, got, ok)
		}
	}
}
