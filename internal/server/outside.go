package server

import (
	"net/http"

	"jurat/internal/access"
)

// portalRoutes are the verification page, and the same page as a file that needs no server.
func (s *Server) portalRoutes() []Route {
	return []Route{
		{Method: "GET", Pattern: "/verify", Kind: Page, Shared: true, Who: Anyone, Handle: s.verifyPage, Doc: Doc{Summary: "The page on which everyone can verify a file."}},
		{Method: "GET", Pattern: "/verify.html", Kind: Page, Shared: true, Who: Anyone, Handle: open(writePortalFile), Doc: Doc{Summary: "The same page as a file that needs no server."}},
		{Method: "GET", Pattern: portalFiles + "{name}", Kind: Static, Shared: true, Who: Anyone, Handle: open(writePortalAsset), Doc: Doc{Summary: "A file of that page."}},
	}
}

// open makes a Handler of one to which the caller does not matter.
func open(handle func(http.ResponseWriter, *http.Request) error) Handler {
	return func(w http.ResponseWriter, r *http.Request, _ *Caller) error { return handle(w, r) }
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
	return s.portal.write(w, r, doc)
}

// entryReaders may read what the log hashed. It contains nothing that was said. But a reader who knows a chain_id or
// the evidence of a case can recognise it there, and signatures identify their keys. So strangers could learn that
// private records exist.
var entryReaders = Who{Roles: []access.Role{access.Reviewer, access.Auditor, access.Operator}}

// tileRoutes serve the log in the layout of C2SP tlog-tiles.
func (s *Server) tileRoutes() []Route {
	entries := entryReaders
	if s.config.PublicEntries {
		entries = Anyone
	}
	tree := s.config.Installation.Ledger
	return []Route{
		{Method: "GET", Pattern: "/log/checkpoint", Kind: API, Shared: true, Who: Anyone, Handle: s.getCheckpoint,
			Doc: Doc{Summary: "The log's signed checkpoint, with the cosignatures of witnesses: a C2SP signed note.", Media: "text/plain"}},
		{Method: "GET", Pattern: "/log/tile/{level}/{index...}", Kind: API, Shared: true, Who: Anyone, Handle: open(func(w http.ResponseWriter, r *http.Request) error { return writeTile(w, r, tree) }),
			Doc: Doc{Summary: "Hashes of the log's tree: a tile of C2SP tlog-tiles.", Media: "application/octet-stream"}},
		{Method: "GET", Pattern: "/log/tile/entries/{index...}", Kind: API, Shared: entries.Strangers == Everything, Heavy: true, Who: entries,
			Handle: open(func(w http.ResponseWriter, r *http.Request) error {
				return writeEntries(w, r, tree, s.config.PublicEntries)
			}),
			Doc: Doc{Summary: "What the log hashed under a tile of level 0: a bundle of entries of C2SP tlog-tiles.", Media: "application/octet-stream"}},
	}
}

func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	checkpoint, err := s.config.Installation.Witnesses.Published(r.Context())
	if err != nil {
		return err
	}
	return writeCheckpoint(w, r, checkpoint)
}
