package listlog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/trustlist"
)

// TestAt: of each territory the last issue by a moment is the newest, whatever the order of keeping was.
func TestAt(t *testing.T) {
	kept := func(territory string, sequence int64, issued string) Kept {
		return Kept{TrustedListBody: operator.TrustedListBody{Territory: territory, Sequence: sequence, Issued: issued}}
	}
	list := []Kept{kept("BE", 9, "2026-03-01T00:00:00Z"), kept("EU", 3, "2026-01-01T00:00:00Z"), kept("BE", 8, "2026-02-01T00:00:00Z"), kept("BE", 10, "2026-03-01T00:00:00Z")}
	for moment, want := range map[string][]int64{"2026-02-28T23:59:59Z": {3, 8}, "2026-03-01T00:00:00Z": {10, 3}, "2025-12-31T23:59:59Z": nil} {
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, k := range At(list, at) {
			got = append(got, k.Sequence)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", moment, diff)
		}
	}
}

// TestBody: a list that says no next date has none in its act, and the act is one that readers take.
func TestBody(t *testing.T) {
	issued := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, next := range []time.Time{{}, issued.AddDate(0, 6, 0)} {
		body := bodyOf(File{List: &trustlist.List{Territory: "BE", Sequence: 7, Issued: issued, NextUpdate: next, Digest: [32]byte{1}}}, "A. Person", "monthly")
		response, err := operator.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		read, err := operator.ReadTrustedList(&evidence.Payload{ActionType: evidence.TrustedList, ChainID: operator.ListsChain, Response: response})
		if err != nil || (read.NextUpdate == "") != next.IsZero() {
			t.Errorf("%s: %v", response, err)
		}
	}
}

// TestStoreRefusesAnotherFile: a file is kept under its own digest only.
func TestStoreRefusesAnotherFile(t *testing.T) {
	if err := (&Log{}).store(t.Context(), evidence.DigestOf([]byte("a")), []byte("b")); err == nil {
		t.Error("a file was kept under another's digest")
	}
}
