package ledger

import (
	"context"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
)

// Entries iterates over the log's entries, the bytes that it hashed, from index from up to and excluding to. It
// compares each with its stored leaf hash first. It ends after an error, ErrDamaged if a row does not fit its leaf
// hash.
func (l *Ledger) Entries(ctx context.Context, from, to int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := l.within(ctx, from, to)
		for index := from; err == nil && index < to; {
			var entries [][]byte
			entries, err = l.entries(ctx, index, min(pageSize, to-index))
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
				index++
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("reading the log's entries: %w", err))
		}
	}
}

// entries returns exactly these entries.
func (l *Ledger) entries(ctx context.Context, from, n int64) ([][]byte, error) {
	rows, err := l.rows(ctx, from, n)
	if err != nil {
		return nil, err
	}
	indexes := make([]int64, n)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, from+int64(i))
	}
	leaves, err := l.cfg.Store.Hashes(ctx, indexes)
	if err != nil {
		return nil, err
	}
	entries := make([][]byte, n)
	for i := range rows {
		if entries[i], err = rows[i].LogEntry(); err != nil {
			return nil, err
		}
		if tlog.RecordHash(entries[i]) != leaves[i] {
			return nil, fmt.Errorf("%w: row %d differs from what was logged", ErrDamaged, rows[i].Index)
		}
	}
	return entries, nil
}

// Consistency returns the proof that the log of size from is the beginning of the log of size to. It returns
// ErrNotFound, wrapped, for a size outside the log.
func (l *Ledger) Consistency(ctx context.Context, from, to int64) (*operator.Consistency, error) {
	proof, err := l.ProveConsistency(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return &operator.Consistency{Origin: l.Origin(), From: from, To: to, Proof: proof}, nil
}

// SizeAt returns the size in a signed checkpoint of this log. It returns ErrCheckpoint if the checkpoint is not of
// this log, ErrBehind if the log is shorter, and ErrForked if the log contradicts it.
func (l *Ledger) SizeAt(ctx context.Context, signed string) (int64, error) {
	before, err := l.cfg.open(signed)
	if err != nil {
		return 0, err
	}
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return 0, err
	}
	return before.Size, contains(head, before, l.cfg.hashes(ctx))
}
