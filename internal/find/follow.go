package find

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/fault"
	"jurat/internal/ledger/storage"
)

// What one transaction adds at most, so that others wait for it only briefly.
const (
	batchPlaces = 4096
	batchBytes  = 8 << 20 // of folded text
)

// Follow reads what is new in the log, and removes what has expired. It calls progress while it does; nil: progress is not reported. Its
// errors are those of the log and of the file. It can be interrupted at any point, and keeps what it has read.
func (x *Index) Follow(ctx context.Context, progress func(done, total int64)) (err error) {
	select {
	case x.following <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-x.following }()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	defer fault.While(&err, "following the log with the index of words")
	err = x.forget(ctx)
	for more := true; err == nil && more; {
		more, err = x.follow(ctx, progress)
	}
	return err
}

// follow reads the next part of the log, and reports whether there is more.
func (x *Index) follow(ctx context.Context, progress func(done, total int64)) (more bool, err error) {
	size, err := x.ledger.Size(ctx)
	if err != nil {
		return false, err
	}
	x.size.Store(size)
	var next int64
	if err := x.db.QueryRowContext(ctx, "SELECT next FROM state").Scan(&next); err != nil {
		return false, err
	}
	if x.next.Store(next); next >= size {
		return false, nil
	}
	if err := x.change(ctx, func(c *change) (err error) {
		next, err = c.follow(ctx, size, progress)
		return err
	}); err != nil {
		return false, err
	}
	x.next.Store(next)
	return next < size, ctx.Err()
}

// A change is a transaction that changes the index. No other process changes it meanwhile.
type change struct {
	*Index
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
}

// change lasts until do returns, also if ctx ends meanwhile.
func (x *Index) change(ctx context.Context, do func(*change) error) error {
	tx, err := x.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := do(&change{x, tx, map[string]*sql.Stmt{}}); err != nil {
		return err
	}
	return tx.Commit()
}

func (c *change) exec(statement string, args ...any) error {
	s := c.stmts[statement]
	if s == nil {
		var err error
		if s, err = c.tx.Prepare(statement); err != nil {
			return err
		}
		c.stmts[statement] = s
	}
	_, err := s.Exec(args...)
	return err
}

// follow adds records until there are many, the log ends, or ctx does. It returns the place of the next record to read.
func (c *change) follow(ctx context.Context, size int64, progress func(done, total int64)) (next int64, err error) {
	if err := c.tx.QueryRow("SELECT next FROM state").Scan(&next); err != nil || next >= size {
		return next, err
	}
	from, bytes, sums, cache, ended := next, 0, map[string]*sum{}, map[piece]*cachedPiece{}, true
	for r, err := range c.ledger.Records(ctx, from) {
		if ended = err == nil && r.Index < from+batchPlaces && bytes < batchBytes && ctx.Err() == nil; !ended {
			if err != nil && ctx.Err() == nil {
				return 0, err
			}
			break
		}
		d := docOf(r.Index, &r.Payload)
		if err := c.add(d, sums, cache); err != nil {
			return 0, err
		}
		next, bytes = r.Index+1, bytes+d.bytes
		progress(next, max(next, size))
	}
	if ended && ctx.Err() == nil {
		next = max(next, size) // the last records may have expired
	}
	for chain, s := range sums {
		if err := c.saveSum(chain, s); err != nil {
			return 0, err
		}
	}
	if next == from {
		return next, nil
	}
	rows, err := c.ledger.RowsFrom(context.WithoutCancel(ctx), next-1, 1)
	if err != nil {
		return 0, err
	}
	return next, c.exec("UPDATE state SET next = ?, last = ?", next, rows[0].RecordID)
}

// add adds a record, and what it says of its chain to the sums of chains.
func (c *change) add(d *doc, sums map[string]*sum, cache map[piece]*cachedPiece) error {
	if err := c.exec("INSERT INTO words (rowid, terms) VALUES (?, ?)", d.place, string(c.termsOf(d, cache))); err != nil {
		return err
	}
	if err := c.exec("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", d.place, string(d.action), string(d.role), d.actor, d.agent,
		d.at.UnixMilli(), d.chain); err != nil {
		return err
	}
	for _, n := range d.notes {
		if err := c.exec("INSERT OR IGNORE INTO notes VALUES (?, ?, ?, ?, ?)", n.kind, n.name, n.at, d.place, n.value); err != nil {
			return err
		}
	}
	if d.Sight == nil && d.Jurors == nil && d.Models == nil {
		return nil
	}
	if sums[d.chain] == nil {
		var text string
		err := c.tx.QueryRow("SELECT sum FROM chains WHERE chain = ?", d.chain).Scan(&text)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			sums[d.chain] = new(sum)
		case err != nil:
			return err
		default:
			if sums[d.chain], err = readSum(text); err != nil {
				return err
			}
		}
	}
	sums[d.chain].plus(d)
	return nil
}

func readSum(text string) (*sum, error) {
	s := new(sum)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("the index of words is damaged: %w", evidence.Steady(err))
	}
	return s, nil
}

func (c *change) saveSum(chain string, s *sum) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var last, earliest, latest any
	var agents []string
	if s.Sight != nil {
		last, earliest, latest = s.Last, s.Sight.First, s.Sight.Last
		for _, name := range s.Sight.Agents {
			agents = append(agents, Fold(name))
		}
	}
	return c.exec("INSERT OR REPLACE INTO chains VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chain, last, earliest, latest,
		strings.Join(agents, "\n"), strings.Join(s.Jurors, "\n"), strings.Join(s.Models, "\n"), string(text))
}

// forget removes what has expired since the last time. If it is broken off, it is done again. FTS5 only marks removed records, so their
// terms are then merged without them.
func (x *Index) forget(ctx context.Context) error {
	gone, before, next, err := x.expired(ctx)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		var size int64 // of the index, with what a batch of another process read before it was gone
		if err := x.change(ctx, func(c *change) error { return c.tx.QueryRow("SELECT next FROM state").Scan(&size) }); err != nil {
			return err
		}
		for _, r := range gone {
			if err := x.remove(ctx, storage.Range{From: r.From, To: min(r.To, size)}); err != nil {
				return err
			}
		}
		if err := x.merge(ctx); err != nil {
			return err
		}
	}
	if next != before {
		if _, err := x.db.ExecContext(ctx, "UPDATE state SET expired = ?, dirty = 1", next); err != nil {
			return err
		}
	}
	return x.truncate(ctx)
}

// expired lists the ranges of records that expired since the index followed the acts on expiry. It did so up to the
// place before, and is to continue from next. It leaves acts for later whose records are still to be removed.
func (x *Index) expired(ctx context.Context) (ranges []storage.Range, before, next int64, err error) {
	if err := x.db.QueryRowContext(ctx, "SELECT expired FROM state").Scan(&before); err != nil {
		return nil, 0, 0, err
	}
	left, err := x.ledger.Expiry().Expiring(ctx, 0, 1)
	if err != nil || len(left) > 0 {
		return nil, before, before, err
	}
	for next = before; ; {
		acts, after, err := x.ledger.InChain(ctx, operator.ExpiryChain, next)
		if err != nil || len(acts) == 0 {
			return ranges, before, next, err
		}
		for _, act := range acts {
			e, err := operator.ReadExpiry(&act.Payload)
			if err != nil {
				return nil, 0, 0, fmt.Errorf("record %s: %w", act.Payload.RecordID, err)
			}
			ranges = append(ranges, storage.Range{From: e.From, To: e.To})
		}
		next = after
	}
}

// How many records are removed together, and how many rows of the log are read together. Each can be as large as a record may be.
const (
	removeAtOnce = 1024
	rowsAtOnce   = 16
)

// remove removes the records of a range that have expired, and sums up their chains again.
func (x *Index) remove(ctx context.Context, in storage.Range) error {
	chains, places := map[string]bool{}, []int64(nil)
	for from := in.From; from < in.To; from += rowsAtOnce {
		rows, err := x.ledger.RowsFrom(ctx, from, min(rowsAtOnce, in.To-from))
		if err != nil {
			return err
		}
		for i := range rows {
			if rows[i].Entry != nil { // it has expired
				places, chains[rows[i].ChainID] = append(places, rows[i].Index), true
			}
		}
		if len(places) >= removeAtOnce || from+rowsAtOnce >= in.To {
			if err := x.change(ctx, func(c *change) error { return c.remove(places) }); err != nil {
				return err
			}
			places = places[:0]
		}
	}
	for chain := range chains {
		if err := x.sumAgain(ctx, chain); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) remove(places []int64) error {
	for _, place := range places {
		for _, statement := range []string{"DELETE FROM words WHERE rowid = ?", "DELETE FROM records WHERE place = ?", "DELETE FROM notes WHERE place = ?"} {
			if err := c.exec(statement, place); err != nil {
				return err
			}
		}
	}
	return nil
}

const placesOfChain = "SELECT place FROM records WHERE chain = ? ORDER BY place"

// sumAgain sums up a chain from the records that are left. It reads them while others change the index; if one of them changed the chain meanwhile, it
// reads on.
func (x *Index) sumAgain(ctx context.Context, chain string) error {
	if chain == "" {
		return nil
	}
	s, read := new(sum), []int64(nil)
	for saved := false; !saved; {
		places, err := list(ctx, x.db, one[int64], placesOfChain, chain)
		if err != nil {
			return err
		}
		if len(places) < len(read) || !slices.Equal(places[:len(read)], read) { // more of it has expired
			s, read = new(sum), nil
		}
		for _, place := range places[len(read):] {
			records, err := x.open(ctx, []int64{place})
			if err != nil {
				return err
			}
			if r := records[0]; r != nil {
				s.plus(docOf(place, &r.Payload))
			}
		}
		read = places
		if err := x.change(ctx, func(c *change) error {
			now, err := list(ctx, c.tx, one[int64], placesOfChain, chain)
			if saved = err == nil && slices.Equal(now, read); !saved {
				return err
			}
			if err := c.exec("DELETE FROM chains WHERE chain = ?", chain); err != nil || s.Sight == nil && s.Jurors == nil && s.Models == nil {
				return err
			}
			return c.saveSum(chain, s)
		}); err != nil {
			return err
		}
	}
	return nil
}

// mergePages is how much of the terms one transaction merges, so that others wait for it only briefly.
const mergePages = 500

// unmerged counts the segments of the terms, and the pages that mark removed records in them: FTS5 gives those numbers from 2^53 on.
const unmerged = "SELECT (SELECT count(DISTINCT segid) FROM words_idx), (SELECT count(*) FROM words_data WHERE id >= 1 << 53)"

// merge makes the terms one segment without marks. Each step goes on where another ended, or begins anew with what other processes added meanwhile.
func (x *Index) merge(ctx context.Context) error {
	for done, idle := false, 0; !done; {
		if err := x.change(ctx, func(c *change) error {
			var before, after, segments, marks int64
			err := c.tx.QueryRow("SELECT total_changes()").Scan(&before)
			if err == nil {
				err = c.exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", -mergePages)
			}
			if err == nil {
				err = c.tx.QueryRow("SELECT total_changes()").Scan(&after)
			}
			if err == nil {
				err = c.tx.QueryRow(unmerged).Scan(&segments, &marks)
			}
			if done = segments <= 1 && marks == 0; after-before > 1 {
				idle = 0
			} else if idle++; err == nil && !done && idle > 1 {
				err = fmt.Errorf("the index of words keeps %d segments and %d marks of what expired", segments, marks)
			}
			return err
		}); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// truncate empties the write-ahead log, which may have what was removed. While other processes read the file, that is left for the next time.
func (x *Index) truncate(ctx context.Context) error {
	var dirty, busy bool
	var pages, moved int
	if err := x.db.QueryRowContext(ctx, "SELECT dirty FROM state").Scan(&dirty); err != nil || !dirty {
		return err
	}
	if err := x.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil || busy {
		return err
	}
	_, err := x.db.ExecContext(ctx, "UPDATE state SET dirty = 0")
	return err
}
