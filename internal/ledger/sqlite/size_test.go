package sqlite

import (
	"errors"
	"math"
	"testing"

	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// TestSizesThatNoLogHas checks that a size from a foreign database cannot cause endless computation.
func TestSizesThatNoLogHas(t *testing.T) {
	s := create(t, t.TempDir()+"/log.db")
	for _, statement := range []string{"DROP TRIGGER IF EXISTS head_grows", "PRAGMA ignore_check_constraints = ON"} {
		if _, err := s.writer.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for size, fits := range map[int64]bool{3: true, operator.MaxEntries: true, operator.MaxEntries + 1: false, 1<<62 + 1: false, math.MaxInt64: false, -1: false} {
		if _, err := s.writer.ExecContext(t.Context(), `UPDATE head SET size = ?`, size); err != nil {
			t.Fatal(err)
		}
		if head, err := s.Head(t.Context()); fits == errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%d: %v, %v", size, head, err)
		}
	}
}
