package ledger

import (
	"context"
	"errors"
	"fmt"

	"jurat/internal/brief"
	"jurat/internal/ledger/storage"
)

const (
	// briefPage is how many briefs are stored in one transaction where they are made of records that are in the log already.
	briefPage = 256
	// unnoted is how many rows at the end of the log may have briefs without that being noted: they are counted whenever the log is opened.
	unnoted = 4096
	// mostRanges is how many ranges of rows without briefs are kept apart.
	mostRanges = 1000
)

// catchUp makes the briefs that are missing: of records that a program without briefs has sealed, or that could not be read before. It can be
// broken off at any point, and several processes can do it at once. Where there is no room for briefs, the log is read without them.
func (l *Ledger) catchUp(ctx context.Context) error {
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return err
	}
	noted, err := l.cfg.Store.Briefed(ctx)
	if err != nil {
		return err
	}
	l.briefed.Store(min(noted, head.Size))
	missing, err := l.cfg.Store.Unbriefed(ctx, noted, head.Size, mostRanges)
	if err != nil || l.fixed != nil || len(missing) == 0 && head.Size-noted < unnoted {
		return err
	}
	err = l.makeBriefs(ctx, missing, head.Size)
	if errors.Is(err, ErrDiskFull) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrBusy) {
		return nil // nothing depends on briefs, and the next to open the log makes them
	}
	if err != nil {
		return fmt.Errorf("making briefs of records: %w", err)
	}
	return nil
}

// Reindex makes all briefs again.
func (l *Ledger) Reindex(ctx context.Context, progress func(done, total int64)) error {
	if l.fixed != nil {
		return l.fixed
	}
	size, err := l.Size(ctx)
	if err == nil {
		m := &making{l: l, size: size, total: size, progress: progress, whole: true}
		if err = m.run(ctx, storage.Range{From: 0, To: size}); err == nil {
			err = m.note(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("making briefs of records: %w", err)
	}
	return nil
}

// makeBriefs makes the briefs of these ranges, and of what is missing after them.
func (l *Ledger) makeBriefs(ctx context.Context, missing []storage.Range, size int64) (err error) {
	m := &making{l: l, size: size, total: size - l.briefed.Load(), progress: l.cfg.Indexing, whole: true}
	for len(missing) > 0 {
		for _, r := range missing {
			if err := m.run(ctx, r); err != nil {
				return err
			}
		}
		if missing, err = l.cfg.Store.Unbriefed(ctx, missing[len(missing)-1].To, size, mostRanges); err != nil {
			return err
		}
	}
	return m.note(ctx)
}

// making is one run that makes briefs.
type making struct {
	l           *Ledger
	size        int64
	done, total int64
	progress    func(done, total int64)
	whole       bool  // no record was passed over so far
	first       int64 // the first that was
}

func (m *making) run(ctx context.Context, in storage.Range) error {
	for at := in.From; at < in.To; {
		// Up to the end of a stretch of places, in which the store looks for what it replaces.
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
	for from := in.From; from < in.To; from += smallPage {
		rows, err := m.rows(ctx, from, min(smallPage, in.To-from))
		if err != nil {
			return err
		}
		for i := range rows {
			b, err := briefOf(&rows[i])
			if err == nil {
				var stored storage.StoredBrief
				stored, err = storedBrief(b)
				briefs = append(briefs, stored)
			}
			if err != nil && !unreadable(err) {
				return err
			}
		}
	}
	if m.whole && int64(len(briefs)) < in.To-in.From {
		m.whole, m.first = false, in.From
	}
	return m.l.cfg.Store.PutBriefs(ctx, in, briefs, 0)
}

// rows reads those of some rows that can be read.
func (m *making) rows(ctx context.Context, from, n int64) ([]storage.Row, error) {
	rows, err := m.l.cfg.Store.Rows(ctx, from, n)
	if err == nil || !unreadable(err) {
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

// note notes how many rows at the beginning have briefs now.
func (m *making) note(ctx context.Context) error {
	done := m.size
	if !m.whole {
		done = m.first
	}
	if err := m.l.cfg.Store.PutBriefs(ctx, storage.Range{From: m.size, To: m.size}, nil, done); err != nil {
		return err
	}
	m.l.briefed.Store(max(m.l.briefed.Load(), done))
	return nil
}

// unbriefed returns the ranges of rows that no key leads to. They have to be read.
func (l *Ledger) unbriefed(ctx context.Context) ([]storage.Range, error) {
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return nil, err
	}
	missing, err := l.cfg.Store.Unbriefed(ctx, l.briefed.Load(), head.Size, mostRanges)
	if err != nil || len(missing) == 0 {
		if err == nil {
			l.briefed.Store(max(l.briefed.Load(), head.Size))
		}
		return nil, err
	}
	if len(missing) == mostRanges {
		missing[mostRanges-1].To = head.Size
	}
	return missing, nil
}

// ForgetExpired takes out of briefs what they say of records of a range that have expired.
func (l *Ledger) ForgetExpired(ctx context.Context, in storage.Range) error {
	for from := in.From; from < in.To; from += briefPage {
		page := storage.Range{From: from, To: min(in.To, from+briefPage)}
		if err := l.forgetIn(ctx, page); err != nil {
			return fmt.Errorf("forgetting what briefs say of records that have expired: %w", err)
		}
	}
	return nil
}

func (l *Ledger) forgetIn(ctx context.Context, in storage.Range) error {
	gone, err := l.expiredIn(ctx, in)
	if err != nil || len(gone) == 0 {
		return err
	}
	stored, err := l.cfg.Store.Briefs(ctx, storage.BriefQuery{From: in.From, N: in.To - in.From, Names: true})
	if err != nil {
		return err
	}
	var left []storage.StoredBrief
	for i := range stored {
		b := decoded(&stored[i])
		if expired := gone[stored[i].Index]; expired != nil {
			b = expired
		}
		if b == nil {
			continue
		}
		kept, err := storedBrief(b)
		if err != nil {
			return err
		}
		left = append(left, kept)
	}
	return l.cfg.Store.PutBriefs(ctx, in, left, 0)
}

// expiredIn returns the briefs of what has expired in a range.
func (l *Ledger) expiredIn(ctx context.Context, in storage.Range) (map[int64]*brief.Brief, error) {
	gone := map[int64]*brief.Brief{}
	for from := in.From; from < in.To; from += smallPage {
		rows, err := l.cfg.Store.Rows(ctx, from, min(smallPage, in.To-from))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Entry == nil {
				continue
			}
			if gone[rows[i].Index], err = briefOf(&rows[i]); err != nil {
				return nil, err
			}
		}
	}
	return gone, nil
}
