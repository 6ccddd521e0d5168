package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/installation"
	"jurat/internal/must"
	"jurat/recorder"
	"jurat/verify"
	"jurat/verify/trust"
)

// opened opens the installation in a folder, with what a reader believes of it.
func opened(t *testing.T, folder string) (*installation.Installation, *trust.Trust) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	t.Cleanup(func() { i.Close() })
	trusted := must.Get(i.Trust(t.Context()))(t)
	return i, trusted
}

// chain proves the records of a chain, but for those that are left out.
func chain(t *testing.T, i *installation.Installation, name string, without ...int) *evidence.Bundle {
	t.Helper()
	var records []*evidence.Record
	n := 0
	for r, err := range i.Ledger.ChainRecords(t.Context(), name) {
		if err != nil {
			t.Fatal(err)
		}
		whole := must.Get(i.Apart.Disclose(t.Context(), r, nil))(t)
		if !slices.Contains(without, n) {
			records = append(records, whole)
		}
		n++
	}
	return must.Get(i.Ledger.Prove(t.Context(), records...))(t)
}

// TestParallelConversations: two agents hold fifty conversations each at once through one proxy, which all begin alike. No chain has calls of two of them, each is proved to a stranger, and a file from which
// one of its records is left out is refuted.
func TestParallelConversations(t *testing.T) {
	t.Parallel()
	const conversations, turns = 50, 3
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answered)
	}))
	defer provider.Close()
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Upstreams: map[string]recorder.Upstream{"openai": {Base: provider.URL}},
		WhoIs: func(_ context.Context, token string) (string, error) {
			if agent, is := strings.CutPrefix(token, "token-of-"); is {
				return agent, nil
			}
			return "", errors.New("it is unknown here")
		}})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	var all sync.WaitGroup
	for _, agent := range []string{"ada", "mia"} {
		for n := range conversations {
			all.Go(func() {
				messages := fmt.Sprintf(`{"role":"system","content":"be kind"},{"role":"user","content":"conversation %d of %s"}`, n, agent)
				for range turns {
					req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/openai/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[`+messages+`]}`))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Jurat-Agent", "Bearer token-of-"+agent)
					answer, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					text, err := io.ReadAll(answer.Body)
					answer.Body.Close()
					if err != nil || string(text) != answered {
						t.Errorf("%q, %v", text, err)
						return
					}
					messages += `,{"role":"assistant","content":"Yes."},{"role":"user","content":"go on"}`
				}
			})
		}
	}
	all.Wait()
	must.Do(t, r.Close(t.Context()))
	i, trusted := opened(t, folder)
	calls, _ := records(t, folder)
	windows := map[string]*observed.Window{} // of each chain: calls copy from earlier ones
	says := map[string]map[string]int{}      // which conversations a chain has, and how many calls of each
	for _, c := range calls {
		whole := must.Get(i.Apart.Disclose(t.Context(), c, nil))(t)
		if windows[c.Payload.ChainID] == nil {
			windows[c.Payload.ChainID] = new(observed.Window)
		}
		asked := windows[c.Payload.ChainID].Read(observed.Open(whole)).Request
		_, of, _ := strings.Cut(string(asked), "conversation ")
		of, _, _ = strings.Cut(of, `"`)
		if !strings.HasSuffix(of, " of "+c.Payload.Observed.Agent) {
			t.Errorf("a call of %q is said to be of %s", of, c.Payload.Observed.Agent)
		}
		if says[c.Payload.ChainID] == nil {
			says[c.Payload.ChainID] = map[string]int{}
		}
		says[c.Payload.ChainID][of]++
	}
	if len(calls) != 2*conversations*turns || len(says) != 2*conversations {
		t.Errorf("%d calls in %d chains", len(calls), len(says))
	}
	for name, of := range says {
		if len(of) != 1 {
			t.Errorf("the chain %s has calls of %d conversations", name, len(of))
		}
	}
	name := calls[0].Payload.ChainID
	o := verify.Options{Trust: trusted}
	if report := verify.Bundle(chain(t, i, name), o); report.Of(verify.Chain).Status != verify.Proved || report.Of(verify.Vantage).Status != verify.Proved {
		t.Errorf("the whole chain: %+v, %+v", report.Of(verify.Chain), report.Of(verify.Vantage))
	}
	for left := range turns - 1 { // that the last is missing shows only beside the log
		if f := verify.Bundle(chain(t, i, name, left), o).Of(verify.Chain); f.Status != verify.Refuted || f.Rule != "gap" {
			t.Errorf("without record %d: %+v", left, f)
		}
	}
}

// TestContextOfTheProvider: what a call names of what the provider keeps is said to be missing, unless the file has the answer that it names.
func TestContextOfTheProvider(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		id := "resp_1"
		if strings.Contains(string(body), "resp_1") {
			id = "resp_2"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"object":"response","status":"completed","model":"m-1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Yes."}]}]}`, id)
	}))
	defer provider.Close()
	folder := filepath.Join(t.TempDir(), "data")
	r := open(t, recorder.Options{Folder: folder, Agent: "mia"})
	client := &http.Client{Transport: r.Transport(nil)}
	for _, previous := range []string{"resp_before", "resp_1"} {
		req := must.Get(http.NewRequestWithContext(recorder.WithChain(t.Context(), "monday"), "POST", provider.URL+"/v1/responses", strings.NewReader(fmt.Sprintf(`{"model":"m","input":"and now?","previous_response_id":%q}`, previous))))(t)
		req.Header.Set("Content-Type", "application/json")
		must.Get(ask(t, client, req))(t)
	}
	must.Do(t, r.Close(t.Context()))
	i, trusted := opened(t, folder)
	said := verify.Bundle(chain(t, i, recorder.Chain("mia", "monday")), verify.Options{Trust: trusted}).Of(verify.Vantage)
	if said.Status != verify.Proved || !strings.Contains(said.Reason, "kept by the provider") || !strings.Contains(said.Reason, "previous_response_id:resp_before") || strings.Contains(said.Reason, "resp_1") {
		t.Errorf("%+v", said)
	}
}

// TestWebSocket: closed mode refuses a WebSocket, so that clients fall back to HTTP. Open mode passes it, and seals that it was missed.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	for _, mode := range []recorder.Mode{recorder.Closed, recorder.Passing} {
		asked := make(chan bool, 1)
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- true
			conn, client, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			client.Flush()
		}))
		folder := filepath.Join(t.TempDir(), "data")
		r := open(t, recorder.Options{Folder: folder, Agent: "mia", Mode: mode, Upstreams: map[string]recorder.Upstream{"openai": {Base: provider.URL}}, Log: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(r.Handler())
		req := must.Get(http.NewRequestWithContext(t.Context(), "GET", server.URL+"/openai/v1/responses", nil))(t)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "websocket")
		answer := must.Get(http.DefaultClient.Do(req))(t)
		answer.Body.Close()
		server.Close()
		provider.Close()
		must.Do(t, r.Close(t.Context()))
		calls, events := records(t, folder)
		gap := events[observed.Gap]
		if mode == recorder.Closed && (answer.StatusCode != http.StatusUpgradeRequired || len(asked) != 0 || gap != nil) {
			t.Errorf("closed: status %d, the provider was asked %d times, gap %+v", answer.StatusCode, len(asked), gap)
		}
		if mode == recorder.Passing && (answer.StatusCode != http.StatusSwitchingProtocols || gap == nil || len(gap.Missed) != 1 || gap.Missed[0].Calls != 1 || gap.Missed[0].Agent != "mia") {
			t.Errorf("open: status %d, gap %+v", answer.StatusCode, gap)
		}
		if len(calls) != 0 {
			t.Errorf("%s: %d calls", mode, len(calls))
		}
	}
}
