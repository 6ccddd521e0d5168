package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// lastRows is how many rows at the end of the log Open holds against the tree. Package fsck reads all of them.
const lastRows = 16

// Create begins a log in an empty store. It is an act of its own: a log that is missing is not begun anew by opening it.
func Create(ctx context.Context, cfg Config) (*Ledger, error) {
	l, err := newLedger(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating ledger: %w", err)
	}
	if err := l.create(ctx); err != nil {
		return nil, fmt.Errorf("creating ledger: %w", err)
	}
	return l, nil
}

func (l *Ledger) create(ctx context.Context) error {
	if l.cfg.Signer == nil {
		return fmt.Errorf("%w: the log's private key is missing", ErrReadOnly)
	}
	if err := l.nothingPublished(ctx); err != nil {
		return err
	}
	signed, err := l.sign(storage.EmptyHead)
	if err != nil {
		return err
	}
	// A crash before this leaves an empty store, and Create can be called again. After it there is a log, and Open
	// publishes the checkpoint that the next step would have published.
	err = l.cfg.Store.SetCheckpoint(ctx, "", signed)
	if errors.Is(err, ErrConflict) {
		return ErrExists
	}
	if err != nil {
		return err
	}
	return l.publish(ctx, signed)
}

// nothingPublished refuses to begin a log beside the traces of another, whose store went missing.
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
	return fmt.Errorf("%w: it has published a checkpoint, and its records are missing: restore them", ErrExists)
}

// Open opens a log that Create has begun, and checks that its parts agree: the head with the stored hashes, the last
// rows with their leaf hashes, the checkpoint with the key and the tree. It returns ErrNoLog, ErrCheckpoint or
// ErrDamaged when they do not; then fsck.Run says more.
//
// A log that has not reached the checkpoint in Config.Published, or lies where nothing can be written, opens for reading, and CanAppend
// says why.
func Open(ctx context.Context, cfg Config) (*Ledger, error) {
	l, err := newLedger(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening ledger: %w", err)
	}
	if err := l.open(ctx); err != nil {
		return nil, fmt.Errorf("opening ledger: %w", err)
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
	if err := l.compareWithPublished(ctx, signed, checkpoint, head); err != nil {
		return err
	}
	return l.briefs.CatchUp(ctx)
}

// agrees checks the parts of the store against each other.
func (l *Ledger) agrees(ctx context.Context, head, checkpoint storage.Head) error {
	hashes := l.cfg.hashes(ctx)
	if _, err := loadTree(head, hashes); err != nil {
		return err
	}
	if err := contains(head, checkpoint, hashes); err != nil {
		return fmt.Errorf("%w: the checkpoint beside it: %w", ErrDamaged, err)
	}
	from := max(0, head.Size-lastRows)
	rows, err := storage.Kept(l.cfg.Store).Rows(ctx, from, head.Size-from)
	if err != nil {
		return err
	}
	if int64(len(rows)) != head.Size-from {
		return fmt.Errorf("%w: of the last %d rows %d are there", ErrDamaged, head.Size-from, len(rows))
	}
	for i := range rows {
		if rows[i].HasShed() {
			continue // a file that is missing stops nobody from sealing; package fsck names it
		}
		if err := l.rowInTree(&rows[i], hashes); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) rowInTree(row *storage.Row, hashes tlog.HashReader) error {
	record, err := row.Record()
	if err != nil {
		return err
	}
	stored, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, row.Index)})
	if err != nil {
		return err
	}
	if stored[0] != storage.LeafHash(record, row.Counts) {
		return fmt.Errorf("%w: row %d (record %s) is not what was logged there", ErrDamaged, row.Index, row.RecordID)
	}
	return nil
}

// compareWithPublished finds out whether the store went back in time, and brings what is published up to date.
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
		l.refuse = fmt.Errorf("%w: it has signed one over %s, and none is published: "+
			"put the latest that anybody has there", ErrBehind, plural.Of(checkpoint.Size, "record"))
		return nil
	}
	published := storage.EmptyHead
	if outside != "" {
		if published, err = l.cfg.open(outside); err != nil {
			return fmt.Errorf("the published one: %w", err)
		}
	}
	err = contains(head, published, l.cfg.hashes(ctx))
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrForked) {
		l.known.Store(&published) // whoever wants to append is told, until the log has reached it
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

// CanAppend says why nothing can be sealed: ErrReadOnly, ErrBehind, ErrForked, and, where the store can tell before it is tried,
// ErrDiskFull. It returns nil when nothing stands against it.
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
	if prober, ok := storage.Kept(l.cfg.Store).(storage.Prober); ok {
		return prober.Probe(ctx)
	}
	return nil
}

// ReadOnly returns ErrReadOnly with the reason if nothing can be written where the log is.
func (l *Ledger) ReadOnly() error { return l.fixed }

// mayAppend says what can be said without looking at the store.
func (l *Ledger) mayAppend() error {
	if l.fixed != nil {
		return l.fixed
	}
	if l.cfg.Stamper == nil {
		return fmt.Errorf("%w: nobody to stamp", ErrReadOnly)
	}
	return l.refuse
}
