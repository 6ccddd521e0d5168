package find

import (
	"context"
	"fmt"
	"slices"

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
