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

// An ExpireOrder says what is deleted.
type ExpireOrder struct {
	Before     time.Time // archived records that are proved to have been sealed before this
	Reason, By string
	DryRun     bool
	Progress   func(step string, done, total int64)
}

// Expired says what came of it.
type Expired struct {
	Files    []ExpiredFile `json:"files"`
	Records  int64         `json:"records"`  // that were deleted
	Held     int64         `json:"held"`     // that stay because they are on hold
	Unproved int64         `json:"unproved"` // that stay because when they were sealed is not proved
	Finished int           `json:"finished"` // deletions that a run before this one had begun
}

// An ExpiredFile is an archive file of which records were deleted.
type ExpiredFile struct {
	File    string `json:"file"` // that has what is left of it
	Act     string `json:"act"`  // record id
	Records int64  `json:"records"`
}

// Expire deletes archived records whose retention time is over, and what opens their texts that are sealed apart. The log keeps their
// ids and hashes, and what it hashed for each: every proof of every other record stands, and that they were there is proved as before.
// The operator's acts are not deleted.
//
// The order of steps for each file is: a new file without the records, durable, read again and held against the log; the act, sealed into
// the log; the new file in the place of the old in the database; texts that are sealed apart; the old file removed. A crash before the act
// leaves a file that nobody names. A crash after it leaves a deletion that the next run finishes: the act says that it was done.
//
// One run follows the other, on however many machines: an act names the file that it replaces, and files are listed once.
func (a *Archivist) Expire(ctx context.Context, o ExpireOrder) (*Expired, error) {
	e := &expiring{Archivist: a, order: o, done: &Expired{Files: []ExpiredFile{}}}
	alone := func(ctx context.Context) error { return a.claiming(ctx, []string{"archive-expiry"}, e.all) }
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
	today time.Time // what retention times are held against
}

func (e *expiring) all(ctx context.Context) (err error) {
	if e.order.Before.IsZero() || strings.TrimSpace(e.order.Reason) == "" || strings.TrimSpace(e.order.By) == "" {
		return errors.New("a deletion has a time, a reason, and somebody who decided it")
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
		return fmt.Errorf("%w: they are kept for %d days, so what was sealed before %s may be deleted from %s on, and by the clock and the log's newest time stamp it is %s",
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
			break // an archiving run is under way, or was broken off: what is in the database is not deleted
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
			e.order.Progress("archives looked through", int64(n+1), int64(len(files)))
		}
	}
	if e.order.DryRun {
		return nil
	}
	return e.Ledger.Reclaim(ctx, nil) // what has expired was in the database once
}

// provedToday is the time by which records may have been kept long enough: the clock's, or that of the log's newest time stamp if the
// clock is ahead of it. A clock that was set ahead deletes nothing too early, unless an authority said so, too.
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
	return time.Time{}, fmt.Errorf("%w: of none of the log's last %d records it is proved when it was sealed, so today is not", ErrTooYoung, min(size, mostUnstamped))
}

// mostUnstamped is how many of the last records are looked at for one that has a time stamp.
const mostUnstamped = 4 * storage.TileWidth

// file deletes what has expired of a file. Whether it may be is decided again when the act is sealed; what another process decided
// meanwhile has it begin again.
func (e *expiring) file(ctx context.Context, in storage.Archived) (again bool, err error) {
	book, err := e.Book(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(book.Expiries, func(x Expiry) bool { return x.Replaces == in.Digest }) {
		if e.order.DryRun {
			return false, nil // what may be deleted of it is, and the next run finishes that
		}
		return false, fmt.Errorf("%w: of archive %s, while this run had the claim to be the only one; run it again", errDecided, in.File)
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

var errDecided = errors.New("something was decided on retention meanwhile")

// begin takes back a file that no act names, and says whether the one that it was to replace is still there.
func (e *expiring) begin(ctx context.Context, in, next storage.Archived) (again bool, err error) {
	if err := os.Remove(e.Folder.Path(next.File)); err != nil {
		return false, err
	}
	files, err := e.Ledger.Archives(ctx)
	return slices.Contains(files, in), err // otherwise another run has deleted of it
}

// unlessReplaced is nil where a file could not be read because another run has deleted of it meanwhile, and put another in its place.
func (e *expiring) unlessReplaced(ctx context.Context, in storage.Archived, err error) error {
	files, failed := e.Ledger.Archives(ctx)
	if failed == nil && !slices.Contains(files, in) {
		return nil
	}
	return errors.Join(err, failed)
}

// choose says which records of a file may be deleted, by their indexes.
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

// without makes a file in which of some records nothing but the hashes is left.
func (e *expiring) without(ctx context.Context, in storage.Archived, gone map[int64]bool, act string) (storage.Archived, error) {
	source, err := e.Source(ctx, in.From, in.To)
	if err != nil {
		return storage.Archived{}, err
	}
	next, err := e.Folder.Create(ctx, source.Without(gone, act))
	next.Shed = true
	return next, err
}

// replace puts a file in the place of another, which an act says had records that were deleted. It can be called again.
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

// names says whether the database names a file.
func (e *expiring) names(ctx context.Context, a storage.Archived) bool {
	files, err := e.Ledger.Archives(ctx)
	return err == nil && slices.Contains(files, a)
}

// eraseApart destroys what opens the texts that are sealed apart of records that one file has and the other does not.
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

// finish goes on with what was broken off after its act was sealed.
func (e *expiring) finish(ctx context.Context, book *Book) error {
	for _, x := range book.Expiries {
		old := storage.Archived{From: x.From, To: x.To, File: Name(x.From, x.To, x.Replaces), Digest: x.Replaces, Shed: true}
		if _, err := os.Stat(e.Folder.Path(old.File)); errors.Is(err, os.ErrNotExist) && !e.names(ctx, old) {
			continue // done, or what was deleted came back under no name that it had
		}
		next := storage.Archived{From: x.From, To: x.To, File: Name(x.From, x.To, x.Archive), Digest: x.Archive, Shed: true}
		if err := e.finishOne(ctx, old, next); err != nil {
			return fmt.Errorf("finishing act %s: %w", x.ID, err)
		}
		e.done.Finished++
	}
	return nil
}

// finishOne removes a file by an act. What took its place may have been replaced itself since.
func (e *expiring) finishOne(ctx context.Context, old, next storage.Archived) error {
	files, err := e.Ledger.Archives(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(a storage.Archived) bool { return a.From == old.From && a.To == old.To })
	if i < 0 {
		return fmt.Errorf("%w: no archive holds the records %d to %d", ledger.ErrDamaged, old.From, old.To-1)
	}
	if files[i].Digest != old.Digest {
		next = files[i]
	}
	return e.replace(ctx, old, next)
}
