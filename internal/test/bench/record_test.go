//go:build unix

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/court/acts"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/sealer"
	"jurat/internal/test/must"
)

// ways are three ways to a provider: past Go's reverse proxy, past a recorder in open mode, and in closed mode.
type ways struct {
	*bare
	direct, proxy, open, closed string // URLs
	client                      *http.Client
	asked                       atomic.Int64
	awake                       chan struct{} // closed when idle streams end
}

func newWays(b *testing.B) *ways {
	b.Helper()
	w := &ways{bare: newBare(b, furnish(b)), awake: make(chan struct{}), client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}}
	w.direct = serve(b, http.HandlerFunc(w.provide))
	base := must.Get(url.Parse(w.direct))(b)
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.DisableCompression, next.MaxIdleConnsPerHost = true, 64
	w.proxy = serve(b, &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(base) }, Transport: next, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)})
	w.open, w.closed = w.record(b, relay.Open, base, next), w.record(b, relay.Closed, base, next)
	return w
}

func serve(b *testing.B, h http.Handler) string {
	b.Helper()
	s := httptest.NewServer(h)
	b.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// record serves a recorder as 'jurat record proxy' does.
func (w *ways) record(b *testing.B, mode relay.Mode, base *url.URL, next http.RoundTripper) string {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	seals := acts.New(acts.Config{Ledger: w.h.Ledger, Keys: w.h.Keys, Disclose: w.h.Apart.Disclose, Now: time.Now}).Observations()
	r, err := sealer.Open(b.Context(), sealer.Config{Log: seals, Name: "recorder", Folder: filepath.Join(w.h.Dir, "recorder"), Mode: mode, Agent: agent, Vantage: evidence.Proxy, Version: "bench",
		Configuration: evidence.DigestOf([]byte(string(mode))), Tell: log})
	must.Do(b, err)
	relayed := must.Get(relay.New(r, relay.Options{Upstreams: map[string]relay.Upstream{"api": {Base: base}}, Mode: mode, Folder: r.Spool(), FingerprintKey: make([]byte, 32), Next: next, Log: log}))(b)
	b.Cleanup(func() {
		ctx := context.WithoutCancel(b.Context())
		must.Want(b, errors.Join(relayed.Wait(ctx), r.Close(ctx, "the measurement is over")), nil)
	})
	return serve(b, relayed) + "/api"
}

const (
	eventsPath = "/v1/chat/completions"
	shortPath  = "/short/v1/chat/completions"
	largePath  = "/large/v1/chat/completions"
	idlePath   = "/idle/v1/chat/completions"
)

// provide answers at once: with 50 events, with 2 KiB of JSON, or with 100 MiB. An idle stream has two events, and ends when it is told to.
func (w *ways) provide(out http.ResponseWriter, req *http.Request) {
	const event = "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"},\"finish_reason\":null}]}\n\n"
	_, _ = io.Copy(io.Discard, req.Body) // what was not read shows in the figures
	say := func(text string) { _, _ = io.WriteString(out, text); out.(http.Flusher).Flush() }
	if req.URL.Path == shortPath {
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, `{"id":"c","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, strings.Repeat("x", 2<<10))
		return
	}
	out.Header().Set("Content-Type", "text/event-stream")
	switch req.URL.Path {
	case idlePath:
		say(event + event)
		select {
		case <-w.awake:
		case <-req.Context().Done():
		}
	case largePath:
		part := strings.Repeat(event, 64)
		for n := 0; n < 100<<20; n += len(part) {
			_, _ = io.WriteString(out, part)
		}
	default:
		for range 50 {
			say(event)
		}
	}
	say("data: [DONE]\n\n")
}

// ask sends a question, reads the answer to its end, and calls first when its first byte is there. Go's proxy breaks a call off now and then: it is asked again.
func (w *ways) ask(ctx context.Context, address string, first func()) error {
	body := fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"%d %s"}]}`, w.asked.Add(1), strings.Repeat("x", 2<<10))
	for {
		err := w.askOnce(ctx, address, body, first)
		if !strings.HasPrefix(address, w.proxy) || !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
	}
}

func (w *ways) askOnce(ctx context.Context, address string, body []byte, first func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", address, answer.Status)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 1)); err != nil {
		return err
	}
	first()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// BenchmarkRecord1 measures one caller, whose calls take the three ways in turn. The limit is the proxy's time; in closed mode, which answers when the record is
// durable, with a synced page, and at the last byte with a millisecond.
func BenchmarkRecord1(b *testing.B) {
	w := newWays(b)
	first, last := map[string]*timings{}, map[string]*timings{}
	for _, at := range []string{w.proxy, w.open, w.closed} {
		first[at], last[at] = new(timings), new(timings)
	}
	var fsync timings
	for b.Loop() {
		fsync.took(b, w.fsync)
		for at := range first {
			before := w.records(b)
			begin := time.Now()
			last[at].took(b, func(ctx context.Context) error {
				return w.ask(ctx, at+eventsPath, func() { *first[at] = append(*first[at], time.Since(begin)) })
			})
			for at == w.open && w.records(b) == before { // it seals a call after its answer, and the next call is to be alone
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	sync := fsync.median()
	of(b, "µs/first-byte-open", first[w.open].median(), first[w.proxy].median())
	of(b, "µs/first-byte-closed", first[w.closed].median(), first[w.proxy].median()+sync)
	of(b, "µs/last-byte-open", last[w.open].median(), last[w.proxy].median())
	of(b, "µs/last-byte-closed", last[w.closed].median(), last[w.proxy].median()+sync+1000)
}

func (w *ways) records(b *testing.B) int64 {
	b.Helper()
	n := must.Get(w.h.Ledger.Size(b.Context()))(b)
	return n
}

// BenchmarkRecord64 measures 64 callers with short answers, who take the ways in turn. The limit of a rate is the proxy's, which seals nothing; that of processor
// time is a call past the proxy and a record sealed as a whole.
func BenchmarkRecord64(b *testing.B) {
	w := newWays(b)
	var seal meter
	by := map[string]*meter{w.proxy: {}, w.open: {}, w.closed: {}}
	for b.Loop() {
		seal.during(b, 200*time.Millisecond, 64, w.h.seal)
		for at, m := range by {
			m.during(b, 400*time.Millisecond, 64, func(ctx context.Context) error { return w.ask(ctx, at+shortPath, func() {}) })
		}
	}
	of(b, "calls/s-open", by[w.open].perSecond(), by[w.proxy].perSecond())
	of(b, "calls/s-closed", by[w.closed].perSecond(), by[w.proxy].perSecond())
	of(b, "cpu-µs/call-closed", by[w.closed].cpu(), by[w.proxy].cpu()+seal.cpu())
}

// BenchmarkRecordMemory measures how much an answer of 100 MiB makes this process grow, beside 8 MiB, and how much it holds for each of a thousand idle streams
// beyond one that goes straight to the provider, beside 64 KiB.
func BenchmarkRecordMemory(b *testing.B) {
	w := newWays(b)
	var grown, idle float64
	for b.Loop() {
		w.hold(b, w.direct) // what is made once does not count
		idle = max(idle, w.hold(b, w.closed)-w.hold(b, w.direct))
		gc := debug.SetGCPercent(20) // what is garbage does not count
		debug.FreeOSMemory()
		before, most := held(), watchMemory()
		must.Do(b, w.ask(b.Context(), w.closed+largePath, func() {}))
		grown = max(grown, most()-before)
		debug.SetGCPercent(gc)
	}
	of(b, "MiB/100MiB", grown/(1<<20), 8)
	of(b, "KiB/idle", idle/(1<<10), 64)
}

// hold opens a thousand streams, and returns how many bytes each takes while it is idle.
func (w *ways) hold(b *testing.B, at string) float64 {
	b.Helper()
	const streams = 1000
	w.client.CloseIdleConnections()
	w.awake = make(chan struct{})
	before := inUse()
	var first, all sync.WaitGroup
	for n := range streams {
		first.Add(1)
		begun := sync.OnceFunc(first.Done)
		all.Go(func() {
			defer begun()
			must.Want(b, w.ask(b.Context(), at+idlePath, begun), nil)
		})
		if n%50 == 49 { // no listener is flooded
			first.Wait()
		}
	}
	first.Wait()
	held := inUse() - before
	close(w.awake)
	all.Wait()
	return held / streams
}
