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

// version is that of the tables. Logs of before were made by programs that were never released.
const version = "10"

// oldest is the first version of PostgreSQL that has every feature used here.
const oldest = 140000

// Schema is the name of the schema that holds the tables. Other programs can use other schemas of the same database.
const Schema = "jurat"

// Store is a storage.Store in a database. It is safe for concurrent use.
type Store struct {
	*storage.SQL
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

// Open opens a database in which Create has made the tables. It returns
// ErrNoTables if they are missing. The caller owns the pool, and closes it after the Store.
func Open(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	s := newStore(pool)
	if err := s.known(ctx, pool); err != nil {
		return nil, fmt.Errorf("opening ledger: %w", translate(err))
	}
	return s, nil
}

func newStore(pool *pgxpool.Pool) *Store {
	s := &Store{pool: pool, reads: pool, standstill: standstill, answer: commitAnswer, silence: listenSilence, writing: storage.NewLock()}
	s.SQL = storage.NewSQL(engine{s}, dialect)
	s.done, s.finish = context.WithCancel(context.Background()) // ends with Close, not with the context of Open
	return s
}

// createTables makes the tables in one transaction, if they are not there. If several processes call
// it at once, one does the work.
func (s *Store) createTables(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := suits(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('jurat: tables'))`); err != nil {
			return err
		}
		err := s.known(ctx, tx)
		if errors.Is(err, ErrNoTables) {
			return s.makeTables(ctx, tx)
		}
		return err
	})
}

func (s *Store) makeTables(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS jurat`); err != nil {
		return err
	}
	if _, err := tx.Conn().PgConn().Exec(ctx, logTables).ReadAll(); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO jurat.meta VALUES ('schema', $1)`, version); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO jurat.head VALUES (true, '')`)
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

// known returns ErrNoTables if the tables are missing, and an error if they have another version than this program's.
func (s *Store) known(ctx context.Context, q querier) error {
	var there bool
	if err := q.QueryRow(ctx, `SELECT to_regclass('jurat.meta') IS NOT NULL`).Scan(&there); err != nil {
		return err
	}
	if !there {
		return ErrNoTables
	}
	var has string
	if err := q.QueryRow(ctx, `SELECT value FROM jurat.meta WHERE name = 'schema'`).Scan(&has); err != nil {
		return err
	}
	return storage.Known(has, version)
}

// A querier is a connection, a transaction, or a pool.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
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
