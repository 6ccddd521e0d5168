package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"jurat/internal/ledger"
	"jurat/internal/lock"
)

// Several runs on several machines may make archive files. Tidy must not remove a file that a run has made or adopted
// but not yet registered. So each run locks one of mostRuns names, and Tidy locks all of them. A run that dies
// releases its lock. A run that has stopped still holds its lock, or has lost it and does nothing more.
const mostRuns = 16

func runName(n int) string { return fmt.Sprintf("archive-run-%d", n) }

// ErrArchiving means that a run is making archive files at this moment.
var ErrArchiving = errors.New("archiving is under way, here or on another machine")

// asRun calls do with a run's lock, and waits while Tidy holds all of them.
func (a *Archivist) asRun(ctx context.Context, do func(context.Context) error) error {
	names := make([]string, mostRuns)
	for n := range names {
		names[n] = runName(n)
	}
	return a.locking(ctx, names, do)
}

// locking calls do with the first of these locks that is free, and waits until one is.
func (a *Archivist) locking(ctx context.Context, names []string, do func(context.Context) error) error {
	for {
		for _, name := range names {
			held, release, err := a.Locks.Lock(ctx, name)
			if errors.Is(err, lock.ErrTaken) {
				continue
			}
			if err != nil {
				return err
			}
			defer release()
			return lostOr(held, do(held))
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for other processes that archive, expire or tidy up: %w", ctx.Err())
		}
	}
}

// lostOr returns lock.ErrLost if that is why an operation failed, and otherwise its error.
func lostOr(held context.Context, err error) error {
	if cause := context.Cause(held); err != nil && errors.Is(cause, lock.ErrLost) {
		return cause
	}
	return err
}

// Tidied is the result of Tidy.
type Tidied struct {
	Folder   string     `json:"folder"`    // the folder into which files are moved
	SetAside []string   `json:"set_aside"` // files that were moved, or would be
	Kept     []KeptFile `json:"kept"`
}

// A KeptFile is a file that may still be needed.
type KeptFile struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Tidy moves archive files aside that interrupted runs left before the database named them. It moves a file only if
// everything in it is elsewhere: the log is at least as long, has the same hashes for its records, and every archive
// that the database names can be opened. While a run makes archive files, Tidy does nothing and returns ErrArchiving.
//
// It deletes nothing. A second installation of the same log, restored from a backup, may share the folder and use
// this file. jurat cannot see that, so people must decide when the files can be deleted.
func (a *Archivist) Tidy(ctx context.Context, dryRun bool) (*Tidied, error) {
	done := &Tidied{Folder: a.Folder.Aside(), SetAside: []string{}, Kept: []KeptFile{}}
	if err := a.aloneAmongRuns(ctx, func(ctx context.Context) error { return a.tidy(ctx, dryRun, done) }); err != nil {
		return done, fmt.Errorf("tidying up among archives: %w", err)
	}
	return done, nil
}

// aloneAmongRuns calls do while no run makes archive files. It returns ErrArchiving if one does.
func (a *Archivist) aloneAmongRuns(ctx context.Context, do func(context.Context) error) error {
	for n := range mostRuns {
		held, release, err := a.Locks.Lock(ctx, runName(n))
		if errors.Is(err, lock.ErrTaken) {
			return ErrArchiving
		}
		if err != nil {
			return err
		}
		defer release()
		ctx = held // ends when any of these locks is lost
	}
	return lostOr(ctx, do(ctx))
}

func (a *Archivist) tidy(ctx context.Context, dryRun bool, done *Tidied) error {
	if err := a.Ledger.CanAppend(ctx); err != nil {
		return err // a log restored from an older copy may lack the records that need a file
	}
	list, err := a.List(ctx)
	if err != nil {
		return err
	}
	book, err := a.Book(ctx)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Problem == "" && f.Bytes == 0 { // it may still be open from before
			f.Problem = "it is missing"
		}
		if f.Problem != "" && !f.Stray {
			return fmt.Errorf("%w: %s, which the log needs: %s", ledger.ErrArchive, f.File, f.Problem)
		}
	}
	for _, f := range list {
		if !f.Stray {
			continue
		}
		why := a.needed(ctx, f.File)
		for _, x := range book.Expiries {
			if Name(x.From, x.To, x.Replaces) == f.File {
				why = fmt.Errorf("act %s says that records in it were deleted: 'jurat archive expire' completes that", x.ID)
			}
			if Name(x.From, x.To, x.Archive) == f.File {
				why = fmt.Errorf("act %s says that it replaces another file: 'jurat archive expire' completes that", x.ID)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if why != nil {
			done.Kept = append(done.Kept, KeptFile{File: f.File, Why: why.Error()})
			continue
		}
		if !dryRun {
			if err := a.Folder.SetAside(f.File); err != nil {
				return err
			}
		}
		done.SetAside = append(done.SetAside, f.File)
	}
	return a.tidyDrafts(dryRun, done)
}

// abandoned is the time without writes after which an unfinished file counts as left by an interrupted run.
const abandoned = 24 * time.Hour

// tidyDrafts moves aside unfinished files of interrupted runs. Their records were in the database or in an archive.
func (a *Archivist) tidyDrafts(dryRun bool, done *Tidied) error {
	drafts, err := a.Folder.Drafts(time.Now().Add(-abandoned))
	if err != nil {
		return err
	}
	for _, name := range drafts {
		if !dryRun {
			if err := a.Folder.SetAside(name); err != nil {
				return err
			}
		}
		done.SetAside = append(done.SetAside, name)
	}
	return nil
}

// needed returns why a file that the database does not name may hold something that is nowhere else, or nil if it
// does not.
func (a *Archivist) needed(ctx context.Context, file string) error {
	err := OpenPath(a.Folder.Path(file), func(f *File) error {
		if err := f.CheckProof(a.Log); err != nil {
			return err
		}
		size, err := a.Ledger.Size(ctx)
		if err != nil {
			return err
		}
		if _, to := f.Range(); to > size {
			return fmt.Errorf("it holds records up to index %d, but the log has only %d records", to-1, size)
		}
		return a.CheckRoots(ctx, f)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // another process has removed it
	}
	return err
}
