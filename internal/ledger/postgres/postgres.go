// Package postgres keeps a log in a PostgreSQL database, which any number of processes on any machines may share. None of them is a
// special one: each appends, and the database puts them in one order.
//
// A transaction locks the one row of jurat.head before it looks at the log, and only after that takes the snapshot in which it reads
// (READ COMMITTED), so that it sees all that was committed before, and nobody commits anything in between. The lock is PostgreSQL's
// own, and ends with the transaction or with the connection. So a process that dies, or is cut off, or stands still, in the middle of
// one leaves nothing behind: the server ends the connection of whoever does not go on with a transaction, and undoes it.
//
// An isolation level above that would serve nothing, as writers exclude each other; it would have every writer that waited for the
// lock fail with a conflict. A lock of the row rather than an advisory one, because nobody else can hold it by choosing the same
// number. There is no row that every transaction changes: while a backup holds an old snapshot, all its versions would stay, and
// everybody would step over them. The head of the log is its last record, which has the root hash beside it.
//
// # Several processes share one log through PostgreSQL, and none of them leads
//
// Whoever appends locks one row, looks at the log, and writes: the order of locks is the order of the log. A leader would have to be
// elected, and to be noticed when it is gone; the lock is released by the server, with the transaction or with the connection. A
// process that is cut off or stands still loses its transaction after ten seconds. The lock is a row, and not an advisory one,
// because nobody else can take it by choosing the same number. Each statement after the lock reads what was committed before it
// (READ COMMITTED); a stricter level would serve nothing, as there is one writer, and would have each that waited fail and begin
// again.
//
// # A batch is three messages to the server
//
// The lock and the head; all that decides on what may be appended, asked at once; and all that is stored, together with its COMMIT.
// What a lone caller waits for is these, and one fsync.
//
// # When the answer to a COMMIT is lost, it is waited for
//
// A connection can break with the COMMIT on its way, and the server can carry it out when the caller has long been told of an error.
// So a record is not said to be missing before the same lock was had once more: then the transaction is over, one way or the other.
// Where the server cannot be asked, nobody is told anything but that it is not known.
//
// # The head of the log on PostgreSQL is its last record
//
// A row that every transaction changes leaves all its old versions lying as long as a backup reads, and everybody steps over them.
// The root hash stands with the last record of a batch, and the hashes of the tree with the record that completes them, so that a
// record is one row and no more.
//
// # Whoever waits for the log to grow is told
//
// PostgreSQL tells every process when a transaction is committed, over a connection that each has for that; SQLite is asked twice a
// second. Both are one channel to whoever waits. A connection that was lost delays news, and loses none: when it is there again,
// everybody looks once.
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

	"jurat/internal/database"
	"jurat/internal/ledger/storage"
)

//go:embed schema.sql
var schema string

//go:embed trials.sql
var trialsIndex string

//go:embed archives.sql
var archivesTable string

//go:embed briefs.sql
var briefsTables string

// versions are the statements that lead to each version of the tables, from 1 on, from the one before. What has been given out is
// never changed: older tables are brought up to date by those that they lack.
var versions = []string{schema, trialsIndex, archivesTable, briefsTables}

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
	s := &Store{pool: pool, reads: pool, standstill: database.Standstill, answer: answerTime, silence: silence, writing: storage.NewLock()}
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
