package recorder_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/installation"
	"jurat/internal/must"
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
		if err != nil {
			t.Fatal(err)
		}
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
	if text, err := ask(t, client, req.WithContext(recorder.WithChain(t.Context(), "monday"))); err != nil || text != answered {
		t.Fatalf("%q, %v", text, err)
	}
	for name := range *p.header.Load() {
		if strings.HasPrefix(name, "Jurat-") || name == "Accept-Encoding" {
			t.Errorf("the provider got the header %s", name)
		}
	}
	if len(req.Header) != 2 {
		t.Errorf("the program's request was changed: %v", req.Header)
	}
	if text, err := ask(t, client, question(t, p.URL+"/v1/chat/completions", "two").WithContext(recorder.WithAgent(t.Context(), "ada"))); err != nil || text != answered {
		t.Fatalf("%q, %v", text, err)
	}
	must.Do(t, r.Close(t.Context()))
	calls, events := records(t, folder)
	if len(calls) != 2 {
		t.Fatalf("%d calls in the log", len(calls))
	}
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
		if answer.StatusCode != http.StatusUnauthorized || p.asked.Load() != 0 {
			t.Errorf("token %q: status %d, the provider was asked %d times", token, answer.StatusCode, p.asked.Load())
		}
	}
	// The same recorder also records calls of this program.
	if _, err := ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "two").WithContext(recorder.WithAgent(t.Context(), "mia"))); err != nil {
		t.Fatal(err)
	}
	must.Do(t, r.Stop(t.Context(), "the shift ended"))
	calls, events := records(t, folder)
	if len(calls) != 1 || calls[0].Payload.Observed.Vantage != evidence.InProcess || calls[0].Payload.Observed.Agent != "mia" {
		t.Errorf("%d calls", len(calls))
	}
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
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "recorder.WithAgent") || p.asked.Load() != 0 {
		t.Errorf("%v; the provider was asked %d times", err, p.asked.Load())
	}
	_, err = ask(t, &http.Client{Transport: r.Transport(nil)}, question(t, p.URL+"/v1/chat/completions", "one").WithContext(recorder.WithAgent(t.Context(), "a\u0000b")))
	if err == nil || p.asked.Load() != 0 {
		t.Errorf("a name with a control character: %v; the provider was asked %d times", err, p.asked.Load())
	}
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
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "marked-secret") {
			t.Errorf("want an error about %s, got %v", want, err)
		}
		if _, err := installation.Open(t.Context(), installation.Config{Dir: o.Folder}); !errors.Is(err, installation.ErrNone) {
			t.Errorf("%s: something was made: %v", want, err)
		}
	}
}
