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
