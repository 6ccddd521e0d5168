package brief

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"jurat/internal/fault"
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
		for b, err := range x.each(ctx, storage.BriefQuery{From: max(0, of.From), Chain: of.Chain}) {
			if err != nil {
				yield(nil, fmt.Errorf("listing the log: %w", err))
				return
			}
			if !b.Expired() && !yield(b, nil) {
				return
			}
		}
	}
}

// each iterates over the briefs that a query selects from an index on, and reads a page at a time. It ends after an error.
func (x *Index) each(ctx context.Context, q storage.BriefQuery) iter.Seq2[*Brief, error] {
	return func(yield func(*Brief, error) bool) {
		for q.N = listPage; ; {
			page, last, err := x.briefs(ctx, q)
			for _, b := range page {
				if !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
			if err != nil || last < 0 {
				return
			}
			q.From = last + 1
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

const (
	// rowPage is how many rows are read at once. Each can be as large as a record may be.
	rowPage = 4
	// briefPage is how many briefs one transaction stores when they are made of records that are in the log already.
	briefPage = 256
)

// An Index gives access to the briefs of one log. It is safe for concurrent use.
type Index struct {
	store Store
	fixed error // why the store cannot be written; nil: it can
}

// Store is what an Index needs of a store.
type Store interface {
	storage.Records
	storage.Briefs
}

// New returns the index of a log. If the store cannot be written, fixed says why.
func New(store Store, fixed error) *Index { return &Index{store: store, fixed: fixed} }

// Reindex makes all briefs again, but those of records that cannot be read. It returns an error if the store cannot be
// written.
func (x *Index) Reindex(ctx context.Context, progress func(done, total int64)) (err error) {
	if x.fixed != nil {
		return x.fixed
	}
	defer fault.While(&err, "making briefs of records")
	head, err := x.store.Head(ctx)
	if err != nil {
		return err
	}
	for at := int64(0); at < head.Size; {
		to := min(head.Size, at+briefPage)
		if err := x.page(ctx, storage.Range{From: at, To: to}); err != nil {
			return err
		}
		if at = to; progress != nil {
			progress(at, head.Size)
		}
	}
	return nil
}

func (x *Index) page(ctx context.Context, in storage.Range) error {
	var briefs []storage.StoredBrief
	for from := in.From; from < in.To; from += rowPage {
		rows, err := storage.ReadableRows(ctx, x.store, from, min(rowPage, in.To-from))
		if err != nil {
			return err
		}
		for i := range rows {
			b, err := OfRow(&rows[i])
			if err == nil {
				var stored storage.StoredBrief
				stored, err = b.Stored()
				briefs = append(briefs, stored)
			}
			if err != nil && !storage.Unreadable(err) {
				return err
			}
		}
	}
	return x.store.PutBriefs(ctx, in, briefs)
}

// Replaced returns how often briefs of old records were replaced, see storage.Briefs. Its errors are those of the store.
func (x *Index) Replaced(ctx context.Context) (int64, error) { return x.store.Replaced(ctx) }
