package recorder_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/internal/log/installation"
	"jurat/internal/tap/sealer"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/recorder"
)

// soakTime is how long the load lasts.
func soakTime(t *testing.T) time.Duration {
	if text := os.Getenv("JURAT_TEST_SOAK"); text != "" {
		return must.Get(time.ParseDuration(text))(t)
	}
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return 10 * time.Minute
	}
	return 3 * time.Second
}

// soaking is a recorder before models in closed mode, one before a server of MCP over HTTP, and pipes in open mode, on one data folder, with what stands behind them.
type soaking struct {
	t               *testing.T
	models, server  *httptest.Server // behind the recorders
	toModels, toMCP *httptest.Server // the recorders
	pipes           *recorder.Recorder
	client          *http.Client
	sealed          atomic.Int64 // acts that must be in the log
}

// provide answers as a provider of models, or as a server of MCP.
func (*soaking) provide(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch kind := string(body); {
	case strings.Contains(kind, "stream"):
		w.Header().Set("Content-Type", "text/event-stream")
		for n := range 20 {
			fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%d \"}}]}\n\n", n)
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "data: [DONE]\n\n")
	case strings.Contains(kind, "large"):
		w.Header().Set("Content-Type", "text/plain")
		for range 10 {
			io.WriteString(w, strings.Repeat("a large answer; ", 2<<10))
		}
	case strings.Contains(kind, "breaks"):
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, "half")
	case strings.Contains(kind, "fails"):
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"error":{"message":"no"}}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answered)
	}
}

const (
	usesTool   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":%d}}}`
	toolResult = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}]}}`
)

// provideTools answers as a server of MCP: with JSON, with events, or with a stream on which it says nothing but a notification.
func (s *soaking) provideTools() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.Header.Get("Accept") == "text/event-stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
			w.(http.Flusher).Flush()
			fmt.Fprintf(w, "data: %s\n\n", toolResult)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, toolResult)
	})
	mux.HandleFunc("GET /mcp", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		w.(http.Flusher).Flush()
		if r.Header.Get("Accept") == "leaves" {
			<-r.Context().Done()
		}
	})
	return mux
}

// ask asks through a recorder, and reads the answer, or only the beginning of it.
func (s *soaking) ask(ctx context.Context, method, address, body string, some int64, header ...string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if some > 0 {
		_, err = io.ReadFull(answer.Body, make([]byte, some))
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// call asks a model.
func (s *soaking) call(ctx context.Context, kind string, n int64) error {
	some := int64(0)
	if kind == "leaves stream" {
		some = 10
	}
	_, err := s.ask(ctx, "POST", s.toModels.URL+"/openai/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s %d"}]}`, kind, n), some)
	s.sealed.Add(1)
	if kind == "breaks" || some > 0 {
		return nil
	}
	return err
}

// use uses a tool over HTTP.
func (s *soaking) use(ctx context.Context, kind string, n int64) error {
	text, err := s.ask(ctx, "POST", s.toMCP.URL+"/mcp", fmt.Sprintf(usesTool, n), 0, "Content-Type", "application/json", "Accept", kind)
	s.sealed.Add(1)
	if err == nil && !strings.Contains(text, toolResult) {
		err = fmt.Errorf("the answer is %q", text)
	}
	return err
}

// listen hears a stream of the server to its end, or leaves before.
func (s *soaking) listen(ctx context.Context, kind string, _ int64) error {
	some := int64(0)
	if kind == "leaves" {
		some = 10
	}
	_, err := s.ask(ctx, "GET", s.toMCP.URL+"/mcp", "", some, "Accept", kind)
	s.sealed.Add(1)
	return err
}

// pipe uses a tool of a server that is started for it, which answers or ends.
func (s *soaking) pipe(_ context.Context, kind string, n int64) error {
	p, err := s.pipes.Pipe(recorder.PipeOptions{Origin: "stdio:sums", Server: "sums", Chain: fmt.Sprint("pipe-", n)})
	if err != nil {
		return err
	}
	toServer, fromClient := io.Pipe()
	fromServer, answer := io.Pipe()
	go func() {
		_, _ = bufio.NewReader(toServer).ReadString('\n') // the client may have ended
		if kind != "ends" {
			_, _ = io.WriteString(answer, toolResult+"\n")
		}
		_, _ = io.Copy(io.Discard, toServer)
		_ = answer.Close()
	}()
	var heard strings.Builder
	err = p.Run(strings.NewReader(fmt.Sprintf(usesTool, n)+"\n"), &heard, fromServer, fromClient)
	s.sealed.Add(1)
	if err == nil && kind != "ends" && heard.String() != toolResult+"\n" {
		err = fmt.Errorf("the answer is %q", heard.String())
	}
	return err
}

// acts are what agents do under load, in turns.
func (s *soaking) acts() []func(ctx context.Context, n int64) error {
	var list []func(ctx context.Context, n int64) error
	add := func(act func(ctx context.Context, kind string, n int64) error, kinds ...string) {
		for _, kind := range kinds {
			list = append(list, func(ctx context.Context, n int64) error {
				if err := act(ctx, kind, n); err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
				return nil
			})
		}
	}
	add(s.call, "plain", "stream", "large", "breaks", "leaves stream", "plain", "stream", "fails")
	add(s.use, "application/json", "text/event-stream")
	add(s.listen, "listens", "leaves")
	add(s.pipe, "pipe", "ends")
	return list
}

// load has 32 agents act for some time, and returns the most goroutines.
func (s *soaking) load(lasts time.Duration) (most int, acts, failed int64) {
	end, list := time.Now().Add(lasts), s.acts()
	var done, bad atomic.Int64
	var all sync.WaitGroup
	for worker := range 32 {
		all.Go(func() {
			for n := worker; time.Now().Before(end); n++ {
				err := list[n%len(list)](s.t.Context(), int64(n)<<8+int64(worker))
				must.Hold(s.t, err == nil || bad.Add(1) != 1, "%v", err)
				done.Add(1)
			}
		})
	}
	for time.Now().Before(end) {
		most = max(most, runtime.NumGoroutine())
		time.Sleep(50 * time.Millisecond)
	}
	all.Wait()
	return most, done.Load(), bad.Load()
}

// connections to the database are what each recorder may have opened meanwhile, and keeps.
const connections = 4

// quiet counts what is left when nobody asks.
func (s *soaking) quiet() (goroutines, files int) {
	s.client.CloseIdleConnections()
	s.models.CloseClientConnections() // which nobody uses now
	s.server.CloseClientConnections()
	runtime.GC()
	open := must.Get(os.ReadDir("/proc/self/fd"))(s.t)
	return runtime.NumGoroutine(), len(open)
}

// TestSoak: under full load over the whole recorder (models with streams, short answers, large ones and errors, clients that leave, providers that break off; tools over HTTP with JSON, with events and with streams of the server,
// and by pipes; closed mode and open) nothing piles up. When the load ends, goroutines, open files and copies are as few as before, and each act is in the log once. The
// long form takes ten minutes (scripts/test long); JURAT_TEST_SOAK=3m sets the time.
func TestSoak(t *testing.T) {
	s := &soaking{t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	s.models, s.server = httptest.NewServer(http.HandlerFunc(s.provide)), httptest.NewServer(s.provideTools())
	folder := filepath.Join(t.TempDir(), "data")
	models := open(t, recorder.Options{Folder: folder, Agent: "mia", InTheRecord: true, Upstreams: map[string]recorder.Upstream{"openai": {Base: s.models.URL}}})
	tools := open(t, recorder.Options{Folder: folder, Agent: "mia", InTheRecord: true, MCP: &recorder.MCP{URL: s.server.URL + "/mcp"}})
	s.pipes = open(t, recorder.Options{Folder: folder, Agent: "mia", InTheRecord: true, Pipes: true, Mode: recorder.Passing})
	s.toModels, s.toMCP = httptest.NewServer(models.Handler()), httptest.NewServer(tools.Handler())

	s.load(time.Second) // what is kept for later calls, such as connections to the database, is there now
	time.Sleep(200 * time.Millisecond)
	goroutines, files := s.quiet()
	most, acts, failed := s.load(soakTime(t))
	var g, f, underWay, copies int
	var journal int64
	settled := func() bool {
		left, err := sealer.Look(t.Context(), recorder.Folder(folder))
		must.Need(t, err == nil && len(left) == 3, "%v %v", left, err)
		underWay, copies, journal = 0, 0, 0
		for _, p := range left {
			underWay, copies, journal = underWay+p.Open, copies+p.Copies, journal+p.JournalBytes
		}
		g, f = s.quiet()
		return g <= goroutines+2 && f <= files+3*connections && underWay == 0 && copies == 0
	}
	for deadline := time.Now().Add(20 * time.Second); !settled() && time.Now().Before(deadline); {
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("%d acts, %d failed; goroutines %d, at most %d, then %d; files %d, then %d; %d calls open, %d copies, journals of %d bytes", acts, failed, goroutines, most, g, files, f, underWay, copies, journal)
	must.Hold(t, settled(), "what the load took does not come back")
	for _, server := range []*httptest.Server{s.toModels, s.toMCP, s.models, s.server} {
		server.Close()
	}
	for _, r := range []*recorder.Recorder{models, tools, s.pipes} {
		must.Do(t, r.Close(t.Context()))
	}
	sealed := observedIn(t, folder)
	must.Hold(t, sealed == s.sealed.Load(), "%d acts are in the log of %d that must be", sealed, s.sealed.Load())
}

// observedIn counts the acts in a folder's log that recorders saw.
func observedIn(t *testing.T, folder string) (n int64) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if placed.Record.Payload.ActionType.Observes() {
			n++
		}
	}
	return n
}

// onFullDisk fills the disk under a recorder, twice, and makes room again.
func onFullDisk(t *testing.T, mode recorder.Mode) {
	rig.OnDisk(t, 24, func(disk *rig.Disk) {
		folder, filling := filepath.Join(disk.Path, "data"), filepath.Join(disk.Path, "filling")
		g := newGate(t, recorder.Options{Folder: folder, Mode: mode})
		g.padding = strings.Repeat(" indeed", 20_000)
		_, whole := g.ask("before")
		must.Need(t, whole, "no call passes")
		for _, round := range []string{"first", "second"} {
			disk.Fill(t, filling)
			g.troubled(round)
			must.Do(t, os.Remove(filling))
			g.recovers(round + " again")
		}
		g.end()
		g.check(installation.Config{Dir: folder})
	})
}

// TestClosedOnFullDisk: on a full disk no client gets the end of an unsealed call, and new calls are refused. With free space calls pass again, and the log has each call once.
func TestClosedOnFullDisk(t *testing.T) { onFullDisk(t, recorder.Closed) }

// TestPassingOnFullDisk: on a full disk all calls of open mode pass. With free space each is in the log, or counted as missed.
func TestPassingOnFullDisk(t *testing.T) { onFullDisk(t, recorder.Passing) }
