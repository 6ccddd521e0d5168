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

// A Database stores jobs. It is safe for concurrent use, also by several processes.
type Database struct {
	schema string // the schema of River's tables; "": the default schema
	trial  string // SQL expression for the trial of a job
	exec   riverdriver.Executor
	client func(*river.Config) (client, error)
	number func(ctx context.Context, query string, arg int64) (int64, error)
	close  func() error
}

// A client is the part of a river.Client that is used here. The type of river.Client depends on the database.
type client interface {
	Start(context.Context) error
	Stop(context.Context) error
	InsertMany(context.Context, []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobList(context.Context, *river.JobListParams) (*river.JobListResult, error)
	JobDelete(context.Context, int64) (*rivertype.JobRow, error)
}

// Close closes the connections that this package opened.
func (d *Database) Close() error { return d.close() }

// SQLite opens or makes a file for the processes of one machine. For the path "" it makes a database that only this
// process uses and that ends with it.
//
// A commit does not wait for the disk: after a crash of the machine, the last moments may be missing. They can be
// made again from the log.
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
	db.SetMaxOpenConns(1) // SQLite has one writer: River's parallel calls wait here, instead of failing there
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

// waitTime is how long a call to the database may take in all. One statement waits at most half as long for another
// process, and other calls of this process may come first.
const waitTime = 20 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, waitTime, ErrBusy)
}

// translate replaces SQLite's errors by ErrBusy and ErrNoSpace.
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

// forgiving is River's driver for SQLite with a correction. If a job is gone when River stores its result, the driver
// drops the other jobs of the batch and returns a nil row, on which River panics.
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

// migrateAgain makes the tables. River uses several transactions for that, and SQLite has no lock that spans them. If
// two processes make the tables at once, one fails; at its next attempt it finds them.
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

// migrating is the key of the advisory lock for making the tables: the first eight bytes of SHA-256 of "jurat jobs",
// without the sign bit.
const migrating = 0x6ff620eb512d5c91

// leastConns is the least size of a pool: the process that makes the tables holds one connection while River uses
// others.
const leastConns = 4

// Postgres makes or finds the tables in a schema of a database that many processes share. The caller closes the pool.
func Postgres(ctx context.Context, pool *pgxpool.Pool, schema string) (*Database, error) {
	if most := pool.Config().MaxConns; most < leastConns {
		return nil, fmt.Errorf("opening the jobs: the pool has at most %d connections, but trials need %d: set pool_max_conns in the database's URL", most, leastConns)
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

// listening returns a pool with one connection to the same database. River interrupts its listening whenever it has
// to send something on that connection. The main pool's connections would then send the server a cancel request,
// which may arrive late and cancel the next statement. This connection only stops reading. Otherwise River can hang
// when it stops.
func listening(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	config.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// preparePostgres makes the tables, while it holds a lock against other processes.
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
	if !there { // if it exists, this role may lack the right to make schemas
		if _, err := conn.Exec(ctx, `CREATE SCHEMA `+schema); err != nil {
			return err
		}
	}
	return migrate(ctx, driver, schema)
}
