package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jurat/internal/ledger/storage"
)

// Errors that keep a process from using a database. ErrUnreachable, ErrNoDatabase and ErrNotLetIn wrap storage.ErrAway. Neither they nor the errors that wrap them contain the password.
var (
	// ErrURL means that the name is not a URL that Connect accepts.
	ErrURL = errors.New("the database's name must be a URL of the form postgres://USER@HOST:PORT/DATABASE")
	// ErrUnreachable means that the connection to the server failed or broke, or that the server starts, stops or takes no more connections.
	ErrUnreachable error = absence("the database server is out of reach")
	// ErrNoDatabase means that the server has no database of that name.
	ErrNoDatabase error = absence("the server has no such database")
	// ErrNotLetIn means that the server refuses this role, this password, or logins from this machine.
	ErrNotLetIn error = absence("the server does not let this role in")
	// ErrNotAllowed means that the role lacks a right. It wraps fs.ErrPermission.
	ErrNotAllowed = fmt.Errorf("the role may not do what is needed: %w", fs.ErrPermission)
)

// An absence is an error that wraps storage.ErrAway.
type absence string

func (a absence) Error() string { return string(a) }
func (absence) Unwrap() error   { return storage.ErrAway }

// Explain wraps an error of a connection in the error above that says its meaning. It returns other errors unchanged.
func Explain(err error) error {
	meaning := meaningOf(err)
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, oneLine{err})
}

// oneLine prints an error of pgconn on one line. pgconn uses one line for each address.
type oneLine struct{ error }

func (o oneLine) Error() string {
	return strings.ReplaceAll(strings.ReplaceAll(o.error.Error(), ":\n\t", ": "), "\n\t", "; ")
}

func (o oneLine) Unwrap() error { return o.error }

func meaningOf(err error) error {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		if outOfReach(err) {
			return ErrUnreachable
		}
		return nil
	}
	switch failure.Code {
	case "42501":
		return ErrNotAllowed
	case "3D000":
		return ErrNoDatabase
	case "28P01", "28000":
		return ErrNotLetIn
	}
	if isCut(err) || strings.HasPrefix(failure.Code, "53") { // or it lacks memory or connections
		return ErrUnreachable
	}
	return nil
}

// outOfReach reports whether no PostgreSQL server answered, or a connection broke off.
func outOfReach(err error) bool {
	var network *net.OpError
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) // it was not sent, as the connection was closed
}

// isCut reports whether an error is about the connection, not an answer that came over it.
func isCut(err error) bool {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch failure.Code {
	case "57P01", "57P02", "57P03", "25P03", "25P04": // the server shuts down, crashed, starts up; a transaction was idle or ran for too long
		return true
	}
	return strings.HasPrefix(failure.Code, "08")
}

// isBroken reports whether an error is about the connection, not an answer of the store.
func isBroken(err error) bool {
	return isCut(err) && !errors.Is(err, storage.ErrDamaged) && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrClosed)
}

// translate replaces PostgreSQL's errors by those of package storage and of this package.
func translate(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return storage.ErrNotFound
	}
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return Explain(err)
	}
	meaning := map[string]error{
		"23505": storage.ErrNotUnique,
		"53100": storage.ErrDiskFull,
		"25006": storage.ErrReadOnly, // a standby, or default_transaction_read_only
		"XX001": storage.ErrDamaged,
		"XX002": storage.ErrDamaged,
		"42P01": ErrNoTables, // or these tables do not exist
		"3F000": ErrNoTables,
	}[failure.Code]
	if meaning == nil || errors.Is(err, meaning) {
		return Explain(err)
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

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
