package brief

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"jurat/internal/ledger/storage"
)

const (
	// rowPage is how many rows are read at once. Each can be as large as a record may be.
	rowPage = 4
	// briefPage is how many briefs one transaction stores when they are made of records that are in the log already.
	briefPage = 256
	// unnoted is how many briefs at the end of the log may be missing from the stored count. Opening the log counts
	// them each time.
	unnoted = 4096
	// mostRanges is how many ranges of rows without briefs are listed separately.
	mostRanges = 1000
)

// An Index gives access to the briefs of one log. It is safe for concurrent use.
type Index struct {
	store    Store
	fixed    error                   // why the store cannot be written; nil: it can
	progress func(done, total int64) // called with the progress of CatchUp; may be nil
	briefed  atomic.Int64            // this many rows at the beginning of the log have briefs
}

// Store is what an Index needs of a store.
type Store interface {
	storage.Records
	storage.Briefs
}

// New returns the index of a log. If the store cannot be written, fixed says why. CatchUp calls progress, which may
// be nil.
func New(store Store, fixed error, progress func(done, total int64)) *Index {
	return &Index{store: store, fixed: fixed, progress: progress}
}

// CatchUp makes the missing briefs: of records that a program without briefs has sealed, or that could not be read
// before. It can be interrupted at any point, and several processes can run it at once. If there is no room for
// briefs, it returns nil and the log is read without them.
func (x *Index) CatchUp(ctx context.Context) error {
	head, err := x.store.Head(ctx)
	if err != nil {
		return err
	}
	noted, err := x.store.Briefed(ctx)
	if err != nil {
		return err
	}
	x.briefed.Store(min(noted, head.Size))
	missing, err := x.store.Unbriefed(ctx, noted, head.Size, mostRanges)
	if err != nil || x.fixed != nil || len(missing) == 0 && head.Size-noted < unnoted {
		return err
	}
	err = x.makeBriefs(ctx, missing, head.Size)
	if errors.Is(err, storage.ErrDiskFull) || errors.Is(err, storage.ErrReadOnly) || errors.Is(err, storage.ErrBusy) {
		return nil // nothing depends on briefs, and the next process that opens the log makes them
	}
	if err != nil {
		return fmt.Errorf("making briefs of records: %w", err)
	}
	return nil
}

// Reindex makes all briefs again. It returns an error if the store cannot be written.
func (x *Index) Reindex(ctx context.Context, progress func(done, total int64)) error {
	if x.fixed != nil {
		return x.fixed
	}
	if err := x.reindex(ctx, progress); err != nil {
		return fmt.Errorf("making briefs of records: %w", err)
	}
	return nil
}

func (x *Index) reindex(ctx context.Context, progress func(done, total int64)) error {
	head, err := x.store.Head(ctx)
	if err != nil {
		return err
	}
	m := &making{index: x, size: head.Size, total: head.Size, progress: progress, whole: true}
	if err := m.run(ctx, storage.Range{To: head.Size}); err != nil {
		return err
	}
	return m.note(ctx)
}

// makeBriefs makes the briefs of these ranges, and all that are missing after them.
func (x *Index) makeBriefs(ctx context.Context, missing []storage.Range, size int64) (err error) {
	m := &making{index: x, size: size, total: size - x.briefed.Load(), progress: x.progress, whole: true}
	for len(missing) > 0 {
		for _, r := range missing {
			if err := m.run(ctx, r); err != nil {
				return err
			}
		}
		if missing, err = x.store.Unbriefed(ctx, missing[len(missing)-1].To, size, mostRanges); err != nil {
			return err
		}
	}
	return m.note(ctx)
}

// making is one run that makes briefs.
type making struct {
	index       *Index
	size        int64
	done, total int64
	progress    func(done, total int64)
	whole       bool  // no record was skipped so far
	first       int64 // the start of the first page with a skipped record
}

func (m *making) run(ctx context.Context, in storage.Range) error {
	for at := in.From; at < in.To; {
		// A page ends where a stretch of places ends, because the store looks for the rows that it replaces by
		// stretches.
		to := min(in.To, at-at%briefPage+briefPage)
		if err := m.page(ctx, storage.Range{From: at, To: to}); err != nil {
			return err
		}
		m.done += to - at
		if at = to; m.progress != nil {
			m.progress(min(m.done, m.total), m.total)
		}
	}
	return nil
}

func (m *making) page(ctx context.Context, in storage.Range) error {
	var briefs []storage.StoredBrief
	for from := in.From; from < in.To; from += rowPage {
		rows, err := m.rows(ctx, from, min(rowPage, in.To-from))
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
	if m.whole && int64(len(briefs)) < in.To-in.From {
		m.whole, m.first = false, in.From
	}
	return m.index.store.PutBriefs(ctx, in, briefs, 0)
}

// rows reads those rows of a range that can be read.
func (m *making) rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	rows, err := m.index.store.Rows(ctx, from, n)
	if err == nil || !storage.Unreadable(err) {
		return rows, err
	}
	rows = nil
	for i := from; i < from+n && n > 1; i++ {
		one, err := m.rows(ctx, i, 1)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one...)
	}
	return rows, nil
}

// note stores how many rows at the beginning of the log have briefs now.
func (m *making) note(ctx context.Context) error {
	done := m.size
	if !m.whole {
		done = m.first
	}
	if err := m.index.store.PutBriefs(ctx, storage.Range{From: m.size, To: m.size}, nil, done); err != nil {
		return err
	}
	m.index.briefed.Store(max(m.index.briefed.Load(), done))
	return nil
}

// unbriefed returns the ranges of rows without briefs, which no key leads to. The caller must read them.
func (x *Index) unbriefed(ctx context.Context) ([]storage.Range, error) {
	head, err := x.store.Head(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := x.store.Unbriefed(ctx, x.briefed.Load(), head.Size, mostRanges)
	if err != nil || len(missing) == 0 {
		if err == nil {
			x.briefed.Store(max(x.briefed.Load(), head.Size))
		}
		return nil, err
	}
	if len(missing) == mostRanges {
		missing[mostRanges-1].To = head.Size
	}
	return missing, nil
}

// Replaced returns how often briefs of old records were replaced, see storage.Briefs. Its errors are those of the store.
func (x *Index) Replaced(ctx context.Context) (int64, error) { return x.store.Replaced(ctx) }
