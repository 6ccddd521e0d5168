package verify_test

import (
	"slices"
	"testing"

	"jurat/verify"
)

// TestFindingsThatSayTheSameAreOneGroup: the answer stands first, once, and what is of another guarantee is left out.
func TestFindingsThatSayTheSameAreOneGroup(t *testing.T) {
	of := func(g verify.Guarantee, s verify.Status, rule, record string) verify.Finding {
		return verify.Finding{Guarantee: g, Status: s, Rule: rule, Record: record, Reason: "of " + record}
	}
	answer := of(verify.Time, verify.Refuted, "token", "c")
	r := &verify.Report{Details: []verify.Finding{of(verify.Time, verify.NotProved, "pending", "a"), of(verify.Content, verify.Refuted, "token", "a"),
		of(verify.Time, verify.NotProved, "pending", "b"), answer, of(verify.Time, verify.Refuted, "token", "d"), of(verify.Time, verify.NotProved, "token", "e")}}
	want := []verify.Group{{Finding: answer, More: 1}, {Finding: r.Details[0], More: 1}, {Finding: r.Details[5]}}
	if got := r.Grouped(answer); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	proved := of(verify.Order, verify.Proved, "", "")
	if got := r.Grouped(proved); !slices.Equal(got, []verify.Group{{Finding: proved}}) {
		t.Errorf("%+v", got)
	}
}
