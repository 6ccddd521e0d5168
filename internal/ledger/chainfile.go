package ledger

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/internal/keys"
	"jurat/internal/ledger/storage"
)

// A CaseFile reads records of the log one by one, as the log was when CaseFile was called. It holds only a few at a
// time, however many they are.
type CaseFile struct {
	Checkpoint string // chosen as Prove does
	Anchors    []evidence.Anchor

	l    *Ledger
	at   []int64
	head storage.Head
	keys *keys.History
}

// CaseFile opens the records at these indexes, in log order, for reading.
func (l *Ledger) CaseFile(ctx context.Context, at []int64) (*CaseFile, error) {
	under, anchors, err := l.under(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("choosing a checkpoint: %w", err)
	}
	keys, err := l.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return &CaseFile{Checkpoint: under.signed, Anchors: anchors, l: l, at: at, head: under.head, keys: keys}, nil
}

// Records iterates over the records in log order. Each has all its time stamps, its certificates, and the proof of
// its place under the checkpoint. It ends after an error.
func (f *CaseFile) Records(ctx context.Context) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		n, hashes := 0, cached(f.l.cfg.hashes(ctx))
		for row, err := range f.l.rowsAt(ctx, f.at) {
			if n++; n%1024 == 0 {
				hashes = cached(f.l.cfg.hashes(ctx)) // hashes read for earlier records are of little use for later ones
			}
			var record *evidence.Record
			if err == nil {
				record, err = row.Record()
			}
			if err == nil {
				record.Log = &evidence.LogProof{Index: row.Index, LogCounts: row.Counts}
				record.Certificates = f.keys.Certificates(&record.Payload)
				err = prove(record, f.head, hashes)
			}
			fault.While(&err, "reading a case")
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// At iterates over the records at these indexes, in log order. It holds a few at a time, and ends after an error.
func (l *Ledger) At(ctx context.Context, at []int64) iter.Seq2[Placed, error] {
	return func(yield func(Placed, error) bool) {
		for row, err := range l.rowsAt(ctx, at) {
			placed := Placed{}
			if err == nil {
				placed.Index = row.Index
				placed.Record, err = row.Record()
			}
			fault.While(&err, "reading a case")
			if !yield(placed, err) || err != nil {
				return
			}
		}
	}
}

// Linked returns the records that brief.Index.Gather gathers for any reader, in log order. cut is Gathered.Cut: why
// more are linked. The errors of Gather are among its errors.
func (l *Ledger) Linked(ctx context.Context, name string) (records []*evidence.Record, cut error, err error) {
	g, err := l.briefs.Gather(ctx, name, nil)
	if err != nil {
		return nil, nil, err
	}
	for r, err := range l.At(ctx, g.Indexes) {
		if err != nil {
			return nil, nil, err
		}
		records = append(records, r.Record)
	}
	return records, g.Cut, nil
}

// rowsAt iterates over the rows at these indexes, in log order. It checks their numbers in their chains, because a
// case contains a chain whole or not at all. It ends after an error, ErrDamaged if a row is missing or its number is
// wrong.
func (l *Ledger) rowsAt(ctx context.Context, at []int64) iter.Seq2[*storage.Row, error] {
	return func(yield func(*storage.Row, error) bool) {
		counts := map[string]int64{}
		for page := range slices.Chunk(at, smallPage) {
			rows, err := l.cfg.Store.RowsAt(ctx, page)
			if err == nil && len(rows) != len(page) {
				err = fmt.Errorf("%w: the log should have %d rows from row %d on, but %d were found", ErrDamaged, len(page), page[0], len(rows))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				row := &rows[i]
				if counts[row.ChainID]++; row.ChainID != "" && row.Counts.ChainSeq != counts[row.ChainID] {
					yield(nil, fmt.Errorf("%w: row %d was logged as number %d of its chain, but is number %d", ErrDamaged, row.Index, row.Counts.ChainSeq, counts[row.ChainID]))
					return
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// chainRows iterates over the rows of a chain, and reads a few at a time. It ends after an error.
func (l *Ledger) chainRows(ctx context.Context, chain string) iter.Seq2[*storage.Row, error] {
	return func(yield func(*storage.Row, error) bool) {
		for from := int64(0); ; {
			rows, err := l.cfg.Store.InChain(ctx, chain, from, smallPage)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if !yield(&rows[i], nil) {
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

// ChainRecords iterates over the records of a chain in log order, and holds a few at a time. It ends after an error.
func (l *Ledger) ChainRecords(ctx context.Context, chain string) iter.Seq2[*evidence.Record, error] {
	return func(yield func(*evidence.Record, error) bool) {
		for row, err := range l.chainRows(ctx, chain) {
			var record *evidence.Record
			if err == nil {
				record, err = row.Record()
			}
			fault.While(&err, "reading chain %q", chain)
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}
