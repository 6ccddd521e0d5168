package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// tries is how often something is tried that fails for no reason of its own: a server that is started again, or one that took over, may
// have left more than one dead connection behind.
const tries = 3

// retry does something, and does it again as often as it fails in a way of which again says that it may be. Where the connection was
// broken, so are others of the pool, which reset has it forget.
func retry(ctx context.Context, reset func(), again func(error) bool, do func() error) (err error) {
	for range tries {
		if err = do(); err == nil || !again(err) || ctx.Err() != nil {
			break
		}
		if isCut(err) {
			reset()
		}
	}
	return err
}

// undone reports whether what failed was certainly not done, and may succeed when it is done again: the server was not asked, or
// has undone it in favour of somebody else.
func undone(err error) bool {
	var failure *pgconn.PgError
	if errors.As(err, &failure) && (failure.Code == "40001" || failure.Code == "40P01") { // serialization failure, deadlock
		return true
	}
	var connecting *pgconn.ConnectError
	return pgconn.SafeToRetry(err) || errors.As(err, &connecting) && isCut(err)
}

// undoneOrBroken reports whether what failed may be done again if it does not matter that it was done already.
func undoneOrBroken(err error) bool { return undone(err) || isCut(err) }
