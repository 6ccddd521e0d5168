package main

import (
	"testing"

	"jurat/verify"
)

// TestLies: a file is named as refuted for what would count, and not for a chain of which it has some records.
func TestLies(t *testing.T) {
	for _, c := range []struct {
		guarantee verify.Guarantee
		status    verify.Status
		want      bool
	}{{verify.Chain, verify.Refuted, false}, {verify.Content, verify.Refuted, true}, {verify.Content, verify.NotProved, false}} {
		report := &verify.Report{Outcome: c.status, Guarantees: []verify.Finding{{Guarantee: verify.Order, Status: verify.Proved}, {Guarantee: c.guarantee, Status: c.status}}}
		if got := lies(report); got != c.want {
			t.Errorf("%s %s: %v", c.guarantee, c.status, got)
		}
	}
}
