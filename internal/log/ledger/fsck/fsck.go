// Package fsck examines a log: it reads everything in a store, and reports every damage.
//
// # An examination is parallel, but reports in log order
//
// Checks that need one record alone run on all cores, a page of rows at a time: its form, signatures, time stamps,
// leaf hash, and that it is found by its id. Checks that need the records before it (counts, the tree) run in one
// goroutine, in log order, so damages always have the same order. That goroutine is fast: one hash and one count for
// each record.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/kit/plural"
	"jurat/internal/log/ledger/storage"
)

// pageSize is how many rows are read at once.
const pageSize = 32

// A Log is what Run reads.
type Log struct {
	Store     storage.Store // required
	Verifier  note.Verifier // required: the log's public key
	Published Published     // the last checkpoint that is stored outside the store; nil: none
}

// Published is where the last checkpoint is stored outside the store.
type Published interface {
	// Load returns the checkpoint, or "" if there has been none.
	Load(ctx context.Context) (string, error)
}

// Options says what Run does besides reading.
type Options struct {
	Progress func(done, total int64) // called after every page of rows, from one goroutine; may be nil
	// Check is called for every intact record, for example to verify its signatures; may be nil. If waits is true,
	// the record waits for its first time stamp. Many goroutines call it at once, in no order.
	Check func(r *evidence.Record, waits bool) error
	// Expired is called for every deleted record, and returns an error if the act does not say that it was deleted.
	// Many goroutines call it at once; may be nil.
	Expired func(index int64, recordID, act string) error
}

// Run reads everything, changes nothing, and returns every damage. It returns an error only if it could not continue
// to read. It needs no Ledger, because it is needed most for a log that ledger.Open refuses. Records that are
// appended meanwhile are left to the next run.
//
// The checkpoint confirms the root, each hash the two below it, and each leaf hash its record. So if two of them
// disagree, the hash above tells which one was changed.
//
// All cores read and check pages of rows. One goroutine merges the results in log order. Of a finished page Run keeps
// only the damages, and 40 to 80 bytes for each chain, case, actor and subject.
func Run(ctx context.Context, log Log, options Options) ([]Damage, error) {
	if log.Store == nil || log.Verifier == nil {
		return nil, errors.New("checking ledger: the caller must give a store and the log's public key")
	}
	f := &fsck{store: log.Store, log: log, options: options, roots: map[int64]tlog.Hash{},
		counts: map[countKey]int64{}, strays: map[int64]tlog.Hash{}, logged: map[tlog.Hash]int64{}}
	if err := f.run(ctx); err != nil {
		return f.found, fmt.Errorf("checking ledger: %w", err)
	}
	return f.found, nil
}

// findings are damages, in the order of the report.
type findings struct{ found []Damage }

func (f *findings) report(kind Kind, index int64, id, format string, args ...any) {
	f.found = append(f.found, Damage{Kind: kind, Index: index, RecordID: id, Detail: fmt.Sprintf(format, args...)})
}

// fsck is one examination of a log. The goroutines that examine pages use only the stores, options, indexed
// and head. All other members belong to the goroutine that merges the pages.
type fsck struct {
	findings
	store   storage.Store
	log     Log
	options Options
	indexed bool // the store's own check found every row in its indexes, so no row has to be looked up

	head   storage.Head
	claims []claim             // checkpoints to compare with the tree
	roots  map[int64]tlog.Hash // by the sizes in claims; computed while the pages are merged
	edge   []tlog.Hash         // by level: the last complete hash, with the value that it should have

	counts   map[countKey]int64 // records seen of each chain and actor, submissions seen of each case, judgments seen of each subject
	counting bool               // a record was seen that the log counted for its actor

	unread int64 // places seen that hold no intact record

	strays map[int64]tlog.Hash // by place: leaf hashes of records that differ from what was logged there
	logged map[tlog.Hash]int64 // the places of what was logged there, by leaf hash
}

// A countKey is a digest of the name of what is counted: the names of a million of them would need too much memory.
type countKey [16]byte

// A claim is what a signed checkpoint says of the log.
type claim struct {
	storage.Head
	larger, other Kind // reported if the log is smaller; if it differs
}

func (f *fsck) run(ctx context.Context) error {
	// The head is read after the checkpoints, which it must contain.
	for _, step := range []func(context.Context) error{f.complaints, f.checkpoints, f.readHead, f.pages, f.outbox, f.keysOfBriefs, f.beyond} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fsck) readHead(ctx context.Context) (err error) {
	if f.head, err = f.headNow(ctx); err == nil {
		f.takeRoots(0)
	}
	return err
}

// headNow takes the size of a log whose last batch is not whole, too: it has no root, which differs from that of the records.
func (f *fsck) headNow(ctx context.Context) (storage.Head, error) {
	head, err := f.store.Head(ctx)
	if errors.Is(err, storage.ErrDamaged) && head.Size > 0 {
		return head, nil
	}
	return head, err
}

func (f *fsck) complaints(ctx context.Context) error {
	complaints, err := f.store.Check(ctx)
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

// checkpoints collects the signed checkpoints inside and outside of the store.
func (f *fsck) checkpoints(ctx context.Context) error {
	inside, err := f.store.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if inside == "" {
		f.report(DamageNoCheckpoint, -1, "", "every log has one from the start")
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
		f.report(DamageUnpublished, -1, "", "the last checkpoint in the store covers %s", plural.Of(f.claims[0].Size, "record"))
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

// takeRoots keeps the root of the first size records if a claim has this size.
func (f *fsck) takeRoots(size int64) {
	for _, c := range f.claims {
		if c.Size == size {
			f.roots[size] = f.root(size)
		}
	}
}

// root computes the root of the first size records, which are the ones merged so far.
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

// judge compares the head and the checkpoints with the tree of the records.
func (f *fsck) judge() {
	if root := f.root(f.head.Size); root != f.head.Root {
		f.report(DamageHead, -1, "", "the head is %v; the root of the records is %v", f.head, root)
	}
	for _, c := range f.claims {
		root, known := f.roots[c.Size]
		switch {
		case !known:
			f.report(c.larger, -1, "", "it covers %s, but the log has %d", plural.Of(c.Size, "record"), f.head.Size)
		case root != c.Root:
			f.report(c.other, -1, "", "for %s it gives the root %v; the root of the log is %v", plural.Of(c.Size, "record"), c.Root, root)
		}
	}
}

// beyond looks for rows after the head, which remain if the head was set back.
func (f *fsck) beyond(ctx context.Context) error {
	now, err := f.headNow(ctx)
	if err != nil || now != f.head {
		return err // the log has grown meanwhile: rows after the old head are new
	}
	rows, err := f.store.Rows(ctx, f.head.Size, pageSize)
	if err != nil {
		return err
	}
	for _, row := range rows {
		f.report(DamageExtraRow, row.Index, row.RecordID, "the log ends before index %d", f.head.Size)
	}
	return nil
}

// Kind is a kind of damage: its name, and after a colon what it means.
type Kind string

const (
	DamageMissingRow   Kind = "missing_row: a logged record is missing from the store; its hash is still in the tree"
	DamageUnreadable   Kind = "unreadable_row: the row does not contain a record"
	DamageDigest       Kind = "payload_changed: the payload was changed: its digest differs from the digest in the row"
	DamageKeys         Kind = "keys_changed: the row is found under an id, a digest or a chain that its payload does not have"
	DamageRow          Kind = "row_changed: the record differs from the one logged at this place: its payload or signatures were changed"
	DamageMoved        Kind = "row_moved: the record was logged at another place: the order was changed"
	DamageDuplicate    Kind = "duplicate: the same record or payload is in the log twice"
	DamageLookup       Kind = "lookup: the record is in the log, but is not found by its id or digest"
	DamageCount        Kind = "count: a number that the log gave this record is wrong"
	DamageExtraRow     Kind = "row_beyond_head: there is a row after the end of the log: it was never committed, or the head was set back"
	DamageMissingHash  Kind = "missing_hash: a stored hash is missing; it can be computed from the records"
	DamageHash         Kind = "hash_changed: a stored hash was changed: the records and hashes around it require another value"
	DamageBelow        Kind = "history_changed: hashes were changed together with the records below them: the hash above still belongs to other records"
	DamageHead         Kind = "head: the root in the head does not fit the records"
	DamageNoCheckpoint Kind = "checkpoint_missing: the signed checkpoint is missing"
	DamageKey          Kind = "checkpoint_not_ours: the checkpoint is not signed by this log's key"
	DamageFork         Kind = "checkpoint_contradicts: the log's key has signed a different history"
	DamageCut          Kind = "tail_cut: the log's key has signed for more records than there are: the end of the log was removed"
	DamageUnpublished  Kind = "published_missing: the log has signed checkpoints, but the published checkpoint is missing"
	DamagePublished    Kind = "published_not_ours: the published checkpoint is not signed by this log's key"
	DamageBehind       Kind = "published_ahead: a checkpoint over more records was published: the store was restored from a backup, or its end was removed"
	DamagePublicFork   Kind = "published_contradicts: a checkpoint over a different history was published: this is not the published log"
	DamageCheck        Kind = "check_failed: the record is unchanged, but fails a check"
	DamageClock        Kind = "clock: the record is as it was sealed, but its clock was behind the one that dated its key: readers refute who sealed it; the log is whole, and can be backed up and restored"
	DamageWaiting      Kind = "waiting_for_nothing: the outbox waits for a time stamp for a record that is missing"
	DamageSettled      Kind = "stamped_and_waiting: the outbox still waits for a time stamp that an act says was added"
	DamageLateStamp    Kind = "late_stamp_missing: a time stamp that an act says was added is missing"
	DamageKeyEvents    Kind = "key_events: the log's key events contradict each other, or cannot be read"
	DamageStore        Kind = "store: the database reports a problem"
	DamageExpired      Kind = "expired_without_act: the content of a record was removed, but no act in the log says so"
	DamageNotExpired   Kind = "not_expired: an act says that records were deleted, but some or their briefs remain: 'jurat log expire' completes the deletion"

	DamageBrief Kind = "brief: the record's brief or its search keys differ from the record; the record is intact: 'jurat log fsck --reindex' makes them again"

	DamageApartLost    Kind = "apart_lost: a text that was sealed apart is missing, but no act says that it was erased; the record still proves all that it proved"
	DamageApartChanged Kind = "apart_changed: a text that was sealed apart cannot be read, or does not fit the record's commitment"
	DamageApart        Kind = "apart_store: the file of the texts is damaged: texts named as changed may be in that part, and also texts that belong to no record"
	DamageNotErased    Kind = "not_erased: an act says that this text was erased, but a part is there: a backup was restored, or a crash interrupted the erasure"
	DamageErasing      Kind = "erasure_begun: an erasure was begun but is not complete"
	DamageOrphan       Kind = "apart_orphan: no record has it: a crash left it, or its record was just being sealed; it proves nothing and does no harm"
)

func (k Kind) String() string { name, _, _ := strings.Cut(string(k), ":"); return name }

// Meaning describes the kind of damage in a sentence.
func (k Kind) Meaning() string { _, meaning, _ := strings.Cut(string(k), ": "); return meaning }

// Harmless reports whether the log is complete and unchanged despite this.
func (k Kind) Harmless() bool { return k == DamageOrphan || k == DamageClock }

// A ClockError is an error of Options.Check: a record is as it was sealed, and fails the check because a clock was behind.
type ClockError struct{ Err error }

func (e *ClockError) Error() string { return e.Err.Error() }
func (e *ClockError) Unwrap() error { return e.Err }

// Damage is one damage of a log.
type Damage struct {
	Kind     Kind
	Index    int64  // the record's place in the log; -1 if it is not about one record
	RecordID string // as in the row; "" if unknown
	Detail   string
}

func (d Damage) String() string {
	where := ""
	if d.Index >= 0 {
		where = fmt.Sprintf(" at %d", d.Index)
	}
	if d.RecordID != "" {
		where += fmt.Sprintf(" (record %s)", d.RecordID)
	}
	return fmt.Sprintf("%s%s: %s: %s", d.Kind, where, d.Kind.Meaning(), d.Detail)
}
