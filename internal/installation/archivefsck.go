package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"jurat/evidence"
	"jurat/internal/archive"
	"jurat/internal/ledger"
	"jurat/internal/retention"
)

// readRetention reads what the log in a store says on keeping records. Where that cannot be read, nothing explains what is gone.
func readRetention(ctx context.Context, store ledger.Store) (*retention.Book, []ledger.Damage) {
	damaged := func(err error) (*retention.Book, []ledger.Damage) {
		return &retention.Book{}, []ledger.Damage{{Kind: ledger.DamageCheck, Index: -1, Detail: err.Error()}}
	}
	rows, err := store.ByChain(ctx, evidence.RetentionChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return damaged(err)
	}
	acts := make([]*evidence.Record, len(rows))
	for n := range rows {
		if acts[n], err = ledger.OpenRow(&rows[n]); err != nil {
			return damaged(err)
		}
	}
	book, err := retention.Read(acts)
	if err != nil {
		return damaged(err)
	}
	return book, nil
}

// expiredFsck holds what is gone against the acts that say so. One more than an act counts was taken out under its name.
type expiredFsck struct {
	book *retention.Book

	mu    sync.Mutex       // held while the next one is read or written: records come from many goroutines
	byAct map[string]int64 // how many records are gone
}

func (f *expiredFsck) record(index int64, _, act string) error {
	if err := f.book.Explains(index, act); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.byAct[act]++
	return nil
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
func (i *Installation) fsckArchives(ctx context.Context, store ledger.Store, book *retention.Book) (found []ledger.Damage, err error) {
	report := func(kind ledger.DamageKind, format string, args ...any) {
		found = append(found, ledger.Damage{Kind: kind, Index: -1, Detail: fmt.Sprintf(format, args...)})
	}
	files, err := store.Archives(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range files {
		err := i.checkArchive(ctx, store, in, func(d *archive.Damage) {
			report(ledger.DamageArchive, "%s: %v", i.archives.Path(in.File), d)
		})
		if ctx.Err() != nil {
			return found, ctx.Err()
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
	for _, name := range names {
		n := slices.IndexFunc(book.Expiries, func(x retention.Expiry) bool { return archive.Name(x.From, x.To, x.Replaces) == name })
		switch {
		case n >= 0:
			report(ledger.DamageNotExpired, "%s: by act %s", i.archives.Path(name), book.Expiries[n].ID)
		case !slices.ContainsFunc(files, func(a ledger.Archived) bool { return a.File == name }):
			report(ledger.DamageStray, "%s", i.archives.Path(name))
		}
	}
	return found, nil
}

// checkArchive reads one file from end to end, and tells of each damage in it. What it returns stands against reading it at all.
func (i *Installation) checkArchive(ctx context.Context, store ledger.Store, in ledger.Archived, found func(*archive.Damage)) error {
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
