// Package outside serves what outsiders need to verify files and to watch the log: the verification page, and the log's
// tiles. It knows no callers; the table of routes says who may ask.
package outside

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"jurat/api"
	"jurat/internal/portal"
	"jurat/internal/server/wire"
	"jurat/tiles"
)

// PortalFiles is the path of the verification page's files.
const PortalFiles = "/static/portal/"

// A Portal serves the verification page. It caches the page, which is valid while the trust file in it is the installation's. It is safe
// for concurrent use.
type Portal struct {
	mu    sync.Mutex // guards the fields below
	trust []byte
	page  []byte
}

func (p *Portal) with(trust []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil || !bytes.Equal(p.trust, trust) {
		p.trust = trust
		p.page = portal.Served{Script: PortalFiles + portal.ScriptName(), Style: PortalFiles + portal.StyleName(), File: "/verify.html", Trust: trust}.Page()
	}
	return p.page
}

// Page answers with the page, which offers this trust file.
func (p *Portal) Page(w http.ResponseWriter, r *http.Request, trust []byte) error {
	w.Header().Set("Content-Security-Policy", portal.Policy)
	return wire.WriteTagged(w, r, http.StatusOK, "text/html; charset=utf-8", p.with(trust))
}

// PortalFile answers with the page as a file that needs no server.
func PortalFile(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Disposition", `attachment; filename="verify.html"`)
	return wire.WriteTagged(w, r, http.StatusOK, "text/html; charset=utf-8", portal.File())
}

// PortalAsset answers with a file of the page. Their names contain digests.
func PortalAsset(w http.ResponseWriter, r *http.Request) error {
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

// A Tree is a log as tiles show it.
type Tree interface {
	Tile(ctx context.Context, level int, n int64, width int) ([]byte, error)
	EntryBundle(ctx context.Context, n int64, width int) ([][]byte, error)
}

// Checkpoint answers with the log's signed checkpoint.
func Checkpoint(w http.ResponseWriter, r *http.Request, checkpoint string) error {
	w.Header().Set("Cache-Control", "no-cache")
	return wire.WriteTagged(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(checkpoint))
}

// Tile answers with hashes of the log's tree.
func Tile(w http.ResponseWriter, r *http.Request, of Tree) error {
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

// Entries answers with what the log hashed under a tile of level 0. Proxies keep it if it is public.
func Entries(w http.ResponseWriter, r *http.Request, of Tree, public bool) error {
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
	return wire.WriteTagged(w, r, http.StatusOK, "application/octet-stream", doc)
}
