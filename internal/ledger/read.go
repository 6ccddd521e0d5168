package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

// pageSize is how many rows are read at once.
const pageSize = 32

// smallPage is how many rows are read at once on request: each can be as large as a record may be.
const smallPage = 4

// Record returns the record with this id. It returns ErrNotFound or ErrExpired, wrapped, if there is none.
func (l *Ledger) Record(ctx context.Context, id string) (*evidence.Record, error) {
	row, err := l.cfg.Store.ByRecordID(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("reading record %s: %w", id, err)
	}
	return row.Record()
}

// RecordByDigest returns the record with this payload digest. It returns ErrNotFound or ErrExpired, wrapped, if there
// is none.
func (l *Ledger) RecordByDigest(ctx context.Context, digest evidence.Digest) (*evidence.Record, error) {
	row, err := l.cfg.Store.ByDigest(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("reading the record with payload digest %v: %w", digest, err)
	}
	return row.Record()
}

// Chain returns the records of a chain in log order. It returns ErrNotFound, wrapped, if there are none.
func (l *Ledger) Chain(ctx context.Context, chainID string) (_ []*evidence.Record, err error) {
	defer fault.While(&err, "reading chain %q", chainID)
	return readChain(ctx, l.cfg.Store, chainID)
}

// InChain returns, in log order, the next records of a chain from index from on, and the index to continue from. It
// returns no records at the end of the chain.
func (l *Ledger) InChain(ctx context.Context, chainID string, from int64) (records []*evidence.Record, next int64, err error) {
	rows, err := l.cfg.Store.InChain(ctx, chainID, from, pageSize)
	if err != nil {
		return nil, 0, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	if len(rows) == 0 {
		return nil, from, nil
	}
	records, err = openRows(rows)
	return records, rows[len(rows)-1].Index + 1, err
}

// readChain returns a chain, after it has compared the log's count with the number of records: writers rely on the
// chain's length.
func readChain(ctx context.Context, store storage.Store, chainID string) ([]*evidence.Record, error) {
	rows, err := store.ByChain(ctx, chainID)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if n := rows[i].Counts.ChainSeq; n != int64(i+1) {
			return nil, fmt.Errorf("%w: row %d was logged as number %d of its chain, but is number %d", ErrDamaged, rows[i].Index, n, i+1)
		}
	}
	return openRows(rows)
}

func openRows(rows []storage.Row) ([]*evidence.Record, error) {
	records := make([]*evidence.Record, len(rows))
	for i := range rows {
		var err error
		if records[i], err = rows[i].Record(); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// A Placed is a record with its place in the log.
type Placed struct {
	Index int64
	*evidence.Record
}

// Records iterates over the log in log order, from index from to the size at the start of the iteration. It skips
// expired records, and ends after an error.
func (l *Ledger) Records(ctx context.Context, from int64) iter.Seq2[Placed, error] {
	return func(yield func(Placed, error) bool) {
		head, err := l.cfg.Store.Head(ctx)
		for index := max(0, from); err == nil && index < head.Size; index += smallPage {
			var records []Placed
			records, err = l.page(ctx, index, min(smallPage, head.Size-index))
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(Placed{}, fmt.Errorf("reading the log: %w", err))
		}
	}
}

// page returns these records without the expired ones.
func (l *Ledger) page(ctx context.Context, from, n int64) ([]Placed, error) {
	rows, err := l.RowsFrom(ctx, from, n)
	if err != nil {
		return nil, err
	}
	placed := make([]Placed, 0, n)
	for i := range rows {
		if rows[i].Entry != nil {
			continue
		}
		record, err := rows[i].Record()
		if err != nil {
			return nil, err
		}
		placed = append(placed, Placed{rows[i].Index, record})
	}
	return placed, nil
}

// RowsFrom returns exactly these rows.
func (l *Ledger) RowsFrom(ctx context.Context, from, n int64) ([]storage.Row, error) {
	return storage.Exactly(from, n)(l.cfg.Store.Rows(ctx, from, n))
}

// Bind is links.Known.Bind: it binds a review or delivery to the record that it is about. Its errors are those of
// links.Known.Bind.
func (l *Ledger) Bind(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, bool, error) {
	return l.links.Bind(ctx, draft)
}

// Index returns the record's place in the log. It returns ErrNotFound, wrapped, also if the log has the same payload
// with other signatures.
func (l *Ledger) Index(ctx context.Context, record *evidence.Record) (int64, error) {
	row, err := l.row(ctx, record)
	return row.Index, err
}

func (l *Ledger) row(ctx context.Context, record *evidence.Record) (storage.Row, error) {
	row, err := l.cfg.Store.ByDigest(ctx, record.Digest)
	if err != nil {
		return storage.Row{}, fmt.Errorf("looking for record %s in the log: %w", record.Payload.RecordID, err)
	}
	stored, err := row.Record()
	if err != nil {
		return storage.Row{}, err
	}
	if !same(stored, record) {
		return storage.Row{}, fmt.Errorf("looking for record %s in the log: %w: the log has it with other signatures", record.Payload.RecordID, ErrNotFound)
	}
	return row, nil
}

// RowsAt returns exactly the rows at these places, each named once, in log order.
func (l *Ledger) RowsAt(ctx context.Context, at []int64) (rows []storage.Row, err error) {
	defer fault.While(&err, "reading the rows at %d", at)
	rows, err = l.cfg.Store.RowsAt(ctx, at)
	if err == nil && len(rows) != len(at) {
		err = fmt.Errorf("%w: %d of them are missing", storage.ErrDamaged, len(at)-len(rows))
	}
	return rows, err
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
