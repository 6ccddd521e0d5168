package ledger

import (
	"context"
	"fmt"
	"iter"

	"jurat/evidence"
	"jurat/internal/keyhistory"
)

// A ChainFile is a chain, as it was when it was asked for, to be read record by record: however long it is, no more than a few
// records are held.
type ChainFile struct {
	Checkpoint string // as Prove chooses it
	Stamps     []evidence.Timestamp

	l    *Ledger
	id   string
	end  int64 // index after the last record
	head Head
	keys *keyhistory.History
}

// ChainFile opens a chain for reading, or returns ErrNotFound.
func (l *Ledger) ChainFile(ctx context.Context, chain string) (*ChainFile, error) {
	f, err := l.chainFile(ctx, chain)
	if err != nil {
		return nil, fmt.Errorf("reading chain %q: %w", chain, err)
	}
	return f, nil
}

func (l *Ledger) chainFile(ctx context.Context, chain string) (*ChainFile, error) {
	last, err := l.cfg.Store.LastOfChain(ctx, chain)
	if err != nil {
		return nil, err
	}
	under, err := l.stamped(ctx, last.Index+1)
	if err != nil {
		return nil, err
	}
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return &ChainFile{Checkpoint: under.signed, Stamps: under.stamps, l: l, id: chain, end: last.Index + 1, head: under.head, keys: keys}, nil
}

// Records iterates over the chain in the order of the log. Each record has all its time stamps, and the proof of its place under the
// checkpoint. It ends after an error.
func (f *ChainFile) Records(ctx context.Context) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		count, hashes := int64(0), cached(f.l.cfg.hashes(ctx))
		for row, err := range f.l.chainRows(ctx, f.id, f.end) {
			var record *evidence.Record
			if count++; err == nil && row.Counts.ChainSeq != count {
				err = fmt.Errorf("%w: row %d was logged as %d of the chain, and is %d", ErrDamaged, row.Index, row.Counts.ChainSeq, count)
			}
			if count%1024 == 0 {
				hashes = cached(f.l.cfg.hashes(ctx)) // what was read for the records before is of little use for those after
			}
			if err == nil {
				record, err = openRow(row)
			}
			if err == nil {
				record.Log = &evidence.LogProof{Index: row.Index, LogCounts: row.Counts}
				record.Certificates = f.keys.Certificates(&record.Payload)
				err = prove(record, f.head, hashes)
			}
			if err != nil {
				yield(nil, fmt.Errorf("reading chain %q: %w", f.id, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
	}
}

// chainRows iterates over the rows of a chain up to an index, -1 for all, a few at a time. It ends after an error.
func (l *Ledger) chainRows(ctx context.Context, chain string, end int64) iter.Seq2[*Row, error] {
	return func(yield func(*Row, error) bool) {
		for from := int64(0); ; {
			rows, err := l.cfg.Store.InChain(ctx, chain, from, linkPage)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if end >= 0 && rows[i].Index >= end || !yield(&rows[i], nil) {
					return
				}
				from = rows[i].Index + 1
			}
			if len(rows) == 0 {
				return
			}
		}
	}
}

// ChainRecords iterates over the records of a chain in log order, a few of which are held at a time. It ends after an error.
func (l *Ledger) ChainRecords(ctx context.Context, chain string) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		for row, err := range l.chainRows(ctx, chain, -1) {
			var record *evidence.Record
			if err == nil {
				record, err = openRow(row)
			}
			if err != nil {
				err = fmt.Errorf("reading chain %q: %w", chain, err)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}
