package server

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"

	"jurat/api"
	"jurat/internal/portal"
	"jurat/internal/server/wire"
)

// portalRoutes are the verification page, and the same page as a file that needs no server.
func (s *Server) portalRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/verify", Kind: Page, Shared: true, Who: Anyone, Handle: s.verifyPage, Doc: Doc{Summary: "The page on which everyone can verify a file."}},
		{Method: "GET", Pattern: "/verify.html", Kind: Page, Shared: true, Who: Anyone, Handle: s.verifyFile, Doc: Doc{Summary: "The same page as a file that needs no server."}},
		{Method: "GET", Pattern: portalFiles + "{name}", Kind: Static, Shared: true, Who: Anyone, Handle: s.portalFile, Doc: Doc{Summary: "A file of that page."}},
	}
}

const portalFiles = "/static/portal/"

// A portalPage is the cached page. It is valid while the trust file in it is the installation's.
type portalPage struct {
	mu    sync.Mutex // guards the fields below
	trust []byte
	page  []byte
}

func (p *portalPage) with(trust []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil || !bytes.Equal(p.trust, trust) {
		p.trust = trust
		p.page = portal.Served{Script: portalFiles + portal.ScriptName(), Style: portalFiles + portal.StyleName(), File: "/verify.html", Trust: trust}.Page()
	}
	return p.page
}

func (s *Server) verifyPage(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	trust, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return err
	}
	doc, err := trust.Marshal()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", portal.Policy)
	return wire.WriteTagged(w, r, http.StatusOK, "text/html; charset=utf-8", s.portal.with(doc))
}

func (s *Server) verifyFile(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	w.Header().Set("Content-Disposition", `attachment; filename="verify.html"`)
	return wire.WriteTagged(w, r, http.StatusOK, "text/html; charset=utf-8", portal.File())
}

// portalFile serves the files of the page. Their names contain digests.
func (s *Server) portalFile(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	h := w.Header()
	switch r.PathValue("name") {
	case portal.ScriptName():
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		return wire.WriteTagged(w, r, http.StatusOK, "text/javascript; charset=utf-8", portal.Script())
	case portal.StyleName():
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		return wire.WriteTagged(w, r, http.StatusOK, "text/css; charset=utf-8", portal.Style())
	}
	return fmt.Errorf("%w: the portal has no such file", api.ErrNotFound)
}
