package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"jurat/internal/ledger/storage"
)

// channel is the notification channel. Every appending transaction notifies it on commit.
const channel = "jurat_grown"

// listenSilence is how long Listen hears nothing before it reads the head. A proxy can let LISTEN pass and keep the
// notifications. The answer also shows that the server still runs.
const listenSilence = 10 * time.Second

// Listen implements storage.Notifier, over a connection of its own.
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
	return s.HeadIn(ctx, reader{conn})
}

// waitFor waits for a notification, for at most silence. told is false if none came.
func waitFor(ctx context.Context, conn *pgx.Conn, silence time.Duration) (told bool, err error) {
	short, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	_, err = conn.WaitForNotification(short)
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if short.Err() != nil && !conn.IsClosed() {
		return false, nil
	}
	return false, err
}
