package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"jurat/api"
)

// routes returns the table of all routes. Each area has a file.
func (s *Server) routes() []Route {
	return slices.Concat(
		s.publicRoutes(),
		s.tileRoutes(),
		s.signInRoutes(),
		s.accessRoutes(),
		s.recordRoutes(),
		s.reviewRoutes(),
		s.assignRoutes(),
		s.chainRoutes(),
		s.agentRoutes(),
		s.findRoutes(),
		s.recordingRoutes(),
		s.submissionRoutes(),
		s.streamRoutes(),
		s.pageRoutes(),
		s.wholeRoutes(),
		s.portalRoutes(),
	)
}

// Routes returns the table.
func (s *Server) Routes() []Route { return slices.Clone(s.table) }

// assemble makes one handler from the table.
func (s *Server) assemble() (http.Handler, error) {
	mux := http.NewServeMux()
	var err error
	if s.origins, err = crossOrigin(s.config.Origins); err != nil {
		return nil, err
	}
	for i := range s.table {
		route := &s.table[i]
		mux.Handle(route.Name(), s.guard(route))
	}
	nowhere, nowherePage := s.nowhere(API, mux), s.nowhere(Page, mux)
	return compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if s.config.Secure {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000") // browsers ignore it over plain HTTP (RFC 6797, section 8.1)
		}
		_, pattern := mux.Handler(r)
		switch {
		case pattern != "" && path.Clean(r.URL.Path) == r.URL.Path:
			mux.ServeHTTP(w, r)
		case strings.Contains(r.Header.Get("Accept"), "text/html"): // browsers send this and programs do not
			s.guard(nowherePage).ServeHTTP(w, r)
		default:
			s.guard(nowhere).ServeHTTP(w, r)
		}
	}))
}

// nowhere is the route for all other paths. It has the same guards.
func (s *Server) nowhere(kind Kind, mux *http.ServeMux) *Route {
	return &Route{Method: "ANY", Pattern: "(none)", Kind: kind, Who: Anyone, Doc: Doc{AnyQuery: true}, Handle: func(w http.ResponseWriter, r *http.Request, _ *Caller) error {
		allowed := otherMethods(r, mux)
		if len(allowed) == 0 {
			return fmt.Errorf("%w: there is nothing at this path", api.ErrNotFound)
		}
		for _, method := range allowed {
			w.Header().Add("Allow", method)
		}
		return fmt.Errorf("%w: this path accepts %v", api.ErrMethod, allowed)
	}}
}

// otherMethods lists the methods that the path accepts.
func otherMethods(r *http.Request, mux *http.ServeMux) (methods []string) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); pattern != "" && path.Clean(r.URL.Path) == r.URL.Path {
			methods = append(methods, method)
		}
	}
	return methods
}

// guard admits to a route the callers that may use it. It checks in this order: origin, rate, identity, rights.
func (s *Server) guard(route *Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most := s.config.MaxBody
		if route.MaxBody > 0 {
			most = min(most, route.MaxBody)
		}
		body := arrive(r)
		r.Body = http.MaxBytesReader(w, body, most)
		// Writers without a net/http connection, such as a test's recorder, have no deadlines.
		if connection := http.NewResponseController(w); route.Kind == Stream {
			_ = connection.SetReadDeadline(time.Time{}) // when it passes, net/http ends the request's context
		} else {
			_ = connection.SetWriteDeadline(time.Now().Add(answerTime))
			defer context.AfterFunc(s.draining, func() { body.Hurry(connection) })()
		}
		began, watching := time.Now(), &watched{ResponseWriter: w}
		traced := s.config.Tracing.Request(r, route.Name())
		c, err := s.admit(route, r)
		if err == nil {
			var held *memoryAccount
			r, held, err = s.account(route, r, c)
			defer held.Keep(0)
		}
		if err == nil {
			err = checkForm(r, c)
		}
		if err == nil {
			s.share(route, w.Header(), r, c)
			err = route.Handle(watching, r, c)
		}
		switch {
		case err == nil:
		case watching.Status == 0:
			s.refusals.note(route.Name(), c, s.refuse(watching, r, route, c, err))
		case r.Context().Err() == nil: // the answer has begun
			s.config.Log.LogAttrs(r.Context(), slog.LevelWarn, "answer broken off", slog.String("route", route.Name()), slog.Any("error", err))
		}
		s.answered(r, route, c, watching.Status, time.Since(began))
		traced(watching.Status)
		if errors.Is(err, http.ErrAbortHandler) && watching.Status != 0 {
			panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
		}
	})
}

// answered logs a finished request: the route and the caller, and no content.
func (s *Server) answered(r *http.Request, route *Route, c *Caller, status int, took time.Duration) {
	s.metrics.Answered(route.Name(), status, took)
	level := slog.LevelInfo
	if route.Probe && status < http.StatusInternalServerError {
		level = slog.LevelDebug // successful probes would fill the log
	}
	s.config.Log.LogAttrs(r.Context(), level, "request", slog.String("route", route.Name()), slog.Int("status", status),
		slog.Duration("took", took), slog.String("caller", c.Name()))
}

func (s *Server) admit(route *Route, r *http.Request) (*Caller, error) {
	if err := s.checkOrigin(r); err != nil {
		return &Caller{}, cmp.Or(s.limit(route, address(r), true), err)
	}
	if r.ContentLength > s.config.MaxBody {
		return &Caller{}, &http.MaxBytesError{Limit: s.config.MaxBody}
	}
	c, err := s.caller(r)
	if tooMany := s.limit(route, limitedAs(c, r), c.Stranger()); tooMany != nil {
		return c, tooMany
	}
	if err != nil && route.openTo(problemOf(err).Status) {
		c, err = &Caller{}, nil
	}
	if err != nil {
		return c, err
	}
	if !route.Who.admits(c) {
		if c.Stranger() {
			return c, fmt.Errorf("%w: this is for %v", api.ErrSignIn, route.Who.Roles)
		}
		return c, fmt.Errorf("%w: this is for %v, and %q is %v", api.ErrForbidden, route.Who.Roles, c.Name(), c.grant.Roles)
	}
	return c, route.checkQuery(r.URL.RawQuery)
}

// openTo reports whether a route serves a caller as a stranger if their token cannot be looked up or is invalid. So
// an old cookie does not stop a person from signing in, and an unreachable database does not stop a probe, the portal
// or a style sheet.
func (r *Route) openTo(status int) bool {
	return r.Who.Strangers == Everything && (status == http.StatusUnauthorized || status == http.StatusServiceUnavailable)
}

// limit refuses a caller that asks too often. Probes are not limited: monitoring must work on a busy server, and
// behind a proxy it shares its address with other callers.
func (s *Server) limit(route *Route, caller string, stranger bool) error {
	if route.Probe {
		return nil
	}
	return s.limiter.Allow(caller, stranger)
}

// secure sets the security headers of every answer.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}
