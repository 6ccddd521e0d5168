package stamping

import (
	"time"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
)

// A Timekeeper gets the time stamps that records of a log wait for, lets outside authorities stamp the
// log's checkpoints, and renews these stamps before they end. All its fields are required unless their comments say otherwise.
type Timekeeper struct {
	Ledger   *ledger.Ledger
	Operator ledger.Operator // of the same ledger
	Stampers *Stampers
	Files    filestore.Store
	Now      func() time.Time
}
