package server

import (
	"fmt"
	"net/http"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/server/wire"
	"jurat/tiles"
)

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
	return []Route{
		{Method: "GET", Pattern: "/log/checkpoint", Kind: API, Shared: true, Who: Anyone, Handle: s.getCheckpoint,
			Doc: Doc{Summary: "The log's signed checkpoint, with the cosignatures of witnesses: a C2SP signed note.", Media: "text/plain"}},
		{Method: "GET", Pattern: "/log/tile/{level}/{index...}", Kind: API, Shared: true, Who: Anyone, Handle: s.getTile,
			Doc: Doc{Summary: "Hashes of the log's tree: a tile of C2SP tlog-tiles.", Media: "application/octet-stream"}},
		{Method: "GET", Pattern: "/log/tile/entries/{index...}", Kind: API, Shared: entries.Strangers == Everything, Heavy: true, Who: entries, Handle: s.getEntries,
			Doc: Doc{Summary: "What the log hashed under a tile of level 0: a bundle of entries of C2SP tlog-tiles.", Media: "application/octet-stream"}},
	}
}

func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	checkpoint, err := s.config.Installation.Witnesses.Published(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-cache")
	return wire.WriteTagged(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(checkpoint))
}

func (s *Server) getTile(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	t, err := tiles.Parse(r.PathValue("level"), r.PathValue("index"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	tile, err := s.config.Installation.Ledger.Tile(r.Context(), t.L, t.N, t.W)
	if err != nil {
		return err
	}
	return writeForEver(w, r, "public", tile)
}

func (s *Server) getEntries(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	t, err := tiles.Parse("entries", r.PathValue("index"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	entries, err := s.entries(r, t)
	if err != nil {
		return err
	}
	kept := "private"
	if s.config.PublicEntries {
		kept = "public"
	}
	return writeForEver(w, r, kept, entries)
}

func (s *Server) entries(r *http.Request, t tlog.Tile) ([]byte, error) {
	entries, err := s.config.Installation.Ledger.EntryBundle(r.Context(), t.N, t.W)
	if err != nil {
		return nil, err
	}
	return tiles.FormatEntries(entries)
}

// writeForEver answers with content that never changes. Browsers, and proxies if kept says so, may store it without
// asking again.
func writeForEver(w http.ResponseWriter, r *http.Request, kept string, doc []byte) error {
	w.Header().Set("Cache-Control", kept+", max-age=31536000, immutable")
	return wire.WriteTagged(w, r, http.StatusOK, "application/octet-stream", doc)
}
