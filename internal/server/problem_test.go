package server

import (
	"fmt"
	"net/http"
	"testing"

	"jurat/internal/ledger"
)

// TestProblemsOfExpired: a deleted record gives another status than a missing one.
func TestProblemsOfExpired(t *testing.T) {
	for err, want := range map[error]int{ledger.ErrExpired: http.StatusGone, ledger.ErrNotFound: http.StatusNotFound} {
		if p := problemOf(fmt.Errorf("reading record r: %w", err)); p.Status != want || p.Detail == "" {
			t.Errorf("%v: %+v, want %d", err, p, want)
		}
	}
}
