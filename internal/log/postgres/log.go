// Package postgres keeps in a PostgreSQL database what several machines share: the log (Store), the small files (Files) and locks (Locks). Connect
// makes the connection pool for them. A connection ends when the server stops answering. No error of this package contains the password.
//
// The methods of Store, Files and Locks return the errors that their interfaces name. If the server does not answer or refuses, they wrap
// ErrUnreachable, ErrNoDatabase, ErrNotLetIn or ErrNotAllowed. Store wraps others in storage.ErrDiskFull, ErrReadOnly or ErrDamaged, or in ErrNoTables.
// The errors of Files are *fs.PathError; of a file that cannot be unwrapped they wrap filestore.ErrDamaged or ErrOtherKey.
//
// # Several processes share one log through PostgreSQL, without a leader
//
// A transaction first locks the one row of jurat.head. Then it takes the snapshot in which it reads (READ COMMITTED).
// So it sees everything committed before, and no other process commits in between: the order of locks is the order of
// the log. A process that dies, loses its connection or stops loses its transaction after ten seconds.
//
// A leader would have to be elected, and its failure detected. In a stricter isolation level every writer that waited
// would fail with a conflict. Another program could take an advisory lock by choosing the same number.
//
// # A batch is three messages to the server
//
// The first message takes the lock and reads the head. The second reads all that decides what may be appended. The
// third stores everything and commits. A lone caller waits for these three, and for one fsync.
//
// # If the answer to a COMMIT is lost, the store finds out the outcome
//
// A connection can break while the COMMIT is on its way. The server may carry it out after the caller has received an
// error. So the store takes the same lock once more before it says that a record is missing: then the transaction is
// over, committed or not. If the server cannot be asked, the store answers that the outcome is unknown.
//
// # The server notifies each process when the log grows
//
// PostgreSQL notifies every process of a commit, over a connection that each process keeps for this purpose. SQLite
// is polled twice a second. Both feed one channel that callers wait on. A lost connection delays notifications, but
// loses none: after it reconnects, every waiting caller checks the log once.
//
// # A lock of machines is a lock of a session
//
// The lock on a trial must end with the process that conducts it, however that ends. On one machine the operating system guarantees this. Among
// machines a database session does, on a connection of its own. A lease in a table would need synchronised clocks, or writes that renew it all the
// time. The session has the advantage of a lease: the server ends it after twenty seconds without a message (`idle_session_timeout`). The process
// treats it as lost after thirteen, so that it stops first. Work under a lock runs in a context that ends with the lock. That only avoids useless work:
// the log makes sure that no act gets a second place.
//
// # Small files
//
// They are encrypted under a key that the database does not have: see package filestore. So someone who can write to the database cannot
// plant a key, a setting or a certificate. The database stops returning replaced and removed content at once. docs/threat-model.md says where it stays longer.
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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/ledger/storage"
)

//go:embed log.sql
var logTables string

// version is that of the tables. Logs of before were made by programs that were never released.
const version = "13"

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

var _ storage.Store = (*Store)(nil)

// Create makes the tables in a database, and opens it. It accepts a database that has them already, so that it can be repeated after a crash.
// ledger.Create makes sure that a log is not begun twice. The caller owns the pool, and closes it after the Store.
func Create(ctx context.Context, pool *pgxpool.Pool) (*Store, error) {
	s := newStore(pool)
	if err := s.createTables(ctx); err != nil {
		return nil, fmt.Errorf("creating tables: %w", translate(err))
	}
	return s, nil
}

// ErrNoTables means that Create was never called on this database.
var ErrNoTables = errors.New("this database contains no ledger")

// Open opens a database in which Create has made the tables. It returns ErrNoTables if they are missing. The caller
// owns the pool, and closes it after the Store.
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

// createTables makes the tables in one transaction, if they are not there. If several processes call it at once, one does the work.
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
			_, err = tx.Conn().PgConn().Exec(ctx, `CREATE SCHEMA IF NOT EXISTS jurat; `+logTables+`
				INSERT INTO jurat.meta VALUES ('schema', '`+version+`'); INSERT INTO jurat.head VALUES (true, '')`).ReadAll()
		}
		return err
	})
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

// Snapshot calls f with the log as it is at one moment: everything that f reads comes from one transaction. f can only read, and must make one call at
// a time. Writers continue meanwhile, but the server keeps all replaced row versions until f returns.
func (s *Store) Snapshot(ctx context.Context, f func(storage.Store) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// f may take any time between two reads, whatever limits the server sets for others.
		if _, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`); err != nil {
			return err
		}
		frozen := newStore(s.pool)
		frozen.reads = tx
		defer frozen.Close()
		return f(frozen)
	})
	if err != nil {
		return fmt.Errorf("reading a snapshot of the log: %w", translate(err))
	}
	return nil
}

// Check implements storage.Store. It reports server settings under which a crash of the server's machine can damage
// committed data, pages that the server found damaged, and indexes that differ from their tables. With the extension
// amcheck in the database, Check uses it for the indexes. Otherwise it compares every index with its table.
func (s *Store) Check(ctx context.Context) (complaints []string, err error) {
	err = engine{s}.Read(ctx, func(storage.Reader) error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if complaints, err = settingsAndPages(ctx, tx); err != nil {
				return err
			}
			more, err := indexes(ctx, tx)
			complaints = append(complaints, more...)
			return err
		})
	})
	return complaints, err
}

func settingsAndPages(ctx context.Context, tx pgx.Tx) ([]string, error) {
	return texts[string](ctx, tx, `SELECT format('the server runs with %s=off: when its machine crashes, what is committed can be lost or damaged', name)
			FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'
		UNION ALL SELECT format('the server has found %s damaged pages in this database, the last at %s', checksum_failures, checksum_last_failure)
			FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
		UNION ALL SELECT format('the index %s is not valid', i.indexrelid::regclass)
			FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'jurat'::regnamespace AND NOT (i.indisvalid AND i.indisready)
		UNION ALL SELECT format('the table of counts has a row for place %s, which has no record', idx)
			FROM jurat.tags g WHERE NOT EXISTS (SELECT 1 FROM jurat.records r WHERE r.idx = g.idx)`)
}

// texts reads the only column of a query's rows.
func texts[T any](ctx context.Context, from interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}, query string, args ...any) ([]T, error) {
	rows, err := from.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// An index of the log, and what its table says that it must contain.
type index struct {
	Name, Table, Where string
	Fields             string // the sort key
}

func indexes(ctx context.Context, tx pgx.Tx) (complaints []string, err error) {
	rows, err := tx.Query(ctx, `SELECT i.indexrelid::regclass::text, c.oid::regclass::text, coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'),
			(SELECT string_agg(pg_get_indexdef(i.indexrelid, n, true), ', ' ORDER BY n) FROM generate_series(1, i.indnkeyatts) n)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'jurat'::regnamespace AND c.relname IN ('records', 'timestamps', 'waiting', 'expiring', 'briefs', 'links', 'tags') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return nil, err
	}
	var amcheck string // the schema of the extension
	err = tx.QueryRow(ctx, `SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'amcheck'`).Scan(&amcheck)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	for _, x := range list {
		complaint, err := x.check(ctx, tx, amcheck)
		if err != nil {
			return complaints, fmt.Errorf("checking index %s: %w", x.Name, err)
		}
		if complaint != "" {
			complaints = append(complaints, complaint)
		}
	}
	return complaints, nil
}

// check compares an index with its table.
func (x *index) check(ctx context.Context, tx pgx.Tx, amcheck string) (complaint string, err error) {
	if amcheck != "" {
		err = apart(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT `+pgx.Identifier{amcheck, "bt_index_check"}.Sanitize()+`($1::text::regclass, true)`, x.Name)
			return err
		})
		if failure, is := errors.AsType[*pgconn.PgError](err); !is || failure.Code != "42501" { // without the right to use amcheck, compare instead
			return x.complain(err)
		}
	}
	var table, own sum
	err = apart(ctx, tx, func(tx pgx.Tx) (err error) {
		if table, err = x.sum(ctx, tx, true); err == nil {
			own, err = x.sum(ctx, tx, false)
		}
		return err
	})
	if err == nil && own != table {
		return fmt.Sprintf("the index %s has %d rows where the table has %d, or others: rebuild it with REINDEX", x.Name, own.rows, table.rows), nil
	}
	return x.complain(err)
}

// apart runs f so that neither an error nor a setting of it stays in the transaction.
func apart(ctx context.Context, tx pgx.Tx, f func(pgx.Tx) error) error {
	nested, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(nested), nested.Rollback(ctx))
}

// complain returns a complaint if the server's error reports damage, and otherwise the error.
func (x *index) complain(err error) (string, error) {
	if errors.Is(translate(err), storage.ErrDamaged) {
		return fmt.Sprintf("the index %s: %v", x.Name, err), nil
	}
	return "", err
}

// A sum identifies the rows that were read, and their order.
type sum struct{ rows, hash int64 }

// sum reads all rows in the order of the index: sorted from the table, or through the index.
func (x *index) sum(ctx context.Context, tx pgx.Tx, fromTable bool) (s sum, err error) {
	for setting, on := range map[string]bool{"enable_seqscan": fromTable, "enable_sort": fromTable, "enable_indexscan": !fromTable,
		"enable_indexonlyscan": false, "enable_bitmapscan": false} {
		if _, err := tx.Exec(ctx, `SELECT set_config($1, $2, true)`, setting, strconv.FormatBool(on)); err != nil {
			return s, err
		}
	}
	// QueryExecModeExec plans the statement anew each time. A prepared statement without parameters keeps its first plan.
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(bit_xor(hashtextextended(r::text, n)), 0) FROM (SELECT idx AS r, row_number() OVER () AS n FROM
		(SELECT idx FROM `+x.Table+` WHERE `+x.Where+` ORDER BY `+x.Fields+`) rows) numbered`, pgx.QueryExecModeExec).Scan(&s.rows, &s.hash)
	return s, err
}
