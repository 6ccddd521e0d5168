package sealer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/relay"
	"jurat/internal/test/must"
)

// A shelf is a log in memory, which can be out of order.
type shelf struct {
	expired bool // what records say is gone, and their ids are known
	mu      sync.Mutex
	drafts  []*evidence.Draft
	broken  error
	slow    time.Duration               // before each act
	asked   []string                    // chains, for their last records
	refuse  func(*evidence.Draft) error // nil: nothing
	tried   int                         // how often an act was to be sealed
	unsure  error                       // what the next act of a call gets, though it is sealed
}

func (s *shelf) Seal(_ context.Context, draft *evidence.Draft) (evidence.Digest, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if draft.ActionType.Observes() {
		s.tried++
	}
	if s.broken != nil {
		return evidence.Digest{}, s.broken
	}
	if s.refuse != nil {
		if err := s.refuse(draft); err != nil {
			return evidence.Digest{}, err
		}
	}
	for _, d := range s.drafts {
		if d.RecordID == draft.RecordID {
			return evidence.Digest{}, api.ErrConflict
		}
	}
	s.drafts = append(s.drafts, draft)
	if err := s.unsure; err != nil && draft.ActionType.Observes() {
		s.unsure = nil
		return evidence.Digest{}, err
	}
	return evidence.DigestOf([]byte(draft.RecordID)), nil
}

func (s *shelf) Last(_ context.Context, chain string) (last evidence.Digest, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, chain)
	for _, d := range s.drafts {
		if d.ChainID == chain {
			last, at = evidence.DigestOf([]byte(d.RecordID)), d.Payload.Time()
		}
	}
	return last, at, s.broken
}

func (s *shelf) RequestOf(_ context.Context, id string) (digest evidence.Digest, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.drafts {
		if d.RecordID == id {
			if d.Observed != nil && !s.expired {
				digest = d.Observed.Request.SHA256
			}
			return digest, true, s.broken
		}
	}
	return digest, false, s.broken
}

// refusing has it refuse some acts from now on.
func (s *shelf) refusing(refuse func(*evidence.Draft) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// acts returns what is on the shelf of one type.
func (s *shelf) acts(of evidence.ActionType) (list []*evidence.Draft) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.drafts {
		if d.ActionType == of {
			list = append(list, d)
		}
	}
	return list
}

// events returns the events of one name.
func (s *shelf) events(t *testing.T, of observed.EventName) (list []*observed.Event) {
	t.Helper()
	for _, d := range s.acts(evidence.RecorderEvent) {
		e := must.Get(observed.ParseEvent(d.Response))(t)
		if e.Event == of {
			list = append(list, e)
		}
	}
	return list
}

// A desk is a recorder between a client and a provider.
type desk struct {
	t        *testing.T
	log      *shelf
	recorder *Recorder
	relay    *relay.Relay
	server   *httptest.Server
	asked    int              // by the provider
	busy     atomic.Int32     // how many calls the provider refuses
	answer   http.HandlerFunc // nil: as Chat Completions does
	provider *httptest.Server
	mu       sync.Mutex
}

// provide answers as Chat Completions does, in one piece or as a stream.
func (d *desk) provide(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.asked++
	d.mu.Unlock()
	if d.answer != nil {
		d.answer(w, r)
		return
	}
	var body struct {
		Stream   bool              `json:"stream"`
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text := fmt.Sprintf("answer %d", len(body.Messages))
	if d.busy.Add(-1) >= 0 {
		http.Error(w, `{"error":{"message":"slow down"}}`, http.StatusTooManyRequests)
		return
	}
	if !body.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range strings.SplitAfter(text, " ") {
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", word)
		w.(http.Flusher).Flush()
	}
	io.WriteString(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// newDesk opens a recorder in a folder, before models.
func newDesk(t *testing.T, folder string, log *shelf, change func(*Config)) *desk {
	t.Helper()
	return deskBefore(t, folder, log, "openai", relay.Upstream{}, change)
}

// deskBefore opens a recorder in a folder. To an upstream that is no model's, every path leads.
func deskBefore(t *testing.T, folder string, log *shelf, name string, upstream relay.Upstream, change func(*Config)) *desk {
	t.Helper()
	d := &desk{t: t, log: log}
	d.provider = httptest.NewServer(http.HandlerFunc(d.provide))
	t.Cleanup(d.provider.Close)
	upstream.Base = must.Get(url.Parse(d.provider.URL))(t)
	c := Config{Log: log, Name: "witness", Folder: folder, Agent: "mia", Vantage: evidence.Proxy, Version: "test", Configuration: evidence.DigestOf([]byte("settings")), Retry: 10 * time.Millisecond}
	if change != nil {
		change(&c)
	}
	d.recorder = must.Get(Open(t.Context(), c))(t)
	o := relay.Options{Upstreams: map[string]relay.Upstream{name: upstream}, Mode: c.Mode, Folder: d.recorder.Spool(), FingerprintKey: make([]byte, 32)}
	if upstream.Speaks != nil {
		o.Root = name
	}
	d.relay = must.Get(relay.New(d.recorder, o))(t)
	d.server = httptest.NewServer(d.relay)
	t.Cleanup(d.server.Close)
	return d
}

// end ends the recorder as its process does.
func (d *desk) end() {
	d.t.Helper()
	d.server.Close()
	must.Do(d.t, errors.Join(d.relay.Wait(d.t.Context()), d.recorder.Close(d.t.Context(), "the test is over")))
}

// crash ends the recorder as kill -9 does: nothing is sealed or removed.
func (d *desk) crash() {
	d.server.CloseClientConnections()
	d.recorder.stop()
	d.recorder.done.Wait()
	d.recorder.release()
}

// passes makes a call that must pass.
func (d *desk) passes(t *testing.T, body string, header ...string) {
	t.Helper()
	_, _, err := d.call(body, header...)
	must.Do(t, err)
}

// call asks the provider through the recorder.
func (d *desk) call(body string, header ...string) (status int, answer string, err error) {
	d.t.Helper()
	return d.ask("POST", "/openai/v1/chat/completions", body, header...)
}

func (d *desk) ask(method, path, body string, header ...string) (status int, answer string, err error) {
	d.t.Helper()
	req := must.Get(http.NewRequestWithContext(d.t.Context(), method, d.server.URL+path, strings.NewReader(body)))(d.t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func question(stream bool, messages ...string) string {
	return fmt.Sprintf(`{"model":"m","stream":%v,"messages":[%s]}`, stream, strings.Join(messages, ","))
}

// TestEachCallIsSealed: each call is one record, by the recorder, with what the provider answered. Start and end are acts, and nothing is left on disk.
func TestEachCallIsSealed(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		folder, log := t.TempDir(), &shelf{}
		d := newDesk(t, folder, log, func(c *Config) { c.Mode = mode })
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() {
				status, answer, err := d.call(question(n%2 == 0, user(fmt.Sprint("question ", n))), "Authorization", "Bearer sk-marked-secret")
				must.Hold(t, err == nil && status == 200 && strings.Contains(answer, "answer"), "%d, %s, %v", status, answer, err)
			})
		}
		all.Wait()
		d.end()
		calls := log.acts(evidence.ObservedCall)
		must.Hold(t, len(calls) == 40, "%v: %d records of 40 calls", mode, len(calls))
		for _, c := range calls {
			if o := c.Observed; o.Agent != "mia" || c.AgentID != "witness" || o.Ended != evidence.Complete || o.Status != 200 || o.Credential == "" || !bytes.Contains(c.ResponseBody, []byte(`answer`)) {
				t.Errorf("%v: %+v, response %s", mode, o, c.Response)
			}
			must.Equal(t, strings.Join(c.Apart(), " "), "/request_body /response_body", "sealed apart")
		}
		must.Hold(t, len(log.events(t, observed.Start)) == 1 && len(log.events(t, observed.Stop)) == 1, "start and stop are no acts")
		if err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			must.Hold(t, e == nil || e.IsDir() || strings.Contains(path, locksFolder), "%s is left", path)
			return err
		}); err != nil {
			t.Error(err)
		}
		for _, draft := range log.drafts {
			doc, err := json.Marshal(draft.Payload)
			must.Hold(t, err == nil && !bytes.Contains(doc, []byte("marked-secret")), "a secret in %s, %v", doc, err)
		}
	}
}

// TestClosedModeWithoutALog: no client gets the end of an answer that is not sealed, further calls are refused, and afterwards each call is in the log
// once and says how it ended.
func TestClosedModeWithoutALog(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, nil)
	log.fail(errors.New("the disk is full"))
	for _, stream := range []bool{true, false} {
		_, answer, err := d.call(question(stream, user("hello")))
		must.Hold(t, err != nil && !strings.Contains(answer, "[DONE]") && (!json.Valid([]byte(answer)) || answer == ""),
			"the client got %q, %v", answer, err)
		status, answer, err := d.call(question(stream, user("hello")))
		must.Hold(t, err == nil && status == http.StatusServiceUnavailable, "%d, %s, %v: want 503", status, answer, err)
		log.fail(nil)
		waitFor(t, func() bool { return d.recorder.state().Trouble == "" })
		log.fail(errors.New("the disk is full"))
	}
	must.Equal(t, d.asked, 2)
	log.fail(nil)
	status, _, err := d.call(question(true, user("again")))
	must.Hold(t, err == nil && status == 200, "%d, %v", status, err)
	d.end()
	ends := map[evidence.Ended]int{}
	for _, c := range log.acts(evidence.ObservedCall) {
		ends[c.Observed.Ended]++
	}
	must.Equal(t, ends[evidence.RecorderCut], 2)
	must.Equal(t, ends[evidence.Complete], 1)
}

func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		must.Need(t, !time.Now().After(deadline), "it did not happen")
	}
}

// TestOpenModeWithoutALog: every call passes. What could not be sealed is sealed later; what could not even be noted is counted exactly, by agent.
func TestOpenModeWithoutALog(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = relay.Open })
	log.fail(errors.New("the database is gone"))
	pass := func() {
		t.Helper()
		status, answer, err := d.call(question(true, user("hello")))
		must.Hold(t, err == nil && status == 200 && strings.HasSuffix(answer, "[DONE]\n\n"), "%d, %q, %v", status, answer, err)
	}
	for range 5 {
		pass()
	}
	must.Do(t, d.relay.Wait(t.Context()))
	d.recorder.journal.mu.Lock() // now the journal's disk fails as well
	good := d.recorder.journal.path
	d.recorder.journal.path, d.recorder.journal.broken = filepath.Join(good, "nowhere"), errors.New("no room")
	d.recorder.journal.mu.Unlock()
	for range 7 {
		pass()
	}
	d.recorder.journal.mu.Lock()
	d.recorder.journal.path = good
	d.recorder.journal.mu.Unlock()
	log.fail(nil)
	d.end()
	must.Equal(t, len(log.acts(evidence.ObservedCall)), 5)
	missed := int64(0)
	for _, e := range log.events(t, observed.Gap) {
		for _, m := range e.Missed {
			must.Equal(t, m.Agent, "mia")
			missed += m.Calls
		}
	}
	must.Equal(t, missed, 7)
}

// TestCrash: wherever a recorder dies, each call that began is in the log once when the next one has begun.
func TestCrash(t *testing.T) {
	for name, steps := range map[string]func(*testing.T, *desk){
		"before the provider is asked": func(t *testing.T, d *desk) { d.begins(t, "c1", time.Now(), bodyOfText("hello")) },
		"while the answer is under way": func(t *testing.T, d *desk) {
			d.begins(t, "c1", time.Now(), bodyOfText("hello"))
			must.Do(t, os.WriteFile(filepath.Join(d.recorder.Spool(), "c1.response"), []byte("data: half of"), 0o600))
		},
		"when the record is in the log": func(t *testing.T, d *desk) {
			e := d.begins(t, "c1", time.Now(), bodyOfText("hello")).(*exchange)
			a := d.recorder.actOf(e.intent)
			a.Timestamp, a.Ended, a.ChainID = evidence.FormatTime(time.Now()), evidence.Complete, "c"
			a.Request = &observed.Body{ObservedBody: evidence.ObservedBody{SHA256: e.intent.SHA256, Bytes: e.intent.Bytes}}
			must.Get(d.recorder.seal(t.Context(), a))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, log := t.TempDir(), &shelf{}
			d := newDesk(t, folder, log, nil)
			steps(t, d)
			d.crash()
			for range 2 { // the second time there is nothing left to do
				newDesk(t, folder, log, nil).end()
			}
			calls := log.acts(evidence.ObservedCall)
			must.Need(t, len(calls) == 1, "%d records", len(calls))
			o := calls[0].Observed
			must.Equal(t, (o.Ended == evidence.LostInCrash), name != "when the record is in the log")
			must.Equal(t, o.Request.SHA256, evidence.DigestOf([]byte("hello")))
			body := string(calls[0].ResponseBody)
			must.Hold(t, name != "while the answer is under way" || body == `"data: half of"`, "of the answer there is %s", body)
		})
	}
}

// bodyOfText is the copy of a body.
func bodyOfText(text string) *relay.Body {
	return &relay.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf([]byte(text))}
}

// begins has the recorder begin a call of a model.
func (d *desk) begins(t *testing.T, id string, began time.Time, request *relay.Body) relay.Exchange {
	t.Helper()
	return must.Get(d.recorder.Begin(t.Context(), &relay.Call{Speaks: relay.Models, ID: id, Began: began, Method: "POST", Path: "/x",
		Origin: "https://api.example", Vantage: evidence.Proxy, Header: http.Header{}, Request: request}))(t)
}

// TestCrashOfAnotherRecorder: what a recorder left is sealed in its own name, also by a recorder of another name. If its keys do not sign any more, the record says whose call it was.
func TestCrashOfAnotherRecorder(t *testing.T) {
	for _, refused := range []bool{false, true} {
		folder, log := t.TempDir(), &shelf{}
		one := newDesk(t, folder, log, func(c *Config) { c.Name = "first" })
		one.begins(t, "c1", time.Now(), bodyOfText("hello"))
		one.crash()
		if refused {
			log.refuse = func(d *evidence.Draft) error {
				if d.AgentID == "first" {
					return errors.New("its key has ended")
				}
				return nil
			}
		}
		newDesk(t, folder, log, func(c *Config) { c.Name = "second" }).end()
		calls := log.acts(evidence.ObservedCall)
		must.Need(t, len(calls) == 1, "%d records", len(calls))
		by, chain, said := "first", "recorder/first", false
		if refused {
			by, chain, said = "second", "recorder/second", true
		}
		has := slices.ContainsFunc(calls[0].Observed.Missing, func(m string) bool { return strings.Contains(m, "at the recorder first") })
		must.Hold(t, calls[0].AgentID == by && calls[0].ChainID == chain && has == said,
			"by %s in %s, missing %q", calls[0].AgentID, calls[0].ChainID, calls[0].Observed.Missing)
	}
}

// TestActThatIsRefused: an act that the log can never take in stops nobody: it is sealed without what was said. An origin that no record can hold is refused before the call.
func TestActThatIsRefused(t *testing.T) {
	log := &shelf{refuse: func(d *evidence.Draft) error {
		if len(d.ResponseBody) > 0 {
			return fmt.Errorf("sealing: %w", &evidence.FieldError{Field: "response_body", Reason: "for a test"})
		}
		return nil
	}}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Chain = "monday" })
	for range 2 {
		status, _, err := d.call(question(true, user("hello")))
		must.Need(t, err == nil && status == 200, "%d, %v", status, err)
	}
	call := &relay.Call{Speaks: relay.Models, ID: "c1", Began: time.Now(), Method: "POST", Path: "/x", Origin: "https://" + strings.Repeat("x", 200), Vantage: evidence.Proxy, Header: http.Header{},
		Request: bodyOfText("hello")}
	_, err := d.recorder.Begin(t.Context(), call)
	refusal, is := errors.AsType[*relay.Refusal](err)
	must.Hold(t, is && refusal.Status == http.StatusBadRequest, "a long origin: %v", err)
	must.Hold(t, d.recorder.earlier(ChainOf("mia", "monday")) == nil, "later calls copy from bytes that no record has")
	d.end()
	calls := log.acts(evidence.ObservedCall)
	must.Need(t, len(calls) == 2, "%d records", len(calls))
	o := calls[0].Observed
	if o.Ended != evidence.Complete || o.Request.Bytes == 0 || o.Response.Bytes == 0 || !slices.ContainsFunc(o.Missing, func(m string) bool {
		return m == "what was said: the record that had it was refused: the format of records does not take it"
	}) {
		t.Errorf("%+v", o)
	}
}

// TestLivingRecorderIsLeftAlone: a second recorder in the folder does not take the calls of the first for lost.
func TestLivingRecorderIsLeftAlone(t *testing.T) {
	folder, log := t.TempDir(), &shelf{}
	one := newDesk(t, folder, log, nil)
	one.begins(t, "c1", time.Now(), bodyOfText("hello"))
	newDesk(t, folder, log, nil).end()
	calls := log.acts(evidence.ObservedCall)
	must.Hold(t, len(calls) == 0, "%d calls are said to be lost", len(calls))
	one.crash()
	newDesk(t, folder, log, nil).end()
	calls = log.acts(evidence.ObservedCall)
	must.Hold(t, len(calls) == 1, "%d calls", len(calls))
}

// TestCallsWithoutAnAgent: who does not say which agent calls is refused in both modes, and the provider is not asked.
func TestCallsWithoutAnAgent(t *testing.T) {
	for _, mode := range []relay.Mode{relay.Closed, relay.Open} {
		d := newDesk(t, t.TempDir(), &shelf{}, func(c *Config) {
			c.Mode, c.Agent = mode, ""
			c.WhoIs = func(_ context.Context, token string) (string, error) {
				if token == "jurat_good" {
					return "mia", nil
				}
				return "", errors.New("the token is unknown here")
			}
		})
		for _, header := range [][]string{nil, {"Jurat-Agent", "Bearer jurat_bad"}} {
			status, answer, err := d.call(question(false, user("hello")), header...)
			must.Hold(t, err == nil && status == http.StatusUnauthorized, "%v: %d, %s, %v", mode, status, answer, err)
		}
		status, _, err := d.call(question(false, user("hello")), "Jurat-Agent", "Bearer jurat_good")
		must.Hold(t, err == nil && status == 200 && d.asked == 1, "%v: %d, %v, asked %d times", mode, status, err, d.asked)
		d.end()
	}
}

// TestAttempts: attempts of a call that fail are of the conversation that goes on after them, whether the program says that they are attempts, or not. The same
// request after an answer begins another conversation.
func TestAttempts(t *testing.T) {
	for name, counts := range map[string]bool{"told by the SDK": true, "by the program": false} {
		log := &shelf{}
		d := newDesk(t, t.TempDir(), log, nil)
		d.busy.Store(2)
		ask := func(attempt int, messages ...string) {
			t.Helper()
			var header []string
			if counts {
				header = []string{"X-Stainless-Retry-Count", fmt.Sprint(attempt)}
			}
			d.passes(t, question(false, messages...), header...)
		}
		for attempt := range 3 {
			ask(attempt, user("hello"))
		}
		ask(0, user("hello"), agent("answer 1"), user("go on"))
		ask(0, user("hello"))
		d.end()
		calls := log.acts(evidence.ObservedCall)
		must.Need(t, len(calls) == 5, "%s: %d calls", name, len(calls))
		for i, c := range calls {
			if same := c.ChainID == calls[0].ChainID; same != (i < 4) {
				t.Errorf("%s: call %d is in %s, the first in %s", name, i, c.ChainID, calls[0].ChainID)
			}
			must.Equal(t, c.Observed.RetryOf != "", counts && (i == 1 || i == 2), name, "call", i, "is an attempt of", c.Observed.RetryOf)
		}
	}
}

// TestConversationInTheLog: the calls of a conversation are in one chain, a repeated call names the one before, and a chain that the caller names is the
// agent's own.
func TestConversationInTheLog(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, nil)
	messages := []string{user("hello")}
	for n := range 3 {
		d.passes(t, question(n == 1, messages...))
		messages = append(messages, agent(fmt.Sprintf("answer %d", len(messages))), user("go on"))
	}
	for n := range 2 {
		d.passes(t, question(false, user("other")), "X-Stainless-Retry-Count", fmt.Sprint(n))
	}
	d.passes(t, question(false, user("named")), "Jurat-Chain", "ticket 7")
	d.end()
	for _, chain := range log.asked { // a conversation that begins is in no log
		must.Hold(t, chain == "recorded/mia/ticket 7" || strings.HasPrefix(chain, "recorder/"), "the log was asked for %q", chain)
	}
	calls := log.acts(evidence.ObservedCall)
	must.Need(t, len(calls) == 6, "%d calls", len(calls))
	must.Hold(t, calls[0].ChainID == calls[1].ChainID && calls[1].ChainID == calls[2].ChainID && calls[2].ChainID != calls[3].ChainID,
		"chains %s, %s, %s; then %s", calls[0].ChainID, calls[1].ChainID, calls[2].ChainID, calls[3].ChainID)
	must.Hold(t, calls[3].ChainID == calls[4].ChainID && calls[4].Observed.RetryOf == calls[3].RequestID && calls[4].Observed.Attempt == 2,
		"the second attempt: %+v", calls[4].Observed)
	for i, before := range []string{"", calls[0].RecordID, calls[1].RecordID, "", calls[3].RecordID, ""} {
		if named := calls[i].Saw; (before == "") != (named == nil) || before != "" && named[0] != evidence.DigestOf([]byte(before)) {
			t.Errorf("call %d names %v, want the record %q", i, named, before)
		}
	}
	must.Equal(t, calls[5].ChainID, "recorded/mia/ticket 7")
}

// TestContextIsKeptOnce: 100 calls that each send the whole conversation again make the log grow by at most twice the longest request, and each
// request can be rebuilt.
func TestContextIsKeptOnce(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, nil)
	long := strings.Repeat("the parcel arrived late and the customer asks what to do; ", 4000/58)
	var messages []string
	longest := 0
	for n := range 100 {
		messages = append(messages, user(fmt.Sprintf("%d: %s", n, long)))
		q := question(false, messages...)
		longest = max(longest, len(q))
		d.passes(t, q)
		messages = append(messages, agent(fmt.Sprintf("answer %d", len(messages))))
	}
	d.end()
	size := 0
	var window observed.Window
	for _, c := range log.acts(evidence.ObservedCall) {
		doc := must.Get(json.Marshal(c.Payload))(t)
		size += len(doc)
		pieces := must.Get(evidence.ParseBody(c.RequestBody))(t)
		body, err := window.Rebuild(pieces)
		must.Need(t, err == nil && evidence.DigestOf(body) == c.Observed.Request.Sealed(), "the request is not rebuilt: %v", err)
		window.Keep(body)
	}
	must.Hold(t, longest >= 390_000 && size <= 2*longest, "the log grew by %d bytes, the longest request has %d", size, longest)
	t.Logf("%d bytes for 100 calls, the longest request has %d: %.2f times", size, longest, float64(size)/float64(longest))
}

// TestHeartbeat: the recorder says that it lives, and how many calls ended.
func TestHeartbeat(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Heartbeat = 5 * time.Millisecond })
	for range 3 {
		d.passes(t, question(false, user("hello")))
	}
	total := func() (n int64) {
		for _, e := range log.events(t, observed.Heartbeat) {
			n += *e.Calls
		}
		return n
	}
	waitFor(t, func() bool { return total() == 3 })
	d.end()
	signs(t, log, 3)
}

// TestTimesOfAChain: no record claims an earlier time than the one that it names, though calls are sealed in another order than they ended: a reader would take it for refuted.
func TestTimesOfAChain(t *testing.T) {
	folder, log, chain := t.TempDir(), &shelf{}, ChainOf("mia", "one")
	ended := time.Now().UTC().Truncate(time.Millisecond)
	for _, after := range [][]time.Duration{{5 * time.Second, 0, 2 * time.Second}, {time.Second, 9 * time.Second}} { // the second recorder finds the chain in the log
		d := newDesk(t, folder, log, nil)
		for _, later := range after {
			id := must.Get(evidence.NewRecordID(d.recorder.Now(), rand.Reader))(t)
			act := observed.Act{Payload: evidence.Payload{AgentID: "witness", RecordID: id, ActionType: evidence.ObservedTool, RequestID: id, ChainID: chain, Timestamp: evidence.FormatTime(ended.Add(later))},
				Observed: evidence.Observed{Agent: "mia", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: "mcp/2025-06-18", Upstream: &evidence.Upstream{Origin: "stdio:sums"}, Began: evidence.FormatTime(ended), EndedMS: observed.Milliseconds(later), Ended: evidence.Complete},
				Request:  &observed.Body{ObservedBody: evidence.ObservedBody{SHA256: evidence.DigestOf(nil)}}}
			must.Get(d.recorder.seal(t.Context(), act))(t)
		}
		d.end()
	}
	want := []int64{5, 5, 5, 5, 9}
	for n, a := range log.acts(evidence.ObservedTool) {
		if got := a.Payload.Time().Sub(ended); got != time.Duration(want[n])*time.Second || (n > 0) != (len(a.Saw) == 1) {
			t.Errorf("act %d claims %v after the first began, want %d s, and names %v", n, got, want[n], a.Saw)
		}
	}
	a := log.acts(evidence.ObservedTool)[1].Observed
	must.Hold(t, *a.EndedMS == 0, "a call that ended at once ended after %d ms", *a.EndedMS)
}

// TestStopCounts: the end of a recorder says how many calls there were since its last sign of life, so that none is uncounted.
func TestStopCounts(t *testing.T) {
	log, seconds := &shelf{}, atomic.Int64{} // no two looks at the clock are alike
	d := newDesk(t, t.TempDir(), log, func(c *Config) {
		c.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, int(seconds.Add(1)), 0, time.UTC) }
	})
	for range 2 {
		d.passes(t, question(false, user("hello")))
	}
	log.fail(errors.New("the disk is full"))
	_, _, err := d.call(question(false, user("last")))
	must.Hold(t, err != nil, "a call passed without a record")
	log.fail(nil) // it is sealed at the end, if not before
	d.end()
	signs(t, log, 3)
	stops := log.events(t, observed.Stop)
	must.Hold(t, len(stops) == 1 && *stops[0].Calls == 3, "%+v", stops)
}

// TestSignsThoughTheClockIsSetBack: a sign of life names the one before it by the time that the log has of it, which is no earlier than that of the record before.
func TestSignsThoughTheClockIsSetBack(t *testing.T) {
	log, seconds := &shelf{}, atomic.Int64{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) {
		c.Heartbeat = time.Millisecond
		c.Now = func() time.Time {
			return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-time.Duration(seconds.Add(1)) * time.Second)
		}
	})
	d.passes(t, question(false, user("hello")))
	waitFor(t, func() bool { return len(log.events(t, observed.Heartbeat)) > 2 })
	d.end()
	signs(t, log, 1)
}

// signs checks that each sign of life of a recorder names the one before it, and that all of them count some calls.
func signs(t *testing.T, log *shelf, calls int64) {
	t.Helper()
	since, counted := "", int64(0)
	for _, draft := range log.acts(evidence.RecorderEvent) {
		e := must.Get(observed.ParseEvent(draft.Response))(t)
		must.Hold(t, e.Event == observed.Start || e.Since == since, "%s says %q, and the sign of life before it is of %q", e.Event, e.Since, since)
		if since = draft.Timestamp; e.Calls != nil {
			counted += *e.Calls
		}
	}
	must.Equal(t, counted, calls)
}

// TestEncodedAnswerThatBreaksOff: of a compressed answer that was cut, what came before is sealed decoded, and says what was answered.
func TestEncodedAnswerThatBreaksOff(t *testing.T) {
	var encoded bytes.Buffer
	w := gzip.NewWriter(&encoded)
	must.Get(io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is\"}}]}\n\n"))(t)
	must.Do(t, w.Flush())
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, nil)
	for _, body := range []string{encoded.String(), "no gzip at all"} {
		d.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, body)
		}
		d.passes(t, question(true, user("Is it?")), "Accept-Encoding", "gzip")
	}
	d.end()
	calls := log.acts(evidence.ObservedCall)
	must.Need(t, len(calls) == 2, "%d records", len(calls))
	if o := calls[0].Observed; !bytes.Contains(calls[0].ResponseBody, []byte(`It is`)) || o.Response.Decoded != "" || !slices.Contains(o.Missing, "response: its encoding breaks off; what came before is kept decoded") {
		t.Errorf("%s, %+v, missing %q", calls[0].ResponseBody, o.Response, o.Missing)
	}
	if o := calls[1].Observed; o.Response.Decoded != evidence.DecodingRefused || calls[1].Response != nil {
		t.Errorf("%s, %+v", calls[1].Response, o.Response)
	}
}

// TestLargeBodiesAreKept: what a record can hold of a body is sealed whole, plain or decoded; of a longer one the beginning is, with the digest of all of it.
func TestLargeBodiesAreKept(t *testing.T) {
	zipped := func(text string) string {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		must.Get(io.WriteString(w, text))(t)
		must.Do(t, w.Close())
		return out.String()
	}
	text := func(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }
	long := zipped(text(3 << 20))
	for name, test := range map[string]struct {
		encoding, body string
		kept           string
		truncated      bool
		decoded, says  string
	}{
		"longer than a beginning":                  {"", text(observed.Beginning + 1), text(observed.Beginning + 1), false, "", ""},
		"longer than a record holds":               {"", text(observed.MaxKept + 1), text(observed.Beginning), true, "", ""},
		"encoded, longer than a beginning":         {"gzip", zipped(text(observed.Beginning + 1)), text(observed.Beginning + 1), false, "", ""},
		"encoded, decoded longer than is held":     {"gzip", zipped(text(observed.MaxKept + 1)), zipped(text(observed.MaxKept + 1)), false, evidence.DecodingRefused, "is kept encoded"},
		"encoded, breaks off behind the beginning": {"gzip", long[:len(long)-8], text(3 << 20), true, "", "breaks off"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &shelf{}
			d := newDesk(t, t.TempDir(), log, func(c *Config) { c.InTheRecord = true })
			d.answer = func(w http.ResponseWriter, _ *http.Request) {
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				io.WriteString(w, test.body)
			}
			d.passes(t, question(false, user("Is it?")), "Accept-Encoding", "gzip")
			d.end()
			call := log.acts(evidence.ObservedCall)[0]
			o, missing := call.Observed.Response, strings.Join(call.Observed.Missing, "\n")
			kept, err := evidence.ParseBody(call.ResponseBody)
			must.Hold(t, err == nil && len(kept) == 1 && string(kept[0].Own) == test.kept, "%d pieces, %v", len(kept), err)
			if o.Bytes != int64(len(test.body)) || o.SHA256 != evidence.DigestOf([]byte(test.body)) || o.Truncated != test.truncated || o.Decoded != test.decoded || !strings.Contains(missing, test.says) {
				t.Errorf("%d bytes, truncated %v, decoded %q, missing %q", o.Bytes, o.Truncated, o.Decoded, missing)
			}
		})
	}
}

// TestNamesThatMakeNoChain: a name that is too long for a chain is refused at once, and an agent with a long name is recorded. Neither stops the
// calls of others.
func TestNamesThatMakeNoChain(t *testing.T) {
	log := &shelf{}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Agent = strings.Repeat("ü", 100) })
	status, answer, err := d.call(question(false, user("hello")), "Jurat-Chain", strings.Repeat("x", 200))
	must.Hold(t, err == nil && status == http.StatusBadRequest && strings.Contains(answer, "Jurat-Chain"), "%d, %s, %v: want 400", status, answer, err)
	status, answer, err = d.call(question(false, user("hello")))
	must.Hold(t, err == nil && status == 200, "%d, %s, %v", status, answer, err)
	d.end()
	must.Equal(t, len(log.acts(evidence.ObservedCall)), 1)
}

// TestSealedThoughTheLogErred: if nobody knows whether the first act of a conversation was sealed, the log is asked before the next one.
func TestSealedThoughTheLogErred(t *testing.T) {
	log := &shelf{unsure: errors.New("nobody knows whether it was sealed")}
	d := newDesk(t, t.TempDir(), log, func(c *Config) { c.Mode = relay.Open })
	messages := []string{user("hello")}
	for n := range 2 {
		d.passes(t, question(false, messages...))
		waitFor(t, func() bool { return len(log.acts(evidence.ObservedCall)) > n }) // open mode hands out the answer before
		messages = append(messages, agent(fmt.Sprintf("answer %d", len(messages))), user("go on"))
	}
	d.end()
	calls := log.acts(evidence.ObservedCall)
	if len(calls) != 2 || calls[0].ChainID != calls[1].ChainID || len(calls[1].Saw) != 1 || calls[1].Saw[0] != evidence.DigestOf([]byte(calls[0].RecordID)) {
		t.Errorf("%+v", calls)
	}
}

// TestGapsAreBounded: callers who name ever new chains do not fill the memory, and no missed call is left out of the count.
func TestGapsAreBounded(t *testing.T) {
	var g gaps
	for n := range 3 * mostGaps {
		g.add(gap{fmt.Sprint("recorded/mia/", n), "mia", time.Time{}}, nil)
	}
	must.Hold(t, len(g.counts) <= mostGaps+1 && g.count() == 3*mostGaps, "%d counts of %d calls", len(g.counts), g.count())
}
