package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/ledger/storage"
)

const (
	// commitAnswer is Store.answer, but in tests.
	commitAnswer = 30 * time.Second
	// fenceTime is how long Append itself looks for what became of a transaction whose answer was lost.
	fenceTime = 5 * time.Second
)

const (
	// lock says as well whether the settings hold: a proxy can have put the transaction on another connection.
	lock = `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('idle_in_transaction_session_timeout') <> '0'
		FROM jurat.head FOR UPDATE`
	// selectHead is a statement of its own, as its snapshot has to come after the lock.
	selectHead = `SELECT idx + 1, root FROM jurat.records ORDER BY idx DESC LIMIT 1`
)

// A transaction excludes every other writer, in every process, while it lasts.
type transaction struct {
	conn *pgxpool.Conn
	head storage.Head
}

// transact runs f in a transaction that excludes every other writer. Waiting to begin ends with the context. After that nothing is
// cancelled, so that the outcome is known. f has its last statements and the end of the transaction sent together, by commit.
func (s *Store) transact(ctx context.Context, f func(context.Context, *transaction) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.writing.Release()
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.answer)
	defer cancel()
	// A crash from here to COMMIT leaves a connection that is closed, or does not go on: the server undoes what came over it.
	err = f(ctx, tx)
	// A crash inside of COMMIT leaves all or nothing. So does a server that dies then: when it is back, its own log says which.
	var lost *lostError
	if errors.As(err, &lost) {
		tx.conn.Conn().PgConn().Conn().Close() // nothing more gets through to the server by this
		tx.conn.Release()
		s.unsettled.Store(true)
		_ = s.fence(context.WithoutCancel(ctx), fenceTime) // if it does not succeed, ByRecordID will not answer before it has
		return err
	}
	if err == nil {
		s.unsettled.Store(false) // what was committed comes after all that was before, on every machine that keeps it
	}
	tx.end(ctx)
	return err
}

// enter waits for this process's turn: of all its connections one at most waits for another process.
func (s *Store) enter(ctx context.Context) error {
	err := s.writing.Acquire(ctx)
	if err == nil && s.closed.Load() {
		s.writing.Release()
		err = storage.ErrClosed
	}
	return err
}

// begin waits until no other process writes. A connection that has died while it was idle is replaced.
func (s *Store) begin(ctx context.Context) (tx *transaction, err error) {
	err = retry(ctx, s.pool.Reset, isBroken, func() (err error) {
		tx, err = s.tryBegin(ctx)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("waiting for another process: %w", ctx.Err())
	}
	return tx, translate(err)
}

func (s *Store) tryBegin(ctx context.Context) (*transaction, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx := &transaction{conn: conn}
	batch := new(pgx.Batch)
	batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	pid := conn.Conn().PgConn().PID() // asked now: later the connection may have been given back
	patience := s.standstill
	defer time.AfterFunc(patience, func() { s.evict(waiting, pid, patience) }).Stop()
	set := false
	batch.Queue(lock).QueryRow(func(row pgx.Row) error { return row.Scan(&set) })
	batch.Queue(selectHead).QueryRow(func(row pgx.Row) (err error) {
		tx.head, err = scanHead(row)
		return err
	})
	err = conn.SendBatch(ctx, batch).Close()
	if err == nil && !set {
		_, err = conn.Exec(ctx, settings, true)
	}
	if err != nil {
		tx.end(context.WithoutCancel(ctx))
		return nil, err
	}
	return tx, nil
}

// evict ends the transactions of those who keep a connection waiting for their lock while the server waits for them to go on with a
// message. The server's own patience with a process that stands still counts between messages alone.
func (s *Store) evict(ctx context.Context, waiting uint32, patience time.Duration) {
	for ctx.Err() == nil {
		// Without the right to, or behind a proxy, nobody is evicted, and one waits as long as the context lets one.
		_, _ = s.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids($1))
			AND wait_event = 'ClientRead' AND greatest(state_change, query_start) < clock_timestamp() - $2 * interval '1 microsecond'`,
			int32(waiting), patience.Microseconds())
		select {
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
}

// end gives the connection back, and ends its transaction if that has not ended.
func (tx *transaction) end(ctx context.Context) {
	defer tx.conn.Release() // which closes a connection that is still in a transaction
	if tx.conn.Conn().IsClosed() || tx.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, _ = tx.conn.Exec(ctx, `ROLLBACK`) // if it fails, closing the connection does the same
}

// commit sends statements and the end of the transaction in one message.
func (tx *transaction) commit(ctx context.Context, batch *pgx.Batch) error {
	batch.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the server has answered COMMIT with %s", tag)
		}
		return nil
	})
	// Who has waited for too long hangs up. To ask the server to stop would end its wait for a standby, and not the transaction: that
	// would count from then on, and be lost with this one machine.
	wire := tx.conn.Conn().PgConn().Conn()
	defer context.AfterFunc(ctx, func() { wire.Close() })()
	err := tx.conn.SendBatch(context.WithoutCancel(ctx), batch).Close()
	if err == nil || refused(err) {
		return err
	}
	return &lostError{err}
}

// A lostError says that the server's answer to COMMIT did not arrive.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the server's answer is lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// refused reports whether the server has said that it has not done something. When it ends the connection, it has not said that.
func refused(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && failure.SeverityUnlocalized == "ERROR"
}

// fence returns when every transaction that has begun before is over: it takes their lock. While one is not, it can still be committed.
// And it commits, so that what was committed before is on the standby as well, where the server waits for one.
func (s *Store) fence(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		tx, err := s.tryBegin(ctx)
		if err == nil {
			err = tx.commit(ctx, new(pgx.Batch))
			tx.end(ctx)
		}
		if err == nil {
			s.unsettled.Store(false)
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("whether an earlier transaction was committed is not known yet: %w", err)
		}
	}
}

// settle returns when what became of every transaction of this process can be read.
func (s *Store) settle(ctx context.Context) error {
	if !s.unsettled.Load() {
		return nil
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.writing.Release()
	if !s.unsettled.Load() {
		return nil
	}
	return s.fence(ctx, s.answer)
}
