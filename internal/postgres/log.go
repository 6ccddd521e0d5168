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

//go:embed tags.sql
var tagsTable string

// versions are the statements that lead to each version of the tables, from 1, from the version before. Released
// statements never change: older tables are updated by the statements that they lack.
var versions = []string{logTables, trialsIndex, archivesTable, briefsTables, tagsTable}

// oldest is the first version of PostgreSQL that has every feature used here.
const oldest = 140000

// Schema is the name of the schema that holds the tables. Other programs can use other schemas of the same database.
const Schema = "jurat"

// Store is a storage.Store in a database. It is safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	reads  querier // the pool, or the transaction of a snapshot
	closed atomic.Bool
	done   context.Context // ends with Close
	finish context.CancelFunc

	standstill time.Duration // how long other writers wait for a process that has stopped
	answer     time.Duration // how long an open transaction waits for an answer of the server
	silence    time.Duration // how long Listen hears nothing before it asks the server

	writing storage.Lock // held while a transaction of this process runs, or waits for another process

	// unsettled is set while the outcome of a transaction whose answer to COMMIT was lost is unknown. Until it is
	// known, the store cannot say that a record is missing.
	unsettled atomic.Bool
}

var (
	_ storage.Store    = (*Store)(nil)
	_ storage.Checker  = (*Store)(nil)
	_ storage.Notifier = (*Store)(nil)
)

// Create makes the tables in a database, and opens it. It accepts a database that has them already, so that it can be
// repeated after a crash. ledger.Create makes sure that a log is not begun twice. The caller owns the pool, and
// closes it after the Store.
func Create(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	s := newStore(pool)
	if err := s.createTables(ctx); err != nil {
		return nil, fmt.Errorf("creating tables: %w", translate(err))
	}
	return s, nil
}

// ErrNoTables means that Create was never called on this database.
var ErrNoTables = errors.New("this database contains no ledger")

// Open opens a database in which Create has made the tables, and updates tables of an older version. It returns
// ErrNoTables if they are missing. The caller owns the pool, and closes it after the Store.
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
	s.done, s.finish = context.WithCancel(context.Background()) // ends with Close, not with the context of Open
	return s
}

// createTables makes the tables, or updates those of an older version, in one transaction. If several processes call
// it at once, one does the work.
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

// suits returns an error if this server cannot keep the log: its version is too old, or its encoding is not UTF8.
func suits(ctx context.Context, tx pgx.Tx) error {
	var version, encoding string
	if err := tx.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	if n, err := strconv.Atoi(version); err != nil || n < oldest {
		return fmt.Errorf("the server's version is %s, but jurat needs PostgreSQL %d or later", version, oldest/10000)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s, but jurat needs UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}

// version returns the version of the tables. It returns ErrNoTables if they are missing, and an error for an unknown
// version.
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
		return 0, fmt.Errorf("the tables have version %q, but this program knows only 1 to %d", text, len(versions))
	}
	return version, nil
}

// A querier is a connection, a transaction, or a pool.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// Close implements storage.Store. It waits for the running transaction, and leaves the pool open.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.finish()
	s.writing <- struct{}{}
	s.writing.Release()
	return nil
}
