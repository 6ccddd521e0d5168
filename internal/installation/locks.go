package installation

import (
	"context"
	"fmt"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/verify"
)

// locksFolder has the name that earlier programs gave it, because a process of theirs may run beside this one.
const locksFolder = "claims"

// Locks returns the locks on the trials of this installation, which keep other processes from acting in a trial. Close releases them.
func (i *Installation) Locks() lock.Locks { return i.locks }

// Files returns the store of the installation's small files.
func (i *Installation) Files() filestore.Store { return i.files }

// Vouch checks that this installation's own keys signed the records as they are now. It returns an error with ledger.ErrDamaged in its
// chain if they did not. The log itself notices a change to a record that a checkpoint covers. For records after the last checkpoint, only
// their signatures can show a change.
func (i *Installation) Vouch(ctx context.Context, records ...*evidence.Record) error {
	trust, err := i.Trust(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication} {
			if f := report.Of(g); f.Status != verify.Proved {
				return fmt.Errorf("%w: record %s: %s %s: %s", ledger.ErrDamaged, r.Payload.RecordID, g, f.Status, f.Reason)
			}
		}
	}
	return nil
}
