package stamping

import (
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/witness"
)

// A Timekeeper gets the time stamps that records of a log wait for, renews stamps before they end, and lets outside authorities stamp the
// log's checkpoints. All its fields are required unless their comments say otherwise.
type Timekeeper struct {
	Ledger    *ledger.Ledger
	Operator  ledger.Operator // of the same ledger
	Stampers  *Stampers
	Files     filestore.Store
	Witnesses *witness.Asker
	Log       note.Verifier // verifies the log's checkpoints
	Now       func() time.Time
	Most      int // how many records one token covers; 0: as many as one tree may hold
}

func (t *Timekeeper) most(usual int) int {
	if t.Most == 0 {
		return usual
	}
	return t.Most
}
