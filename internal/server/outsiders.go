package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"jurat/api"
	"jurat/internal/portal"
	"jurat/tiles"
)

// portalFiles is the path of the verification page's files.
const portalFiles = "/static/portal/"

// A portalPage serves the verification page. It caches the page, which is valid while the trust file in it is the installation's. It is safe
// for concurrent use.
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

// write answers with the page, which offers this trust file.
func (p *portalPage) write(w http.ResponseWriter, r *http.Request, trust []byte) error {
	w.Header().Set("Content-Security-Policy", portal.Policy)
	return writeTagged(w, r, http.StatusOK, "text/html; charset=utf-8", p.with(trust))
}

// writePortalFile answers with the page as a file that needs no server.
func writePortalFile(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Disposition", `attachment; filename="verify.html"`)
	return writeTagged(w, r, http.StatusOK, "text/html; charset=utf-8", portal.File())
}

// writePortalAsset answers with a file of the page. Their names contain digests.
func writePortalAsset(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	switch r.PathValue("name") {
	case portal.ScriptName():
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		return writeTagged(w, r, http.StatusOK, "text/javascript; charset=utf-8", portal.Script())
	case portal.StyleName():
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		return writeTagged(w, r, http.StatusOK, "text/css; charset=utf-8", portal.Style())
	}
	return fmt.Errorf("%w: the portal has no such file", api.ErrNotFound)
}

// A tileTree is a log as tiles show it.
type tileTree interface {
	Tile(ctx context.Context, level int, n int64, width int) ([]byte, error)
	EntryBundle(ctx context.Context, n int64, width int) ([][]byte, error)
}

// writeCheckpoint answers with the log's signed checkpoint.
func writeCheckpoint(w http.ResponseWriter, r *http.Request, checkpoint string) error {
	w.Header().Set("Cache-Control", "no-cache")
	return writeTagged(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(checkpoint))
}

// writeTile answers with hashes of the log's tree.
func writeTile(w http.ResponseWriter, r *http.Request, of tileTree) error {
	t, err := tiles.Parse(r.PathValue("level"), r.PathValue("index"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	tile, err := of.Tile(r.Context(), t.L, t.N, t.W)
	if err != nil {
		return err
	}
	return writeForEver(w, r, "public", tile)
}

// writeEntries answers with what the log hashed under a tile of level 0. Proxies keep it if it is public.
func writeEntries(w http.ResponseWriter, r *http.Request, of tileTree, public bool) error {
	t, err := tiles.Parse("entries", r.PathValue("index"))
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	list, err := of.EntryBundle(r.Context(), t.N, t.W)
	if err != nil {
		return err
	}
	entries, err := tiles.FormatEntries(list)
	if err != nil {
		return err
	}
	kept := "private"
	if public {
		kept = "public"
	}
	return writeForEver(w, r, kept, entries)
}

// writeForEver answers with content that never changes. Browsers, and proxies if kept says so, may store it without
// asking again.
func writeForEver(w http.ResponseWriter, r *http.Request, kept string, doc []byte) error {
	w.Header().Set("Cache-Control", kept+", max-age=31536000, immutable")
	return writeTagged(w, r, http.StatusOK, "application/octet-stream", doc)
}
