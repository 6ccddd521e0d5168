package server

import (
	"fmt"
	"net/http"

	"jurat/api"
)

// publicRoutes are the public routes, and those for monitoring the server.
func (s *Server) publicRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/healthz", Kind: API, Who: Anyone, Handle: s.healthz, Probe: true,
			Doc: Doc{Summary: "The process answers.", Media: "text/plain"}},
		{Method: "GET", Pattern: "/readyz", Kind: API, Who: Anyone, Handle: s.readyz, Probe: true,
			Doc: Doc{Summary: "The log takes records.", Media: "text/plain"}},
		{Method: "GET", Pattern: "/openapi.json", Kind: API, Shared: true, Who: Anyone, Handle: s.getOpenAPI,
			Doc: Doc{Summary: "This description."}},
		{Method: "GET", Pattern: "/metrics", Kind: API, Who: metered, Handle: s.getMetrics,
			Doc: Doc{Summary: "Counts and durations for Prometheus.", Media: "text/plain"}},
		{Method: "GET", Pattern: "/v1/trust", Kind: API, Shared: true, Who: Anyone, Handle: s.getTrust,
			Doc: Doc{Summary: "This installation's trust file. Compare its fingerprint over another channel before you verify with it.", Out: Trust}},
	}
}

func (s *Server) healthz(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	w.Header().Set("Cache-Control", "no-store")
	return writeDoc(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	if err := s.ready.ask(r.Context()); err != nil {
		if is := knownError(err); is != nil {
			return fmt.Errorf("%w: the log takes no records: %w; the server's log says more", api.ErrUnavailable, is)
		}
		return fmt.Errorf("%w: the log takes no records; the server's log has the reason", api.ErrUnavailable)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeDoc(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ready\n"))
}

func (s *Server) getTrust(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	trust, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return err
	}
	return writeFile(w, r, http.StatusOK, trust)
}
