package schedule

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"modernc.org/sqlite" // and the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// A Database is where jobs are kept. It is safe for concurrent use, also by several processes.
type Database struct {
	schema string // in which River's tables are; "": in the only one
	trial  string // how SQL reads the trial of a job
	exec   riverdriver.Executor
	client func(*river.Config) (client, error)
	number func(ctx context.Context, query string, arg int64) (int64, error)
	close  func() error
}

// A client is what is used of a river.Client, whose type differs from database to database.
type client interface {
	Start(context.Context) error
	Stop(context.Context) error
	InsertMany(context.Context, []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobList(context.Context, *river.JobListParams) (*river.JobListResult, error)
	JobDelete(context.Context, int64) (*rivertype.JobRow, error)
}

// Close lets go of the database, as far as it was opened here.
func (d *Database) Close() error { return d.close() }

// SQLite opens or makes a file for the processes of one machine. "": a database that is this process's alone, and ends with it.
//
// What is in it is not worth a wait for the disk: a machine that crashes may take the last moments of it along.
func SQLite(ctx context.Context, path string) (*Database, error) {
	d, err := openSQLite(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening the jobs in %s: %w", path, translate(err))
	}
	return d, nil
}

func openSQLite(ctx context.Context, path string) (*Database, error) {
	source := ":memory:"
	if path != "" {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		source = "file://" + (&url.URL{Path: absolute}).EscapedPath() + "?" + url.Values{"_txlock": {"immediate"},
			"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(NORMAL)"}}.Encode()
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // River works in parallel, and SQLite has one writer: they wait for each other here instead of failing there
	driver := forgiving{riversqlite.New(db)}
	if err := migrateAgain(ctx, driver); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Database{trial: `json_extract(CAST(args AS TEXT), '$.trial')`, exec: driver.GetExecutor(), close: db.Close,
		client: func(c *river.Config) (client, error) { return river.NewClient(driver, c) },
		number: func(ctx context.Context, query string, arg int64) (n int64, err error) {
			return n, db.QueryRowContext(ctx, strings.ReplaceAll(query, "$1", "?1"), arg).Scan(&n)
		}}, nil
}

// waitTime is how long a question to the database may take in all: one statement waits half as long for another process, and others of
// this process may wait before it.
const waitTime = 20 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, waitTime, ErrBusy)
}

// translate puts SQLite's errors into this package's words.
func translate(err error) error {
	var failure *sqlite.Error
	code := 0
	if errors.As(err, &failure) {
		code = failure.Code() & 0xff
	}
	switch {
	case code == sqlite3.SQLITE_BUSY, errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case code == sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// forgiving is River's driver for SQLite, which cannot bear that a job is gone by the time what became of it is to be noted: it drops
// the other jobs of the batch, and returns a row that is nil, of which River dies.
type forgiving struct{ *riversqlite.Driver }

func (d forgiving) GetExecutor() riverdriver.Executor {
	return forgivingExecutor{d.Driver.GetExecutor()}
}

type forgivingExecutor struct{ riverdriver.Executor }

func (e forgivingExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) (rows []*rivertype.JobRow, err error) {
	for i := range p.ID {
		one, err := e.Executor.JobSetStateIfRunningMany(ctx, &riverdriver.JobSetStateIfRunningManyParams{ID: p.ID[i : i+1], Attempt: p.Attempt[i : i+1],
			ErrData: p.ErrData[i : i+1], FinalizedAt: p.FinalizedAt[i : i+1], MetadataDoMerge: p.MetadataDoMerge[i : i+1],
			MetadataUpdates: p.MetadataUpdates[i : i+1], Now: p.Now, ScheduledAt: p.ScheduledAt[i : i+1], Schema: p.Schema, State: p.State[i : i+1]})
		if err != nil {
			return nil, err
		}
		for _, row := range one {
			if row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// migrateAgain makes the tables. SQLite has no lock that processes could hold from one of River's transactions to the next: of two that make
// them at the same time one fails, and finds them made when it looks again.
func migrateAgain(ctx context.Context, driver riverdriver.Driver[*sql.Tx]) error {
	end := time.Now().Add(waitTime)
	var err error
	for range 20 {
		if err = migrate(ctx, driver, ""); err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func migrate[T any](ctx context.Context, driver riverdriver.Driver[T], schema string) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// migrating is the key of the advisory lock under which the tables are made: the first eight bytes, without their sign, of SHA-256 of "jurat jobs".
const migrating = 0x6ff620eb512d5c91

// leastConns is for how many connections a pool must have room: whoever makes the tables has one while River uses others.
const leastConns = 4

// Postgres makes or finds the tables in a schema of a database that many processes share. The pool stays the caller's.
func Postgres(ctx context.Context, pool *pgxpool.Pool, schema string) (*Database, error) {
	if most := pool.Config().MaxConns; most < leastConns {
		return nil, fmt.Errorf("opening the jobs: %d connections to the database at most, and trials need %d: pool_max_conns in its URL says how many", most, leastConns)
	}
	plain := riverpgxv5.New(pool)
	if err := preparePostgres(ctx, pool, plain, schema); err != nil {
		return nil, fmt.Errorf("opening the jobs in schema %s: %w", schema, err)
	}
	listens, err := listening(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("opening the jobs in schema %s: %w", schema, err)
	}
	driver := listener{plain, riverpgxv5.New(listens)}
	return &Database{schema: schema, trial: `args ->> 'trial'`, exec: driver.GetExecutor(), close: func() error { listens.Close(); return nil },
		client: func(c *river.Config) (client, error) { return river.NewClient(driver, c) },
		number: func(ctx context.Context, query string, arg int64) (n int64, err error) {
			return n, pool.QueryRow(ctx, query, arg).Scan(&n)
		}}, nil
}

// listener is River's driver with a pool of its own for the connection that listens.
type listener struct {
	*riverpgxv5.Driver
	listens *riverpgxv5.Driver
}

func (l listener) GetListener(p *riverdriver.GetListenenerParams) riverdriver.Listener {
	return l.listens.GetListener(p)
}

// listening is a pool for one connection that leads where those of another one lead. River leaves off listening whenever it has something
// to say on that connection, at its end above all. Where the pool's connections would ask the server to stop, which does nothing at that
// moment and hears of it late or in the middle of what is said next, this one just stops: River waits for it only so long, and for ever after that.
func listening(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// preparePostgres makes the tables while nobody else does.
func preparePostgres(ctx context.Context, pool *pgxpool.Pool, driver *riverpgxv5.Driver, schema string) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrating)); err != nil {
		return err
	}
	defer func() {
		_, unlocked := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrating))
		err = errors.Join(err, unlocked)
	}()
	var there bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, schema).Scan(&there); err != nil {
		return err
	}
	if !there { // otherwise whoever made it need not let others make schemas
		if _, err := conn.Exec(ctx, `CREATE SCHEMA `+schema); err != nil {
			return err
		}
	}
	return migrate(ctx, driver, schema)
}
