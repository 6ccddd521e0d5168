package installation

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	"jurat/internal/lock"
	"jurat/internal/witness"
	"jurat/scitt"
	"jurat/verify"
	"jurat/verify/trust"
)

// Trust returns the trust file of this installation: every key that ever signed, its authorities and its log. Its
// errors are those of reading the log and the file store.
func (i *Installation) Trust(ctx context.Context) (*trust.Trust, error) {
	history, err := i.history(ctx)
	if err != nil {
		return nil, err
	}
	return i.trust(ctx, history)
}

// history returns what the log says about keys. It reads the local database only.
func (i *Installation) history(ctx context.Context) (*keys.History, error) {
	if i.Ledger == nil { // Fsck examines the log without opening it
		return keys.NewHistory(), nil
	}
	return i.Ledger.Keys(ctx)
}

// known is history as it was when this process last read it.
func (i *Installation) known(ctx context.Context) (*keys.History, error) {
	if i.Ledger == nil {
		return keys.NewHistory(), nil
	}
	return i.Ledger.KnownKeys(ctx)
}

// readHistory reads what the log in a store says about keys. If the log contradicts itself, readHistory reports damage, and only the key
// files remain as a source.
func readHistory(ctx context.Context, store storage.Store) (*keys.History, []fsck.Damage) {
	history, err := ledger.ReadKeys(ctx, store)
	if err != nil {
		return keys.NewHistory(), []fsck.Damage{{Kind: fsck.DamageKeyEvents, Index: -1, Detail: err.Error()}}
	}
	return history, nil
}

func (i *Installation) trust(ctx context.Context, history *keys.History) (*trust.Trust, error) {
	witnesses, err := witness.ReadSettings(ctx, i.files)
	if err != nil {
		return nil, err
	}
	return i.trustWith(ctx, history, witnesses)
}

// canDemand returns an error if a trust file cannot demand these witnesses.
func (i *Installation) canDemand(ctx context.Context, witnesses *witness.Settings) error {
	history, err := i.history(ctx)
	if err != nil {
		return err
	}
	_, err = i.trustWith(ctx, history, witnesses)
	return err
}

func (i *Installation) trustWith(ctx context.Context, history *keys.History, witnesses *witness.Settings) (*trust.Trust, error) {
	held, err := i.Keys.Keys(ctx)
	if err != nil {
		return nil, err
	}
	t := &trust.Trust{Format: trust.Format, Keys: keys.Trusted(held, history), Logs: []string{i.log.public},
		Authorities: i.stampers.Trusted(), Quorum: witnesses.Quorum}
	for _, w := range witnesses.List {
		t.Witnesses = append(t.Witnesses, w.Key)
	}
	doc, err := t.Marshal()
	if err != nil {
		return nil, err
	}
	return trust.Parse(doc) // parsing it proves that a reader will accept it
}

// Receipt returns a COSE receipt (RFC 9942) for the record's entry in the log. It returns scitt.ErrNoReceipt if the record carries no proof of its
// place in this log, ledger.ErrForked if the log contradicts that proof, and the errors of the log's key.
func (i *Installation) Receipt(ctx context.Context, r *evidence.Record) ([]byte, error) {
	if i.log.signer == nil {
		return nil, fmt.Errorf("%w: the log's private key is missing", ledger.ErrReadOnly)
	}
	if r.Log != nil && r.Log.Checkpoint != "" {
		if _, err := i.Ledger.SizeAt(ctx, r.Log.Checkpoint); err != nil && !errors.Is(err, ledger.ErrCheckpoint) {
			return nil, err // the log signs no root that it does not have
		}
	}
	return scitt.SignReceipt(r, scitt.Log{Key: i.log.public, Sign: i.log.signer.Sign})
}

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
