package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/keyhistory"
	"jurat/internal/keyring"
	"jurat/internal/ledger"
)

// known says which error of package api stands for what errors of other packages say. The first that fits counts.
var known = []struct{ is, means error }{
	{ledger.ErrNotFound, api.ErrNotFound},
	{ledger.ErrExpired, api.ErrGone},
	{ledger.ErrDuplicate, api.ErrConflict},
	{ledger.ErrRefused, api.ErrInvalid},
	{ledger.ErrReadOnly, api.ErrUnavailable},
	{ledger.ErrBehind, api.ErrUnavailable},
	{ledger.ErrForked, api.ErrUnavailable},
	{ledger.ErrDiskFull, api.ErrUnavailable},
	{ledger.ErrClosed, api.ErrUnavailable},
	{ledger.ErrArchive, api.ErrUnavailable},
	{keyring.ErrOwner, api.ErrOwnerKey},
	{keyring.ErrNoKey, api.ErrConflict},
	{keyhistory.ErrEnded, api.ErrConflict},
	{keyhistory.ErrForeign, api.ErrConflict},
	{keyhistory.ErrIncomplete, api.ErrConflict},
	{access.ErrOrder, api.ErrInvalid},
	{context.Canceled, api.ErrUnavailable},
	{context.DeadlineExceeded, api.ErrUnavailable},
}

// problemOf says how a request ends that failed.
func problemOf(err error) *api.Problem {
	var syntax *evidence.SyntaxError
	var field *evidence.FieldError
	var tooLarge *http.MaxBytesError
	switch {
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
	p := api.NewProblem(err)
	if p.Status != http.StatusInternalServerError {
		return p
	}
	for _, k := range known {
		if errors.Is(err, k.is) {
			return api.NewProblem(fmt.Errorf("%w: %w", k.means, k.is)) // and not err, which may speak of files
		}
	}
	return p
}

func malformed(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, api.ErrInvalid) {
		return err // which says more
	}
	return fmt.Errorf("%w: %w", api.ErrMalformed, err)
}

// refuse answers a request that failed, in the way of its kind.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, route *Route, c *Caller, err error) *api.Problem {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.config.Log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("route", route.Name()), slog.Any("error", err))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="jurat"`)
	}
	w.Header().Del("ETag")
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
		_, _ = w.Write(append(doc, '\n')) // who has gone does not hear it
	}
	return p
}
