package server

import (
	"fmt"
	"net/http"
	"testing"

	"jurat/internal/ledger"
)

// TestProblemsOfArchives: a record that was deleted is not one that never was, and one whose archive is missing can be had again.
func TestProblemsOfArchives(t *testing.T) {
	for err, want := range map[error]int{ledger.ErrExpired: http.StatusGone, ledger.ErrArchive: http.StatusServiceUnavailable, ledger.ErrNotFound: http.StatusNotFound} {
		if p := problemOf(fmt.Errorf("reading record r: %w", err)); p.Status != want || p.Detail == "" {
			t.Errorf("%v: %+v, want %d", err, p, want)
		}
	}
}
