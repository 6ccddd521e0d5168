package recorder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"jurat/evidence"
	"jurat/internal/card"
	"jurat/internal/relay"
)

// beforeAgent returns the agent as the relay takes it. It refuses what no recorder before an agent can be made of.
func (o Options) beforeAgent() (none relay.Upstream, err error) {
	a := o.A2A
	origin, err := card.ParseOrigin(a.Origin)
	switch {
	case o.Upstreams != nil:
		return none, errors.New("a handler leads to an agent or to providers, and not to both")
	case o.Agent == "":
		return none, errors.New("the field Agent must say who is recorded")
	case err != nil:
		return none, fmt.Errorf("field Origin: %w", err)
	case a.Side != "" && a.Side != Asked && a.Side != Answered:
		return none, fmt.Errorf("field Side: unknown value %q: want %q or %q", evidence.Abbreviate(string(a.Side)), Asked, Answered)
	}
	if err := evidence.CheckName(origin.String()); err != nil {
		return none, fmt.Errorf("field Origin: it would stand in each record: %w", err)
	}
	if a.RewriteCard != "" {
		if _, err := card.ParseOrigin(a.RewriteCard); err != nil {
			return none, fmt.Errorf("RewriteCard: %w", err)
		}
	}
	return relay.Upstream{Base: origin, Speaks: relay.A2A}, nil
}

// side is which of two agents is recorded. Without messages it does not matter.
func (o Options) side() Side {
	if o.A2A == nil {
		return ""
	}
	return cmp.Or(o.A2A.Side, Answered)
}

// nobody refuses tokens: before an agent, callers are strangers.
func nobody(context.Context, string) (string, error) {
	return "", errors.New("this recorder records one agent alone, and takes no tokens")
}

// front returns the handler before an agent. It refuses gRPC, and rewrites cards if the options say so.
func (a *A2A) front(next http.Handler, from *url.URL) (http.Handler, error) {
	to, err := card.ParseOrigin(a.RewriteCard)
	if err != nil && a.RewriteCard != "" {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
			http.Error(w, "recorder: gRPC cannot be recorded: use JSON-RPC, or HTTP with JSON", http.StatusUnsupportedMediaType)
		case a.RewriteCard != "" && isCard(r):
			rewrite(w, r, next, from, to)
		default:
			next.ServeHTTP(w, r)
		}
	}), nil
}

// isCard reports whether an agent's card is asked for, where versions 1.0 and 0.3, and earlier ones, have it.
func isCard(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == "/.well-known/agent-card.json" || r.URL.Path == "/.well-known/agent.json")
}

// rewrite hands out the agent's card with another origin. What the agent sent is recorded as it was.
func rewrite(w http.ResponseWriter, r *http.Request, next http.Handler, from, to *url.URL) {
	asked := r.Clone(r.Context())
	for _, name := range []string{"Accept-Encoding", "If-None-Match", "If-Modified-Since", "Range"} {
		asked.Header.Del(name) // the whole card is needed
	}
	got := &held{header: http.Header{}}
	next.ServeHTTP(got, asked)
	if got.status != http.StatusOK {
		got.to(w, got.body.Bytes())
		return
	}
	doc, err := card.Readdress(got.body.Bytes(), from, to)
	if err != nil {
		http.Error(w, "recorder: the agent's card cannot be rewritten: "+err.Error(), http.StatusBadGateway)
		return
	}
	got.to(w, doc)
}

// held keeps an answer, up to the size of a card.
type held struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *held) Header() http.Header { return h.header }

func (h *held) WriteHeader(status int) {
	if status >= 200 && h.status == 0 {
		h.status = status
	}
}

func (h *held) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	if h.body.Len()+len(p) > card.MaxSize {
		return 0, fmt.Errorf("longer than the %d bytes of an agent's card", card.MaxSize)
	}
	return h.body.Write(p)
}

// Flush does nothing: the answer is handed on whole.
func (h *held) Flush() {}

// to hands the answer on with another body.
func (h *held) to(w http.ResponseWriter, body []byte) {
	for name, values := range h.header {
		switch name {
		case "Content-Length", "Etag", "Last-Modified", "Digest", "Content-Digest", "Repr-Digest", "Trailer":
		default:
			w.Header()[name] = values
		}
	}
	w.WriteHeader(cmp.Or(h.status, http.StatusBadGateway))
	_, _ = w.Write(body) // the client may have left
}
