package installation

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
	"jurat/internal/archive"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// Retention returns what the log says on keeping records.
func (i *Installation) Retention(ctx context.Context) (*archive.Book, error) {
	acts, err := i.Ledger.Chain(ctx, operator.RetentionChain)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	return archive.Read(acts)
}

// notHeld refuses what is on hold.
func (i *Installation) notHeld(ctx context.Context, r *evidence.Record) error {
	book, err := i.Retention(ctx)
	if err != nil {
		return err
	}
	return book.Held(r.Digest, r.Payload.ChainID)
}

// decide seals an act on retention, which decision makes of what the log says by then. It may be asked again.
func (i *Installation) decide(ctx context.Context, decision func(*archive.Book) (*operator.RetentionEventBody, error)) (*evidence.Record, error) {
	return i.decideAs(ctx, "", decision)
}

// decideAs is decide with the record id of the act; "": a new one.
func (i *Installation) decideAs(ctx context.Context, id string, decision func(*archive.Book) (*operator.RetentionEventBody, error)) (*evidence.Record, error) {
	sealed, err := i.operator().SealNext(ctx, operator.RetentionChain, func(before []*evidence.Record) ([]evidence.Payload, error) {
		book, err := archive.Read(before)
		if err != nil {
			return nil, err
		}
		body, err := decision(book)
		if err != nil || body == nil {
			return nil, err
		}
		p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.RetentionEvent, ChainID: operator.RetentionChain, RecordID: id}, *body)
		if err != nil {
			return nil, err
		}
		return []evidence.Payload{p}, nil
	})
	if err != nil || len(sealed) == 0 {
		return nil, err
	}
	return sealed[0], nil
}

// A HoldOrder says what is to be held: a chain, a record by its id, or everything.
type HoldOrder struct {
	Chain, RecordID string
	All             bool
	Reason, By      string
}

// Hold keeps records from being deleted, and their texts from being erased, until it is released. It returns the act's id.
func (i *Installation) Hold(ctx context.Context, o HoldOrder) (string, error) {
	body := operator.RetentionEventBody{Event: operator.RetentionHeld, Chain: o.Chain, Reason: strings.TrimSpace(o.Reason), By: strings.TrimSpace(o.By)}
	if o.RecordID != "" {
		row, err := i.Ledger.KeptRow(ctx, o.RecordID)
		if err != nil {
			return "", fmt.Errorf("holding record %s: %w", o.RecordID, err)
		}
		body.Record = row.Digest
	}
	if !o.All && body.Chain == "" && body.Record.IsZero() {
		return "", errors.New("holding: say what")
	}
	act, err := i.decide(ctx, func(*archive.Book) (*operator.RetentionEventBody, error) { return &body, nil })
	if err != nil {
		return "", fmt.Errorf("holding: %w", err)
	}
	return act.Payload.RecordID, nil
}

// ErrNoHold says that there is no such hold.
var ErrNoHold = errors.New("there is no such hold")

// Release ends a hold.
func (i *Installation) Release(ctx context.Context, hold, reason, by string) (string, error) {
	act, err := i.decide(ctx, func(b *archive.Book) (*operator.RetentionEventBody, error) {
		if !slices.ContainsFunc(b.Holds, func(h archive.Hold) bool { return h.ID == hold }) {
			return nil, fmt.Errorf("%w: %q", ErrNoHold, hold)
		}
		return &operator.RetentionEventBody{Event: operator.RetentionReleased, Hold: hold, Reason: strings.TrimSpace(reason), By: strings.TrimSpace(by)}, nil
	})
	if err != nil {
		return "", fmt.Errorf("releasing a hold: %w", err)
	}
	return act.Payload.RecordID, nil
}

// SetRetention says for how many days records are kept from now on: at least operator.MinRetention.
func (i *Installation) SetRetention(ctx context.Context, days int64, reason, by string) error {
	if days < operator.MinRetention {
		return fmt.Errorf("%w: %d days, want at least %d (six months)", ErrTooYoung, days, operator.MinRetention)
	}
	_, err := i.decide(ctx, func(b *archive.Book) (*operator.RetentionEventBody, error) {
		if b.Days == days {
			return nil, nil
		}
		return &operator.RetentionEventBody{Event: operator.RetentionKept, Days: days, Reason: strings.TrimSpace(reason), By: strings.TrimSpace(by)}, nil
	})
	if err != nil {
		return fmt.Errorf("changing how long records are kept: %w", err)
	}
	return nil
}

// ErrTooYoung says that something was to be deleted within its retention time.
var ErrTooYoung = errors.New("that is shorter than records must be kept")

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
func (i *Installation) Expire(ctx context.Context, o ExpireOrder) (*Expired, error) {
	e := &expiring{Installation: i, order: o, done: &Expired{Files: []ExpiredFile{}}}
	alone := func(ctx context.Context) error { return i.claiming(ctx, []string{"archive-expiry"}, e.all) }
	if err := i.asRun(ctx, alone); err != nil {
		return e.done, fmt.Errorf("deleting expired records: %w", err)
	}
	return e.done, nil
}

type expiring struct {
	*Installation
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
	book, err := e.Retention(ctx)
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
	now := e.now()
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
	book, err := e.Retention(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(book.Expiries, func(x archive.Expiry) bool { return x.Replaces == in.Digest }) {
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
	act, err := evidence.NewRecordID(e.now(), nil)
	if err != nil {
		return false, err
	}
	next, err := e.without(ctx, in, gone, act)
	if err != nil {
		return false, e.unlessReplaced(ctx, in, err)
	}
	e.after("file without them written")
	_, err = e.decideAs(ctx, act, func(now *archive.Book) (*operator.RetentionEventBody, error) {
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
	e.after("expiry sealed")
	e.done.Records += int64(len(gone))
	e.done.Files = append(e.done.Files, ExpiredFile{File: next.File, Act: act, Records: int64(len(gone))})
	return false, e.replace(ctx, in, next)
}

var errDecided = errors.New("something was decided on retention meanwhile")

// begin takes back a file that no act names, and says whether the one that it was to replace is still there.
func (e *expiring) begin(ctx context.Context, in, next storage.Archived) (again bool, err error) {
	if err := os.Remove(e.archives.Path(next.File)); err != nil {
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
func (e *expiring) choose(ctx context.Context, in storage.Archived, book *archive.Book) (map[int64]bool, error) {
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
	source, err := (&archiving{Installation: e.Installation}).source(ctx, in.From, in.To)
	if err != nil {
		return storage.Archived{}, err
	}
	source.Rows = func(ctx context.Context, from, n int64) ([]storage.Row, error) {
		rows, err := e.Ledger.RowsFrom(ctx, from, n)
		if err != nil {
			return nil, err
		}
		for k := range rows {
			if !gone[rows[k].Index] {
				continue
			}
			entry, err := rows[k].LogEntry()
			if err != nil {
				return nil, err
			}
			rows[k].Payload, rows[k].Signatures, rows[k].Timestamps = nil, nil, nil
			rows[k].Entry, rows[k].ExpiredBy = entry, act
		}
		return rows, nil
	}
	next, err := e.archives.Create(ctx, source)
	next.Shed = true
	return next, err
}

// replace puts a file in the place of another, which an act says had records that were deleted. It can be called again.
func (e *expiring) replace(ctx context.Context, old, next storage.Archived) error {
	if err := e.archives.With(next, func(*archive.File) error { return nil }); err != nil {
		return err // before the database names it
	}
	if err := e.Ledger.PutArchive(ctx, old.Digest, next); err != nil && !(errors.Is(err, ledger.ErrConflict) && e.names(ctx, next)) {
		return err
	}
	e.after("file replaced")
	if err := e.Ledger.Briefs().ForgetExpired(ctx, storage.Range{From: next.From, To: next.To}); err != nil {
		return err
	}
	e.after("briefs of expired records emptied")
	if err := e.eraseApart(ctx, next, old); err != nil {
		return err
	}
	e.after("texts of expired records destroyed")
	if err := e.archives.Remove(old); err != nil {
		return err
	}
	e.after("file removed")
	return nil
}

// names says whether the database names a file.
func (e *expiring) names(ctx context.Context, a storage.Archived) bool {
	files, err := e.Ledger.Archives(ctx)
	return err == nil && slices.Contains(files, a)
}

// eraseApart destroys what opens the texts that are sealed apart of records that one file has and the other does not.
func (e *expiring) eraseApart(ctx context.Context, next, old storage.Archived) error {
	return e.archives.With(next, func(left *archive.File) error {
		return e.archives.With(old, func(all *archive.File) error {
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
					if err := e.texts.Destroy(ctx, record.Digest, pointer); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// finish goes on with what was broken off after its act was sealed.
func (e *expiring) finish(ctx context.Context, book *archive.Book) error {
	for _, x := range book.Expiries {
		old := storage.Archived{From: x.From, To: x.To, File: archive.Name(x.From, x.To, x.Replaces), Digest: x.Replaces, Shed: true}
		if _, err := os.Stat(e.archives.Path(old.File)); errors.Is(err, os.ErrNotExist) && !e.names(ctx, old) {
			continue // done, or what was deleted came back under no name that it had
		}
		next := storage.Archived{From: x.From, To: x.To, File: archive.Name(x.From, x.To, x.Archive), Digest: x.Archive, Shed: true}
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
