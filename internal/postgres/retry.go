package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// tries is how often an operation is tried after broken connections: a server that restarted or took over may leave
// several dead ones in the pool.
const tries = 3

// retry runs do, and repeats it while again accepts its error, up to tries times. When a connection broke, others of
// the pool are broken as well, so retry calls reset to empty the pool. Who lost to another transaction lets that one
// come to its end first: without a pause it could take the same locks again, and lose each time.
func retry(ctx context.Context, reset func(), again func(error) bool, do func() error) (err error) {
	for try := range tries {
		if err = do(); err == nil || !again(err) || ctx.Err() != nil {
			break
		}
		if isCut(err) {
			reset()
			continue
		}
		select {
		case <-time.After(pause << try):
		case <-ctx.Done():
		}
	}
	return err
}

// pause is how long the first one is.
const pause = 50 * time.Millisecond

// undone reports whether a failed operation certainly had no effect and may succeed when repeated: the server did not
// receive it, or rolled it back in favour of another transaction.
func undone(err error) bool {
	var failure *pgconn.PgError
	if errors.As(err, &failure) && (failure.Code == "40001" || failure.Code == "40P01") { // serialization failure, deadlock
		return true
	}
	var connecting *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &connecting) && isCut(err)
}

// undoneOrBroken reports whether a failed operation may be repeated, if doing it twice does no harm.
func undoneOrBroken(err error) bool { return undone(err) || isCut(err) }
