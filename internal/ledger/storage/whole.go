package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
)

// An Archived is a file that holds a range of the log.
type Archived struct {
	From, To int64 // indexes: the first, and the one after the last; multiples of TileWidth
	File     string
	Digest   evidence.Digest // of its table of contents, which covers everything in it
	Shed     bool            // the rows have shed
}

// TileWidth is how many hashes a C2SP tile contains. Archives begin and end where tiles do.
const TileWidth = 256

// Check returns an error if a store cannot register this file.
func (a *Archived) Check(head Head) error {
	if a.From < 0 || a.To <= a.From || a.From%TileWidth != 0 || a.To%TileWidth != 0 || a.To > head.Size || a.File == "" || a.Digest.IsZero() {
		return fmt.Errorf("the rows %d to %d of a log of %d records cannot be an archive in the file %q", a.From, a.To, head.Size, a.File)
	}
	return nil
}

// A Shedding says how much of a row an archive holds.
type Shedding struct {
	Index      int64
	Timestamps int
}

// An UnreadableError names the archive that cannot be read. It wraps ErrArchive.
type UnreadableError struct {
	In  Archived
	Err error
}

func (e *UnreadableError) Error() string { return e.Err.Error() }

// Unwrap returns why the archive cannot be read.
func (e *UnreadableError) Unwrap() error { return e.Err }

// An Archive returns what rows have shed.
type Archive interface {
	// Fill restores what rows of this file have shed: payload, signatures, and the time stamps before those that they
	// have. For an expired record it sets Entry and ExpiredBy. It returns ErrArchive, wrapped, if the file is missing
	// or was changed.
	Fill(ctx context.Context, in Archived, rows []*Row) error
}

// WholeRows returns a Store that restores what its rows have shed, so that its readers need not know of archives. For
// an expired record it returns what is left.
func WholeRows(s Store, from Archive) Store {
	if _, already := s.(*wholeRows); already {
		return s
	}
	return &wholeRows{Store: s, from: from}
}

// wholeRows is a Store that fills in its rows from archives.
type wholeRows struct {
	Store
	from Archive
}

// Kept returns the store behind WholeRows, which returns rows as they are stored.
func Kept(s Store) Store {
	if whole, ok := s.(*wholeRows); ok {
		return whole.Store
	}
	return s
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

func (s *wholeRows) OfActor(ctx context.Context, actor evidence.Digest, from, n int64) ([]Row, error) {
	return s.all(ctx)(s.Store.OfActor(ctx, actor, from, n))
}

func (s *wholeRows) About(ctx context.Context, subject evidence.Digest, from, n int64) ([]Row, error) {
	return s.all(ctx)(s.Store.About(ctx, subject, from, n))
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

// fill completes rows, which are in log order. It reads the list of files each time: another process may have deleted
// records from a file, and they must not be read any more.
func (s *wholeRows) fill(ctx context.Context, rows []*Row) error {
	files, err := s.Store.Archives(ctx)
	if err != nil {
		return err
	}
	err = s.fillFrom(ctx, files, rows)
	if !errors.Is(err, ErrArchive) {
		return err
	}
	again, failed := s.Store.Archives(ctx) // the file may have been replaced meanwhile
	if failed != nil || slices.Equal(files, again) {
		return errors.Join(err, failed)
	}
	return s.fillFrom(ctx, again, rows)
}

func (s *wholeRows) fillFrom(ctx context.Context, files []Archived, rows []*Row) error {
	for len(rows) > 0 {
		in, ok := fileOf(files, rows[0].Index)
		if !ok {
			return fmt.Errorf("%w: row %d (record %s) has no payload, but is in no archive", ErrDamaged, rows[0].Index, rows[0].RecordID)
		}
		n := slices.IndexFunc(rows, func(r *Row) bool { return r.Index >= in.To })
		if n < 0 {
			n = len(rows)
		}
		if s.from == nil {
			return &UnreadableError{In: in, Err: fmt.Errorf("%w: record %s is in the archive %s, but no archive folder is given", ErrArchive, rows[0].RecordID, in.File)}
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

// MergeTimestamps appends later time stamps to those in an archive. It drops a later one that the archive has too.
func MergeTimestamps(archived, later []evidence.Timestamp) []evidence.Timestamp {
	all := slices.Clone(archived)
	for _, t := range later {
		if !slices.ContainsFunc(archived, func(a evidence.Timestamp) bool { return a.Kind == t.Kind && string(a.Token) == string(t.Token) }) {
			all = append(all, t)
		}
	}
	return all
}
