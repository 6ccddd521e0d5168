package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/openid"
	"jurat/internal/postgres"
	"jurat/internal/token"
)

// known maps errors of other packages to errors of package api. The first match counts.
var known = []struct{ is, means error }{
	{ledger.ErrNotFound, api.ErrNotFound},
	{ledger.ErrExpired, api.ErrGone},
	{ledger.ErrDuplicate, api.ErrConflict},
	{ledger.ErrRefused, api.ErrInvalid},
	{ledger.ErrReadOnly, api.ErrUnavailable},
	{ledger.ErrBehind, api.ErrUnavailable},
	{ledger.ErrForked, api.ErrUnavailable},
	{ledger.ErrMoved, api.ErrUnavailable},
	{ledger.ErrDiskFull, api.ErrUnavailable},
	{ledger.ErrBusy, api.ErrUnavailable},
	{lock.ErrLost, api.ErrUnavailable},   // the database that keeps the locks was away for a moment
	{syscall.ENOSPC, api.ErrUnavailable}, // of the small files, such as keys
	{syscall.EDQUOT, api.ErrUnavailable},
	{syscall.EROFS, api.ErrUnavailable},
	{ledger.ErrClosed, api.ErrUnavailable},
	{keys.ErrOwner, api.ErrOwnerKey},
	{keys.ErrNoKey, api.ErrConflict},
	{keys.ErrEnded, api.ErrConflict},
	{keys.ErrNotYet, api.ErrConflict},
	{keys.ErrForeign, api.ErrConflict},
	{keys.ErrIncomplete, api.ErrConflict},
	{keys.ErrHeld, api.ErrConflict},
	{access.ErrOrder, api.ErrInvalid},
	{token.ErrUnavailable, api.ErrUnavailable},
	{token.ErrPIN, api.ErrUnavailable},
	{openid.ErrAway, api.ErrUnavailable},
	{postgres.ErrUnreachable, api.ErrUnavailable},
	{postgres.ErrNoDatabase, api.ErrUnavailable},
	{postgres.ErrNotLetIn, api.ErrUnavailable},
	{os.ErrDeadlineExceeded, api.ErrUnavailable},
	{context.Canceled, api.ErrUnavailable},
	{context.DeadlineExceeded, api.ErrUnavailable},
}

// problemOf turns a request's error into the problem that the caller gets.
func problemOf(err error) *api.Problem {
	var syntax *evidence.SyntaxError
	var field *evidence.FieldError
	var tooLarge *http.MaxBytesError
	var link *ledger.LinkError
	switch {
	case errors.As(err, &link):
		p := api.NewProblem(fmt.Errorf("%w: %w", api.ErrConflict, link))
		p.Field, p.Hint = link.Field(), "docs/format.md has the rules by which records follow each other; nothing was recorded"
		return p
	case errors.Is(err, ledger.ErrNotAdmitted):
		p := api.NewProblem(fmt.Errorf("%w: %w", api.ErrForbidden, ledger.ErrNotAdmitted))
		p.Field, p.Hint = "chain_id", "its owner admits others with next_agent, or the operator with 'jurat access grant --chain'; or give the chain a name of its own; nothing was recorded"
		return p
	case errors.As(err, &tooLarge):
		err = fmt.Errorf("%w: a body has at most %d bytes here", api.ErrTooLarge, tooLarge.Limit)
	case errors.As(err, &field):
		p := api.NewProblem(fmt.Errorf("%w: %w", api.ErrInvalid, err))
		p.Field, p.Hint = field.Field, "docs/format.md lists the fields of each action type; nothing was recorded"
		return p
	case errors.As(err, &syntax):
		p := api.NewProblem(fmt.Errorf("%w: %w", api.ErrInvalid, err))
		p.Field = syntax.Pointer
		return p
	}
	p := api.NewProblem(evidence.Steady(err))
	if p.Status != http.StatusInternalServerError {
		return p
	}
	for _, k := range known {
		if errors.Is(err, k.is) {
			return api.NewProblem(fmt.Errorf("%w: %w", k.means, k.is)) // without err, which may contain file names
		}
	}
	return p
}

// knownError returns the known error in a chain of errors, which contains no file name; nil if there is none.
func knownError(err error) error {
	for _, k := range known {
		if errors.Is(err, k.is) {
			return k.is
		}
	}
	return nil
}

func malformed(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, api.ErrInvalid) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, api.ErrTooLarge) {
		return err // this error is more specific
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: the body did not come in time", api.ErrUnavailable)
	}
	return fmt.Errorf("%w: %w", api.ErrMalformed, err)
}

// comeAgain returns after how long a refused request may succeed; 0: never, unless it is changed.
func comeAgain(status int) time.Duration {
	switch status {
	case http.StatusTooManyRequests:
		return time.Second
	case http.StatusServiceUnavailable:
		return 5 * time.Second
	}
	return 0
}

// refuse answers a failed request, in the form of the route's kind.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, route *Route, c *Caller, err error) *api.Problem {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.config.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("route", route.Name()), slog.Any("error", err))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="jurat"`)
	}
	if pause := comeAgain(p.Status); pause > 0 && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(pause.Seconds())))
	}
	w.Header().Del("ETag")
	unshare(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if route.Kind == Page {
		s.refusePage(w, r, c, p)
		return p
	}
	w.Header().Set("Content-Type", api.ProblemMediaType)
	w.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return p
	}
	if doc, err := json.Marshal(p); err != nil {
		s.config.Log.Error("writing a problem", "error", err)
	} else {
		_, _ = w.Write(append(doc, '\n')) // an error means that the caller has disconnected
	}
	return p
}
