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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
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
		must.Do(t, err)
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
		must.Hold(t, strings.HasSuffix(of, " of "+c.Payload.Observed.Agent), "a call of %q is said to be of %s", of, c.Payload.Observed.Agent)
		if says[c.Payload.ChainID] == nil {
			says[c.Payload.ChainID] = map[string]int{}
		}
		says[c.Payload.ChainID][of]++
	}
	must.Equal(t, len(calls), 2*conversations*turns)
	must.Equal(t, len(says), 2*conversations)
	for name, of := range says {
		must.Hold(t, len(of) == 1, "the chain %s has calls of %d conversations", name, len(of))
	}
	name := calls[0].Payload.ChainID
	o := verify.Options{Trust: trusted}
	if report := verify.Bundle(chain(t, i, name), o); report.Of(verify.Chain).Status != verify.Proved || report.Of(verify.Vantage).Status != verify.Proved {
		t.Errorf("the whole chain: %+v, %+v", report.Of(verify.Chain), report.Of(verify.Vantage))
	}
	for left := range turns - 1 { // that the last is missing shows only beside the log
		f := verify.Bundle(chain(t, i, name, left), o).Of(verify.Chain)
		must.Hold(t, f.Status == verify.Refuted && f.Rule == "gap", "without record %d: %+v", left, f)
	}
}

// TestContextOfTheProvider: what a call names of what the provider keeps is said to be missing, unless the file has the answer that it names.
func TestContextOfTheProvider(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		must.Want(t, err, nil)
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
		must.Hold(t, mode != recorder.Closed || answer.StatusCode == http.StatusUpgradeRequired && len(asked) == 0 && gap == nil,
			"closed: status %d, the provider was asked %d times, gap %+v", answer.StatusCode, len(asked), gap)
		if mode == recorder.Passing && (answer.StatusCode != http.StatusSwitchingProtocols || gap == nil || len(gap.Missed) != 1 || gap.Missed[0].Calls != 1 || gap.Missed[0].Agent != "mia") {
			t.Errorf("open: status %d, gap %+v", answer.StatusCode, gap)
		}
		must.Hold(t, len(calls) == 0, "%s: %d calls", mode, len(calls))
	}
}

const theCard = `{"name":"Mia","signatures":[{"protected":"e30","signature":"AA"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"AGENT/a2a"}]}`

// newAgent is an agent that answers each message with what it was sent.
func newAgent(t *testing.T) *httptest.Server {
	var agent *httptest.Server
	agent = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		must.Want(t, err, nil)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			w.Header().Set("ETag", `"1"`)
			io.WriteString(w, strings.ReplaceAll(theCard, "AGENT", agent.URL))
		case bytes.Contains(body, []byte("stream")):
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_WORKING\"}}}}\n\n")
			w.(http.Flusher).Flush()
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"statusUpdate\":{\"taskId\":\"t1\",\"contextId\":\"c1\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"}}}}\n\n")
		default:
			io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"a","contextId":"c1","role":"ROLE_AGENT","parts":[{"text":"I got `+strings.ReplaceAll(string(body), `"`, "'")+`"}]}}}`)
		}
	}))
	t.Cleanup(agent.Close)
	return agent
}

// stands opens a recorder before an agent or a caller, with a data folder of its own.
func stands(t *testing.T, folder, agent string, a recorder.A2A) (*recorder.Recorder, *httptest.Server) {
	t.Helper()
	r := open(t, recorder.Options{Folder: folder, Agent: agent, A2A: &a})
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close)
	return r, server
}

// send sends a message, and returns the answer.
func send(t *testing.T, address, text string) string {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), "POST", address+"/a2a", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"`+text+`"}]}}}`)))(t)
	req.Header.Set("A2A-Version", "1.0")
	req.Header.Set("Authorization", "Bearer marked-key")
	return must.Get(ask(t, http.DefaultClient, req))(t)
}

// carry takes the messages of a data folder as its owner hands them out, with the owner's trust file.
func carry(t *testing.T, folder string) (*evidence.Bundle, *trust.Trust) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: folder}))(t)
	defer i.Close()
	var messages []*evidence.Record
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if placed.Record.Payload.ActionType == evidence.ObservedMessage {
			messages = append(messages, placed.Record)
		}
	}
	bundle := must.Get(i.Ledger.Prove(t.Context(), messages...))(t)
	trusted := must.Get(i.Trust(t.Context()))(t)
	return bundle, trusted
}

// TestTwoOwners: a caller's owner and an agent's owner record the same exchanges, each by itself. Their files together prove each exchange by two witnesses,
// and an exchange that went past one of them by one.
func TestTwoOwners(t *testing.T) {
	agent := newAgent(t)
	theirs, ours := filepath.Join(t.TempDir(), "theirs"), filepath.Join(t.TempDir(), "ours")
	answering, at := stands(t, theirs, "mia", recorder.A2A{Origin: agent.URL})
	asking, by := stands(t, ours, "ben", recorder.A2A{Origin: at.URL, Side: recorder.Asked})
	for _, text := range []string{"one", "two", "stream"} {
		answer := send(t, by.URL, text)
		must.Need(t, answer != "", "no answer")
	}
	send(t, at.URL, "past the caller's recorder")
	for _, r := range []*recorder.Recorder{asking, answering} {
		must.Do(t, r.Close(t.Context()))
	}
	one, ourTrust := carry(t, ours)
	other, theirTrust := carry(t, theirs)
	joined := must.Get(trust.Join(ourTrust, theirTrust))(t)
	o := verify.Options{Trust: joined, At: time.Now()}
	o.Together = verify.NewTogether(o)
	for _, b := range []*evidence.Bundle{one, other} {
		r := verify.Bundle(b, o)
		must.Hold(t, r.Outcome == verify.Proved && r.Of(verify.Content).Status == verify.Proved, "%+v", r.Guarantees)
	}
	r := o.Together.Exchanges()
	must.Need(t, r != nil && len(r.Pairs) == 3 && len(r.Differences) == 0 && len(r.Alone) == 1 && r.Alone[0].Side == evidence.Answered, "%+v", r)
	for _, p := range r.Pairs {
		if !p.Proved || p.Witnesses != 2 || p.Asked.Agent != "ben" || p.Answered.Agent != "mia" || p.Asked.Log == p.Answered.Log || p.Asked.Request != p.Answered.Request {
			t.Errorf("%+v", p)
		}
	}
	for side, b := range map[evidence.Side]*evidence.Bundle{evidence.Asked: one, evidence.Answered: other} {
		for _, m := range b.Records {
			if m.Payload.Observed.Side != side || m.Payload.Observed.Protocol != "a2a/1.0" || slices.ContainsFunc(bilateralOf(m), func(s string) bool { return strings.Contains(s, "marked-key") }) {
				t.Errorf("%+v", m.Payload.Observed)
			}
		}
	}
}

// bilateralOf is what a report says of a record.
func bilateralOf(r *evidence.Record) []string {
	s := verify.SightingOf(r)
	return []string{s.Upstream, s.Protocol, s.Agent}
}

// TestCards: an agent's card passes as it is or, if it is to be rewritten, with another origin and no signatures, and the log says so.
func TestCards(t *testing.T) {
	agent := newAgent(t)
	served := strings.ReplaceAll(theCard, "AGENT", agent.URL)
	for _, origin := range []string{"", "https://shop.example"} {
		folder := filepath.Join(t.TempDir(), "data")
		r, server := stands(t, folder, "mia", recorder.A2A{Origin: agent.URL, RewriteCard: origin})
		want := served
		if origin != "" {
			want = `{"name":"Mia","supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://shop.example/a2a"}]}`
		}
		for _, path := range []string{"/.well-known/agent-card.json", "/.well-known/agent.json"} {
			answer := must.Get(http.Get(server.URL + path))(t)
			got, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			must.Hold(t, err == nil && string(got) == want && (answer.Header.Get("ETag") == "") == (origin != ""),
				"%s: %s %v %v", path, got, answer.Header, err)
		}
		must.Do(t, r.Close(t.Context()))
		_, events := records(t, folder)
		e := events[observed.Configuration]
		must.Hold(t, (e != nil) == (origin != "") && (e == nil || strings.Contains(e.Reason, "without its signatures")), "%+v", e)
		if bundle, _ := carry(t, folder); len(bundle.Records) != 2 || bundle.Records[0].Payload.Observed.Response.SHA256 != evidence.DigestOf([]byte(served)) {
			t.Errorf("what the agent sent is not what is recorded")
		}
	}
}

// TestBeforeAnAgent: what cannot be recorded is refused with a reason, and so are options that make no sense.
func TestBeforeAnAgent(t *testing.T) {
	agent := newAgent(t)
	r, server := stands(t, filepath.Join(t.TempDir(), "data"), "mia", recorder.A2A{Origin: agent.URL, RewriteCard: "https://shop.example:444"})
	for _, c := range []struct {
		header, value string
		status        int
		says          string
	}{
		{"Content-Type", "application/grpc+proto", http.StatusUnsupportedMediaType, "gRPC cannot be recorded"},
		{"Jurat-Agent", "Bearer jurat_x", http.StatusUnauthorized, "takes no tokens"},
	} {
		req := question(t, server.URL+"/a2a", "x")
		req.Header.Set(c.header, c.value)
		answer := must.Get(http.DefaultClient.Do(req))(t)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must.Hold(t, err == nil && answer.StatusCode == c.status && strings.Contains(string(text), c.says), "%s: %d %s", c.header, answer.StatusCode, text)
	}
	must.Do(t, r.Close(t.Context()))
	for says, o := range map[string]recorder.Options{
		"Agent must say who is recorded": {A2A: &recorder.A2A{Origin: agent.URL}},
		"gRPC cannot be recorded":        {Agent: "mia", A2A: &recorder.A2A{Origin: "grpc://127.0.0.1:1"}},
		"paths pass as they are":         {Agent: "mia", A2A: &recorder.A2A{Origin: agent.URL + "/a2a"}},
		"RewriteCard":                    {Agent: "mia", A2A: &recorder.A2A{Origin: agent.URL, RewriteCard: "shop.example"}},
		`unknown value "left"`:           {Agent: "mia", A2A: &recorder.A2A{Origin: agent.URL, Side: "left"}},
		"at least one is needed":         {Agent: "mia", Upstreams: map[string]recorder.Upstream{}},
		"and not to both":                {Agent: "mia", Upstreams: recorder.Known(), A2A: &recorder.A2A{Origin: agent.URL}},
	} {
		must.Say(t, o.Check(), says)
	}
}
