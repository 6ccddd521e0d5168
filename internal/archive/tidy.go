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

// Runs that make archive files may be several at a time, on several machines, and none of them may find a file gone that it has made or
// taken up, and has not noted in the database yet. So each claims one of these, and who tidies up claims all of them: a run that
// died has let go of its claim, and one that stands still has not, or has lost it and does nothing more.
const mostRuns = 16

func runName(n int) string { return fmt.Sprintf("archive-run-%d", n) }

// ErrArchiving says that somebody is making archive files at this moment.
var ErrArchiving = errors.New("archiving is under way, here or on another machine")

// asRun does what makes archive files, and waits while somebody tidies up among them.
func (a *Archivist) asRun(ctx context.Context, do func(context.Context) error) error {
	names := make([]string, mostRuns)
	for n := range names {
		names[n] = runName(n)
	}
	return a.claiming(ctx, names, do)
}

// claiming does something under the first of these claims that nobody has, and waits until there is one.
func (a *Archivist) claiming(ctx context.Context, names []string, do func(context.Context) error) error {
	for {
		for _, name := range names {
			held, release, err := a.Claims.Claim(ctx, name)
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
			return fmt.Errorf("waiting for others who archive, delete what has expired, or tidy up: %w", ctx.Err())
		}
	}
}

// lostOr says why something ended, where that is because its claim was lost.
func lostOr(held context.Context, err error) error {
	if cause := context.Cause(held); err != nil && errors.Is(cause, lock.ErrLost) {
		return cause
	}
	return err
}

// Tidied says what became of the files that are no part of the log.
type Tidied struct {
	Folder   string     `json:"folder"`    // into which files are moved
	SetAside []string   `json:"set_aside"` // or would be
	Kept     []KeptFile `json:"kept"`
}

// A KeptFile is one of which it is not certain that nobody needs it.
type KeptFile struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// Tidy sets aside archive files that runs have left which were broken off before the database named them. A file is set aside only
// if all that it holds is elsewhere: the log has come as far as the file, says the same of its records, and every archive that the
// database names can be opened. While anybody makes such files it does nothing, and returns ErrArchiving.
//
// It deletes nothing: a second installation of the same log, made of a backup, may share the folder, and knows this file by its name while
// this one does not. Nobody can see that from here, so it is for people to say when the files may go.
func (a *Archivist) Tidy(ctx context.Context, dryRun bool) (*Tidied, error) {
	done := &Tidied{Folder: a.Folder.Aside(), SetAside: []string{}, Kept: []KeptFile{}}
	if err := a.aloneAmongRuns(ctx, func(ctx context.Context) error { return a.tidy(ctx, dryRun, done) }); err != nil {
		return done, fmt.Errorf("tidying up among archives: %w", err)
	}
	return done, nil
}

// aloneAmongRuns does something while nobody makes archive files.
func (a *Archivist) aloneAmongRuns(ctx context.Context, do func(context.Context) error) error {
	for n := range mostRuns {
		held, release, err := a.Claims.Claim(ctx, runName(n))
		if errors.Is(err, lock.ErrTaken) {
			return ErrArchiving
		}
		if err != nil {
			return err
		}
		defer release()
		ctx = held // each is the end of those before
	}
	return lostOr(ctx, do(ctx))
}

func (a *Archivist) tidy(ctx context.Context, dryRun bool, done *Tidied) error {
	if err := a.Ledger.CanAppend(ctx); err != nil {
		return err // a log that came back from an older copy may not know yet what a file is a part of
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
		if f.Problem == "" && f.Bytes == 0 { // it may be open here from before
			f.Problem = "it is not there"
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
				why = fmt.Errorf("act %s says that records in it were deleted: 'jurat archive expire' finishes that", x.ID)
			}
			if Name(x.From, x.To, x.Archive) == f.File {
				why = fmt.Errorf("act %s says that it takes the place of another: 'jurat archive expire' finishes that", x.ID)
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

// abandoned is for how long nobody has written to an unfinished file that nobody finishes any more.
const abandoned = 24 * time.Hour

// tidyDrafts sets aside what was being written when a run was broken off. It holds nothing that was not in the database or in an archive then.
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

// needed says why a file that the database does not name may hold what is nowhere else; nil: it does not.
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
			return fmt.Errorf("it holds records up to %d, and the log has %d", to-1, size)
		}
		return a.CheckRoots(ctx, f)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // somebody else has taken it away
	}
	return err
}
