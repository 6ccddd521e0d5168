package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What keeps a process from using a database. None of them, nor what they are wrapped in, says the password.
var (
	// ErrURL says that a name is not one that Connect understands.
	ErrURL = errors.New("the database's name is no URL of the form postgres://USER@HOST:PORT/DATABASE")
	// ErrUnreachable says that there is no connection to the server, or none any more.
	ErrUnreachable = errors.New("the database server is out of reach")
	// ErrNoDatabase says that the server has no database of that name.
	ErrNoDatabase = errors.New("the server has no such database")
	// ErrNotLetIn says that the server lets nobody in under this name, with this password, or from here.
	ErrNotLetIn = errors.New("the server does not let this role in")
	// ErrNotAllowed says that the role may not do what is needed. It is an fs.ErrPermission.
	ErrNotAllowed = fmt.Errorf("the role may not do what is needed: %w", fs.ErrPermission)
)

// Explain says in words what an error means that came out of a connection, or of making one. What it does not know it leaves as it is.
func Explain(err error) error {
	meaning := meaningOf(err)
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, oneLine{err})
}

// oneLine is an error of pgconn, which puts what became of each address on a line of its own.
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
	if strings.HasPrefix(failure.Code, "08") {
		return ErrUnreachable
	}
	return nil
}

// outOfReach reports whether nobody answered who speaks as a PostgreSQL server does, or whoever did fell silent.
func outOfReach(err error) bool {
	var network *net.OpError
	var connecting *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connecting) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isCut reports whether an error is about the connection, and not about what was said over it.
func isCut(err error) bool {
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		return !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch failure.Code {
	case "57P01", "57P02", "57P03", "25P03", "25P04": // the server ends, has crashed, begins; it was waited for too long
		return true
	}
	return strings.HasPrefix(failure.Code, "08")
}
