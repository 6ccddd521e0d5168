package server

import (
	"cmp"
	"net/http"
)

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	var described []describedRoute
	for i := range s.table {
		described = append(described, s.table[i].described())
	}
	doc, err := describeRoutes(described, cookieName)
	if err != nil {
		return err
	}
	return writeTagged(w, r, http.StatusOK, "application/json", doc)
}

var mediaOf = map[Kind]string{API: "application/json", Page: "text/html", Stream: "text/event-stream", Static: "application/octet-stream"}

func (r *Route) described() describedRoute {
	return describedRoute{Method: r.Method, Pattern: r.Pattern, Page: r.Kind == Page || r.Kind == Static, Roles: r.Who.Roles, Public: string(r.Who.Strangers),
		Summary: r.Doc.Summary, In: r.Doc.In, Out: r.Doc.Out, Status: cmp.Or(r.Doc.Status, http.StatusOK), Media: cmp.Or(r.Doc.Media, mediaOf[r.Kind]),
		Query: r.query(), Header: r.Doc.Header}
}
