package archive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
	"jurat/internal/lock"
	"jurat/verify/trust"
)

// An Archivist moves records of a log into archive files, manages how long they are kept, and deletes expired ones.
// All its fields are required unless they say otherwise.
type Archivist struct {
	Ledger   *ledger.Ledger
	Operator ledger.Operator // for the same ledger
	Folder   *Folder
	Locks    lock.Locks
	Log      note.Verifier // the public key of the log's checkpoints
	Now      func() time.Time

	Trust   func(context.Context) (*trust.Trust, error)                             // contains the log's own keys and authorities
	Destroy func(ctx context.Context, record evidence.Digest, pointer string) error // destroys the key of a text that is sealed apart
	After   func(step string)                                                       // called after each step; tests simulate crashes there
	Most    int64                                                                   // records in one file; 0: as many as the format allows
}

func (a *Archivist) most() int64 {
	if a.Most == 0 {
		return MaxTiles * storage.TileWidth
	}
	return a.Most
}

// An Order says what to archive.
type Order struct {
	Before   time.Time // records that are proved to have been sealed before this
	DryRun   bool      // only report what would be archived
	Progress func(step string, done, total int64)
}

// Archiving is the result of an order.
type Archiving struct {
	From  int64              `json:"from"`  // index of the first record that was in no archive before
	To    int64              `json:"to"`    // index after the last record that is in one now, or would be
	Files []storage.Archived `json:"files"` // the new files
	Shed  int64              `json:"shed"`  // number of rows that have shed
	Stops string             `json:"stops"` // why it went no further
}

// Archive moves records into archive files. It starts after the last archived record, and takes whole tiles while
// their records are proved to have been sealed before the order's time, and wait for no time stamp. The operator's
// acts stay in the database as well, because every start reads them.
//
// The steps for each file are:
//
//  1. Write the file, durably.
//  2. Read all of it back, and compare it with the database's rows byte for byte, and its roots with the log's
//     hashes.
//  3. Register the file in the database.
//  4. Its rows shed, one tile in a transaction.
//  5. Mark the file as shed.
//
// A crash before step 3 leaves a file that the next run adopts if it is complete. After a later crash, rows are both
// in the file and in the database, and the next run continues with them. Several runs at once make the same files,
// and one of them registers each. Archive delays no sealing and no reading. It returns the errors of the locks, of
// the ledger and of the file system. With an error it also returns what it has done.
func (a *Archivist) Archive(ctx context.Context, o Order) (*Archiving, error) {
	run := &archiving{Archivist: a, order: o, done: &Archiving{Files: []storage.Archived{}}}
	if err := a.asRun(ctx, run.all); err != nil {
		return run.done, fmt.Errorf("archiving: %w", err)
	}
	return run.done, nil
}

type archiving struct {
	*Archivist
	order Order
	done  *Archiving
}

func (a *archiving) tell(step string, done, total int64) {
	if a.order.Progress != nil {
		a.order.Progress(step, done, total)
	}
}

func (a *archiving) all(ctx context.Context) error {
	from, err := a.finish(ctx)
	if err != nil {
		return err
	}
	a.done.From, a.done.To = from, from
	to, err := a.limit(ctx, from)
	if err != nil {
		return err
	}
	if a.order.DryRun {
		a.done.To = to
		return nil
	}
	for a.done.To < to {
		// Files begin and end at multiples of their largest size where possible, so that they do not depend on how
		// often this runs.
		err := a.file(ctx, a.done.To, min(to, (a.done.To/a.most()+1)*a.most()))
		if err != nil && !errors.Is(err, ledger.ErrConflict) {
			return err
		}
		if a.done.To, err = a.finish(ctx); err != nil { // includes another run's files
			return err
		}
	}
	// Reclaim runs even if nothing was shed now: an interrupted run may have left texts in the database.
	return a.Ledger.Reclaim(ctx, func(done, total int64) { a.tell("database pages freed", done, total) })
}

// finish sheds rows of registered files that an interrupted or concurrent run has left. It returns the index where
// the archives end.
func (a *archiving) finish(ctx context.Context) (end int64, err error) {
	files, err := a.Ledger.Archives(ctx)
	if err != nil {
		return 0, err
	}
	for _, in := range files {
		if !a.order.DryRun {
			if err := a.shed(ctx, in); err != nil {
				return 0, err
			}
		}
		end = in.To
	}
	return end, nil
}

// limit returns how far the log can be archived, from an index on, and notes why not further.
func (a *archiving) limit(ctx context.Context, from int64) (int64, error) {
	settled, err := a.Ledger.Settled(ctx)
	if err != nil {
		return 0, err
	}
	size, err := a.Ledger.Size(ctx)
	if err != nil {
		return 0, err
	}
	a.done.Stops = "the log ends"
	if settled < size {
		a.done.Stops = fmt.Sprintf("record %d waits for a time stamp", settled)
	}
	ages, err := a.newAges(ctx)
	if err != nil {
		return 0, err
	}
	at := from
	for more := true; more && at < settled; {
		n := min(storage.TileWidth, settled-at)
		young, err := a.firstYoung(ctx, ages, at, n)
		if err != nil {
			return 0, err
		}
		if at += young; young < n {
			more = false
		}
		a.tell("records examined", at-from, settled-from)
	}
	whole := at / storage.TileWidth * storage.TileWidth
	if whole < at && at == settled {
		left := "; 1 record does"
		if n := at - whole; n > 1 {
			left = fmt.Sprintf("; %d records do", n)
		}
		a.done.Stops += fmt.Sprintf("%s not fill a tile of %d yet", left, storage.TileWidth)
	}
	return max(from, whole), nil
}

// firstYoung returns how many of n records come before the first one that cannot be archived, and notes why that one
// cannot.
func (a *archiving) firstYoung(ctx context.Context, ages *ages, from, n int64) (int64, error) {
	rows, err := a.Ledger.RowsFrom(ctx, from, n)
	if err != nil {
		return 0, err
	}
	reasons := make([]error, len(rows))
	var all sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(rows)) {
		all.Go(func() {
			for k := next.Add(1) - 1; k < int64(len(rows)); k = next.Add(1) - 1 {
				reasons[k] = a.tooYoung(ages, &rows[k])
			}
		})
	}
	all.Wait()
	for k, reason := range reasons {
		if reason != nil {
			a.done.Stops = fmt.Sprintf("record %d (%s): %v", rows[k].Index, rows[k].RecordID, reason)
			return int64(k), nil
		}
	}
	return n, nil
}

func (a *archiving) tooYoung(ages *ages, row *storage.Row) error {
	record, err := row.Record()
	if err != nil {
		return err
	}
	sealed, err := ages.sealed(record)
	if err == nil && !sealed.Before(a.order.Before) {
		err = fmt.Errorf("its time stamp proves %s, which is too recent", sealed.UTC().Format(time.RFC3339))
	}
	return err
}

// file makes an archive file, or adopts one, and registers it.
func (a *archiving) file(ctx context.Context, from, to int64) error {
	source, err := a.Source(ctx, from, to)
	if err != nil {
		return err
	}
	source.Progress = func(done int64) { a.tell("records written", done, to-from) }
	in, ok, err := a.Folder.Adopt(ctx, source)
	if err == nil && !ok {
		in, err = a.Folder.Create(ctx, source)
	}
	if err != nil {
		return err
	}
	a.After("archive written")
	if err := a.Ledger.PutArchive(ctx, evidence.Digest{}, in); err != nil {
		return err // ErrConflict: another run was first
	}
	a.After("archive noted")
	a.done.Files = append(a.done.Files, in)
	return nil
}

// Source returns the range of the log from which a file is made. Its errors are those of ledger.CheckpointOver.
func (a *Archivist) Source(ctx context.Context, from, to int64) (Source, error) {
	signed, head, err := a.Ledger.CheckpointOver(ctx, to)
	if err != nil {
		return Source{}, err
	}
	return Source{Origin: a.Ledger.Origin(), From: from, To: to, Checkpoint: signed, Size: head.Size, Rows: a.Ledger.RowsFrom,
		Hashes: tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return a.Ledger.StoredHashes(ctx, indexes) })}, nil
}

// shed removes from the rows of a file what it holds, unless that is done.
func (a *archiving) shed(ctx context.Context, in storage.Archived) error {
	if in.Shed {
		return nil
	}
	err := a.Folder.With(in, func(f *File) error {
		for from := in.From; from < in.To; from += storage.TileWidth {
			if err := a.shedTile(ctx, f, from); err != nil {
				return err
			}
			a.tell("records removed from the database", from+storage.TileWidth-in.From, in.To-in.From)
			a.After("tile shed")
		}
		return nil
	})
	if err != nil {
		return err
	}
	next := in
	next.Shed = true
	if err := a.Ledger.PutArchive(ctx, in.Digest, next); err != nil && !errors.Is(err, ledger.ErrConflict) { // another run was first
		return err
	}
	a.After("archive done")
	return nil
}

func (a *archiving) shedTile(ctx context.Context, f *File, from int64) error {
	rows, err := a.Ledger.KeptRows(ctx, from, storage.TileWidth)
	if err != nil {
		return err
	}
	var list []storage.Shedding
	for n := range rows {
		if rows[n].HasShed() {
			continue
		}
		record, err := rows[n].Record()
		if err != nil {
			return err
		}
		if record.Payload.ActionType.ByOperator() {
			continue
		}
		had, _, err := f.Row(rows[n].Index)
		if err != nil {
			return err
		}
		if string(had.Payload) != string(rows[n].Payload) {
			return fmt.Errorf("%w: record %s differs between the archive and the database", ledger.ErrDamaged, rows[n].RecordID)
		}
		list = append(list, storage.Shedding{Index: rows[n].Index, Timestamps: len(had.Timestamps)})
	}
	if len(list) == 0 {
		return nil
	}
	if err := a.Ledger.Shed(ctx, list); err != nil {
		return err
	}
	a.done.Shed += int64(len(list))
	return nil
}
