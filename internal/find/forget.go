package find

import (
	"context"
	"fmt"

	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

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
		if err := x.change(ctx, func(c *change) error { return c.sumAgain(ctx, chain) }); err != nil {
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

// sumAgain sums up a chain from the records that are left.
func (c *change) sumAgain(ctx context.Context, chain string) error {
	if err := c.exec("DELETE FROM chains WHERE chain = ?", chain); err != nil || chain == "" {
		return err
	}
	places, err := list(ctx, c.tx, one[int64], "SELECT place FROM records WHERE chain = ? ORDER BY place", chain)
	if err != nil {
		return err
	}
	s := new(sum)
	for _, place := range places {
		records, err := c.open(ctx, []int64{place})
		if err != nil {
			return err
		}
		if r := records[0]; r != nil {
			s.plus(docOf(place, &r.Payload))
		}
	}
	if s.Sight == nil && s.Jurors == nil && s.Models == nil {
		return nil
	}
	return c.saveSum(chain, s)
}

// mergePages is how much of the terms one transaction merges, so that others wait for it only briefly.
const mergePages = 500

// merge makes the terms one segment. FTS5's documentation has these steps, and by the number of changes they tell that nothing is left to do.
func (x *Index) merge(ctx context.Context) error {
	for pages, more := -mergePages, true; more; pages = mergePages {
		if err := x.change(ctx, func(c *change) error {
			var before, after int64
			err := c.tx.QueryRow("SELECT total_changes()").Scan(&before)
			if err == nil {
				err = c.exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", pages)
			}
			if err == nil {
				err = c.tx.QueryRow("SELECT total_changes()").Scan(&after)
			}
			more = after-before > 1
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
