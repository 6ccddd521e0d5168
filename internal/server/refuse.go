package server

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"jurat/api"
)

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
