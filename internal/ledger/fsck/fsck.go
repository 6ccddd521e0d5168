// Package fsck examines a log: it reads everything in a store, and names every damage.
//
// # An examination is parallel and reads as if it were not
//
// Whatever can be said of a record by looking at it alone (its form, signatures, time stamps, leaf hash, that it is found by its id)
// is found out on all cores, a page of rows at a time; what needs the records before it (counts, the tree) is done by one, in the
// order of the log, so damages are named in one order. The one is fast: a hash and a count for each record.
package fsck

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// pageSize is how many rows are read at once.
const pageSize = 32

// A Log is what Run reads of a log.
type Log struct {
	Store     storage.Store   // required
	Archive   storage.Archive // gives back what rows have shed; nil: nobody does
	Verifier  note.Verifier   // required: the log's public key
	Published Published       // the last checkpoint that is kept outside the store; nil: none is
}

// Published is where the last checkpoint is kept outside the store.
type Published interface {
	// Load returns the checkpoint, or "" if there has been none.
	Load(ctx context.Context) (string, error)
}

// Options says what Run does beside reading.
type Options struct {
	Progress func(done, total int64) // told after every page of rows, from one goroutine; nil: nobody is told
	// Check is held against every intact record, such as its signatures; nil: nothing is. A record that waits has no
	// time stamp yet, and is to get one. It is called for many records at once, in no order.
	Check func(r *evidence.Record, waits bool) error
	// Expired is asked of every record that was deleted whether the act that is said to say so does. Likewise; nil: nobody is.
	Expired func(index int64, recordID, act string) error
}

// Run reads everything, changes nothing, and names every damage. It returns an error only if it could not read on.
// It works without a Ledger, because what ledger.Open refuses is what it is most needed for. Records that are appended meanwhile are left to
// the next run.
//
// The checkpoint vouches for the root, a hash for the two below it, and a leaf for its record. So when two of them
// disagree, the hash above says which of them was changed.
//
// Pages of rows are read and checked on all cores, and what was found in them is put together in the order of the log: damages
// are named in the same order each time. Of pages that are done nothing is kept but damages, and 40 to 80 bytes for each chain and case.
func Run(ctx context.Context, log Log, options Options) ([]Damage, error) {
	if log.Store == nil || log.Verifier == nil {
		return nil, errors.New("checking ledger: a store and the log's public key are needed")
	}
	f := &fsck{kept: log.Store, store: storage.WholeRows(log.Store, log.Archive), log: log, options: options, roots: map[int64]tlog.Hash{},
		counts: map[countKey]int64{}, strays: map[int64]tlog.Hash{}, logged: map[tlog.Hash]int64{}}
	if err := f.run(ctx); err != nil {
		return f.found, fmt.Errorf("checking ledger: %w", err)
	}
	return f.found, nil
}

// findings are damages in the order in which they are to be named.
type findings struct{ found []Damage }

func (f *findings) report(kind Kind, index int64, id, format string, args ...any) {
	f.found = append(f.found, Damage{Kind: kind, Index: index, RecordID: id, Detail: fmt.Sprintf(format, args...)})
}

// fsck is one reading of a log. While pages are examined, which many do at once, only the stores, options, indexed, briefed and head are looked at
// there; everything else is of the goroutine that puts the pages together.
type fsck struct {
	findings
	kept    storage.Store // in which rows that have shed are not whole
	store   storage.Store // in which they are
	log     Log
	options Options
	indexed bool // the store has found that every row is found by its id and its digest, so that nobody has to look each up

	briefed int64 // so many rows are noted to have briefs

	head   storage.Head
	claims []claim             // checkpoints to be held against the tree
	roots  map[int64]tlog.Hash // of the sizes that claims name, computed in passing
	edge   []tlog.Hash         // by level: the last complete hash, as far as can be said what it should be

	counts map[countKey]int64 // records that were seen of each chain, submissions of each case

	strays map[int64]tlog.Hash // leaf hashes of records that are not what was logged, by their places
	logged map[tlog.Hash]int64 // what was logged in those places
}

// A countKey stands for a chain or a case: of a million of them the names would take all the room.
type countKey [16]byte

// A claim is a signed checkpoint's word on the log.
type claim struct {
	storage.Head
	larger, other Kind // when the log is smaller; when it is another
}

func (f *fsck) run(ctx context.Context) (err error) {
	if err := f.complaints(ctx); err != nil {
		return err
	}
	if err := f.checkpoints(ctx); err != nil {
		return err
	}
	if f.head, err = f.store.Head(ctx); err != nil { // after the checkpoints, which it must contain
		return err
	}
	if f.briefed, err = f.store.Briefed(ctx); err != nil {
		return err
	}
	f.takeRoots(0)
	if err := f.pages(ctx); err != nil {
		return err
	}
	f.nameMoved()
	f.judge()
	if err := f.outbox(ctx); err != nil {
		return err
	}
	if err := f.keysOfBriefs(ctx); err != nil {
		return err
	}
	return f.beyond(ctx)
}

func (f *fsck) complaints(ctx context.Context) error {
	checker, ok := f.kept.(storage.Checker)
	if !ok {
		return nil
	}
	complaints, err := checker.Check(ctx)
	for _, complaint := range complaints {
		f.report(DamageStore, -1, "", "%s", complaint)
	}
	if errors.Is(err, storage.ErrDamaged) {
		f.report(DamageStore, -1, "", "%v", err)
		return nil
	}
	f.indexed = err == nil && len(complaints) == 0
	return err
}

// checkpoints collects what the log's key has signed, inside and outside of the store.
func (f *fsck) checkpoints(ctx context.Context) error {
	inside, err := f.store.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if inside == "" {
		f.report(DamageNoCheckpoint, -1, "", "every log has one from its beginning")
	} else {
		f.claim(inside, DamageKey, DamageCut, DamageFork)
	}
	if f.log.Published == nil {
		return nil
	}
	outside, err := f.log.Published.Load(ctx)
	if err != nil {
		return err
	}
	if outside != "" {
		f.claim(outside, DamagePublished, DamageBehind, DamagePublicFork)
	} else if len(f.claims) > 0 && f.claims[0].Size > 0 {
		f.report(DamageUnpublished, -1, "", "the last one in the store covers %s", plural.Of(f.claims[0].Size, "record"))
	}
	return nil
}

func (f *fsck) claim(signed string, foreign, larger, other Kind) {
	head, err := storage.OpenCheckpoint(signed, f.log.Verifier)
	if err != nil {
		f.report(foreign, -1, "", "%v", err)
		return
	}
	f.claims = append(f.claims, claim{Head: head, larger: larger, other: other})
}

// takeRoots keeps the root of the first size records if a claim is about it.
func (f *fsck) takeRoots(size int64) {
	for _, c := range f.claims {
		if c.Size == size {
			f.roots[size] = f.root(size)
		}
	}
}

// root computes the root of the first size records, which have just been read.
func (f *fsck) root(size int64) tlog.Hash {
	root, first := storage.EmptyHead.Root, true
	for level := range f.edge {
		if size>>level&1 == 0 {
			continue
		}
		if first {
			root, first = f.edge[level], false
		} else {
			root = tlog.NodeHash(f.edge[level], root)
		}
	}
	return root
}

// judge holds the head and the checkpoints against the tree that was read.
func (f *fsck) judge() {
	if root := f.root(f.head.Size); root != f.head.Root {
		f.report(DamageHead, -1, "", "it says %v; the records make the root %v", f.head, root)
	}
	for _, c := range f.claims {
		root, known := f.roots[c.Size]
		switch {
		case !known:
			f.report(c.larger, -1, "", "it covers %s, and the log holds %d", plural.Of(c.Size, "record"), f.head.Size)
		case root != c.Root:
			f.report(c.other, -1, "", "over %s it says the root %v; the log makes %v", plural.Of(c.Size, "record"), c.Root, root)
		}
	}
}

// beyond looks for what a head that was set back has left behind.
func (f *fsck) beyond(ctx context.Context) error {
	now, err := f.store.Head(ctx)
	if err != nil || now != f.head {
		return err // the log has grown meanwhile, and what is beyond is new
	}
	rows, err := f.store.Rows(ctx, f.head.Size, pageSize)
	if err != nil {
		return err
	}
	for _, row := range rows {
		f.report(DamageExtraRow, row.Index, row.RecordID, "the log ends before %d", f.head.Size)
	}
	index := tlog.StoredHashCount(f.head.Size)
	_, err = f.store.Hashes(ctx, []int64{index})
	if err == nil {
		f.report(DamageExtraHash, -1, "", "the hashes of the log end before %d", index)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
