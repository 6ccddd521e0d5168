package storage_test

import (
	"strings"
	"testing"

	"jurat/internal/log/ledger/storage"
)

// TestHeadString checks that a head states its number of records in correct English.
func TestHeadString(t *testing.T) {
	for size, want := range map[int64]string{0: "0 records, ", 1: "1 record, ", 2: "2 records, "} {
		if got := (storage.Head{Size: size}).String(); !strings.HasPrefix(got, want) {
			t.Errorf("a head of %d says %q", size, got)
		}
	}
}
