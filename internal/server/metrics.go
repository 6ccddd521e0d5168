package server

import (
	"net/http"

	"jurat/internal/access"
)

// metered may read the metrics. They are not public, because they show how busy the server is.
var metered = Who{Roles: []access.Role{access.Auditor, access.Operator}}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	w.Header().Set("Cache-Control", "no-store")
	s.metrics.ServeHTTP(w, r)
	return nil
}

// watched is a ResponseWriter that stores the status. Unwrap gives access to the other abilities of the writer below.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if w.status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}
