package archive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// An ExpireOrder says what to delete.
type ExpireOrder struct {
	Before     time.Time // archived records that are proved to have been sealed before this
	Reason, By string
	DryRun     bool
	Progress   func(step string, done, total int64)
}

// Expired is the result of Expire.
type Expired struct {
	Files    []ExpiredFile `json:"files"`
	Records  int64         `json:"records"`  // deleted
	Held     int64         `json:"held"`     // kept because they are on hold
	Unproved int64         `json:"unproved"` // kept because the time of their sealing is not proved
	Finished int           `json:"finished"` // deletions that an earlier run had begun
}

// An ExpiredFile is an archive file from which records were deleted.
type ExpiredFile struct {
	File    string `json:"file"` // the new file, with the remaining records
	Act     string `json:"act"`  // record id
	Records int64  `json:"records"`
}

// Expire deletes archived records whose retention time is over, and what opens their texts that are sealed apart. The
// log keeps their ids and hashes, and what it hashed for each. So the proofs of all other records stay valid, and it
// stays provable that the deleted ones existed. Expire does not delete the operator's acts.
//
// The steps for each file are:
//
//  1. Write a new file without the records, durably; read it back and compare it with the log.
//  2. Seal the act into the log.
//  3. Replace the old file by the new one in the database.
//  4. Destroy the keys of texts that are sealed apart.
//  5. Remove the old file.
//
// A crash before the act leaves an unused file. A crash after it leaves a deletion that the next run completes.
//
// Runs follow one another, also on several machines. An act names the file that it replaces, and each run lists the
// files once.
//
// If Order.Before is too recent, the error wraps ErrTooYoung.
func (a *Archivist) Expire(ctx context.Context, o ExpireOrder) (*Expired, error) {
	e := &expiring{Archivist: a, order: o, done: &Expired{Files: []ExpiredFile{}}}
	alone := func(ctx context.Context) error { return a.locking(ctx, []string{"archive-expiry"}, e.all) }
	if err := a.asRun(ctx, alone); err != nil {
		return e.done, fmt.Errorf("deleting expired records: %w", err)
	}
	return e.done, nil
}

type expiring struct {
	*Archivist
	order ExpireOrder
	done  *Expired
	ages  *ages
	today time.Time // the time to which retention times are compared
}

func (e *expiring) all(ctx context.Context) (err error) {
	if e.order.Before.IsZero() || strings.TrimSpace(e.order.Reason) == "" || strings.TrimSpace(e.order.By) == "" {
		return errors.New("a deletion needs a time, a reason, and the name of the person who decided it")
	}
	if err := e.Ledger.CanAppend(ctx); err != nil {
		return err
	}
	if e.ages, err = e.newAges(ctx); err != nil {
		return err
	}
	book, err := e.Book(ctx)
	if err != nil {
		return err
	}
	if e.today, err = e.provedToday(ctx); err != nil {
		return err
	}
	if kept := book.Kept(e.order.Before); kept.After(e.today) {
		return fmt.Errorf("%w: they are kept for %d days, so records sealed before %s may be deleted from %s on; by the clock and the log's newest time stamp, today is %s",
			ErrTooYoung, book.Days, e.order.Before.UTC().Format(time.DateOnly), kept.UTC().Format(time.DateOnly), e.today.UTC().Format(time.DateOnly))
	}
	if !e.order.DryRun {
		if err := e.finish(ctx, book); err != nil {
			return err
		}
	}
	files, err := e.Ledger.Archives(ctx)
	if err != nil {
		return err
	}
	for n, in := range files {
		if !in.Shed {
			break // an archiving run is in progress or was interrupted: records in the database are not deleted
		}
		for {
			again, err := e.file(ctx, in)
			if err != nil {
				return err
			}
			if !again {
				break
			}
		}
		if e.order.Progress != nil {
			e.order.Progress("archives examined", int64(n+1), int64(len(files)))
		}
	}
	if e.order.DryRun {
		return nil
	}
	return e.Ledger.Reclaim(ctx, nil) // frees the room that expired records had in the database
}

// provedToday returns the clock's time, or the time of the log's newest time stamp if the clock is ahead of it. So a
// clock that was set ahead deletes nothing too early, unless an authority's clock was ahead as well. It returns
// ErrTooYoung, wrapped, if none of the last records has a time stamp.
func (e *expiring) provedToday(ctx context.Context) (time.Time, error) {
	size, err := e.Ledger.Size(ctx)
	if err != nil {
		return time.Time{}, err
	}
	now := e.Now()
	for index := size - 1; index >= 0 && index >= size-mostUnstamped; index-- {
		rows, err := e.Ledger.RowsFrom(ctx, index, 1)
		if err != nil {
			return time.Time{}, err
		}
		if len(rows) == 0 || rows[0].Entry != nil {
			continue
		}
		record, err := rows[0].Record()
		if err != nil {
			return time.Time{}, err
		}
		stamped, err := e.ages.sealed(record)
		if err != nil {
			continue // it waits for its time stamp
		}
		if stamped.Before(now) {
			return stamped, nil
		}
		return now, nil
	}
	return time.Time{}, fmt.Errorf("%w: none of the log's last %d records has a proved time, so today's date is not proved", ErrTooYoung, min(size, mostUnstamped))
}

// mostUnstamped is how many of the last records provedToday reads to find one with a time stamp.
const mostUnstamped = 4 * storage.TileWidth

// file deletes the expired records of a file. It decides again when it seals the act. again means that another
// process sealed a retention act meanwhile, so the caller must call file again.
func (e *expiring) file(ctx context.Context, in storage.Archived) (again bool, err error) {
	book, err := e.Book(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(book.Expiries, func(x Expiry) bool { return x.Replaces == in.Digest }) {
		if e.order.DryRun {
			return false, nil // its expired records are deleted already; the next run completes that
		}
		return false, fmt.Errorf("%w: for archive %s, although this run held the lock; run it again", errDecided, in.File)
	}
	gone, err := e.choose(ctx, in, book)
	if err != nil || len(gone) == 0 {
		return false, err
	}
	if e.order.DryRun {
		e.done.Records += int64(len(gone))
		e.done.Files = append(e.done.Files, ExpiredFile{File: in.File, Records: int64(len(gone))})
		return false, nil
	}
	act, err := evidence.NewRecordID(e.Now(), nil)
	if err != nil {
		return false, err
	}
	next, err := e.without(ctx, in, gone, act)
	if err != nil {
		return false, e.unlessReplaced(ctx, in, err)
	}
	e.After("file without them written")
	_, err = e.decideAs(ctx, act, func(now *Book) (*operator.RetentionEventBody, error) {
		if now.Acts != book.Acts {
			return nil, errDecided
		}
		return &operator.RetentionEventBody{Event: operator.RetentionExpired, Reason: strings.TrimSpace(e.order.Reason), By: strings.TrimSpace(e.order.By),
			Gone: &operator.ExpiredRecords{Archive: next.Digest, Before: evidence.FormatTime(e.order.Before), Count: int64(len(gone)), From: in.From, To: in.To,
				Replaces: in.Digest}}, nil
	})
	if errors.Is(err, errDecided) {
		return e.begin(ctx, in, next)
	}
	if err != nil {
		return false, err
	}
	e.After("expiry sealed")
	e.done.Records += int64(len(gone))
	e.done.Files = append(e.done.Files, ExpiredFile{File: next.File, Act: act, Records: int64(len(gone))})
	return false, e.replace(ctx, in, next)
}

var errDecided = errors.New("another retention act was sealed meanwhile")

// begin removes a new file that no act names, and reports whether the old file is still in use.
func (e *expiring) begin(ctx context.Context, in, next storage.Archived) (again bool, err error) {
	if err := os.Remove(e.Folder.Path(next.File)); err != nil {
		return false, err
	}
	files, err := e.Ledger.Archives(ctx)
	return slices.Contains(files, in), err // if not, another run has deleted records from it
}

// unlessReplaced returns nil if a file could not be read because another run has replaced it meanwhile, and otherwise
// the error.
func (e *expiring) unlessReplaced(ctx context.Context, in storage.Archived, err error) error {
	files, failed := e.Ledger.Archives(ctx)
	if failed == nil && !slices.Contains(files, in) {
		return nil
	}
	return errors.Join(err, failed)
}

// choose returns the indexes of the records in a file that may be deleted.
func (e *expiring) choose(ctx context.Context, in storage.Archived, book *Book) (map[int64]bool, error) {
	gone := map[int64]bool{}
	const page = 32
	for from := in.From; from < in.To; from += page {
		rows, err := e.Ledger.RowsFrom(ctx, from, min(page, in.To-from))
		if err != nil {
			return nil, err
		}
		for n := range rows {
			if rows[n].Entry != nil {
				continue
			}
			record, err := rows[n].Record()
			if err != nil {
				return nil, err
			}
			if record.Payload.ActionType.ByOperator() {
				continue
			}
			sealed, err := e.ages.sealed(record)
			switch {
			case err != nil:
				e.done.Unproved++
			case !sealed.Before(e.order.Before) || book.Kept(sealed).After(e.today):
			case book.Held(record.Digest, record.Payload.ChainID) != nil:
				e.done.Held++
			default:
				gone[rows[n].Index] = true
			}
		}
	}
	return gone, nil
}

// without makes a file in which only the hashes of some records are left.
func (e *expiring) without(ctx context.Context, in storage.Archived, gone map[int64]bool, act string) (storage.Archived, error) {
	source, err := e.Source(ctx, in.From, in.To)
	if err != nil {
		return storage.Archived{}, err
	}
	next, err := e.Folder.Create(ctx, source.Without(gone, act))
	next.Shed = true
	return next, err
}

// replace replaces a file by the one that an act names. It can be called again.
func (e *expiring) replace(ctx context.Context, old, next storage.Archived) error {
	if err := e.Folder.With(next, func(*File) error { return nil }); err != nil {
		return err // before the database names it
	}
	if err := e.Ledger.PutArchive(ctx, old.Digest, next); err != nil && !(errors.Is(err, ledger.ErrConflict) && e.names(ctx, next)) {
		return err
	}
	e.After("file replaced")
	if err := e.Ledger.Briefs().ForgetExpired(ctx, storage.Range{From: next.From, To: next.To}); err != nil {
		return err
	}
	e.After("briefs of expired records emptied")
	if err := e.eraseApart(ctx, next, old); err != nil {
		return err
	}
	e.After("texts of expired records destroyed")
	if err := e.Folder.Remove(old); err != nil {
		return err
	}
	e.After("file removed")
	return nil
}

// names reports whether the database names a file.
func (e *expiring) names(ctx context.Context, a storage.Archived) bool {
	files, err := e.Ledger.Archives(ctx)
	return err == nil && slices.Contains(files, a)
}

// eraseApart destroys the keys of texts that are sealed apart, for the records that are complete in old and expired
// in next.
func (e *expiring) eraseApart(ctx context.Context, next, old storage.Archived) error {
	return e.Folder.With(next, func(left *File) error {
		return e.Folder.With(old, func(all *File) error {
			for index := old.From; index < old.To; index++ {
				row, _, err := left.Row(index)
				if err != nil {
					return err
				}
				if row.Entry == nil {
					continue
				}
				record, err := all.Record(index)
				if errors.Is(err, ledger.ErrExpired) {
					continue
				}
				if err != nil {
					return err
				}
				for _, pointer := range record.Payload.SealedApart {
					if err := e.Destroy(ctx, record.Digest, pointer); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// finish completes deletions that were interrupted after their act was sealed.
func (e *expiring) finish(ctx context.Context, book *Book) error {
	for _, x := range book.Expiries {
		old := storage.Archived{From: x.From, To: x.To, File: Name(x.From, x.To, x.Replaces), Digest: x.Replaces, Shed: true}
		if _, err := os.Stat(e.Folder.Path(old.File)); errors.Is(err, os.ErrNotExist) && !e.names(ctx, old) {
			continue // complete, or a deleted file was restored under another name
		}
		next := storage.Archived{From: x.From, To: x.To, File: Name(x.From, x.To, x.Archive), Digest: x.Archive, Shed: true}
		if err := e.finishOne(ctx, old, next); err != nil {
			return fmt.Errorf("finishing act %s: %w", x.ID, err)
		}
		e.done.Finished++
	}
	return nil
}

// finishOne completes the deletion of one act. Its new file may have been replaced itself since.
func (e *expiring) finishOne(ctx context.Context, old, next storage.Archived) error {
	files, err := e.Ledger.Archives(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(a storage.Archived) bool { return a.From == old.From && a.To == old.To })
	if i < 0 {
		return fmt.Errorf("%w: the records %d to %d are in no archive", ledger.ErrDamaged, old.From, old.To-1)
	}
	if files[i].Digest != old.Digest {
		next = files[i]
	}
	return e.replace(ctx, old, next)
}
