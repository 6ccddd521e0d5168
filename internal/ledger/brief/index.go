package brief

import (
	"context"

	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

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
