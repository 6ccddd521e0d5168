package server

import (
	"cmp"
	"net/http"

	"jurat/internal/server/openapi"
	"jurat/internal/server/wire"
)

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	var described []openapi.Route
	for i := range s.table {
		described = append(described, s.table[i].described())
	}
	doc, err := openapi.Document(described, cookieName)
	if err != nil {
		return err
	}
	return wire.WriteTagged(w, r, http.StatusOK, "application/json", doc)
}

var mediaOf = map[Kind]string{API: "application/json", Page: "text/html", Stream: "text/event-stream", Static: "application/octet-stream"}

func (r *Route) described() openapi.Route {
	d := openapi.Route{Method: r.Method, Pattern: r.Pattern, Page: r.Kind == Page || r.Kind == Static, Roles: r.Who.Roles, Public: string(r.Who.Strangers),
		Summary: r.Doc.Summary, In: r.Doc.In, Out: r.Doc.Out, Status: cmp.Or(r.Doc.Status, http.StatusOK), Media: cmp.Or(r.Doc.Media, mediaOf[r.Kind])}
	for _, p := range r.query() {
		d.Query = append(d.Query, openapi.Parameter(p))
	}
	for _, p := range r.Doc.Header {
		d.Header = append(d.Header, openapi.Parameter(p))
	}
	return d
}
