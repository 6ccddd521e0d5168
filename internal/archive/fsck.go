package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
)

// readRetention reads the retention acts of the log in a store. If they cannot be read, it returns that as damage and
// an empty book.
func readRetention(ctx context.Context, store storage.Store) (*Book, []fsck.Damage) {
	damaged := func(err error) (*Book, []fsck.Damage) {
		return &Book{}, []fsck.Damage{{Kind: fsck.DamageCheck, Index: -1, Detail: err.Error()}}
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
	book, err := Read(acts)
	if err != nil {
		return damaged(err)
	}
	return book, nil
}

// A Fsck examines archive files, and compares deleted records with the acts about them.
type Fsck struct {
	folder *Folder
	log    note.Verifier
	store  storage.Store
	read   func() (*Book, []fsck.Damage)
	first  *Book // as the log was when the examination began

	mu    sync.Mutex // guards the members below: many goroutines add records
	book  *Book
	byAct map[string]int64 // how many records each act has deleted
	acts  map[string]bool  // the acts for which the log was read again
}

// NewFsck begins an examination, and returns damage in the retention acts.
func NewFsck(ctx context.Context, folder *Folder, log note.Verifier, store storage.Store) (*Fsck, []fsck.Damage) {
	f := &Fsck{folder: folder, log: log, store: store, byAct: map[string]int64{}, acts: map[string]bool{},
		read: func() (*Book, []fsck.Damage) { return readRetention(ctx, store) }}
	book, damaged := f.read()
	f.first, f.book = book, book
	return f, damaged
}

// Expired adds a deleted record and the act about it, and returns an error if no act explains it. For an unknown act
// it reads the log again: the act may have been sealed since, as every act is sealed before its records are deleted.
// log was read.
func (f *Fsck) Expired(index int64, _, act string) error {
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

// tooMany reports acts with more deleted records than they count.
func (f *Fsck) tooMany() (found []fsck.Damage) {
	for _, e := range f.book.Expiries {
		if gone := f.byAct[e.ID]; gone > e.Count {
			found = append(found, fsck.Damage{Kind: fsck.DamageExpired, Index: -1,
				Detail: fmt.Sprintf("act %s deleted %d of the records %d to %d, but %d are gone in its name", e.ID, e.Count, e.From, e.To-1, gone)})
		}
	}
	return found
}

// Run returns the damage, after all expired records have been added.
func (f *Fsck) Run(ctx context.Context) ([]fsck.Damage, error) {
	files, err := f.files(ctx)
	return append(f.tooMany(), files...), err
}

// files returns the damage of archive files. It reads the files that the database names from end to end, and compares
// them with the log's hashes. Other files are strays, or should have been deleted.
func (f *Fsck) files(ctx context.Context) (found []fsck.Damage, err error) {
	report := func(kind fsck.Kind, format string, args ...any) {
		found = append(found, fsck.Damage{Kind: kind, Index: -1, Detail: fmt.Sprintf(format, args...)})
	}
	files, err := f.store.Archives(ctx)
	if err != nil {
		return nil, err
	}
	for _, in := range files {
		damages, err := f.examine(ctx, in)
		if len(damages) > 0 || errors.Is(err, ledger.ErrArchive) {
			// A deletion may have put another file in its place meanwhile, which is that which counts.
			if in, err = atPlaceOf(ctx, f.store, in); err != nil {
				return found, err
			}
			damages, err = f.examine(ctx, in)
		}
		if ctx.Err() != nil {
			return found, ctx.Err()
		}
		for _, d := range damages {
			report(fsck.DamageArchive, "%s: %v", f.folder.Path(in.File), d)
		}
		if err != nil && !errors.Is(err, ledger.ErrArchive) {
			return found, err
		}
		if err != nil {
			report(fsck.DamageArchive, "%v", err)
		}
	}
	names, err := f.folder.List()
	if err != nil {
		return found, err
	}
	if files, err = f.store.Archives(ctx); err != nil { // a run may have registered one meanwhile
		return found, err
	}
	now, _ := f.read() // errors have been reported before
	for _, name := range names {
		deletes := func(x Expiry) bool { return Name(x.From, x.To, x.Replaces) == name }
		n := slices.IndexFunc(f.first.Expiries, deletes)
		switch _, err := os.Stat(f.folder.Path(name)); {
		case errors.Is(err, os.ErrNotExist): // deleted since its name was read
		case n >= 0:
			report(fsck.DamageNotExpired, "%s: by act %s", f.folder.Path(name), f.first.Expiries[n].ID)
		case slices.ContainsFunc(now.Expiries, deletes): // a run that began since is about to delete it
		case !slices.ContainsFunc(files, func(a storage.Archived) bool { return a.File == name }):
			report(fsck.DamageStray, "%s", f.folder.Path(name))
		}
	}
	return found, nil
}

func (f *Fsck) examine(ctx context.Context, in storage.Archived) (damages []*Damage, err error) {
	err = f.check(ctx, in, func(d *Damage) { damages = append(damages, d) })
	return damages, err
}

// atPlaceOf returns the file that now holds the records of in, which may be in itself.
func atPlaceOf(ctx context.Context, store storage.Store, in storage.Archived) (storage.Archived, error) {
	files, err := store.Archives(ctx)
	if n := slices.IndexFunc(files, func(a storage.Archived) bool { return a.From == in.From && a.To == in.To }); n >= 0 {
		return files[n], err
	}
	return in, err
}

// check reads one file from end to end, and calls found for each damage. It returns an error if the file cannot be
// read.
func (f *Fsck) check(ctx context.Context, in storage.Archived, found func(*Damage)) error {
	return f.folder.With(in, func(file *File) error {
		if err := file.CheckProof(f.log); err != nil {
			return err
		}
		indexes, roots := file.Roots()
		stored, err := f.store.Hashes(ctx, indexes)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return err
		}
		if err == nil && !slices.Equal(stored, roots) {
			found(&Damage{Where: "table of contents", Reason: errors.New("its roots differ from the log's hashes of these records")})
		}
		_, err = file.Check(ctx, Examination{Found: found})
		return err
	})
}
