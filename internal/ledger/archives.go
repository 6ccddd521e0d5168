package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Archives returns the files that hold what rows have shed, in log order.
func (l *Ledger) Archives(ctx context.Context) ([]storage.Archived, error) {
	files, err := l.cfg.Store.Archives(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the list of archives: %w", err)
	}
	return files, nil
}

// PutArchive registers an archive file; see storage.Store. It returns ErrConflict, wrapped, if the file does not fit
// the registered ones.
func (l *Ledger) PutArchive(ctx context.Context, old evidence.Digest, next storage.Archived) error {
	if err := l.cfg.Store.PutArchive(ctx, old, next); err != nil {
		return fmt.Errorf("registering archive %s: %w", next.File, err)
	}
	return nil
}

// Shed removes from rows what an archive holds of them; see storage.Store. It returns ErrConflict, wrapped, if a row
// is in no archive or waits for a time stamp.
func (l *Ledger) Shed(ctx context.Context, rows []storage.Shedding) error {
	if err := l.cfg.Store.Shed(ctx, rows); err != nil {
		return fmt.Errorf("removing archived content from the database: %w", err)
	}
	return nil
}

// KeptRows returns exactly these rows, as the database has them: rows that have shed lack what an archive has.
func (l *Ledger) KeptRows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return storage.Exactly(from, n)(storage.Kept(l.cfg.Store).Rows(ctx, from, n))
}

// KeptRow returns the row of a record as the database has it. It returns ErrNotFound, wrapped, if there is none.
func (l *Ledger) KeptRow(ctx context.Context, recordID string) (storage.Row, error) {
	row, err := storage.Kept(l.cfg.Store).ByRecordID(ctx, recordID)
	if err != nil {
		return row, fmt.Errorf("reading record %s: %w", recordID, err)
	}
	return row, nil
}

// LastOf returns the digest of the last record of a chain, or zero if there is none. It reads that record's row alone, and knows it also if the chain has
// expired records.
func (l *Ledger) LastOf(ctx context.Context, chainID string) (evidence.Digest, error) {
	row, err := storage.Kept(l.cfg.Store).LastOfChain(ctx, chainID)
	if errors.Is(err, ErrNotFound) {
		return evidence.Digest{}, nil
	}
	if err != nil {
		return evidence.Digest{}, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	return row.Digest, nil
}

// HasChain reports whether a chain has records.
func (l *Ledger) HasChain(ctx context.Context, chainID string) (bool, error) {
	_, err := storage.Kept(l.cfg.Store).LastOfChain(ctx, chainID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	return true, nil
}

// RowsFrom returns exactly these rows, with what they have shed.
func (l *Ledger) RowsFrom(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return l.rows(ctx, from, n)
}

// Reclaim frees the room of what was shed, if the store can do that.
func (l *Ledger) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	if r, ok := storage.Kept(l.cfg.Store).(storage.Reclaimer); ok {
		if err := r.Reclaim(ctx, progress); err != nil {
			return fmt.Errorf("freeing the room of removed content in the database: %w", err)
		}
	}
	return nil
}

// Settled returns how many records, from the beginning of the log, wait for no time stamp.
func (l *Ledger) Settled(ctx context.Context) (int64, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return 0, err
	}
	owing, err := l.Owing(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range owing {
		waits, err := l.cfg.Store.Waiting(ctx, o.Authority, 0, 1)
		if err != nil {
			return 0, err
		}
		if len(waits) > 0 {
			size = min(size, waits[0].Index)
		}
	}
	return size, nil
}

// CheckpointOver returns a signed checkpoint over at least size records, and its head. It returns the last signed one
// if that covers enough.
func (l *Ledger) CheckpointOver(ctx context.Context, size int64) (string, storage.Head, error) {
	a, err := l.covering(ctx, size)
	if err != nil {
		return "", storage.Head{}, err
	}
	return a.signed, a.head, nil
}

// StoredHashes returns the hashes at these stored hash indexes, in this order, or ErrNotFound if one is missing.
func (l *Ledger) StoredHashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	return l.cfg.Store.Hashes(ctx, indexes)
}

// RowsAt returns exactly the rows at these places, each named once, in log order, with what they have shed.
func (l *Ledger) RowsAt(ctx context.Context, at []int64) ([]storage.Row, error) {
	rows, err := l.cfg.Store.RowsAt(ctx, at)
	if err == nil && len(rows) != len(at) {
		err = fmt.Errorf("%w: %d of them are missing", storage.ErrDamaged, len(at)-len(rows))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the rows at %d: %w", at, err)
	}
	return rows, nil
}
