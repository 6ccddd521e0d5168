package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// lastRows is how many rows at the end of the log Open compares with the tree. Package fsck reads all of them.
const lastRows = 16

// Create begins a log in an empty store. Open never does, so that a missing log is noticed. Create returns ErrExists
// if the store has a log, or Config.Published has the checkpoint of one.
func Create(ctx context.Context, cfg Config) (_ *Ledger, err error) {
	defer fault.While(&err, "creating ledger")
	l, err := newLedger(cfg)
	if err != nil {
		return nil, err
	}
	signed, err := l.sign(storage.EmptyHead)
	if err != nil {
		return nil, err
	}
	if err := l.nothingPublished(ctx); err != nil {
		return nil, err
	}
	// A crash before this leaves an empty store, and Create can be called again. After it there is a log, and Open
	// publishes the checkpoint.
	err = l.cfg.Store.SetCheckpoint(ctx, "", signed)
	if errors.Is(err, ErrConflict) {
		return nil, ErrExists
	}
	if err == nil {
		err = l.publish(ctx, signed)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// nothingPublished returns ErrExists if a checkpoint is published: then there was a log before, and its store is
// missing.
func (l *Ledger) nothingPublished(ctx context.Context) error {
	if l.cfg.Published == nil {
		return nil
	}
	signed, err := l.cfg.Published.Load(ctx)
	if err != nil || signed == "" {
		return err
	}
	if in, err := l.cfg.Store.Checkpoint(ctx); err != nil || in != "" {
		return errors.Join(ErrExists, err)
	}
	return fmt.Errorf("%w: its checkpoint is published, but its records are missing: restore them", ErrExists)
}

// Open opens a log that Create has begun, and checks that its parts agree: the head with the stored hashes, the last
// rows with their leaf hashes, the checkpoint with the key and the tree. It returns ErrNoLog if there is no log, and
// ErrCheckpoint or ErrDamaged if the parts disagree. In that case fsck.Run tells more.
//
// A log that lacks records under the checkpoint in Config.Published, or whose store cannot be written, opens for
// reading, and CanAppend returns the reason.
func Open(ctx context.Context, cfg Config) (_ *Ledger, err error) {
	defer fault.While(&err, "opening ledger")
	l, err := newLedger(cfg)
	if err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	signed, err := l.cfg.Store.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if signed == "" {
		return ErrNoLog
	}
	checkpoint, err := l.cfg.open(signed)
	if err != nil {
		return err
	}
	head, err := l.cfg.Store.Head(ctx) // read after the checkpoint, which it must contain
	if err != nil {
		return err
	}
	if err := l.agrees(ctx, head, checkpoint); err != nil {
		return err
	}
	return l.compareWithPublished(ctx, signed, checkpoint, head)
}

// agrees checks that the parts of the store agree.
func (l *Ledger) agrees(ctx context.Context, head, checkpoint storage.Head) error {
	hashes := l.cfg.hashes(ctx)
	if _, err := loadTree(head, hashes); err != nil {
		return err
	}
	if err := contains(head, checkpoint, hashes); err != nil {
		return fmt.Errorf("%w: the stored checkpoint: %w", ErrDamaged, err)
	}
	from := max(0, head.Size-lastRows)
	rows, err := l.cfg.Store.Rows(ctx, from, head.Size-from)
	if err != nil {
		return err
	}
	if int64(len(rows)) != head.Size-from {
		return fmt.Errorf("%w: only %[3]d of the last %[2]d rows are in the store", ErrDamaged, head.Size-from, len(rows))
	}
	for i := range rows {
		if err := l.rowInTree(&rows[i], hashes); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) rowInTree(row *storage.Row, hashes tlog.HashReader) error {
	entry, err := row.LogEntry()
	if err != nil {
		return err
	}
	stored, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, row.Index)})
	if err != nil {
		return err
	}
	if stored[0] != tlog.RecordHash(entry) {
		return fmt.Errorf("%w: row %d (record %s) differs from what was logged there", ErrDamaged, row.Index, row.RecordID)
	}
	return nil
}

// compareWithPublished detects a store that was set back, and publishes a newer checkpoint of the store.
func (l *Ledger) compareWithPublished(ctx context.Context, signed string, checkpoint, head storage.Head) error {
	if l.cfg.Published == nil {
		l.learn(head)
		return nil
	}
	outside, err := l.cfg.Published.Load(ctx)
	if err != nil {
		return err
	}
	if outside == "" && checkpoint.Size > 0 {
		l.refuse = fmt.Errorf("%w: it covers %s, but no checkpoint is published: "+
			"restore the latest checkpoint that anyone has", ErrBehind, plural.Of(checkpoint.Size, "record"))
		return nil
	}
	published := storage.EmptyHead
	if outside != "" {
		if published, err = l.cfg.open(outside); err != nil {
			return fmt.Errorf("the published checkpoint: %w", err)
		}
	}
	err = contains(head, published, l.cfg.hashes(ctx))
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrForked) {
		l.known.Store(&published) // appending returns an error until the log contains it
		return nil
	}
	if err != nil {
		return err
	}
	l.learn(head)
	l.published = outside
	if l.cfg.Signer == nil || l.fixed != nil || published.Size >= checkpoint.Size {
		return nil
	}
	return l.publish(ctx, signed)
}

// CanAppend returns why no record can be sealed: ErrReadOnly, ErrBehind, ErrForked, or the store's reason, such as
// ErrDiskFull. It returns nil if it knows of no reason.
func (l *Ledger) CanAppend(ctx context.Context) error {
	if err := l.mayAppend(); err != nil {
		return err
	}
	known := *l.known.Load()
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return err
	}
	if err := contains(head, known, l.cfg.hashes(ctx)); err != nil {
		return err
	}
	if prober, ok := l.cfg.Store.(storage.Prober); ok {
		return prober.Probe(ctx)
	}
	return nil
}

// ReadOnly returns ErrReadOnly, with the reason, if the store cannot be written.
func (l *Ledger) ReadOnly() error { return l.fixed }

// mayAppend checks what it can without reading the store.
func (l *Ledger) mayAppend() error {
	if l.fixed != nil {
		return l.fixed
	}
	if l.cfg.Stamper == nil {
		return fmt.Errorf("%w: no time-stamping authority is configured", ErrReadOnly)
	}
	if l.refuse != nil {
		return l.refuse
	}
	return l.InPlace()
}

// InPlace returns ErrMoved, wrapped, if the files of the log are not where this process opened them.
func (l *Ledger) InPlace() error {
	if placed, ok := l.cfg.Store.(storage.Placed); ok {
		return placed.InPlace()
	}
	return nil
}
