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
