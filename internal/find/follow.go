package find

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"jurat/evidence"
	"jurat/internal/ledger/storage"
)

// Follow reads what is new in the log, and makes again what must be made again. It calls progress while it does; nil:
// progress is not reported. Its errors are those of the log and of the file. It can be interrupted at any point.
func (x *Index) Follow(ctx context.Context, progress func(done, total int64)) error {
	select {
	case x.following <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.following }()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	err := x.forget(ctx)
	if err == nil {
		err = x.follow(ctx, progress)
	}
	if err != nil {
		return fmt.Errorf("following the log with the index of words: %w", err)
	}
	return nil
}

func (x *Index) follow(ctx context.Context, progress func(done, total int64)) error {
	size, err := x.ledger.Size(ctx)
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.size = size
	next := x.next
	x.mu.Unlock()
	for next < size {
		err := x.read(ctx, storage.Range{From: next, To: size}, func(d *doc, after int64) error {
			next = after
			progress(after, size)
			return x.take(ctx, d, after)
		})
		if errors.Is(err, errOvertaken) {
			if err := x.load(ctx); err != nil {
				return err
			}
			next, _ = x.Progress()
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errOvertaken says that another process has stored a stretch at this place.
var errOvertaken = errors.New("another process has indexed these records")

// read calls take for each record in a range, and at the end with nil for places that have no record.
func (x *Index) read(ctx context.Context, in storage.Range, take func(d *doc, after int64) error) error {
	for r, err := range x.ledger.Records(ctx, in.From) {
		if err == nil && r.Index >= in.To {
			break
		}
		if err == nil {
			err = take(docOf(r.Index, &r.Payload), r.Index+1)
		}
		if err != nil {
			return err
		}
	}
	return take(nil, in.To)
}

// take adds the next record to the tail, and makes the tail a stretch when it is full.
func (x *Index) take(ctx context.Context, d *doc, after int64) error {
	x.mu.Lock()
	begin := x.tailBegin()
	full := d != nil && len(x.tail) > 0 && (d.place-begin >= stretchRecords || x.tailBytes >= stretchBytes)
	x.mu.Unlock()
	if full {
		if err := x.settle(ctx, d.place); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if d != nil {
		x.tail, x.tailBytes = append(x.tail, d), x.tailBytes+d.bytes
	}
	x.next = max(x.next, after)
	return nil
}

// tailBegin returns the place of the first record in the tail. The mutex is held.
func (x *Index) tailBegin() int64 {
	if len(x.tail) == 0 {
		return x.next
	}
	return x.tail[0].place
}

// settle writes the tail as a stretch that ends before a place.
func (x *Index) settle(ctx context.Context, after int64) error {
	x.mu.Lock()
	docs, begin := x.tail, x.tailBegin()
	x.mu.Unlock()
	made, err := x.write(ctx, storage.Range{From: begin, To: after}, docs, next)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(made, docs)
	x.tail, x.tailBytes = nil, 0
	return nil
}

// put adds or replaces a stretch in memory. The mutex is held.
func (x *Index) put(made written, docs []*doc) {
	for id, n := range made.numbers {
		x.numbers[id] = n
	}
	for _, d := range docs {
		for _, s := range d.seats {
			if n := x.numbers[d.chain]; n != 0 {
				sit(x.seats, s, n)
			}
		}
	}
	at, found := slices.BinarySearchFunc(x.stretches, made.begin, func(s stretch, begin int64) int { return cmp.Compare(s.begin, begin) })
	next := slices.Clone(x.stretches) // searches read the list without the mutex
	if found {
		next[at] = made.stretch
	} else {
		next = slices.Insert(next, at, made.stretch)
	}
	x.stretches = next
}

// forget makes stretches again from which records have expired.
func (x *Index) forget(ctx context.Context) error {
	gone, before, next, err := x.expired(ctx)
	if err != nil || next == before {
		return err
	}
	for _, r := range gone {
		if err := x.again(ctx, r); err != nil {
			return err
		}
	}
	if _, err := x.db.ExecContext(ctx, "INSERT OR REPLACE INTO meta VALUES (?, ?)", expiredKey, strconv.FormatInt(next, 10)); err != nil {
		return err
	}
	_, err = x.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // the write-ahead log still has the old pages
	return err
}

// again makes the stretches again that overlap a range, and the tail.
func (x *Index) again(ctx context.Context, in storage.Range) error {
	x.mu.Lock()
	list := x.stretches
	begin, next := x.tailBegin(), x.next
	x.mu.Unlock()
	for _, s := range list {
		if s.begin < in.To && s.after > in.From {
			if err := x.remake(ctx, s); err != nil {
				return err
			}
		}
	}
	if begin >= in.To {
		return nil
	}
	var tail []*doc
	bytes := 0
	err := x.read(ctx, storage.Range{From: begin, To: next}, func(d *doc, _ int64) error {
		if d != nil {
			tail, bytes = append(tail, d), bytes+d.bytes
		}
		return nil
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		x.tail, x.tailBytes = tail, bytes
	}
	return err
}

func (x *Index) remake(ctx context.Context, s stretch) error {
	var docs []*doc
	if err := x.read(ctx, storage.Range{From: s.begin, To: s.after}, func(d *doc, _ int64) error {
		if d != nil {
			docs = append(docs, d)
		}
		return nil
	}); err != nil {
		return err
	}
	made, err := x.write(ctx, storage.Range{From: s.begin, To: s.after}, docs, replace)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(made, docs)
	return nil
}

// How a stretch is written.
type how int

const (
	next    how = iota // after all others: errOvertaken if there are others
	replace            // in the place of those that begin in it
)

// written is a stretch in the file.
type written struct {
	stretch
	numbers map[string]int64 // of its trials
}

// write stores a stretch in one transaction.
func (x *Index) write(ctx context.Context, in storage.Range, docs []*doc, as how) (made written, err error) {
	at, err := x.ledger.RowsFrom(ctx, in.To-1, 1)
	if err != nil {
		return made, err
	}
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return made, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if as == next {
		var others int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM stretches WHERE after > ?", in.From).Scan(&others); err != nil {
			return made, err
		}
		if others > 0 {
			return made, errOvertaken
		}
	}
	for _, old := range []string{"DELETE FROM pieces WHERE stretch >= ? AND stretch < ?", "DELETE FROM stretches WHERE begin >= ? AND begin < ?",
		"DELETE FROM records WHERE place >= ? AND place < ?", "DELETE FROM seats WHERE stretch >= ? AND stretch < ?",
		"DELETE FROM recorded WHERE stretch >= ? AND stretch < ?", "DELETE FROM missed WHERE place >= ? AND place < ?", "DELETE FROM events WHERE place >= ? AND place < ?",
		"DELETE FROM tried WHERE stretch >= ? AND stretch < ?", "DELETE FROM erased WHERE place >= ? AND place < ?"} {
		if _, err := tx.ExecContext(ctx, old, in.From, in.To); err != nil {
			return made, err
		}
	}
	if as == replace {
		if err := clearSlots(ctx, tx, in); err != nil {
			return made, err
		}
	}
	made = written{stretch{begin: in.From, after: in.To}, map[string]int64{}}
	if err := x.writeDocs(ctx, tx, &made, docs); err != nil {
		return made, err
	}
	if err := writeTold(ctx, tx, in.From, docs); err != nil {
		return made, err
	}
	if err := writePieces(ctx, tx, in.From, docs); err != nil {
		return made, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO stretches VALUES (?, ?, ?, ?, ?, ?)", in.From, in.To, at[0].RecordID, made.earliest, made.latest,
		append([]byte{}, made.trials...)); err != nil {
		return made, err
	}
	return made, tx.Commit()
}

// writeDocs stores what the index has of each record.
func (x *Index) writeDocs(ctx context.Context, tx *sql.Tx, made *written, docs []*doc) error {
	records, err := tx.PrepareContext(ctx, "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer records.Close()
	for i, d := range docs {
		at := d.at.UnixMilli()
		if i == 0 {
			made.earliest, made.latest = at, at
		}
		made.earliest, made.latest = min(made.earliest, at), max(made.latest, at)
		if _, err := records.ExecContext(ctx, d.place, d.id, string(d.action), string(d.role), d.actor, at, d.chain, d.agent); err != nil {
			return err
		}
		if !strings.HasPrefix(d.chain, evidence.TrialPrefix) {
			continue
		}
		if err := x.writeTrial(ctx, tx, made, d); err != nil {
			return err
		}
	}
	return nil
}

// writeTrial notes that a record is in a trial.
func (x *Index) writeTrial(ctx context.Context, tx *sql.Tx, made *written, d *doc) error {
	n := made.numbers[d.chain]
	if n == 0 {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO trials (id) VALUES (?)", d.chain); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx, "SELECT number FROM trials WHERE id = ?", d.chain).Scan(&n); err != nil {
			return err
		}
		made.numbers[d.chain] = n
	}
	if made.trials == nil {
		made.trials = make([]byte, 4*stretchRecords)
	}
	binary.LittleEndian.PutUint32(made.trials[4*(d.place-made.begin):], uint32(n))
	for _, s := range d.seats {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO seats VALUES (?, ?, ?, ?)", made.begin, s.kind, s.name, n); err != nil {
			return err
		}
	}
	return nil
}

// writePieces stores which records have which pieces.
func writePieces(ctx context.Context, tx *sql.Tx, begin int64, docs []*doc) error {
	found := map[piece][]uint16{}
	for _, d := range docs {
		at := uint16(d.place - begin)
		for _, text := range d.texts {
			pieces(text, func(p piece) {
				if list := found[p]; len(list) == 0 || list[len(list)-1] != at {
					found[p] = append(list, at)
				}
			})
		}
	}
	list := make([]piece, 0, len(found))
	for p := range found {
		list = append(list, p)
	}
	slices.Sort(list) // the table is in this order
	insert, err := tx.PrepareContext(ctx, "INSERT INTO pieces VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	note, err := tx.PrepareContext(ctx, "INSERT INTO blocks VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET slots = slots | excluded.slots")
	if err != nil {
		return err
	}
	defer note.Close()
	block, slot := slotOf(begin)
	for _, p := range list {
		if _, err := insert.ExecContext(ctx, begin, int64(p), encode(found[p])); err != nil {
			return err
		}
		if _, err := note.ExecContext(ctx, block, int64(p), slot); err != nil {
			return err
		}
	}
	return nil
}

// clearSlots makes the slots of a range anew, from the stretches that are left there.
func clearSlots(ctx context.Context, tx *sql.Tx, in storage.Range) error {
	for begin := in.From - in.From%stretchRecords; begin < in.To; begin += stretchRecords {
		block, slot := slotOf(begin)
		if _, err := tx.ExecContext(ctx, "UPDATE blocks SET slots = slots & ~?2 WHERE block = ?1 AND slots & ?2", block, slot); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO blocks SELECT DISTINCT ?1, piece, ?2 FROM pieces WHERE stretch >= ?3 AND stretch < ?4 ON CONFLICT DO UPDATE SET slots = slots | excluded.slots",
			block, slot, begin, begin+stretchRecords); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM blocks WHERE block = ? AND slots = 0", block); err != nil {
			return err
		}
	}
	return nil
}
