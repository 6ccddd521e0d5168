package brief

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"jurat/internal/ledger/storage"
)

// OfRow makes the brief of a row that is whole. Of one that has expired it says what the row says.
func OfRow(row *storage.Row) (*Brief, error) {
	b := &Brief{RecordID: row.RecordID, Digest: row.Digest, ChainID: row.ChainID, Case: row.Case}
	if row.Entry == nil {
		record, err := row.Record()
		if err != nil {
			return nil, err
		}
		b = Of(&record.Payload, record.Digest)
	}
	b.Index = row.Index
	return b, nil
}

// Read reads a brief as a store keeps it. It returns nil if there is none that can be read: package fsck names it, and its record says the same.
func Read(s *storage.StoredBrief) *Brief {
	b := &Brief{Index: s.Index, RecordID: s.RecordID, Digest: s.Digest, ChainID: s.ChainID, Case: s.Case}
	if s.Line == nil || b.Decode(s.Line, s.Names) != nil {
		return nil
	}
	return b
}

// briefs returns the briefs that a query selects, and the index of the last of them, -1 where there are none. Where there is no brief, or it
// cannot be read, the record is read. If that fails, what comes before it is returned with the error.
func (x *Index) briefs(ctx context.Context, q storage.BriefQuery) (list []*Brief, last int64, err error) {
	stored, err := x.store.Briefs(ctx, q)
	if err != nil {
		return nil, -1, err
	}
	last = -1
	for i := range stored {
		b := Read(&stored[i])
		if b == nil {
			if b, err = x.briefOfRecord(ctx, stored[i].Index); err != nil {
				return list, last, err
			}
		}
		list, last = append(list, b), b.Index
	}
	return list, last, nil
}

// briefOfRecord reads a record to say in brief what it is.
func (x *Index) briefOfRecord(ctx context.Context, index int64) (*Brief, error) {
	rows, err := storage.Exactly(index, 1)(x.store.Rows(ctx, index, 1))
	if err != nil {
		return nil, err
	}
	return OfRow(&rows[0])
}

// listPage is how many briefs are read at once.
const listPage = 256

// A Listing selects what List lists.
type Listing struct {
	From  int64
	Chain string // only this chain; "": the whole log
}

// List iterates over the log in its order, in brief. Records that have expired are passed over. The names of records are not read. It ends
// after an error.
func (x *Index) List(ctx context.Context, of Listing) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for from := max(0, of.From); ; {
			page, last, err := x.briefs(ctx, storage.BriefQuery{From: from, N: listPage, Chain: of.Chain})
			for _, b := range page {
				if !b.Expired() && !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, fmt.Errorf("listing the log: %w", err))
				return
			}
			if last < 0 {
				return
			}
			from = last + 1
		}
	}
}

// ByID returns a record in brief, or storage.ErrNotFound, or storage.ErrExpired.
func (x *Index) ByID(ctx context.Context, id string) (*Brief, error) {
	at, err := x.store.Places(ctx, storage.Lookup{RecordIDs: []string{id}, Most: 1})
	if err == nil && len(at) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("looking for record %s: %w", id, err)
	}
	list, _, err := x.briefs(ctx, storage.BriefQuery{At: at, Names: true})
	switch {
	case err == nil && len(list) != 1:
		err = fmt.Errorf("%w: row %d is missing", storage.ErrDamaged, at[0])
	case err == nil && list[0].Expired():
		err = storage.ErrExpired
	}
	if err != nil {
		return nil, fmt.Errorf("reading record %s: %w", id, err)
	}
	return list[0], nil
}

// FirstOfChain returns the first record of a chain in brief, or storage.ErrNotFound, or storage.ErrExpired.
func (x *Index) FirstOfChain(ctx context.Context, chain string) (*Brief, error) {
	list, _, err := x.briefs(ctx, storage.BriefQuery{Chain: chain, N: 1})
	switch {
	case err == nil && len(list) == 0:
		err = storage.ErrNotFound
	case err == nil && list[0].Expired():
		err = storage.ErrExpired
	}
	if err != nil {
		return nil, fmt.Errorf("reading chain %q: %w", chain, err)
	}
	return list[0], nil
}

// InTrials returns, in log order, the first records in brief that stand in the chain of any trial, at the index from and later, and
// the index to ask from next. It returns none when there are no more. Where a record cannot be read that has no brief, what comes before it
// is returned first, and then the error, for a missing archive an *UnreadableError.
func (x *Index) InTrials(ctx context.Context, from int64) (list []*Brief, next int64, err error) {
	for next = from; len(list) == 0; { // until there is something that has not expired
		page, last, err := x.briefs(ctx, storage.BriefQuery{From: next, N: listPage, Trials: true, Names: true})
		if err != nil && len(page) == 0 {
			return nil, 0, fmt.Errorf("reading what was said in trials: %w", err)
		}
		if last < 0 {
			break
		}
		list, next = slices.DeleteFunc(page, (*Brief).Expired), last+1
	}
	return list, next, nil
}
