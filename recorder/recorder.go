package recorder

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/court/acts"
	"jurat/internal/court/card"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/sealer"
)

// ErrNotRecorded is in the chain of an error if a call was made and could not be recorded, so that its answer does not end.
var ErrNotRecorded = relay.ErrNotRecorded

// A Refusal is the error of a call that was not made.
type Refusal struct {
	Status int    // of HTTP: 401, 403, 429, 503
	Reason string // what is wrong, and what to do
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// refused is an error of the relay in which programs find a Refusal.
type refused struct {
	error
	refusal *relay.Refusal
}

func (e refused) Unwrap() error { return e.error }

// As implements what errors.As asks of an error.
func (e refused) As(target any) bool {
	to, is := target.(**Refusal)
	if is {
		*to = (*Refusal)(e.refusal)
	}
	return is
}

// ours returns the relay's error as programs see it.
func ours(err error) error {
	if refusal, is := errors.AsType[*relay.Refusal](err); is {
		return refused{err, refusal}
	}
	return err
}

// A Recorder seals calls. It is safe for concurrent use.
type Recorder struct {
	options   Options
	recording *sealer.Recorder
	relay     *relay.Relay
	front     http.Handler // what serves; nil: there are no upstreams
	here      string       // what marks an agent that this process names
	release   func() error // of the installation
}

// Open begins to record into the installation in a folder or database, which it makes if there is none. It first seals what a recorder that died has
// left there. Close ends it. jurat's own programs lend it an installation that is open already and stays so, by the context.
func Open(ctx context.Context, o Options) (*Recorder, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	if i := installation.Lent(ctx); i != nil {
		return on(ctx, i, o)
	}
	i, _, err := installation.OpenOrCreate(ctx, o.installation())
	if err != nil {
		return nil, fmt.Errorf("recorder: opening the installation: %w", err)
	}
	r, err := on(ctx, i, o)
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	r.release = i.Close
	return r, nil
}

// on begins to record into an open installation.
func on(ctx context.Context, i *installation.Installation, o Options) (*Recorder, error) {
	secret, err := i.ServerSecret(ctx, "recorder")
	if err != nil {
		return nil, err
	}
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	if o.A2A != nil {
		o.WhoIs = func(context.Context, string) (string, error) { // before an agent, callers are strangers
			return "", errors.New("this recorder records one agent alone, and takes no tokens")
		}
	}
	if o.WhoIs == nil {
		o.WhoIs = access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}).Agent
	}
	r := &Recorder{options: o, here: rand.Text() + ":", release: func() error { return nil }}
	log := acts.New(acts.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now}).Observations()
	r.recording, err = sealer.Open(ctx, sealer.Config{Log: log, InPlace: i.Ledger.InPlace, Name: o.Name, Folder: Folder(i.Dir), Mode: o.Mode,
		Agent: o.Agent, WhoIs: r.whoIs, Chain: o.Chain, Side: o.side(), Vantage: o.vantage(), InTheRecord: o.InTheRecord, Version: o.Version,
		Configuration: settings, Heartbeat: o.Heartbeat, Tell: o.Log})
	if err != nil {
		return nil, err
	}
	err = r.passing(secret)
	if err == nil && o.A2A != nil && o.A2A.RewriteCard != "" {
		err = r.recording.Remark(ctx, settings, "the agent's card is handed out with the origin "+o.A2A.RewriteCard+", and without its signatures")
	}
	if err != nil {
		return nil, errors.Join(err, r.recording.Close(context.WithoutCancel(ctx), "it could not begin"))
	}
	return r, nil
}

// Folder is where the recorders of a data folder keep what is under way.
func Folder(data string) string { return filepath.Join(data, "recorder") }

// passing makes what passes calls on.
func (r *Recorder) passing(secret []byte) (err error) {
	o := relay.Options{Mode: r.options.Mode, Folder: r.recording.Spool(), FingerprintKey: secret, Cap: r.options.Room, Drain: r.options.Drain,
		Hosts: r.options.Hosts, AgentOf: r.recording.AgentOf, Log: r.options.Log}
	if o.Root, o.Upstreams, err = r.options.upstreams(); err != nil {
		return err
	}
	if r.relay, err = relay.New(r.recording, o); err != nil || r.options.Upstreams == nil && o.Root == "" {
		return err
	}
	if r.front = r.relay; r.options.A2A != nil {
		r.front, err = r.options.A2A.front(r.relay, o.Upstreams[o.Root].Base)
	}
	return err
}

// Handler returns the proxy. It panics if the options name no upstreams.
func (r *Recorder) Handler() http.Handler {
	if r.front == nil {
		panic("recorder: Handler: Options.Upstreams names no provider to lead to")
	}
	return r.front
}

// A Pipe passes messages between a client and a server of the Model Context Protocol on their standard streams, and records each request with its answer.
type Pipe struct{ pipe *relay.Pipe }

// Run passes messages until the server ends its side and all of it has passed, or until something cannot be recorded in closed mode, which it returns. When
// the client ends its side, or the pipe stops, it closes toServer.
func (p *Pipe) Run(client io.Reader, toClient io.Writer, server io.Reader, toServer io.WriteCloser) error {
	return ours(p.pipe.Run(client, toClient, server, toServer))
}

// PipeOptions tell what records say of the server.
type PipeOptions struct {
	Origin string // as records name it, such as stdio:files
	Server string // what tells it from others, such as its command; of it a fingerprint is recorded
	Chain  string // the conversation; "": the recorder chooses it
}

// Pipe returns a pipe for one server. Its lines pass as they are. It returns an error if Options.Pipes is not set, or if nobody could tell whose calls pass.
func (r *Recorder) Pipe(o PipeOptions) (*Pipe, error) {
	if !r.options.Pipes || r.options.Agent == "" {
		return nil, errors.New("recorder: Pipe: Options.Pipes and Options.Agent must be set")
	}
	if err := evidence.CheckName(o.Origin); err != nil {
		return nil, fmt.Errorf("recorder: Pipe: Origin: %w", err)
	}
	return &Pipe{r.relay.Pipe(relay.PipeOptions(o))}, nil
}

// Transport returns a transport that records each call, and has next make it. If next is nil, a transport makes the calls that passes bytes as they are:
// unlike Go's default transport, it asks for no compression that the program did not ask for.
func (r *Recorder) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{r, r.relay.Transport(next)}
}

type transport struct {
	recorder *Recorder
	next     http.RoundTripper
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	chain, agent := req.Context().Value(chainKey{}), req.Context().Value(agentKey{})
	switch {
	case agent == nil && t.recorder.options.Agent == "" && req.Header.Get("Jurat-Agent") == "":
		return nil, closing(req, &Refusal{Status: http.StatusUnauthorized, Reason: "nobody says which agent calls: set Options.Agent, or give the call a context of recorder.WithAgent"})
	case chain == nil && agent == nil:
		answer, err := t.next.RoundTrip(req)
		return answer, ours(err)
	}
	named := req.Clone(req.Context())
	if chain != nil {
		named.Header.Set("Jurat-Chain", chain.(string))
	}
	if agent != nil {
		named.Header.Set("Jurat-Agent", "Bearer "+t.recorder.here+agent.(string))
	}
	answer, err := t.next.RoundTrip(named)
	return answer, ours(err)
}

func closing(req *http.Request, err error) error {
	if req.Body == nil {
		return err
	}
	return errors.Join(err, req.Body.Close())
}

type (
	chainKey struct{}
	agentKey struct{}
)

// WithChain returns a context whose calls belong to a conversation: the chain recorded/AGENT/NAME.
func WithChain(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, chainKey{}, name)
}

// WithAgent returns a context whose calls are an agent's, where a program holds several.
func WithAgent(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, agentKey{}, name)
}

// Chain returns the chain in the log that WithChain stands for.
func Chain(agent, name string) string { return sealer.ChainOf(agent, name) }

// whoIs finds out whom a token stands for. The transport's own tokens name the agent.
func (r *Recorder) whoIs(ctx context.Context, token string) (string, error) {
	if len(token) < len(r.here) || subtle.ConstantTimeCompare([]byte(token[:len(r.here)]), []byte(r.here)) != 1 {
		return r.options.WhoIs(ctx, token)
	}
	agent := strings.TrimPrefix(token, r.here)
	if err := evidence.CheckName(agent); err != nil {
		return "", fmt.Errorf("the agent's name: %w", err)
	}
	return agent, nil
}

// Close seals what is left, and that the recorder stopped. It waits for calls of open mode that are being sealed. Calls that are still under way when it is
// called are sealed as lost by the next recorder.
func (r *Recorder) Close(ctx context.Context) error { return r.Stop(ctx, "") }

// Stop does what Close does, and seals why.
func (r *Recorder) Stop(ctx context.Context, reason string) error {
	err := errors.Join(r.relay.Wait(ctx), r.recording.Close(ctx, cmp.Or(reason, "it was closed")))
	return errors.Join(err, r.release())
}

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
