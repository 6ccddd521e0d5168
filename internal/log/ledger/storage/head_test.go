package storage_test

import (
	"strings"
	"testing"

	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
)

// TestHeadString checks that a head states its number of records in correct English.
func TestHeadString(t *testing.T) {
	for size, want := range map[int64]string{0: "0 records, ", 1: "1 record, ", 2: "2 records, "} {
		got := (storage.Head{Size: size}).String()
		must.Hold(t, strings.HasPrefix(got, want), "a head of %d says %q", size, got)
	}
}
