package ledger

import (
	"context"
	"errors"
	"fmt"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// RowsFrom returns exactly these rows.
func (l *Ledger) RowsFrom(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return l.rows(ctx, from, n)
}

// RowsAt returns exactly the rows at these places, each named once, in log order.
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

// LastOf returns the digest of the last record of a chain, or zero if there is none. It knows it also if the record has
// expired.
func (l *Ledger) LastOf(ctx context.Context, chainID string) (evidence.Digest, error) {
	row, err := l.cfg.Store.LastOfChain(ctx, chainID)
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
	last, err := l.LastOf(ctx, chainID)
	return !last.IsZero(), err
}

// Expiry is what removes the content of records. Package expiry alone uses it.
func (l *Ledger) Expiry() storage.Expiry { return l.cfg.Store }

// Waits returns the places of records from index from to before from+n that wait for a time stamp.
func (l *Ledger) Waits(ctx context.Context, from, n int64) (map[int64]bool, error) {
	owing, err := l.Owing(ctx)
	if err != nil {
		return nil, err
	}
	places := map[int64]bool{}
	for _, o := range owing {
		waits, err := l.cfg.Store.Waiting(ctx, o.Authority, from, n)
		if err != nil {
			return nil, fmt.Errorf("reading what waits for %s: %w", o.Authority, err)
		}
		for _, w := range waits {
			places[w.Index] = true
		}
	}
	return places, nil
}
