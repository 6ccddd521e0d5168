package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/recording"
	"jurat/internal/relay"
)

// Record measures what a recorder adds to calls of models: beside Go's own reverse proxy, which records nothing, to the same provider in the same
// process.
func Record(ctx context.Context, c Config) (*Report, error) {
	return run(c, "record", func(c Config, dir string, r *Report) (err error) {
		if c.Callers == 0 {
			c.Callers = 64
		}
		h, err := furnish(ctx, c, dir, "data")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.Close()) }()
		b, err := newBare(ctx, h, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		w, err := newWays(ctx, h, c.Callers)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.close(context.WithoutCancel(ctx))) }()
		r.Settings = Settings{Callers: c.Callers, PayloadBytes: c.Payload, Algorithm: c.Algorithm}
		for _, part := range []func(context.Context, Config, *bare, *Report) error{w.alone, w.together, w.large, w.idle} {
			if err := part(ctx, c, b, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// ways are three ways to a provider: past Go's reverse proxy, past a recorder in open mode, and in closed mode.
type ways struct {
	direct, proxy, open, closed string // URLs
	client                      *http.Client
	seal                        func(context.Context) error
	sealed                      func(context.Context) (int64, error) // how many records the log has
	awake                       chan struct{}                        // closed when idle streams end
	ending                      []func(context.Context) error
}

func newWays(ctx context.Context, h *house, callers int) (w *ways, err error) {
	w = &ways{seal: h.seal, sealed: h.Ledger.Size, awake: make(chan struct{}), client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: callers}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(context.WithoutCancel(ctx)))
		}
	}()
	provider, err := w.serve(http.HandlerFunc(w.provide))
	if err != nil {
		return w, err
	}
	w.direct = provider
	base, err := url.Parse(provider)
	if err != nil {
		return w, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression, transport.MaxIdleConnsPerHost = true, callers
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(base) }, Transport: transport, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	if w.proxy, err = w.serve(proxy); err != nil {
		return w, err
	}
	if w.open, err = w.record(ctx, h, relay.Open, base, transport); err != nil {
		return w, err
	}
	w.closed, err = w.record(ctx, h, relay.Closed, base, transport)
	return w, err
}

// serve serves on a free port, until close.
func (w *ways) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	w.ending = append(w.ending, func(context.Context) error {
		err := s.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	})
	return "http://" + l.Addr().String(), nil
}

// record serves a recorder as 'jurat record proxy' does.
func (w *ways) record(ctx context.Context, h *house, mode relay.Mode, base *url.URL, transport http.RoundTripper) (string, error) {
	log := slog.New(slog.DiscardHandler)
	seals := acts.New(acts.Config{Ledger: h.Ledger, Keys: h.Keys, Disclose: h.Apart.Disclose, Now: time.Now}).Observations()
	r, err := recording.Open(ctx, recording.Config{Log: seals, Name: "recorder", Folder: filepath.Join(h.Dir, "recorder"), Mode: mode, Agent: agent, Vantage: evidence.Proxy, Version: "bench",
		Configuration: evidence.DigestOf([]byte(mode.String())), Tell: log})
	if err != nil {
		return "", err
	}
	relayed, err := relay.New(r, relay.Options{Upstreams: map[string]relay.Upstream{"api": {Base: base}}, Mode: mode, Folder: r.Spool(), FingerprintKey: make([]byte, 32), Next: transport, Log: log})
	if err != nil {
		return "", errors.Join(err, r.Close(ctx, "it could not begin"))
	}
	w.ending = append(w.ending, func(ctx context.Context) error {
		return errors.Join(relayed.Wait(ctx), r.Close(ctx, "the measurement is over"))
	})
	at, err := w.serve(relayed)
	return at + "/api", err
}

// close ends what newWays began, the last first.
func (w *ways) close(ctx context.Context) (err error) {
	w.client.CloseIdleConnections()
	for i := len(w.ending) - 1; i >= 0; i-- {
		err = errors.Join(err, w.ending[i](ctx))
	}
	return err
}

const (
	eventsPath = "/v1/chat/completions"
	shortPath  = "/short/v1/chat/completions"
	largePath  = "/large/v1/chat/completions"
	idlePath   = "/idle/v1/chat/completions"

	largeAnswer = 100 << 20
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
	if req.URL.Path == idlePath {
		say(event)
		say(event)
		select {
		case <-w.awake:
		case <-req.Context().Done():
		}
	} else if req.URL.Path == largePath {
		part := strings.Repeat(event, 64)
		for n := 0; n < largeAnswer; n += len(part) {
			_, _ = io.WriteString(out, part)
		}
	} else {
		for range 50 {
			say(event)
		}
	}
	say("data: [DONE]\n\n")
}

// asking is a request of about this many bytes.
func asking(n, size int) []byte {
	return fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"%d %s"}]}`, n, strings.Repeat("x", max(1, size-80)))
}

// ask sends a question, and reads the answer to its end.
func (w *ways) ask(ctx context.Context, address string, body []byte, first func()) error {
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

// settled waits until the log has more records than before: open mode seals a call after its answer, and the next call is to be alone.
func (w *ways) settled(ctx context.Context, before int64) error {
	for {
		if now, err := w.sealed(ctx); err != nil || now > before {
			return err
		}
		select {
		case <-time.After(100 * time.Microsecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// alone measures one caller, whose calls take the three ways in turn.
func (w *ways) alone(ctx context.Context, c Config, b *bare, r *Report) error {
	first, last := map[string]*timings{}, map[string]*timings{}
	addresses := []string{w.proxy, w.open, w.closed}
	for _, at := range addresses {
		first[at], last[at] = new(timings), new(timings)
	}
	var fsync timings
	end, broken := time.Now().Add(c.Time/2), 0
	for n := 0; time.Now().Before(end) || n < 50; n++ {
		if err := fsync.took(func() error { return b.fsync(ctx) }); err != nil {
			return err
		}
		for _, at := range addresses {
			before, err := w.sealed(ctx)
			if err != nil {
				return err
			}
			began := time.Now()
			var until time.Duration
			err = w.ask(ctx, at+eventsPath, asking(n, 4<<10), func() { until = time.Since(began) })
			if err != nil && at == w.proxy && ctx.Err() == nil && broken < 100 {
				broken++ // Go's proxy breaks a call off now and then
				continue
			}
			if err != nil {
				return err
			}
			*first[at], *last[at] = append(*first[at], until), append(*last[at], time.Since(began))
			if at == w.open {
				if err := w.settled(ctx, before); err != nil {
					return err
				}
			}
		}
		c.Progress("calls of one caller", int64(c.Time/2-time.Until(end)), int64(c.Time/2))
	}
	bareFirst, bareLast, sync := first[w.proxy].median(), last[w.proxy].median(), fsync.median()
	r.figure("first byte, open mode (median)", "µs", microseconds(first[w.open].median()), &Limit{"the reverse proxy's", microseconds(bareFirst)})
	r.figure("first byte, closed mode (median)", "µs", microseconds(first[w.closed].median()), &Limit{"the reverse proxy's, and one page written and synced", microseconds(bareFirst + sync)})
	r.figure("last byte of 50 events, open mode (median)", "µs", microseconds(last[w.open].median()), &Limit{"the reverse proxy's", microseconds(bareLast)})
	r.figure("last byte of 50 events, closed mode (median)", "µs", microseconds(last[w.closed].median()), &Limit{"the reverse proxy's, a page synced, and one millisecond", microseconds(bareLast + sync + time.Millisecond)})
	r.figure("one page written and synced (median)", "µs", microseconds(sync), nil)
	return nil
}

// together measures many callers with short answers, which take the ways in turn, slice by slice.
func (w *ways) together(ctx context.Context, c Config, _ *bare, r *Report) error {
	var proxy, open, closed, seal meter
	used := map[*meter]time.Duration{}
	var n int
	var mu sync.Mutex
	next := func() []byte { mu.Lock(); defer mu.Unlock(); n++; return asking(n, c.Payload) }
	by := map[*meter]string{&proxy: w.proxy, &open: w.open, &closed: w.closed}
	for end := time.Now().Add(c.Time / 2); time.Now().Before(end) || closed.n == 0; {
		before := processorTime()
		if err := seal.during(ctx, 200*time.Millisecond, c.Callers, w.seal); err != nil {
			return err
		}
		used[&seal] += processorTime() - before
		for m, at := range by {
			before := processorTime()
			if err := m.during(ctx, 400*time.Millisecond, c.Callers, func(ctx context.Context) error {
				err := w.ask(ctx, at+shortPath, next(), func() {})
				if at == w.proxy && ctx.Err() == nil && errors.Is(err, io.ErrUnexpectedEOF) {
					return nil
				}
				return err
			}); err != nil {
				return err
			}
			used[m] += processorTime() - before
		}
		c.Progress("calls of many callers", int64(c.Time/2-time.Until(end)), int64(c.Time/2))
	}
	limit := &Limit{"the reverse proxy, which seals nothing", proxy.perSecond()}
	r.figure(fmt.Sprintf("calls/s, %d callers, closed mode", c.Callers), "1/s", closed.perSecond(), limit)
	r.figure(fmt.Sprintf("calls/s, %d callers, open mode", c.Callers), "1/s", open.perSecond(), limit)
	if used[&proxy] == 0 || used[&seal] == 0 {
		return nil // this system does not say
	}
	each := func(m *meter) float64 { return microseconds(used[m]) / float64(m.n) }
	least := each(&proxy) + each(&seal) // who passes a call on and seals a record takes this, whatever keeping texts apart takes
	r.figure("processor time of a call, closed mode", "µs", each(&closed), &Limit{"a call past the reverse proxy and a record sealed as a whole", least})
	r.figure("calls/s that the processors allow at most: those two alone", "1/s", float64(runtime.NumCPU())*1e6/least, limit)
	return nil
}

// inUse returns the bytes of heap and stacks that are in use after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// large measures how much an answer of 100 MiB makes the process grow.
func (w *ways) large(ctx context.Context, c Config, _ *bare, r *Report) error {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // what is garbage does not count
	grow := func(address string) (float64, error) {
		debug.FreeOSMemory()
		before := WatchMemory()() // as it is now
		most := WatchMemory()
		err := w.ask(ctx, address+largePath, asking(1, 100), func() {})
		for n := 0; n < 3 && address == w.proxy && errors.Is(err, io.ErrUnexpectedEOF); n++ { // Go's proxy breaks a call off now and then
			err = w.ask(ctx, address+largePath, asking(1, 100), func() {})
		}
		return max(float64(int64(most())-int64(before))/(1<<20), 0.1), err
	}
	proxy, err := grow(w.proxy)
	if err != nil {
		return err
	}
	closed, err := grow(w.closed)
	if err != nil {
		return err
	}
	r.figure("memory for an answer of 100 MiB, closed mode", "MiB", closed, &Limit{"8 MiB", 8})
	r.figure("memory for an answer of 100 MiB, the reverse proxy", "MiB", proxy, nil)
	return nil
}

// idle measures how much more memory the process holds for each stream that waits for its next event, past a recorder and past the proxy, than
// for one that goes straight to the provider.
func (w *ways) idle(ctx context.Context, c Config, _ *bare, r *Report) error {
	if _, err := w.hold(ctx, w.direct, c); err != nil { // what is made once does not count
		return err
	}
	held := map[string]float64{}
	for _, at := range []string{w.direct, w.proxy, w.closed} {
		bytes, err := w.hold(ctx, at, c)
		if err != nil {
			return fmt.Errorf("%d streams at once: %w", c.Watchers, err)
		}
		held[at] = bytes / (1 << 10)
	}
	r.figure(fmt.Sprintf("memory of an idle stream, of %d, closed mode", c.Watchers), "KiB", max(held[w.closed]-held[w.direct], 0.1), &Limit{"64 KiB", 64})
	r.figure(fmt.Sprintf("memory of an idle stream, of %d, the reverse proxy", c.Watchers), "KiB", max(held[w.proxy]-held[w.direct], 0.1), nil)
	return nil
}

// hold opens streams, and returns how many bytes each takes while it is idle.
func (w *ways) hold(ctx context.Context, at string, c Config) (float64, error) {
	w.client.CloseIdleConnections()
	before := inUse()
	w.awake = make(chan struct{})
	var first, all sync.WaitGroup
	errs := make(chan error, c.Watchers)
	for n := range c.Watchers {
		first.Add(1)
		begun := sync.OnceFunc(first.Done)
		all.Go(func() {
			defer begun()
			err := w.ask(ctx, at+idlePath, asking(n, c.Payload), begun)
			if at != w.proxy || !errors.Is(err, io.ErrUnexpectedEOF) {
				errs <- err
			}
		})
		if n%50 == 49 { // no listener is flooded
			first.Wait()
			c.Progress("idle streams", int64(n), int64(c.Watchers))
		}
	}
	first.Wait()
	after := inUse()
	close(w.awake)
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(after-before) / float64(c.Watchers), nil
}
