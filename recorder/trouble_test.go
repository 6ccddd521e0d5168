package recorder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/filestore"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/internal/pgtest"
	"jurat/internal/stamping"
	"jurat/jurattest"
	"jurat/recorder"
)

// A gate is a recorder's proxy before a provider that streams, with a client that reads as SDKs do: up to [DONE].
type gate struct {
	t        *testing.T
	options  recorder.Options
	recorder *recorder.Recorder
	server   *httptest.Server
	padding  string

	mu    sync.Mutex
	asked map[string]int // by what the question says
	whole []string       // questions whose answer came with its terminal event
}

func newGate(t *testing.T, o recorder.Options) *gate {
	t.Helper()
	g := &gate{t: t, options: o, asked: map[string]int{}}
	provider := httptest.NewServer(http.HandlerFunc(g.provide))
	t.Cleanup(provider.Close)
	g.options.Agent, g.options.Log = "mia", slog.New(slog.DiscardHandler)
	g.options.Upstreams = map[string]recorder.Upstream{"openai": {Base: provider.URL}}
	g.begin()
	return g
}

func (g *gate) begin() {
	g.t.Helper()
	var err error
	if g.recorder, err = recorder.Open(g.t.Context(), g.options); err != nil {
		g.t.Fatal(err)
	}
	g.server = httptest.NewServer(g.recorder.Handler())
	g.t.Cleanup(g.server.Close)
}

func (g *gate) end() {
	g.t.Helper()
	g.server.Close()
	must.Do(g.t, g.recorder.Close(context.WithoutCancel(g.t.Context())))
}

func (g *gate) provide(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, name, _ := strings.Cut(string(body), "call ")
	name, _, _ = strings.Cut(name, `"`)
	g.mu.Lock()
	g.asked[name]++
	g.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", "yes"+g.padding)
	w.(http.Flusher).Flush()
	io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// ask makes a call. It returns the status, and whether the answer came with its terminal event.
func (g *gate) ask(name string) (status int, whole bool) {
	g.t.Helper()
	text := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"call %s"}]}`, name)
	answer, err := http.Post(g.server.URL+"/openai/v1/chat/completions", "application/json", strings.NewReader(text))
	if err != nil {
		return 0, false
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body) // what breaks off has no terminal event
	whole = bytes.Contains(body, []byte("[DONE]"))
	if whole {
		g.mu.Lock()
		g.whole = append(g.whole, name)
		g.mu.Unlock()
	}
	return answer.StatusCode, whole
}

// recovers waits until calls pass again.
func (g *gate) recovers(name string) {
	g.t.Helper()
	for n := 0; ; n++ {
		if _, whole := g.ask(fmt.Sprintf("%s %d", name, n)); whole {
			return
		}
		if n == 300 {
			g.t.Fatal("no call passes again")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// check reads the log: each question that reached the provider is there once, or is counted as missed; each whole answer of closed mode is there, complete.
func (g *gate) check(c installation.Config) {
	g.t.Helper()
	i, err := installation.Open(g.t.Context(), c)
	if err != nil {
		g.t.Fatal(err)
	}
	defer i.Close()
	sealed, ends, missed := map[evidence.Digest]int{}, map[evidence.Digest]evidence.Ended{}, 0
	for placed, err := range i.Ledger.Records(g.t.Context(), 0) {
		if err != nil {
			g.t.Fatal(err)
		}
		p := &placed.Record.Payload
		switch p.ActionType {
		case evidence.ObservedCall:
			sealed[p.Observed.Request.SHA256]++
			ends[p.Observed.Request.SHA256] = p.Observed.Ended
		case evidence.RecorderEvent:
			e := must.Get(observed.ParseEvent(p.Response))(g.t)
			for _, m := range e.Missed {
				missed += int(m.Calls)
			}
		}
	}
	digest := func(name string) evidence.Digest {
		return evidence.DigestOf(fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"call %s"}]}`, name))
	}
	without := 0
	for name, n := range g.asked {
		switch in := sealed[digest(name)]; {
		case n != 1:
			g.t.Errorf("the provider was asked %q %d times", name, n)
		case in > 1:
			g.t.Errorf("%q is in the log %d times", name, in)
		case in == 0:
			without++
		}
		if g.options.Mode != recorder.Passing && slices.Contains(g.whole, name) && ends[digest(name)] != evidence.Complete {
			g.t.Errorf("the client got all of %q, and the log says %q", name, ends[digest(name)])
		}
	}
	if without != missed {
		g.t.Errorf("%d calls are not in the log, and %d are counted as missed", without, missed)
	}
	if g.options.Mode == recorder.Passing && len(g.whole) != len(g.asked) {
		g.t.Errorf("of %d calls of open mode %d passed", len(g.asked), len(g.whole))
	}
	g.t.Logf("%d calls reached the provider, %d passed whole, %d are counted as missed", len(g.asked), len(g.whole), missed)
}

// troubled makes calls, some at once, while nothing can be sealed. In closed mode none passes whole, and new ones are refused. In open mode all pass.
func (g *gate) troubled(name string) {
	g.t.Helper()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			if _, whole := g.ask(fmt.Sprintf("%s at once %d", name, n)); whole != (g.options.Mode == recorder.Passing) {
				g.t.Errorf("%s: an answer passed whole: %v", name, whole)
			}
		})
	}
	all.Wait()
	refused := 0
	for n := range 3 {
		status, whole := g.ask(fmt.Sprintf("%s %d", name, n))
		if whole != (g.options.Mode == recorder.Passing) {
			g.t.Errorf("%s: an answer passed whole: %v", name, whole)
		}
		if status == http.StatusServiceUnavailable {
			refused++
		}
	}
	if g.options.Mode != recorder.Passing && refused == 0 {
		g.t.Errorf("%s: no new call was refused with 503", name)
	}
}

// TestDatabaseGone: the log's database dies while calls are under way. In closed mode no client gets the end of an unsealed call; in open mode all pass. When the database is back, calls pass again, and the
// log has each call once.
func TestDatabaseGone(t *testing.T) {
	for _, mode := range []recorder.Mode{recorder.Closed, recorder.Passing} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := pgtest.Start(t)
			key := filepath.Join(t.TempDir(), "wrapping.key")
			must.Do(t, os.WriteFile(key, filestore.Generate(), 0o600))
			o := recorder.Options{Folder: filepath.Join(t.TempDir(), "own"), Database: server.Database(t), WrappingKey: key, Mode: mode}
			g := newGate(t, o)
			if _, whole := g.ask("before"); !whole {
				t.Fatal("no call passes")
			}
			server.Kill(t)
			g.troubled("while it is gone")
			server.Restart(t)
			g.recovers("after")
			g.end()
			g.check(installation.Config{Dir: o.Folder, DB: o.Database, WrappingKey: key})
		})
	}
}

// TestAuthorityHangs: a time-stamping authority that never answers stops no call: the record is in the log, waits for that stamp, and has the built-in authority's.
func TestAuthorityHangs(t *testing.T) {
	t.Parallel()
	tsa := must.Get(jurattest.StartTSA())(t)
	t.Cleanup(tsa.Close)
	folder := filepath.Join(t.TempDir(), "data")
	i, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: folder})
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, errors.Join(i.Timekeeper.Add(t.Context(), stamping.Outside{Name: "outside", URL: tsa.URL, Roots: string(tsa.PEM())}, false), tsa.Be(jurattest.Hangs)))
	must.Do(t, i.Close())
	g := newGate(t, recorder.Options{Folder: folder})
	for n := range 3 {
		if status, whole := g.ask(fmt.Sprint(n)); !whole {
			t.Fatalf("status %d", status)
		}
	}
	g.end()
	g.check(installation.Config{Dir: folder})
	if i, err = installation.Open(t.Context(), installation.Config{Dir: folder}); err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if placed.Record.Payload.ActionType == evidence.ObservedCall && len(placed.Record.Timestamps) != 1 {
			t.Errorf("%d time stamps, want that of the built-in authority", len(placed.Record.Timestamps))
		}
	}
}
