package find

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/inorder"
	"jurat/internal/log/ledger"
)

// What one transaction adds at most, so that others wait for it only briefly.
const (
	batchPlaces = 4096
	batchBytes  = 8 << 20 // of folded text
)

// Follow reads what is new in the log, and all of it again if records have expired. It calls progress while it does; nil: progress is not reported. Its
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
	var next, dirty int64
	err = x.db.QueryRowContext(ctx, "SELECT next, dirty FROM state").Scan(&next, &dirty)
	if err == nil && dirty == 2 { // another process has emptied it meanwhile
		err = x.truncate(ctx)
	}
	if err != nil {
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

// errMany says that records are left for the next time.
var errMany = errors.New("enough records for this time")

// follow adds records until there are many, the log ends, or ctx does. While one is added, the next are read and folded. It returns the place of the
// next record to read.
func (c *change) follow(ctx context.Context, size int64, progress func(done, total int64)) (next int64, err error) {
	if err := c.tx.QueryRow("SELECT next FROM state").Scan(&next); err != nil || next >= size {
		return next, err
	}
	from, first, bytes, sums, cache := next, int64(-1), 0, map[string]*sum{}, map[piece]*cachedPiece{}
	read, stop := iter.Pull2(c.ledger.Records(ctx, next))
	defer stop()
	err = inorder.Do(func() (ledger.Placed, error) {
		r, err, more := read()
		switch {
		case !more:
			return r, io.EOF
		case ctx.Err() != nil, err == nil && first >= 0 && r.Index >= first+batchPlaces:
			return r, errMany
		case err == nil && first < 0:
			first = r.Index // all before it have expired
		}
		return r, err
	}, func(r ledger.Placed) int { return len(r.Canonical()) }, func(r ledger.Placed) *doc {
		return docOf(r.Index, &r.Payload)
	}, func(d *doc) error {
		if bytes >= batchBytes || ctx.Err() != nil {
			return errMany
		}
		if err := c.add(d, sums, cache); err != nil {
			return err
		}
		next, bytes = d.place+1, bytes+d.bytes
		progress(next, max(next, size))
		return nil
	})
	switch {
	case err == nil:
		next = max(next, size) // the last records may have expired
	case err != errMany:
		return 0, err
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
		err := c.tx.QueryRow("SELECT coalesce((SELECT sum FROM chains WHERE chain = ?), '{}')", d.chain).Scan(&text)
		if err == nil {
			sums[d.chain], err = readSum(text)
		}
		if err != nil {
			return err
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

// forget empties the index if records have expired since the last time, and leaves the rest to be read again. An act whose records are still to
// be removed waits. They are asked for after the acts, because they are noted before their act is sealed.
func (x *Index) forget(ctx context.Context) error {
	var before int64
	if err := x.db.QueryRowContext(ctx, "SELECT expired FROM state").Scan(&before); err != nil {
		return err
	}
	next := before
	for more := true; more; {
		acts, after, err := x.ledger.InChain(ctx, operator.ExpiryChain, next)
		if err != nil {
			return err
		}
		next, more = after, len(acts) > 0
	}
	if next > before {
		left, err := x.ledger.Expiry().Expiring(ctx, 0, 1)
		if err == nil && len(left) == 0 {
			err = x.change(ctx, func(c *change) error { return c.empty(next) })
		}
		if err != nil {
			return err
		}
	}
	return x.truncate(ctx)
}

// empty removes all that the index has, unless another process did so after the same acts on expiry. They end before the place expired. What is
// removed is left in free pages, to be cut off: overwriting it in one transaction would take long, and as much room as the index has.
func (c *change) empty(expired int64) error {
	done, err := c.tx.Exec("UPDATE state SET next = 0, last = '', expired = ?1, dirty = 2 WHERE expired < ?1", expired)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = c.tx.Exec("PRAGMA secure_delete = OFF; INSERT INTO words (words) VALUES ('delete-all'); DELETE FROM records; DELETE FROM notes; DELETE FROM chains")
	_, on := c.tx.Exec("PRAGMA secure_delete = ON") // the connection is used again
	return errors.Join(err, on)
}

// truncate cuts off what was removed, and empties the write-ahead log, which may have it. While other processes read the file, the latter is left for
// the next time. Little is written, and what was broken off is done again before anything is added.
func (x *Index) truncate(ctx context.Context) error {
	var next, expired, dirty, busy, pages, moved int64
	err := x.db.QueryRowContext(context.WithoutCancel(ctx), "SELECT next, expired, dirty FROM state").Scan(&next, &expired, &dirty)
	if err != nil {
		return err
	}
	if x.next.Store(next); dirty == 0 {
		return nil
	}
	if dirty == 2 {
		if _, err := x.db.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
	}
	if err := x.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return err
	}
	_, err = x.db.ExecContext(ctx, "UPDATE state SET dirty = ? WHERE expired = ?", busy, expired) // unless it was emptied again
	return err
}
