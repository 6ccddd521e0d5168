package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
)

// An UnreadableError says which archive cannot be read. It has ErrArchive in its chain.
type UnreadableError struct {
	In  Archived
	Err error
}

func (e *UnreadableError) Error() string { return e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// An Archive gives back what rows have shed.
type Archive interface {
	// Fill fills in what rows of this file have shed: payload, signatures, and the time stamps that came before those that they have; or
	// Entry and ExpiredBy. The error of a file that is missing, or not what it was, has ErrArchive in its chain.
	Fill(ctx context.Context, in Archived, rows []*Row) error
}

// WholeRows returns a Store whose rows are whole wherever what makes them so is kept: nobody who reads through it needs to know of
// archives. A row that has expired is returned with what is left of it.
func WholeRows(s Store, from Archive) Store {
	if _, already := s.(*wholeRows); already {
		return s
	}
	return &wholeRows{Store: s, from: from}
}

// wholeRows is a Store in front of archives.
type wholeRows struct {
	Store
	from Archive
}

func (s *wholeRows) Rows(ctx context.Context, from, n int64) ([]Row, error) {
	return s.all(ctx)(s.Store.Rows(ctx, from, n))
}

func (s *wholeRows) RowsAt(ctx context.Context, at []int64) ([]Row, error) {
	return s.all(ctx)(s.Store.RowsAt(ctx, at))
}

func (s *wholeRows) ByRecordID(ctx context.Context, id string) (Row, error) {
	return s.one(ctx)(s.Store.ByRecordID(ctx, id))
}

func (s *wholeRows) ByDigest(ctx context.Context, digest evidence.Digest) (Row, error) {
	return s.one(ctx)(s.Store.ByDigest(ctx, digest))
}

func (s *wholeRows) ByChain(ctx context.Context, chainID string) ([]Row, error) {
	return s.all(ctx)(s.Store.ByChain(ctx, chainID))
}

func (s *wholeRows) InChain(ctx context.Context, chainID string, from, n int64) ([]Row, error) {
	return s.all(ctx)(s.Store.InChain(ctx, chainID, from, n))
}

func (s *wholeRows) LastOfChain(ctx context.Context, chainID string) (Row, error) {
	return s.one(ctx)(s.Store.LastOfChain(ctx, chainID))
}

func (s *wholeRows) one(ctx context.Context) func(Row, error) (Row, error) {
	return func(row Row, err error) (Row, error) {
		if err != nil || !row.HasShed() {
			return row, err
		}
		return row, s.fill(ctx, []*Row{&row})
	}
}

func (s *wholeRows) all(ctx context.Context) func([]Row, error) ([]Row, error) {
	return func(rows []Row, err error) ([]Row, error) {
		var shed []*Row
		for i := range rows {
			if rows[i].HasShed() {
				shed = append(shed, &rows[i])
			}
		}
		if err != nil || shed == nil {
			return rows, err
		}
		return rows, s.fill(ctx, shed)
	}
}

// fill makes rows whole, which are in log order. Which files there are is looked up each time: another process may have taken
// records out of one, and they must not be read any more.
func (s *wholeRows) fill(ctx context.Context, rows []*Row) error {
	files, err := s.Store.Archives(ctx)
	if err != nil {
		return err
	}
	err = s.fillFrom(ctx, files, rows)
	if !errors.Is(err, ErrArchive) {
		return err
	}
	again, failed := s.Store.Archives(ctx) // it may have been replaced in between
	if failed != nil || slices.Equal(files, again) {
		return errors.Join(err, failed)
	}
	return s.fillFrom(ctx, again, rows)
}

func (s *wholeRows) fillFrom(ctx context.Context, files []Archived, rows []*Row) error {
	for len(rows) > 0 {
		in, ok := fileOf(files, rows[0].Index)
		if !ok {
			return fmt.Errorf("%w: row %d (record %s) is empty, and no archive holds it", ErrDamaged, rows[0].Index, rows[0].RecordID)
		}
		n := slices.IndexFunc(rows, func(r *Row) bool { return r.Index >= in.To })
		if n < 0 {
			n = len(rows)
		}
		if s.from == nil {
			return &UnreadableError{In: in, Err: fmt.Errorf("%w: record %s is in %s, and where archives are was not said", ErrArchive, rows[0].RecordID, in.File)}
		}
		if err := s.from.Fill(ctx, in, rows[:n]); errors.Is(err, ErrArchive) {
			return &UnreadableError{In: in, Err: err}
		} else if err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// fileOf finds the file that holds an index.
func fileOf(files []Archived, index int64) (Archived, bool) {
	n, _ := slices.BinarySearchFunc(files, index, func(a Archived, index int64) int {
		if a.To <= index {
			return -1
		}
		return 1
	})
	if n == len(files) || files[n].From > index {
		return Archived{}, false
	}
	return files[n], true
}

// MergeTimestamps puts time stamps that came later after those that an archive has. One that is in both counts once.
func MergeTimestamps(archived, later []evidence.Timestamp) []evidence.Timestamp {
	all := slices.Clone(archived)
	for _, t := range later {
		if !slices.ContainsFunc(archived, func(a evidence.Timestamp) bool { return a.Kind == t.Kind && string(a.Token) == string(t.Token) }) {
			all = append(all, t)
		}
	}
	return all
}

// expired is the error of a row of which nothing but its hashes is left.
func (r *Row) expired() error {
	return fmt.Errorf("%w: row %d (record %s) was deleted after its retention time, by act %s", ErrExpired, r.Index, r.RecordID, r.ExpiredBy)
}

// Archives returns the files that hold what rows have shed, in log order.
func (l *Ledger) Archives(ctx context.Context) ([]Archived, error) {
	files, err := l.cfg.Store.Archives(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading which archives there are: %w", err)
	}
	return files, nil
}

// PutArchive notes a file that holds what the log holds; see Store.
func (l *Ledger) PutArchive(ctx context.Context, old evidence.Digest, next Archived) error {
	if err := l.cfg.Store.PutArchive(ctx, old, next); err != nil {
		return fmt.Errorf("noting archive %s: %w", next.File, err)
	}
	return nil
}

// Shed takes out of rows what an archive holds of them; see Store.
func (l *Ledger) Shed(ctx context.Context, rows []Shedding) error {
	if err := l.cfg.Store.Shed(ctx, rows); err != nil {
		return fmt.Errorf("taking out of the database what an archive holds: %w", err)
	}
	return nil
}

// KeptRows returns exactly these rows, as the database has them: those that have shed without what an archive has.
func (l *Ledger) KeptRows(ctx context.Context, from, n int64) ([]Row, error) {
	return exactly(from, n)(l.kept().Rows(ctx, from, n))
}

// KeptRow returns the row of a record as the database has it, or ErrNotFound.
func (l *Ledger) KeptRow(ctx context.Context, recordID string) (Row, error) {
	row, err := l.kept().ByRecordID(ctx, recordID)
	if err != nil {
		return row, fmt.Errorf("reading record %s: %w", recordID, err)
	}
	return row, nil
}

// HasChain reports whether a chain has records.
func (l *Ledger) HasChain(ctx context.Context, chainID string) (bool, error) {
	_, err := l.kept().LastOfChain(ctx, chainID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading chain %q: %w", chainID, err)
	}
	return true, nil
}

// RowsFrom returns exactly these rows, whole.
func (l *Ledger) RowsFrom(ctx context.Context, from, n int64) ([]Row, error) {
	return l.rows(ctx, from, n)
}

// Reclaim has a store that can give back the room of what was shed.
func (l *Ledger) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	if r, ok := l.kept().(Reclaimer); ok {
		if err := r.Reclaim(ctx, progress); err != nil {
			return fmt.Errorf("giving back the room of what was taken out of the database: %w", err)
		}
	}
	return nil
}

// Settled returns how many records from the beginning of the log on wait for nothing.
func (l *Ledger) Settled(ctx context.Context) (int64, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return 0, err
	}
	owing, err := l.Owing(ctx)
	if err != nil {
		return 0, err
	}
	for _, o := range owing {
		waits, err := l.cfg.Store.Waiting(ctx, o.Authority, 0, 1)
		if err != nil {
			return 0, err
		}
		if len(waits) > 0 {
			size = min(size, waits[0].Index)
		}
	}
	return size, nil
}

// CheckpointOver returns a signed checkpoint over at least so many records, and its head: the last that was signed, if it will do.
func (l *Ledger) CheckpointOver(ctx context.Context, size int64) (string, Head, error) {
	a, err := l.covering(ctx, size)
	if err != nil {
		return "", Head{}, err
	}
	return a.signed, a.head, nil
}

// OpenRow makes a record of a row, and checks that the row's keys are the record's. The error of a row that has expired has
// ErrExpired in its chain.
func OpenRow(row *Row) (*evidence.Record, error) { return openRow(row) }

// StoredHashes returns hashes at these stored hash indexes, in this order, or ErrNotFound when one is missing.
func (l *Ledger) StoredHashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	return l.cfg.Store.Hashes(ctx, indexes)
}
