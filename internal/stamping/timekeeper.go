package stamping

import (
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/witness"
)

// A Timekeeper gets time stamps for the records of a log that wait for them, renews those that end, and has authorities outside stamp
// the log's checkpoints. All its fields are required unless they say otherwise.
type Timekeeper struct {
	Ledger    *ledger.Ledger
	Operator  ledger.Operator // of the same ledger
	Stampers  *Stampers
	Files     filestore.Store
	Witnesses *witness.Asker
	Log       note.Verifier // of the log's checkpoints
	Now       func() time.Time
	Most      int // records for one token; 0: as many as one tree may hold
}

func (t *Timekeeper) most(usual int) int {
	if t.Most == 0 {
		return usual
	}
	return t.Most
}
