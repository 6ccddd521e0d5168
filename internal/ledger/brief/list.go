package brief

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"jurat/internal/ledger/storage"
)

// OfRow makes the brief of a complete row. For an expired record it contains what the row says. It returns
// storage.ErrDamaged, wrapped, if the row is not a record.
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

// Read decodes a brief as a store keeps it. It returns nil if the brief is missing or cannot be read: the caller then
// reads the record, and package fsck reports the brief.
func Read(s *storage.StoredBrief) *Brief {
	b := &Brief{Index: s.Index, RecordID: s.RecordID, Digest: s.Digest, ChainID: s.ChainID, Case: s.Case}
	if s.Line == nil || b.Decode(s.Line, s.Names) != nil {
		return nil
	}
	return b
}

// briefs returns the briefs that a query selects, and the index of the last one, or -1 if there are none. If a brief
// is missing or cannot be read, it reads the record instead. If that fails, it returns the briefs before it with the
// error.
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

// briefOfRecord reads a record and makes its brief.
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

// List iterates over the briefs of the log in log order. It skips expired records and does not read the names of
// records. It ends after an error.
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

// ByID returns the brief of a record. It returns storage.ErrNotFound or storage.ErrExpired, wrapped, if there is
// none.
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

// FirstOfChain returns the brief of the first record of a chain. It returns storage.ErrNotFound or
// storage.ErrExpired, wrapped, if there is none.
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

// InTrials returns, in log order, the next briefs from index from on of records in the chains of trials, and the
// index to continue from. It returns no briefs at the end of the log. If a record without a brief cannot be read,
// InTrials first returns the briefs before it, and the error at the next call.
func (x *Index) InTrials(ctx context.Context, from int64) (list []*Brief, next int64, err error) {
	for next = from; len(list) == 0; { // until there is a record that has not expired
		page, last, err := x.briefs(ctx, storage.BriefQuery{From: next, N: listPage, Trials: true, Names: true})
		if err != nil && len(page) == 0 {
			return nil, 0, fmt.Errorf("reading the records of trials: %w", err)
		}
		if last < 0 {
			break
		}
		list, next = slices.DeleteFunc(page, (*Brief).Expired), last+1
	}
	return list, next, nil
}
