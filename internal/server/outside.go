package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/ledger"
	"jurat/internal/portal"
	"jurat/internal/witness"
	"jurat/tiles"
	"jurat/verify/trust"
)

func (s *Server) verifyPage(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	by, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return err
	}
	doc, err := by.Marshal()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", portal.Policy)
	return writeTagged(w, r, http.StatusOK, "text/html; charset=utf-8", s.portal.with(doc))
}

// entryReaders may read what the log hashed. It contains nothing that was said. But a reader who knows a chain_id or
// the evidence of a case can recognise it there, and signatures identify their keys. So strangers could learn that
// private records exist.
var entryReaders = Who{Roles: []access.Role{access.Reviewer, access.Auditor, access.Operator}}

func (s *Server) getCheckpoint(r *http.Request, _ *Caller) (*file, error) {
	checkpoint, err := s.config.Installation.Witnesses.Published(r.Context())
	return &file{media: plainText, cache: "no-cache", doc: []byte(checkpoint)}, err
}

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

const plainText = "text/plain; charset=utf-8"

// portalFile is the page as a file that needs no server.
func portalFile(*http.Request, *Caller) (*file, error) {
	return &file{media: "text/html; charset=utf-8", name: "verify.html", doc: portal.File()}, nil
}

// portalAsset is a file of the page. Their names contain digests.
func portalAsset(r *http.Request, _ *Caller) (*file, error) {
	switch r.PathValue("name") {
	case portal.ScriptName():
		return &file{media: "text/javascript; charset=utf-8", cache: "public, " + forEver, doc: portal.Script()}, nil
	case portal.StyleName():
		return &file{media: "text/css; charset=utf-8", cache: "public, " + forEver, doc: portal.Style()}, nil
	}
	return nil, fmt.Errorf("%w: the portal has no such file", api.ErrNotFound)
}

func (s *Server) getTile(r *http.Request, _ *Caller) (*file, error) {
	t, err := tiles.Parse(r.PathValue("level"), r.PathValue("index"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	tile, err := s.config.Installation.Ledger.Tile(r.Context(), t.L, t.N, t.W)
	return &file{media: "application/octet-stream", cache: "public, " + forEver, doc: tile}, err
}

// getEntries answers with what the log hashed under a tile of level 0. Proxies keep it if it is public.
func (s *Server) getEntries(r *http.Request, _ *Caller) (*file, error) {
	t, err := tiles.Parse("entries", r.PathValue("index"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	list, err := s.config.Installation.Ledger.EntryBundle(r.Context(), t.N, t.W)
	if err != nil {
		return nil, err
	}
	entries, err := tiles.FormatEntries(list)
	kept := "private, "
	if s.config.PublicEntries {
		kept = "public, "
	}
	return &file{media: "application/octet-stream", cache: kept + forEver, doc: entries}, err
}

func (s *Server) healthz(*http.Request, *Caller) (*file, error) {
	return &file{media: plainText, cache: noStore, doc: []byte("ok\n")}, nil
}

func (s *Server) readyz(r *http.Request, _ *Caller) (*file, error) {
	if err := s.ready.ask(r.Context()); err != nil {
		if m := meant(known, err); m != nil {
			return nil, fmt.Errorf("%w: the log takes no records: %w; the server's log says more", api.ErrUnavailable, m.is)
		}
		return nil, fmt.Errorf("%w: the log takes no records; the server's log has the reason", api.ErrUnavailable)
	}
	return &file{media: plainText, cache: noStore, doc: []byte("ready\n")}, nil
}

func (s *Server) getTrust(r *http.Request, _ *Caller) (*trust.Trust, error) {
	return s.config.Installation.Trust(r.Context())
}

const (
	probeTime  = 3 * time.Second // time limit for a check; a slower log counts as not ready
	probePause = time.Second     // between two checks
)

// A prober checks whether the log takes records. It runs at most one check at a time and one a second, because a
// check writes to the disk and anyone may ask for it.
type prober struct {
	probe func(context.Context) error // may write
	log   *slog.Logger
	now   func() time.Time

	mu    sync.Mutex // held while the fields below are read or written
	asked time.Time  // when the last check began
	last  *readiness // nil: no check yet
}

// readiness is the result of one check.
type readiness struct {
	known chan struct{} // closed when err is set
	err   error
}

// ask returns why the log takes no records; nil if it does. It returns within probeTime.
func (r *prober) ask(ctx context.Context) error {
	look := r.look(ctx)
	select {
	case <-look.known:
		return look.err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(probeTime):
		return errors.New("the log did not answer in time")
	}
}

// look returns the running or a recent check, or begins another.
func (r *prober) look(ctx context.Context) *readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.last != nil && (!isClosed(r.last.known) || now.Sub(r.asked).Abs() < probePause) {
		return r.last
	}
	look := &readiness{known: make(chan struct{})}
	r.last, r.asked = look, now
	go func() {
		// The first caller may disconnect while others wait for the same check.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
		defer cancel()
		if look.err = r.probe(ctx); look.err != nil {
			r.log.Error("the log takes no records", "error", look.err) // the error may contain file names, and the caller is unknown
		}
		close(look.known)
	}()
	return look
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

const (
	cosignEvery = 2 * time.Second  // interval of checks whether the log has grown
	cosignAgain = 30 * time.Second // after this time, witnesses that did not answer are asked again
)

// A cosigner sends the log's checkpoints to the witnesses. It is safe for concurrent use.
type cosigner struct {
	witnesses *witness.Asker
	ledger    *ledger.Ledger
	log       *slog.Logger
	now       func() time.Time

	last atomic.Pointer[witness.Cosigning] // the last result; nil: no witness was asked yet
}

// run asks the witnesses until ctx ends: when the log has grown, and again if a witness did not answer.
func (c *cosigner) run(ctx context.Context) {
	var asked time.Time
	for {
		if c.due(ctx, asked) {
			asked = c.now()
			c.once(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(cosignEvery):
		}
	}
}

func (c *cosigner) due(ctx context.Context, asked time.Time) bool {
	last := c.last.Load()
	if last == nil {
		return true
	}
	size, err := c.ledger.Size(ctx)
	return err != nil || size != last.Size || last.Cosigned() < len(last.Answers) && c.now().Sub(asked) >= cosignAgain
}

func (c *cosigner) once(ctx context.Context) {
	now, err := c.witnesses.Cosign(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error("the checkpoint was not cosigned", "error", err)
		}
		return
	}
	before := c.last.Swap(now)
	if now == nil {
		return
	}
	for n, a := range now.Answers {
		changed := before == nil || len(before.Answers) != len(now.Answers) || (before.Answers[n].Err == nil) != (a.Err == nil)
		if a.Err != nil && changed {
			c.log.Warn("a witness has not cosigned", "witness", a.Name(), "url", a.URL, "why", a.Err, "cosigned", now.Cosigned(), "quorum", now.Quorum)
		} else if changed {
			c.log.Info("a witness cosigns", "witness", a.Name(), "cosigned", now.Cosigned(), "quorum", now.Quorum)
		}
	}
}
