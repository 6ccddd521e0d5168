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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/stamping"
	"jurat/internal/tap/sealer"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
	"jurat/recorder"
)

const answered = `{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`

// provider counts what it is asked, and keeps the last request's headers.
type provider struct {
	*httptest.Server
	asked  atomic.Int64
	header atomic.Pointer[http.Header]
}

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		p.header.Store(&r.Header)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answered)
	}))
	t.Cleanup(p.Close)
	return p
}

func open(t *testing.T, o recorder.Options) *recorder.Recorder {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	return must.Get(recorder.Open(t.Context(), o))(t)
}

func ask(t *testing.T, client *http.Client, req *http.Request) (string, error) {
	t.Helper()
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

func question(t *testing.T, address, text string) *http.Request {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), "POST", address, strings.NewReader(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, text))))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer marked-key")
	return req
}

// records returns what a folder's log has of recorders: calls, and events by name.
func records(t *testing.T, folder string) (calls []*evidence.Record, events map[observed.EventName]*observed.Event) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	events = map[observed.EventName]*observed.Event{}
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		switch r := placed.Record; r.Payload.ActionType {
		case evidence.ObservedCall:
			calls = append(calls, r)
		case evidence.RecorderEvent:
			e := must.Get(observed.ParseEvent(r.Payload.Response))(t)
			events[e.Event] = e
		}
	}
	return calls, events
}

// TestTransport: calls inside a program are sealed as seen there, for the agent and in the chain of their contexts, and the provider sees nothing of it.
func TestTransport(t *testing.T) {
	p, folder := newProvider(t), filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia"})
	client := &http.Client{Transport: r.Transport(nil)}
	req := question(t, p.URL+"/v1/chat/completions", "one")
	text, err := ask(t, client, req.WithContext(recorder.WithChain(t.Context(), "monday")))
	must.Need(t, err == nil && text == answered, "%q, %v", text, err)
	for name := range *p.header.Load() {
		must.Hold(t, !strings.HasPrefix(name, "Jurat-") && name != "Accept-Encoding", "the provider got the header %s", name)
	}
	must.Equal(t, len(req.Header), 2)
	text, err = ask(t, client, question(t, p.URL+"/v1/chat/completions", "two").WithContext(recorder.WithAgent(t.Context(), "ada")))
	must.Need(t, err == nil && text == answered, "%q, %v", text, err)
	must.Do(t, r.Close(t.Context()))
	calls, events := records(t, folder)
	must.Need(t, len(calls) == 2, "%d calls in the log", len(calls))
	for n, want := range []struct{ agent, chain string }{{"mia", recorder.Chain("mia", "monday")}, {"ada", "recorded/ada/"}} {
		o := calls[n].Payload.Observed
		if o.Agent != want.agent || o.Vantage != evidence.InProcess || !strings.HasPrefix(calls[n].Payload.ChainID, want.chain) || o.Ended != evidence.Complete {
			t.Errorf("call %d: %s, %s, %s, %s", n, o.Agent, o.Vantage, calls[n].Payload.ChainID, o.Ended)
		}
	}
	if events[observed.Start] == nil || events[observed.Start].Vantage != evidence.InProcess || events[observed.Start].Mode != observed.Closed || events[observed.Stop] == nil {
		t.Errorf("events: %+v", events)
	}
}

// TestHandler: the proxy takes the tokens that the caller knows, and one process's own names of agents are no tokens of it.
func TestHandler(t *testing.T) {
	p, folder := newProvider(t), filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Mode: recorder.Passing, Upstreams: map[string]recorder.Upstream{"local": {Base: p.URL, Key: "held-key"}}})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	for _, token := range []string{"", "Bearer mia", "Bearer jurat_unknown"} {
		req := question(t, server.URL+"/local/v1/chat/completions", "one")
		if token != "" {
			req.Header.Set("Jurat-Agent", token)
		}
		answer := must.Get(http.DefaultClient.Do(req))(t)
		answer.Body.Close()
		must.Hold(t, answer.StatusCode == http.StatusUnauthorized && p.asked.Load() == 0,
			"token %q: status %d, the provider was asked %d times", token, answer.StatusCode, p.asked.Load())
	}
	// The same recorder also records calls of this program.
	must.Get(ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "two").WithContext(recorder.WithAgent(t.Context(), "mia"))))(t)
	must.Do(t, r.Stop(t.Context(), "the shift ended"))
	calls, events := records(t, folder)
	must.Hold(t, len(calls) == 1 && calls[0].Payload.Observed.Vantage == evidence.InProcess && calls[0].Payload.Observed.Agent == "mia",
		"%d calls", len(calls))
	if start := events[observed.Start]; start.Vantage != evidence.Proxy || start.Mode != observed.Passing || events[observed.Stop].Reason != "the shift ended" {
		t.Errorf("events: %+v, %+v", start, events[observed.Stop])
	}
}

// TestNobodyCalls: a call without an agent is not made, and the error says what to do.
func TestNobodyCalls(t *testing.T) {
	p := newProvider(t)
	r := open(t, recorder.Options{Folder: filepath.Join(t.TempDir(), "data")})
	defer r.Close(t.Context())
	_, err := ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "one"))
	var refusal *recorder.Refusal
	must.Hold(t, errors.As(err, &refusal) && strings.Contains(refusal.Reason, "recorder.WithAgent") && p.asked.Load() == 0,
		"%v; the provider was asked %d times", err, p.asked.Load())
	_, err = ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "one").WithContext(recorder.WithAgent(t.Context(), "a\u0000b")))
	must.Hold(t, err != nil && p.asked.Load() == 0, "a name with a control character: %v; the provider was asked %d times", err, p.asked.Load())
}

// TestOptions: what no recorder can be made of is refused before anything is made, with the name of the option.
func TestOptions(t *testing.T) {
	long := "https://" + strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + ".example"
	for want, o := range map[string]recorder.Options{
		"Agent":                       {Agent: "a\nb"},
		"Name":                        {Name: strings.Repeat("x", 300)},
		"Mode":                        {Mode: "ajar"},
		"Upstreams: local: ":          {Upstreams: map[string]recorder.Upstream{"local": {Base: "localhost:1"}}},
		"Upstreams: a b: ":            {Upstreams: map[string]recorder.Upstream{"a b": {Base: "http://localhost:1"}}},
		"Upstreams: p: ":              {Upstreams: map[string]recorder.Upstream{"p": {Base: "https://user:marked-secret@host"}}},
		"would stand in each record:": {Upstreams: map[string]recorder.Upstream{"long": {Base: long}}},
	} {
		o.Folder = filepath.Join(t.TempDir(), "data")
		_, err := recorder.Open(t.Context(), o)
		must.Hold(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "marked-secret"),
			"want an error about %s, got %v", want, err)
		must.Fail(t, installation.ErrNone, want)(installation.Open(t.Context(), installation.Config{Dir: o.Folder}))
	}
}

// TestFolderGone: while a recorder runs, its data folder or a file in it is removed, renamed or replaced. Nothing that is written then would be found again. In closed mode no answer passes whole; in open mode
// all pass, and Close says that they are in no log. Where everything is put back, calls pass again, and the log has each once.
func TestFolderGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system lets nobody remove or rename files that are open")
	}
	for name, trouble := range map[string]struct {
		cause func(t *testing.T, folder string)
		undo  func(t *testing.T, folder string) // nil: the recorder cannot go on
	}{
		"the folder is removed": {func(t *testing.T, folder string) {
			must.Do(t, os.Rename(real(t, folder), folder+".away")) // the recorder writes there while it is removed
			must.Do(t, os.RemoveAll(folder+".away"))
		}, nil},
		"the folder is renamed": {func(t *testing.T, folder string) { must.Do(t, os.Rename(real(t, folder), folder+".away")) },
			func(t *testing.T, folder string) { must.Do(t, os.Rename(folder+".away", folder+".real")) }},
		"a copy is in the folder's place": {func(t *testing.T, folder string) {
			must.Do(t, os.CopyFS(folder+".copy", os.DirFS(real(t, folder))))
			must.Do(t, os.Rename(real(t, folder), folder+".away"))
			must.Do(t, os.Rename(folder+".copy", folder+".real"))
		}, func(t *testing.T, folder string) {
			must.Do(t, os.Rename(folder+".real", folder+".copy"))
			must.Do(t, os.Rename(folder+".away", folder+".real"))
		}},
		"a symbolic link leads to a copy": {func(t *testing.T, folder string) {
			must.Do(t, os.CopyFS(folder+".copy", os.DirFS(real(t, folder))))
			must.Do(t, os.Symlink(folder+".copy", folder+".new"))
			must.Do(t, os.Rename(folder+".new", folder))
		}, func(t *testing.T, folder string) {
			must.Do(t, os.Symlink(folder+".real", folder+".new"))
			must.Do(t, os.Rename(folder+".new", folder))
		}},
		"the database is removed": {func(t *testing.T, folder string) { must.Do(t, os.Remove(filepath.Join(folder, "jurat.db"))) }, nil},
		"a copy is in the database's place": {func(t *testing.T, folder string) {
			db := filepath.Join(folder, "jurat.db")
			text := must.Get(os.ReadFile(db))(t)
			must.Do(t, os.Rename(db, db+".away"))
			must.Do(t, os.WriteFile(db, text, 0o600))
		}, func(t *testing.T, folder string) {
			db := filepath.Join(folder, "jurat.db")
			must.Do(t, os.Rename(db+".away", db))
		}},
		"the write-ahead log is removed": {func(t *testing.T, folder string) { must.Do(t, os.Remove(filepath.Join(folder, "jurat.db-wal"))) }, nil},
		"the recorders' folder is removed": {func(t *testing.T, folder string) {
			must.Do(t, os.Rename(filepath.Join(folder, "recorder"), folder+".own"))
		},
			func(t *testing.T, folder string) {
				must.Do(t, os.RemoveAll(filepath.Join(folder, "recorder")))
				must.Do(t, os.Rename(folder+".own", filepath.Join(folder, "recorder")))
			}},
	} {
		for _, mode := range []recorder.Mode{recorder.Closed, recorder.Passing} {
			t.Run(name+", "+string(mode), func(t *testing.T) {
				t.Parallel()
				folder := filepath.Join(t.TempDir(), "data")
				must.Do(t, os.Mkdir(folder+".real", 0o700))
				must.Do(t, os.Symlink(folder+".real", folder))
				g := newGate(t, recorder.Options{Folder: folder, Mode: mode})
				_, whole := g.ask("before")
				must.Need(t, whole, "no call passes")
				g.settled()
				trouble.cause(t, folder)
				g.troubled("while it is gone")
				if trouble.undo != nil {
					trouble.undo(t, folder)
					g.recovers("after")
					g.end()
					g.check(installation.Config{Dir: folder})
					return
				}
				g.server.Close()
				must.Say(t, g.recorder.Close(context.WithoutCancel(t.Context())), "", "Close does not say that calls are in no log")
			})
		}
	}
}

// real returns the folder to which a symbolic link leads.
func real(t *testing.T, folder string) string {
	t.Helper()
	return must.Get(filepath.EvalSymlinks(folder))(t)
}

// TestExpiredRecords: a recorder begins, and records in a chain, whose older records have expired.
func TestExpiredRecords(t *testing.T) {
	then, folder := time.Now().AddDate(-1, 0, 0), filepath.Join(t.TempDir(), "data")
	past, _, err := installation.OpenOrCreate(t.Context(), installation.Config{Dir: folder, Now: func() time.Time { return then }})
	must.Do(t, err)
	signers := must.Get(past.Keys.Signers(t.Context(), evidence.RoleRecorder, "gate"))(t)
	seal := func(i *installation.Installation, at time.Time, chain string) {
		t.Helper()
		calls := int64(0)
		p := must.Get((&observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(at), Calls: &calls}).Payload("gate", evidence.FormatTime(at), chain))(t)
		draft := must.Get(evidence.NewDraft(p))(t)
		must.Get(i.Ledger.Seal(t.Context(), draft, signers))(t)
	}
	for n := range 20 {
		seal(past, then, []string{"recorder/gate", "recorded/mia/monday"}[n%2])
	}
	must.Do(t, past.Close())
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	seal(i, time.Now(), "recorder/other") // the log's own time must be the present
	if done, err := i.Expire(t.Context(), installation.ExpiryOrder{Before: time.Now().AddDate(0, -7, 0), Reason: "retention time over", By: "records office"}); err != nil || done.Records == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	must.Do(t, i.Close())
	p := newProvider(t)
	r := open(t, recorder.Options{Folder: folder, Name: "gate", Agent: "mia", Chain: "monday"})
	must.Give(ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "one")))(t, answered)
	must.Do(t, r.Close(t.Context()))
	calls, _ := records(t, folder)
	must.Len(t, calls, 1)
	must.Len(t, calls[0].Payload.Saw, 1)
}

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
	g.recorder, err = recorder.Open(g.t.Context(), g.options)
	must.Do(g.t, err)
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

// settled waits until the recorder says that the first call is sealed. In open mode the answer does not wait for that, and a copy of the folder would be of a log that grows.
func (g *gate) settled() {
	g.t.Helper()
	for n := 0; ; n++ {
		at := must.Get(sealer.Look(g.t.Context(), recorder.Folder(g.options.Folder)))(g.t)
		if len(at) == 1 && at[0].State.Sealed == 1 {
			return
		}
		must.Need(g.t, n != 600, "the first call is not sealed: %+v", at)
		time.Sleep(50 * time.Millisecond)
	}
}

// recovers waits until calls pass again.
func (g *gate) recovers(name string) {
	g.t.Helper()
	for n := 0; ; n++ {
		if _, whole := g.ask(fmt.Sprintf("%s %d", name, n)); whole {
			return
		}
		must.Need(g.t, n != 300, "no call passes again")
		time.Sleep(100 * time.Millisecond)
	}
}

// check reads the log: each question that reached the provider is there once, or is counted as missed; each whole answer of closed mode is there, complete.
func (g *gate) check(c installation.Config) {
	g.t.Helper()
	i := must.Get(installation.Open(g.t.Context(), c))(g.t)
	defer i.Close()
	sealed, ends, missed := map[evidence.Digest]int{}, map[evidence.Digest]evidence.Ended{}, 0
	for placed, err := range i.Ledger.Records(g.t.Context(), 0) {
		must.Do(g.t, err)
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
		must.Hold(g.t, g.options.Mode == recorder.Passing || !slices.Contains(g.whole, name) || ends[digest(name)] == evidence.Complete,
			"the client got all of %q, and the log says %q", name, ends[digest(name)])
	}
	must.Hold(g.t, without == missed, "%d calls are not in the log, and %d are counted as missed", without, missed)
	must.Hold(g.t, g.options.Mode != recorder.Passing || len(g.whole) == len(g.asked), "of %d calls of open mode %d passed", len(g.asked), len(g.whole))
	g.t.Logf("%d calls reached the provider, %d passed whole, %d are counted as missed", len(g.asked), len(g.whole), missed)
}

// troubled makes calls, some at once, while nothing can be sealed. In closed mode none passes whole, and new ones are refused. In open mode all pass.
func (g *gate) troubled(name string) {
	g.t.Helper()
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			_, whole := g.ask(fmt.Sprintf("%s at once %d", name, n))
			must.Hold(g.t, whole == (g.options.Mode == recorder.Passing), "%s: an answer passed whole: %v", name, whole)
		})
	}
	all.Wait()
	refused := 0
	for n := range 3 {
		status, whole := g.ask(fmt.Sprintf("%s %d", name, n))
		must.Hold(g.t, whole == (g.options.Mode == recorder.Passing), "%s: an answer passed whole: %v", name, whole)
		if status == http.StatusServiceUnavailable {
			refused++
		}
	}
	must.Hold(g.t, g.options.Mode == recorder.Passing || refused != 0, "%s: no new call was refused with 503", name)
}

// TestDatabaseGone: the log's database dies while calls are under way. In closed mode no client gets the end of an unsealed call; in open mode all pass. When the database is back, calls pass again, and the
// log has each call once.
func TestDatabaseGone(t *testing.T) {
	for _, mode := range []recorder.Mode{recorder.Closed, recorder.Passing} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			server := rig.StartPostgres(t)
			key := filepath.Join(t.TempDir(), "wrapping.key")
			must.Do(t, os.WriteFile(key, filestore.Generate(), 0o600))
			o := recorder.Options{Folder: filepath.Join(t.TempDir(), "own"), Database: server.Database(t), WrappingKey: key, Mode: mode}
			g := newGate(t, o)
			_, whole := g.ask("before")
			must.Need(t, whole, "no call passes")
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
	must.Do(t, err)
	must.Do(t, errors.Join(i.Timekeeper.Add(t.Context(), stamping.Outside{Name: "outside", URL: tsa.URL, Roots: string(tsa.PEM())}, false), tsa.Be(jurattest.Hangs)))
	must.Do(t, i.Close())
	g := newGate(t, recorder.Options{Folder: folder})
	for n := range 3 {
		status, whole := g.ask(fmt.Sprint(n))
		must.Need(t, whole, "status %d", status)
	}
	g.end()
	g.check(installation.Config{Dir: folder})
	i, err = installation.Open(t.Context(), installation.Config{Dir: folder})
	must.Do(t, err)
	defer i.Close()
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		must.Hold(t, placed.Record.Payload.ActionType != evidence.ObservedCall || len(placed.Record.Timestamps) == 1,
			"%d time stamps, want that of the built-in authority", len(placed.Record.Timestamps))
	}
}
