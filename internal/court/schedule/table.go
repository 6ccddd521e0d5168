package schedule

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	sqlite3 "modernc.org/sqlite/lib"

	"jurat/internal/kit/fault"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/postgres"
)

// A Table says which trials are to be held, and which process holds each of them. It is safe for concurrent use, also by several processes.
type Table struct {
	db      *sql.DB
	engine  *strings.Replacer // puts into a statement what differs between the engines
	explain func(error) error // says what an error of the engine means
}

// Statements are written for both engines: $n are their arguments, and these words are replaced.
//
//	@work   the table
//	@now    milliseconds since 1970, by the clock that all processes share
//	@skip   at the end of a query for a row to be taken: pass over those that others are taking
var (
	onSQLite   = strings.NewReplacer("$", "?", "@work", "work", "@now", "CAST(unixepoch('subsec') * 1000 AS INTEGER)", "@skip", "")
	onPostgres = strings.NewReplacer("@work", "jurat.work", "@now", "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
		"@skip", "FOR UPDATE SKIP LOCKED")
)

const tableOfWork = `CREATE TABLE IF NOT EXISTS @work (
	trial    TEXT   PRIMARY KEY,
	place    BIGINT NOT NULL,            -- in the order of arrival
	attempts BIGINT NOT NULL DEFAULT 0,  -- that failed
	deaths   BIGINT NOT NULL DEFAULT 0,  -- of processes that held it
	reason   TEXT   NOT NULL DEFAULT '', -- why the last attempt failed
	next     BIGINT DEFAULT 0,           -- when it may be taken, in milliseconds since 1970; NULL: when a person has acted
	holder   TEXT   NOT NULL DEFAULT '', -- number of the hold; '': no process holds it
	beat     BIGINT NOT NULL DEFAULT 0   -- when its holder was last heard of
)`

// OpenTable opens the table in a database that machines share. If there is none (nil), it opens one in a file for the processes of one machine,
// or, for the path "", one that only this process has. It makes a table that is missing. Its errors are those of the database or of the file.
//
// In a file, a commit does not wait for the disk: after a crash of the machine, the last moments may be missing.
func OpenTable(ctx context.Context, shared *pgxpool.Pool, path string) (*Table, error) {
	t := &Table{engine: onPostgres, explain: explainPostgres}
	// Two processes that make one table in PostgreSQL at once would be in each other's way.
	name, first := "schema jurat", `SELECT pg_advisory_xact_lock(hashtext('jurat: tables')); `
	if shared != nil {
		t.db = stdlib.OpenDBFromPool(shared)
	} else {
		db, err := sqlite.OpenFile(path, "synchronous(NORMAL)")
		if err != nil {
			return nil, fmt.Errorf("opening the table of work in %s: %w", path, err)
		}
		db.SetMaxOpenConns(1) // SQLite has one writer: calls of this process wait here, in their order
		t, name, first = &Table{db: db, engine: onSQLite, explain: explainSQLite}, path, ""
	}
	if _, err := t.exec(ctx, `SELECT trial FROM @work LIMIT 1`); err == nil {
		return t, nil // this role may lack the right to make tables
	}
	if _, err := t.exec(ctx, first+tableOfWork); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the table of work in %s: %w", name, err), t.Close())
	}
	return t, nil
}

// Close closes the file. A database that machines share stays open. Its errors are those of closing the file.
func (t *Table) Close() error { return t.db.Close() }

// patience is how long one call may take in all. A statement waits at most half as long for another process.
const patience = 20 * time.Second

func explainPostgres(err error) error {
	if errors.Is(err, driver.ErrBadConn) { // the connections that were tried one after the other were all dead
		return fmt.Errorf("%w: %w", postgres.ErrUnreachable, err)
	}
	return postgres.Explain(err)
}

func explainSQLite(err error) error {
	switch sqlite.Code(err) {
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%w: %w", ledger.ErrBusy, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ledger.ErrDiskFull, err)
	}
	return err
}

func (t *Table) meaning(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ledger.ErrBusy, err)
	}
	return t.explain(err) // nil stays nil
}

// exec runs a statement, and returns how many rows it changed.
func (t *Table) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done, err := t.db.ExecContext(ctx, t.engine.Replace(statement), args...)
	if err != nil {
		return 0, t.meaning(err)
	}
	return done.RowsAffected()
}

// query calls read at each row of the answer.
func (t *Table) query(ctx context.Context, read func(scan func(...any) error) error, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := t.db.QueryContext(ctx, t.engine.Replace(statement), args...)
	if err != nil {
		return t.meaning(err)
	}
	defer rows.Close() // Err says what went wrong
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return t.meaning(err)
		}
	}
	return t.meaning(rows.Err())
}

const atOnce = 500

// add puts trials at the end, in this order. Those that are there stay as they are, except where the condition again holds: they begin anew.
func (t *Table) add(ctx context.Context, again string, trials ...string) error {
	for part := range slices.Chunk(trials, atOnce) {
		var values []string
		var args []any
		for i, trial := range part {
			values, args = append(values, fmt.Sprintf("(CAST($%d AS TEXT), %d)", i+1, i+1)), append(args, trial)
		}
		_, err := t.exec(ctx, `INSERT INTO @work AS old (trial, place)
			SELECT column1, column2 + (SELECT coalesce(max(place), 0) FROM @work) FROM (VALUES `+strings.Join(values, ", ")+`) AS new WHERE true
			ON CONFLICT (trial) DO UPDATE SET place = excluded.place, attempts = 0, deaths = 0, reason = '', next = 0 WHERE `+again, args...)
		if err != nil {
			return fmt.Errorf("queueing trials: %w", err)
		}
	}
	return nil
}

// drop removes a trial that no process holds.
func (t *Table) drop(ctx context.Context, trial string) error {
	_, err := t.exec(ctx, `DELETE FROM @work WHERE trial = $1 AND holder = ''`, trial)
	fault.While(&err, "taking a trial from the queue")
	return err
}

// A hold is the right to work on a trial. Its number differs from that of every other hold.
type hold struct {
	trial, number string
	attempts      int // that failed before
	reason        string
}

// take gives the first trial that may be taken to a new hold. It returns nil if there is none.
func (t *Table) take(ctx context.Context, number string) (h *hold, err error) {
	err = t.query(ctx, func(scan func(...any) error) error {
		h = &hold{number: number}
		return scan(&h.trial, &h.attempts, &h.reason)
	}, `UPDATE @work SET holder = $1, beat = @now WHERE trial = (SELECT trial FROM @work WHERE holder = '' AND next <= @now ORDER BY place, trial LIMIT 1 @skip)
		RETURNING trial, attempts, reason`, number)
	fault.While(&err, "taking a trial from the queue")
	return h, err
}

// beat says that the holder lives. It reports whether the hold still counts.
func (t *Table) beat(ctx context.Context, h *hold) (counts bool, err error) {
	n, err := t.exec(ctx, `UPDATE @work SET beat = @now WHERE trial = $1 AND holder = $2`, h.trial, h.number)
	return n > 0, err
}

func (t *Table) done(ctx context.Context, h *hold) error {
	_, err := t.exec(ctx, `DELETE FROM @work WHERE trial = $1 AND holder = $2`, h.trial, h.number)
	return err
}

// release ends a hold that still counts, and keeps the trial at its place, to be taken again after a pause, or (nil) when a person has acted.
func (t *Table) release(ctx context.Context, h *hold, pause *time.Duration) error {
	var wait *int64
	if pause != nil {
		ms := pause.Milliseconds()
		wait = &ms
	}
	_, err := t.exec(ctx, `UPDATE @work SET holder = '', attempts = $1, reason = $2, next = @now + $3 WHERE trial = $4 AND holder = $5`,
		h.attempts, h.reason, wait, h.trial, h.number)
	return err
}

// silent lists the holds whose holder was not heard of for a time. A beat far in the future is from before the clock was set back.
func (t *Table) silent(ctx context.Context, long time.Duration) (list []hold, err error) {
	err = t.query(ctx, func(scan func(...any) error) error {
		var h hold
		err := scan(&h.trial, &h.number)
		list = append(list, h)
		return err
	}, `SELECT trial, holder FROM @work WHERE holder <> '' AND abs(@now - beat) >= $1`, long.Milliseconds())
	return list, err
}

// end ends a hold of a holder that is still not heard of. The trial keeps its place. When so many holders have died of it, a person has to act.
func (t *Table) end(ctx context.Context, h *hold, long time.Duration) (ended bool, err error) {
	n, err := t.exec(ctx, `UPDATE @work SET holder = '', deaths = deaths + 1, next = CASE WHEN deaths + 1 < $1 THEN next END,
		reason = CASE WHEN deaths + 1 < $1 THEN reason ELSE $2 END WHERE trial = $3 AND holder = $4 AND abs(@now - beat) >= $5`,
		mostDeaths, allDied, h.trial, h.number, long.Milliseconds())
	return n > 0, err
}

// A turn is how a trial stands in the queue.
type turn struct {
	place  int64
	held   bool      // a process works on it, or died while it did
	failed bool      // until a person acts
	reason string    // why it failed
	next   time.Time // when it is tried again; zero: as soon as there is room, or never
}

func (t *Table) find(ctx context.Context, trials ...string) (map[string]turn, error) {
	found := map[string]turn{}
	for part := range slices.Chunk(trials, atOnce) {
		var names []string
		var args []any
		for i, trial := range part {
			names, args = append(names, fmt.Sprintf("$%d", i+1)), append(args, trial)
		}
		err := t.query(ctx, func(scan func(...any) error) error {
			var trial, holder string
			var next, pause sql.NullInt64
			var now turn
			err := scan(&trial, &now.place, &holder, &now.reason, &next, &pause)
			now.held, now.failed = holder != "", !next.Valid
			if pause.Int64 > 0 {
				now.next = time.UnixMilli(next.Int64)
			}
			found[trial] = now
			return err
		}, `SELECT trial, place, holder, reason, next, next - @now FROM @work WHERE trial IN (`+strings.Join(names, ", ")+`)`, args...)
		if err != nil {
			return nil, fmt.Errorf("looking for trials in the queue: %w", err)
		}
	}
	return found, nil
}

// waiting counts the trials that wait for room, in all processes together: all of them, or those before a place.
func (t *Table) waiting(ctx context.Context, before int64) (n int, err error) {
	err = t.query(ctx, func(scan func(...any) error) error { return scan(&n) },
		`SELECT count(*) FROM @work WHERE holder = '' AND next <= @now AND place < $1`, before)
	fault.While(&err, "counting trials in the queue")
	return n, err
}
