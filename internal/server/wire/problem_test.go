package wire

import (
	"fmt"
	"net/http"
	"testing"

	"jurat/internal/ledger"
)

// TestProblemsOfArchives: a deleted record gives another status than a missing one, and so does a record whose archive
// is missing for now.
func TestProblemsOfArchives(t *testing.T) {
	for err, want := range map[error]int{ledger.ErrExpired: http.StatusGone, ledger.ErrArchive: http.StatusServiceUnavailable, ledger.ErrNotFound: http.StatusNotFound} {
		if p := Problem(fmt.Errorf("reading record r: %w", err)); p.Status != want || p.Detail == "" {
			t.Errorf("%v: %+v, want %d", err, p, want)
		}
	}
}
