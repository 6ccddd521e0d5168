package find

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"jurat/evidence/operator"
	"jurat/internal/ledger/storage"
)

// forget removes what has expired since the last time. If it is broken off, it is done again.
func (x *Index) forget(ctx context.Context) error {
	gone, before, next, err := x.expired(ctx)
	if err != nil {
		return err
	}
	for _, r := range gone {
		if err := x.remove(ctx, r); err != nil {
			return err
		}
	}
	if next != before {
		if _, err := x.db.ExecContext(ctx, "UPDATE state SET expired = ?, dirty = 1", next); err != nil {
			return err
		}
	}
	return x.clean(ctx)
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

// What is removed together, and how many rows of the log are read together. Each can be as large as a record may be.
const (
	removeAtOnce = 1024
	rowsAtOnce   = 16
)

// remove removes the records of a range that have expired.
func (x *Index) remove(ctx context.Context, in storage.Range) error {
	for ; in.From < in.To; in.From += removeAtOnce {
		var places []int64
		for from := in.From; from < min(in.To, in.From+removeAtOnce); from += rowsAtOnce {
			rows, err := x.ledger.RowsFrom(ctx, from, min(rowsAtOnce, in.To-from))
			if err != nil {
				return err
			}
			for i := range rows {
				if rows[i].Entry != nil { // it has expired
					places = append(places, rows[i].Index)
				}
			}
		}
		if err := x.transact(ctx, func(tx *sql.Tx) error { return removeAt(tx, places) }); err != nil {
			return err
		}
	}
	return nil
}

// removeAt removes records, and what their chains summed up to: clean does that again.
func removeAt(tx *sql.Tx, places []int64) error {
	for _, place := range places {
		for _, statement := range []string{
			"INSERT OR IGNORE INTO notes SELECT 'stale', chain, 0, -1, '' FROM chains WHERE chain = (SELECT chain FROM records WHERE place = ?)",
			"DELETE FROM chains WHERE chain = (SELECT chain FROM records WHERE place = ?)",
			"DELETE FROM words WHERE rowid = ?", "DELETE FROM records WHERE place = ?", "DELETE FROM notes WHERE place = ?"} {
			if _, err := tx.Exec(statement, place); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Index) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// clean removes from the file what is left of removed records: sums of their chains, terms, and pages of the write-ahead log. Where
// other processes read the file, the last are left for the next time.
func (x *Index) clean(ctx context.Context) error {
	var dirty bool
	if err := x.db.QueryRowContext(ctx, "SELECT dirty FROM state").Scan(&dirty); err != nil || !dirty {
		return err
	}
	stale, err := list(ctx, x.db, one[string], "SELECT name FROM notes WHERE kind = 'stale'")
	if err != nil {
		return err
	}
	for _, chain := range stale {
		if err := x.transact(ctx, func(tx *sql.Tx) error { return x.sumAgain(ctx, tx, chain) }); err != nil {
			return err
		}
	}
	if err := x.merge(ctx); err != nil {
		return err
	}
	var busy bool
	var pages, moved int
	if err := x.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil || busy {
		return err
	}
	_, err = x.db.ExecContext(ctx, "UPDATE state SET dirty = 0")
	return err
}

// sumAgain sums up a chain from the records that are left.
func (x *Index) sumAgain(ctx context.Context, tx *sql.Tx, chain string) error {
	if _, err := tx.Exec("DELETE FROM chains WHERE chain = ?", chain); err != nil {
		return err
	}
	s, place := new(sum), int64(-1)
	for {
		err := tx.QueryRow("SELECT place FROM records WHERE chain = ? AND place > ? ORDER BY place LIMIT 1", chain, place).Scan(&place)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return err
		}
		records, err := x.open(ctx, []int64{place})
		if err != nil {
			return err
		}
		if r := records[0]; r != nil {
			s.plus(docOf(place, &r.Payload))
		}
	}
	if !s.empty() {
		if err := s.save(tx, chain); err != nil {
			return err
		}
	}
	_, err := tx.Exec("DELETE FROM notes WHERE kind = 'stale' AND name = ?", chain)
	return err
}

// mergePages is how much of the terms one transaction merges, so that others wait for it only briefly.
const mergePages = 500

// merge makes the terms one segment, which has none of removed records: FTS5 only marks these until then. Its documentation
// has these steps, and by the number of changes they tell that nothing is left to do.
func (x *Index) merge(ctx context.Context) error {
	for pages, more := -mergePages, true; more; pages = mergePages {
		if err := x.transact(ctx, func(tx *sql.Tx) error {
			var before, after int64
			err := tx.QueryRow("SELECT total_changes()").Scan(&before)
			if err == nil {
				_, err = tx.Exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", pages)
			}
			if err == nil {
				err = tx.QueryRow("SELECT total_changes()").Scan(&after)
			}
			more = after-before > 1
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
