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

// readRetention reads what the log in a store says on keeping records. Where that cannot be read, nothing explains what is gone.
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

// A Fsck examines archive files, and holds what is gone against the acts that say so.
type Fsck struct {
	folder *Folder
	log    note.Verifier
	store  storage.Store
	read   func() (*Book, []fsck.Damage)
	first  *Book // what the log said when the examination began

	mu    sync.Mutex // held while what follows is read or written: records come from many goroutines
	book  *Book
	byAct map[string]int64 // how many records are gone
	acts  map[string]bool  // of which the log was read again, in vain or not
}

// NewFsck begins an examination, and returns what is wrong with what the log says on keeping records.
func NewFsck(ctx context.Context, folder *Folder, log note.Verifier, store storage.Store) (*Fsck, []fsck.Damage) {
	f := &Fsck{folder: folder, log: log, store: store, byAct: map[string]int64{}, acts: map[string]bool{},
		read: func() (*Book, []fsck.Damage) { return readRetention(ctx, store) }}
	book, damaged := f.read()
	f.first, f.book = book, book
	return f, damaged
}

// Expired takes in a record that is gone, in the name of an act. It asks the log again about an act that it does not know: it is sealed before anything goes in its name, and so may have been since the
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

// tooMany names acts in whose name more records are gone than they count.
func (f *Fsck) tooMany() (found []fsck.Damage) {
	for _, e := range f.book.Expiries {
		if gone := f.byAct[e.ID]; gone > e.Count {
			found = append(found, fsck.Damage{Kind: fsck.DamageExpired, Index: -1,
				Detail: fmt.Sprintf("act %s deleted %d of the records %d to %d, and %d are gone in its name", e.ID, e.Count, e.From, e.To-1, gone)})
		}
	}
	return found
}

// Run says what is wrong, when the whole log has been taken in.
func (f *Fsck) Run(ctx context.Context) ([]fsck.Damage, error) {
	files, err := f.files(ctx)
	return append(f.tooMany(), files...), err
}

// files names what is wrong with archive files: those that the database names are read from end to end, and held against the
// log's hashes; others are strays, or should have been deleted.
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
	if files, err = f.store.Archives(ctx); err != nil { // a run may have noted one meanwhile
		return found, err
	}
	now, _ := f.read() // what cannot be read has been reported
	for _, name := range names {
		deletes := func(x Expiry) bool { return Name(x.From, x.To, x.Replaces) == name }
		n := slices.IndexFunc(f.first.Expiries, deletes)
		switch _, err := os.Stat(f.folder.Path(name)); {
		case errors.Is(err, os.ErrNotExist): // it was deleted since its name was read
		case n >= 0:
			report(fsck.DamageNotExpired, "%s: by act %s", f.folder.Path(name), f.first.Expiries[n].ID)
		case slices.ContainsFunc(now.Expiries, deletes): // whoever has decided that since the log was read is deleting it
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

// atPlaceOf returns the file that has the records now that one had, which may be that one.
func atPlaceOf(ctx context.Context, store storage.Store, in storage.Archived) (storage.Archived, error) {
	files, err := store.Archives(ctx)
	if n := slices.IndexFunc(files, func(a storage.Archived) bool { return a.From == in.From && a.To == in.To }); n >= 0 {
		return files[n], err
	}
	return in, err
}

// check reads one file from end to end, and tells of each damage in it. What it returns stands against reading it at all.
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
			found(&Damage{Where: "table of contents", Reason: errors.New("its roots are not the hashes that the log has of these records")})
		}
		_, err = file.Check(ctx, Examination{Found: found})
		return err
	})
}
