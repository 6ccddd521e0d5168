package installation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/archive"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// readRetention reads what the log in a store says on keeping records. Where that cannot be read, nothing explains what is gone.
func readRetention(ctx context.Context, store storage.Store) (*archive.Book, []ledger.Damage) {
	damaged := func(err error) (*archive.Book, []ledger.Damage) {
		return &archive.Book{}, []ledger.Damage{{Kind: ledger.DamageCheck, Index: -1, Detail: err.Error()}}
	}
	rows, err := store.ByChain(ctx, operator.RetentionChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return damaged(err)
	}
	acts := make([]*evidence.Record, len(rows))
	for n := range rows {
		if acts[n], err = rows[n].Record(); err != nil {
			return damaged(err)
		}
	}
	book, err := archive.Read(acts)
	if err != nil {
		return damaged(err)
	}
	return book, nil
}

// expiredFsck holds what is gone against the acts that say so. One more than an act counts was taken out under its name.
type expiredFsck struct {
	read func() (*archive.Book, []ledger.Damage)

	mu    sync.Mutex // held while what follows is read or written: records come from many goroutines
	book  *archive.Book
	byAct map[string]int64 // how many records are gone
	acts  map[string]bool  // of which the log was read again, in vain or not
}

// record asks the log again about an act that it does not know: it is sealed before anything goes in its name, and so may have been since the
// log was read.
func (f *expiredFsck) record(index int64, _, act string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.book.Explains(index, act)
	if err != nil && !f.acts[act] {
		f.acts[act] = true
		if now, damaged := f.read(); len(damaged) == 0 {
			f.book, err = now, now.Explains(index, act)
		}
	}
	if err == nil {
		f.byAct[act]++
	}
	return err
}

func (f *expiredFsck) run() (found []ledger.Damage) {
	for _, e := range f.book.Expiries {
		if gone := f.byAct[e.ID]; gone > e.Count {
			found = append(found, ledger.Damage{Kind: ledger.DamageExpired, Index: -1,
				Detail: fmt.Sprintf("act %s deleted %d of the records %d to %d, and %d are gone in its name", e.ID, e.Count, e.From, e.To-1, gone)})
		}
	}
	return found
}

// fsckArchives names what is wrong with archive files: those that the database names are read from end to end, and held against the
// log's hashes; others are strays, or should have been deleted.
func (i *Installation) fsckArchives(ctx context.Context, store storage.Store, book *archive.Book) (found []ledger.Damage, err error) {
	report := func(kind ledger.DamageKind, format string, args ...any) {
		found = append(found, ledger.Damage{Kind: kind, Index: -1, Detail: fmt.Sprintf(format, args...)})
	}
	files, err := store.Archives(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range files {
		damages, err := i.examineArchive(ctx, store, in)
		if len(damages) > 0 || errors.Is(err, ledger.ErrArchive) {
			// A deletion may have put another file in its place meanwhile, which is that which counts.
			if in, err = atPlaceOf(ctx, store, in); err != nil {
				return found, err
			}
			damages, err = i.examineArchive(ctx, store, in)
		}
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		for _, d := range damages {
			report(ledger.DamageArchive, "%s: %v", i.archives.Path(in.File), d)
		}
		if err != nil && !errors.Is(err, ledger.ErrArchive) {
			return found, err
		}
		if err != nil {
			report(ledger.DamageArchive, "%v", err)
		}
	}
	names, err := i.archives.List()
	if err != nil {
		return found, err
	}
	if files, err = store.Archives(ctx); err != nil { // a run may have noted one meanwhile
		return found, err
	}
	now, _ := readRetention(ctx, store) // what cannot be read has been reported
	for _, name := range names {
		deletes := func(x archive.Expiry) bool { return archive.Name(x.From, x.To, x.Replaces) == name }
		n := slices.IndexFunc(book.Expiries, deletes)
		switch _, err := os.Stat(i.archives.Path(name)); {
		case errors.Is(err, os.ErrNotExist): // it was deleted since its name was read
		case n >= 0:
			report(ledger.DamageNotExpired, "%s: by act %s", i.archives.Path(name), book.Expiries[n].ID)
		case slices.ContainsFunc(now.Expiries, deletes): // whoever has decided that since the log was read is deleting it
		case !slices.ContainsFunc(files, func(a storage.Archived) bool { return a.File == name }):
			report(ledger.DamageStray, "%s", i.archives.Path(name))
		}
	}
	return found, nil
}

func (i *Installation) examineArchive(ctx context.Context, store storage.Store, in storage.Archived) (damages []*archive.Damage, err error) {
	err = i.checkArchive(ctx, store, in, func(d *archive.Damage) { damages = append(damages, d) })
	return damages, err
}

// atPlaceOf returns the file that has the records now that one had, which may be that one.
func atPlaceOf(ctx context.Context, store storage.Store, in storage.Archived) (storage.Archived, error) {
	files, err := store.Archives(ctx)
	if n := slices.IndexFunc(files, func(a storage.Archived) bool { return a.From == in.From && a.To == in.To }); n >= 0 {
		return files[n], err
	}
	return in, err
}

// checkArchive reads one file from end to end, and tells of each damage in it. What it returns stands against reading it at all.
func (i *Installation) checkArchive(ctx context.Context, store storage.Store, in storage.Archived, found func(*archive.Damage)) error {
	return i.archives.With(in, func(f *archive.File) error {
		if err := f.CheckProof(i.log.verifier); err != nil {
			return err
		}
		indexes, roots := f.Roots()
		stored, err := store.Hashes(ctx, indexes)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		if err == nil && !slices.Equal(stored, roots) {
			found(&archive.Damage{Where: "table of contents", Reason: errors.New("its roots are not the hashes that the log has of these records")})
		}
		_, err = f.Check(ctx, archive.Examination{Found: found})
		return err
	})
}
