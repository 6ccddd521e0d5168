package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/internal/log/ledger/storage"
)

// dialect is what the tables have in their own way: see log.sql.
var dialect = storage.Dialect{
	Tag:      func(column string) string { return column },
	TagIn:    func(tag string) string { return tag },
	Trials:   `jurat.records`,
	ByDigest: `r.digest = $1`,
	Link:     `key, idx`,
	LinkRow:  `$1, $2`,
	LinksIn:  `idx >= $1 AND idx < $2`,
	LinksOf:  `idx = ANY($1::bigint[])`,
	Empty: `UPDATE jurat.records r SET dictionary = $2, stamps = 0, packed = $3 FROM jurat.expiring e
		WHERE r.idx = $1 AND e.idx = r.idx AND e.act = $4`,
	Places: func(ids []storage.ID, digests [][]byte, keys []int64, most int) []storage.Statement {
		return []storage.Statement{{Text: `SELECT idx FROM jurat.records WHERE record_id = ANY($1::text[])
			UNION SELECT idx FROM jurat.records WHERE digest = ANY($2::bytea[])
			UNION SELECT idx FROM jurat.links WHERE key = ANY($3::bigint[]) ORDER BY idx LIMIT $4`, Args: []any{ids, digests, keys, most}}}
	},
}

// engine is a Store as a storage.Engine.
type engine struct{ *Store }

// Read implements storage.Engine. It returns storage.ErrClosed after Close.
func (e engine) Read(ctx context.Context, read func(storage.Reader) error) error {
	err := retry(ctx, e.pool.Reset, isBroken, func() error {
		if e.closed.Load() {
			return storage.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return read(reader{e.reads})
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, storage.ErrClosed) {
		err = errors.Join(ctx.Err(), err)
	}
	return translate(err)
}

func (e engine) Write(ctx context.Context, write func(context.Context, storage.Writer) error) error {
	return translate(e.transact(ctx, func(ctx context.Context, tx *transaction) error { return write(ctx, tx) }))
}

// A reader sends statements in one message.
type reader struct{ to querier }

func (r reader) Run(ctx context.Context, statements ...storage.Statement) error {
	if len(statements) == 0 {
		return nil
	}
	batch := new(pgx.Batch)
	queue(batch, statements)
	return r.to.SendBatch(ctx, batch).Close()
}

func queue(batch *pgx.Batch, statements []storage.Statement) {
	for i := range statements {
		s := &statements[i]
		for n, arg := range s.Args {
			switch arg := arg.(type) { // without the server's help, pgx does not know that these are texts
			case storage.ID:
				s.Args[n] = string(arg)
			case []storage.ID:
				list := make([]string, len(arg))
				for i, id := range arg {
					list[i] = string(id)
				}
				s.Args[n] = list
			}
		}
		query := batch.Queue(s.Text, s.Args...)
		switch {
		case s.Row != nil:
			query.Query(func(rows pgx.Rows) error {
				for rows.Next() {
					if err := s.Row(rows.Scan); err != nil {
						return err
					}
				}
				return rows.Err()
			})
		case s.Changed != nil:
			query.Exec(func(tag pgconn.CommandTag) error { return s.Changed(tag.RowsAffected()) })
		}
	}
}

func (tx *transaction) Run(ctx context.Context, statements ...storage.Statement) error {
	return reader{tx.conn}.Run(ctx, statements...)
}

// Queue implements storage.Writer. The statements travel with the COMMIT.
func (tx *transaction) Queue(_ context.Context, statements ...storage.Statement) error {
	queue(&tx.last, statements)
	return nil
}

func (tx *transaction) Head(context.Context) (storage.Head, error) { return tx.head, nil }

// Admit implements storage.Engine.
func (e engine) Admit(*storage.Batch) (last []storage.Statement, err error) {
	return []storage.Statement{{Text: `SELECT pg_notify('` + channel + `', '')`}}, nil
}

// ByRecordID implements storage.Records. It first waits until all transactions of this process are over, so that "not found" is final.
func (s *Store) ByRecordID(ctx context.Context, id string) (storage.Row, error) {
	if err := ctx.Err(); err != nil {
		return storage.Row{}, err
	}
	if err := s.settle(ctx); err != nil {
		return storage.Row{}, err
	}
	return s.SQL.ByRecordID(ctx, id)
}

// Reclaim implements storage.Expiry: it frees the room for new records. The files shrink only where their ends are
// empty. VACUUM FULL could shrink them further, but would lock out every reader and writer, so Reclaim does not use it.
func (s *Store) Reclaim(ctx context.Context, progress func(done, total int64)) error {
	if s.closed.Load() {
		return storage.ErrClosed
	}
	tables := []string{"jurat.records", "jurat.timestamps", "jurat.expiring", "jurat.briefs", "jurat.links"}
	for n, table := range tables {
		if _, err := s.pool.Exec(ctx, `VACUUM `+table); err != nil {
			return errors.Join(ctx.Err(), translate(err))
		}
		if progress != nil {
			progress(int64(n+1), int64(len(tables)))
		}
	}
	return nil
}

// channel is the notification channel. Every appending transaction notifies it on commit.
const channel = "jurat_grown"

// listenSilence is how long Listen hears nothing before it reads the head. A proxy can let LISTEN pass and keep the
// notifications. The answer also shows that the server still runs.
const listenSilence = 10 * time.Second

// Listen implements storage.Store, over a connection of its own.
func (s *Store) Listen(ctx context.Context, grown func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.done, cancel)()
	err := s.listen(ctx, grown)
	if s.closed.Load() {
		return storage.ErrClosed
	}
	return translate(err)
}

func (s *Store) listen(ctx context.Context, grown func()) (err error) {
	config := s.pool.Config().ConnConfig
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { // the end of a wait needs no cancel request to the server
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, conn.Close(ctx))
	}()
	if _, err := conn.Exec(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	grown() // growth before LISTEN was not notified
	size := int64(-1)
	for {
		told, err := waitFor(ctx, conn, s.silence)
		if err != nil {
			return err
		}
		if told {
			grown()
			continue
		}
		head, err := s.askHead(ctx, conn)
		if err != nil {
			return err
		}
		if head.Size != size {
			size = head.Size
			grown()
		}
	}
}

// askHead limits its wait: a connection that died silently would block for a quarter of an hour, while new ones work.
func (s *Store) askHead(ctx context.Context, conn *pgx.Conn) (storage.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, s.silence)
	defer cancel()
	return storage.HeadIn(ctx, reader{conn})
}

// waitFor waits for a notification, for at most silence. told is false if none came.
func waitFor(ctx context.Context, conn *pgx.Conn, silence time.Duration) (told bool, err error) {
	short, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	switch _, err = conn.WaitForNotification(short); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case short.Err() != nil && !conn.IsClosed():
		return false, nil
	}
	return false, err
}

const (
	// commitAnswer is the value of Store.answer outside tests.
	commitAnswer = 30 * time.Second
	// fenceTime is how long transact itself tries to learn the outcome of a transaction whose answer was lost.
	fenceTime = 5 * time.Second
)

// lockHead also reports whether the settings hold: a proxy may have moved the transaction to another connection.
const lockHead = `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('idle_in_transaction_session_timeout') <> '0'
	FROM jurat.head FOR UPDATE`

// A transaction excludes every other writer, in every process, while it lasts.
type transaction struct {
	conn *pgxpool.Conn
	head storage.Head
	last pgx.Batch // travels with the COMMIT
}

// transact runs f in a transaction that excludes every other writer. The context ends the wait for the transaction to begin. After that nothing is
// cancelled, so that the outcome is known. The last statements of f and the COMMIT are sent together. If the answer to the COMMIT is lost, transact
// returns an error that wraps a lostError.
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
	// A crash from here to COMMIT leaves a connection that is closed, or that stops. The server rolls its transaction back.
	if err = f(ctx, tx); err == nil {
		err = tx.commit(ctx)
	}
	// A crash during COMMIT leaves all or nothing. So does a crash of the server: after its restart, its own log decides.
	if _, lost := errors.AsType[*lostError](err); lost {
		tx.conn.Conn().PgConn().Conn().Close() // so that the server receives nothing more from it
		tx.conn.Release()
		s.unsettled.Store(true)
		_ = s.fence(context.WithoutCancel(ctx), fenceTime) // if it fails, ByRecordID repeats it before it answers
		return err
	}
	if err == nil {
		s.unsettled.Store(false) // this commit follows all earlier ones, on every machine that keeps them
	}
	tx.end(ctx)
	return err
}

// enter waits for this process's turn: at most one of its connections waits for another process. It returns storage.ErrClosed after Close.
func (s *Store) enter(ctx context.Context) error {
	err := s.writing.Acquire(ctx)
	if err == nil && s.closed.Load() {
		s.writing.Release()
		err = storage.ErrClosed
	}
	return err
}

// begin waits until no other process writes. It replaces a connection that died while it was idle.
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
	tx := &transaction{conn: conn, head: storage.EmptyHead}
	batch := new(pgx.Batch)
	batch.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED`)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	pid := conn.Conn().PgConn().PID() // read now: later the connection may be back in the pool
	patience := s.standstill
	defer time.AfterFunc(patience, func() { s.evict(waiting, pid, patience) }).Stop()
	set := false
	batch.Queue(lockHead).QueryRow(func(row pgx.Row) error { return row.Scan(&set) })
	queue(batch, []storage.Statement{storage.ReadHead(&tx.head)}) // not with the lock: its snapshot must come after it
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

// evict ends transactions that block the given connection while the server waits for the rest of a message from them.
// The server's own timeout for idle transactions counts only between messages.
func (s *Store) evict(ctx context.Context, waiting uint32, patience time.Duration) {
	for ctx.Err() == nil {
		// Without the right to terminate, or behind a proxy, this has no effect: the wait lasts until the context ends.
		_, _ = s.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY(pg_blocking_pids($1))
			AND wait_event = 'ClientRead' AND greatest(state_change, query_start) < clock_timestamp() - $2 * interval '1 microsecond'`,
			int32(waiting), patience.Microseconds())
		select {
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
}

// end returns the connection to the pool, after it has rolled back a transaction that is still open.
func (tx *transaction) end(ctx context.Context) {
	defer tx.conn.Release() // Release closes a connection that is still in a transaction
	if tx.conn.Conn().IsClosed() || tx.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, _ = tx.conn.Exec(ctx, `ROLLBACK`) // if it fails, Release closes the connection, with the same effect
}

// commit sends the last statements and the COMMIT in one message. It returns a lostError if the server's answer did not arrive.
func (tx *transaction) commit(ctx context.Context) error {
	tx.last.Queue(`COMMIT`).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the server answered COMMIT with %s", tag)
		}
		return nil
	})
	// When the context ends, commit closes the connection. A cancel request would only end the server's wait for a
	// standby. The transaction would then count as committed, yet be lost with this one machine.
	wire := tx.conn.Conn().PgConn().Conn()
	defer context.AfterFunc(ctx, func() { wire.Close() })()
	err := tx.conn.SendBatch(context.WithoutCancel(ctx), &tx.last).Close()
	if err == nil || refused(err) {
		return err
	}
	return &lostError{err}
}

// A lostError means that the server's answer to COMMIT did not arrive.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the server's answer is lost: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// refused reports whether the server said that it rejected the statement. An error that ends the connection does not say that.
func refused(err error) bool {
	failure, is := errors.AsType[*pgconn.PgError](err)
	return is && failure.SeverityUnlocalized == "ERROR"
}

// fence takes the writers' lock, so that every earlier transaction is over when it returns. Before that, an earlier transaction can still be committed.
// fence commits too: where the server waits for a standby, earlier commits are then on the standby as well.
func (s *Store) fence(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		tx, err := s.tryBegin(ctx)
		if err == nil {
			err = tx.commit(ctx)
			tx.end(ctx)
		}
		if err == nil {
			s.unsettled.Store(false)
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the outcome of an earlier transaction is still unknown: %w", err)
		}
	}
}

// settle returns once the outcome of every transaction of this process can be read.
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
