package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"jurat/internal/schedule/queue"
)

// jobsSchema is the schema of the queue of trials. The ledger's tables are in another schema.
const jobsSchema = "jurat_jobs"

// migrating is the key of the advisory lock for making the tables: the first eight bytes of SHA-256 of "jurat jobs",
// without the sign bit.
const migrating = 0x6ff620eb512d5c91

// leastConns is the least size of a pool: the process that makes the tables holds one connection while River uses
// others.
const leastConns = 4

// Jobs makes or finds the tables of the queue. The caller closes the pool.
func Jobs(ctx context.Context, pool *pgxpool.Pool) (*queue.Database, error) {
	if most := pool.Config().MaxConns; most < leastConns {
		return nil, fmt.Errorf("opening the jobs: the pool has at most %d connections, but trials need %d: set pool_max_conns in the database's URL", most, leastConns)
	}
	plain := riverpgxv5.New(pool)
	if err := prepareJobs(ctx, pool, plain); err != nil {
		return nil, fmt.Errorf("opening the jobs in schema %s: %w", jobsSchema, err)
	}
	listens, err := listening(ctx, pool)
	if err != nil {
		return nil, fmt.Errorf("opening the jobs in schema %s: %w", jobsSchema, err)
	}
	return queue.NewDatabase(listener{plain, riverpgxv5.New(listens)}, queue.Dialect{Schema: jobsSchema, Trial: `args ->> 'trial'`, Explain: Explain,
		Close: func() error { listens.Close(); return nil },
		Number: func(ctx context.Context, query string, arg int64) (n int64, err error) {
			return n, pool.QueryRow(ctx, query, arg).Scan(&n)
		}}), nil
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

// prepareJobs makes the tables, while it holds a lock against other processes.
func prepareJobs(ctx context.Context, pool *pgxpool.Pool, driver *riverpgxv5.Driver) (err error) {
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
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`, jobsSchema).Scan(&there); err != nil {
		return err
	}
	if !there { // if it exists, this role may lack the right to make schemas
		if _, err := conn.Exec(ctx, `CREATE SCHEMA `+jobsSchema); err != nil {
			return err
		}
	}
	return queue.Migrate(ctx, driver, jobsSchema)
}
