package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/ledger/storage"
)

//go:embed log.sql
var logTables string

//go:embed trials.sql
var trialsIndex string

//go:embed archives.sql
var archivesTable string

//go:embed briefs.sql
var briefsTables string

// versions are the statements that lead to each version of the tables, from 1 on, from the one before. What has been given out is
// never changed: older tables are brought up to date by those that they lack.
var versions = []string{logTables, trialsIndex, archivesTable, briefsTables}

// oldest is the first version of PostgreSQL that has all that is used here.
const oldest = 140000

// Schema is the name of the schema that the tables are in, so that others can be in the same database.
const Schema = "jurat"

// Store is a storage.Store in a database. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	reads  querier // the pool, or the transaction of a snapshot
	closed atomic.Bool
	done   context.Context // ends with Close
	finish context.CancelFunc

	standstill time.Duration // how long others wait for a process that does not go on
	answer     time.Duration // how long this process waits for the server's answer in a transaction that has begun to matter to others
	silence    time.Duration // after how much of it whoever listens asks whether the server is still there

	writing storage.Lock // held while a transaction of this process is at work, or waits for another process's

	// unsettled says that the answer to a COMMIT was lost, and that nobody knows yet that the transaction is over. As long as it is
	// not, no record can be said to be missing.
	unsettled atomic.Bool
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Checker  = (*Store)(nil)
	_ storage.Notifier = (*Store)(nil)
)

// Create makes the tables in a database, and opens it. It opens one that has them already, so that it can be repeated after a crash;
// that a log is not begun twice is for ledger.Create to see to. The pool stays the caller's, and is to be closed after the Store.
func Create(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	s := newStore(pool)
	if err := s.createTables(ctx); err != nil {
		return nil, fmt.Errorf("creating tables: %w", translate(err))
	}
	return s, nil
}

// ErrNoTables says that nobody has called Create on a database.
var ErrNoTables = errors.New("there is no ledger in this database")

// Open opens a database in which Create has made the tables, or returns ErrNoTables. The pool stays the caller's, and is to be closed
// after the Store.
func Open(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	s := newStore(pool)
	version, err := s.version(ctx, pool)
	if err == nil && version < len(versions) {
		err = s.createTables(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("opening ledger: %w", translate(err))
	}
	return s, nil
}

func newStore(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool, reads: pool, standstill: standstill, answer: commitAnswer, silence: listenSilence, writing: storage.NewLock()}
	s.done, s.finish = context.WithCancel(context.Background()) // Close ends it, and not the caller of Open
	return s
}

// createTables makes the tables, or brings those of an older version up to date, in one transaction. Of several processes that do so
// at once, all but one find it done.
func (s *Store) createTables(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := suits(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('jurat: tables'))`); err != nil {
			return err
		}
		version, err := s.version(ctx, tx)
		if errors.Is(err, ErrNoTables) {
			return s.makeTables(ctx, tx)
		}
		if err != nil {
			return err
		}
		return update(ctx, tx, version)
	})
}

func (s *Store) makeTables(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS jurat`); err != nil {
		return err
	}
	if err := update(ctx, tx, 0); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO jurat.head VALUES (true, '')`)
	return err
}

func update(ctx context.Context, tx pgx.Tx, version int) error {
	if version == len(versions) {
		return nil
	}
	for _, statements := range versions[version:] {
		if _, err := tx.Conn().PgConn().Exec(ctx, statements).ReadAll(); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO jurat.meta VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, strconv.Itoa(len(versions)))
	return err
}

// suits refuses a server on which the log could not be kept as it is.
func suits(ctx context.Context, tx pgx.Tx) error {
	var version, encoding string
	if err := tx.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	if n, err := strconv.Atoi(version); err != nil || n < oldest {
		return fmt.Errorf("the server's version is %s, and PostgreSQL %d or later is needed", version, oldest/10000)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s, and UTF8 is needed: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}

// version is that of the tables, which must be one that this program knows.
func (s *Store) version(ctx context.Context, q querier) (int, error) {
	var there bool
	if err := q.QueryRow(ctx, `SELECT to_regclass('jurat.meta') IS NOT NULL`).Scan(&there); err != nil {
		return 0, err
	}
	if !there {
		return 0, ErrNoTables
	}
	var text string
	if err := q.QueryRow(ctx, `SELECT value FROM jurat.meta WHERE name = 'schema'`).Scan(&text); err != nil {
		return 0, err
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 || version > len(versions) {
		return 0, fmt.Errorf("the tables have the version %q, this program knows 1 to %d", text, len(versions))
	}
	return version, nil
}

// A querier is a connection, a transaction, or a pool.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// Close implements storage.Store. It waits for the transaction that is at work, and leaves the pool to whoever has made it.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.finish()
	s.writing <- struct{}{}
	s.writing.Release()
	return nil
}
