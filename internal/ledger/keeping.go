package ledger

import (
	"context"
	"errors"
	"sync"

	"jurat/evidence"
	"jurat/internal/fault"
)

// A keeping stores what one record seals apart, before the record is committed. A crash in between leaves values that
// belong to no record.
//
// Storing mostly waits for the disk. So of a lone caller it begins before the record is signed. Meanwhile the record is
// signed and stamped and its transaction prepared, which commits when the values are durable. Many callers share both, and
// a transaction that is open for longer would delay them: their values are stored before they append.
type keeping struct {
	ledger *Ledger
	record *evidence.Record // nil: it has nothing to keep
	stored func() error     // waits until the values are stored or cannot be; nil: that has not begun
}

// begin begins to keep the values of a record that is not signed yet, if it is time. end must be called.
func (k *keeping) begin(ctx context.Context, record *evidence.Record) {
	if !k.ledger.keeps(record) {
		return
	}
	k.record = record
	if lone := k.ledger.keeping.Add(1) == 1; !lone || !k.ledger.cfg.OneDisk {
		return
	}
	done := make(chan error, 1)
	go func() { done <- fault.Guard(func() error { return k.ledger.cfg.Apart.Keep(ctx, record) }) }()
	k.stored = sync.OnceValue(func() error { return <-done })
}

// append appends the record, which is not committed before its values are stored.
func (k *keeping) append(ctx context.Context, a *appending) error {
	if k.record != nil && k.stored == nil {
		err := k.ledger.cfg.Apart.Keep(ctx, k.record)
		if k.stored = func() error { return err }; err != nil {
			return err
		}
	} else {
		a.kept = k.stored
	}
	return k.ledger.append(ctx, a)
}

// end returns the error with which sealing ended, when nothing is being stored any more. It removes the values of a record
// that is not in the log.
func (k *keeping) end(ctx context.Context, err error) error {
	if k.record == nil {
		return err
	}
	defer k.ledger.keeping.Add(-1)
	if k.stored == nil {
		return err
	}
	if failed := k.stored(); err == nil {
		err = failed
	}
	// After these errors the record may be in the log, so its values must stay.
	if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrDamaged) {
		// The values must be removed even if the caller's context has ended.
		err = errors.Join(err, k.ledger.cfg.Apart.Forget(context.WithoutCancel(ctx), k.record))
	}
	return err
}
