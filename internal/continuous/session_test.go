package continuous

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/config"
	"jurat/internal/observe"
	"jurat/jurattest"
	"jurat/reputation/draw"
)

// A watchedHall has an agent whose calls a recorder seals apart.
type watchedHall struct {
	*hall
	sealed map[evidence.Digest]*evidence.Record // with what was sealed apart
	calls  int
}

// call seals a call with a question, which follows the questions before it in a conversation.
func (w *watchedHall) call(t *testing.T, agent, chain string, earlier, request []byte) *evidence.Record {
	t.Helper()
	w.calls++
	body := func(text []byte) *observed.Body {
		return &observed.Body{Bytes: int64(len(text)), SHA256: evidence.DigestOf(text), Kept: text, Type: "application/json"}
	}
	a := observed.Act{Recorder: "gate", RequestID: fmt.Sprint("call-", w.calls), At: jurattest.Start, Began: jurattest.Start, ChainID: chain, Agent: agent, Vantage: evidence.Proxy, Fidelity: evidence.ByBytes,
		Protocol: observe.OpenAIChat, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Elapsed: new(time.Second), Request: body(request),
		Response: body([]byte(`{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It is in Kassel."}}]}`))}
	if earlier != nil {
		a.Request.Earlier = [][]byte{earlier}
	}
	p, err := observed.Payload(a)
	check(t, err)
	r := w.Seal(t, p, "/request_body", "/response_body", "/response")
	w.sealed[r.Digest] = r
	return r
}

func (w *watchedHall) disclose(_ context.Context, r *evidence.Record) (*evidence.Record, error) {
	if with := w.sealed[r.Digest]; with != nil {
		opened := *r
		opened.Disclosures = with.Disclosures
		return &opened, nil
	}
	return r, nil
}

func request(questions ...string) []byte {
	var messages []string
	for _, q := range questions {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, q))
	}
	return []byte(`{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`)
}

var long = strings.Repeat("Where is the parcel that was sent in March? ", 20)

// TestRecordedActsAreTried: what recorders saw an agent do is tried if the operator says so, for that agent, with the texts and with what it copies from. Without
// that word, nothing of it is.
func TestRecordedActsAreTried(t *testing.T) {
	w := &watchedHall{hall: newHall(t, 0), sealed: map[evidence.Digest]*evidence.Record{}}
	first := request(long)
	w.call(t, "desk", "recorded/desk/monday", nil, first)
	second := w.call(t, "desk", "recorded/desk/monday", first, request(long, "And what does it cost?"))
	other := w.call(t, "another", "recorded/another/monday", nil, request("Hello?"))
	if pieces, err := evidence.ParseBody(w.body(t, second)); err != nil || len(pieces) < 2 {
		t.Fatalf("the second call does not copy from the first: %v, %v", pieces, err)
	}
	for _, settings := range []config.Continuous{all, {Sampled: 1, TrialsADay: 100}} {
		plain := w.serve(t, settings)
		w.settleAll(t, plain)
		if status := plain.Status(); status.Owed != 0 || status.Trials != 0 {
			t.Fatalf("nobody asked for recorded acts: %+v", status)
		}
	}
	settings := all
	settings.Recorded, settings.Records = true, 2
	s := w.serve(t, settings, func(c *Config) { c.Disclose = w.disclose })
	w.settleAll(t, s)
	if status := s.Status(); status.Owed != 0 || status.Trials != 2 || len(status.Faults) > 0 {
		t.Fatalf("%+v", status)
	}
	if judgmentOf(t, w.hall, second.Digest) != evidence.SubjectTag(evidence.RoleAgent, "desk") {
		t.Error("the trial judges another than the agent that was seen")
	}
	if _, tried := w.trials.Summary(draw.TrialChain(other.Digest)); tried {
		t.Error("an agent that is not named was tried")
	}
	records, err := w.Ledger.Chain(t.Context(), draw.TrialChain(second.Digest))
	check(t, err)
	if submission := string(records[0].Payload.Response); !strings.Contains(submission, "And what does it cost?") || !strings.Contains(submission, "It is in Kassel.") || !strings.Contains(submission, long[:40]) {
		t.Errorf("the jury was not shown what was asked and answered: %.600s", submission)
	}
	every := config.Continuous{Recorded: true, Sampled: 1, TrialsADay: 100}
	again := w.serve(t, every, func(c *Config) { c.Disclose = w.disclose })
	w.settleAll(t, again)
	if _, tried := w.trials.Summary(draw.TrialChain(other.Digest)); !tried || again.Status().Trials != 3 {
		t.Errorf("%+v", again.Status())
	}
}

func (w *watchedHall) body(t *testing.T, r *evidence.Record) []byte {
	t.Helper()
	value, withheld := w.sealed[r.Digest].Said("/request_body", r.Payload.RequestBody)
	if withheld {
		t.Fatal("withheld")
	}
	return value
}

// TestErasedActs: what is erased, or copies from what is erased, cannot be put before a jury. It stays owed, with the reason.
func TestErasedActs(t *testing.T) {
	w := &watchedHall{hall: newHall(t, 0), sealed: map[evidence.Digest]*evidence.Record{}}
	first := request(long)
	gone := w.call(t, "desk", "recorded/desk/monday", nil, first)
	w.call(t, "desk", "recorded/desk/monday", first, request(long, "And what does it cost?"))
	w.call(t, "desk", "recorded/desk/monday", nil, request("Another question, which copies nothing."))
	delete(w.sealed, gone.Digest)
	settings := all
	settings.Recorded = true
	s := w.serve(t, settings, func(c *Config) { c.Disclose = w.disclose })
	w.settleAll(t, s)
	status := s.Status()
	if status.Owed != 2 || status.Trials != 1 || len(status.Debts) != 2 {
		t.Fatalf("%+v", status)
	}
	for _, d := range status.Debts {
		if !strings.Contains(d.Why, "erased") || d.Agent != "desk" {
			t.Errorf("%+v", d)
		}
	}
}

// TestActsOfEarlierRecorders: an act that does not say that it judges the agent is not tried: the log would count the judgment for the agent, and reviews for the recorder.
func TestActsOfEarlierRecorders(t *testing.T) {
	s := selection{recorded: true}
	for judged, want := range map[evidence.Judged]string{evidence.JudgedAgent: "desk", "": ""} {
		p := evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", Observed: &evidence.Observed{Agent: "desk", Judged: judged}}
		if got := s.agentOf(&p); got != want {
			t.Errorf("%q: %q", judged, got)
		}
	}
}

// TestDisclosureIsRequired: recorded acts cannot be tried where nothing discloses them.
func TestDisclosureIsRequired(t *testing.T) {
	if _, err := New(Config{Settings: &config.Continuous{Recorded: true, Sampled: 1, TrialsADay: 1}}); err == nil {
		t.Error("no error")
	}
}
