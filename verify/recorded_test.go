package verify_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
)

const (
	aChat    = `{"model":"m","messages":[{"role":"user","content":"Where is parcel 17?"}]}`
	anAnswer = `{"id":"c-1","model":"m-2026","choices":[{"index":0,"message":{"role":"assistant","content":"In Kassel."},"finish_reason":"stop"}],"usage":{"total_tokens":9}}`
	// aTool is of a protocol whose bytes nobody here reads.
	aTool = "other/1"
)

// longContext is what an agent sends again with each call.
var longContext = strings.Repeat("a long context that is sent with each call, and kept once. ", 20)

func passed(text string) *observed.Body {
	return observed.Whole(text, "application/json")
}

// observedCall is a call that the recorder "gate" saw.
func observedCall(id, protocol, request, response string) observed.Act {
	return observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: id, ActionType: evidence.ObservedCall, Timestamp: evidence.FormatTime(jurattest.Start), ChainID: "talk"},
		Observed: evidence.Observed{Agent: "shop-bot", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: protocol, Method: "POST", Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Began: evidence.FormatTime(jurattest.Start), EndedMS: observed.Milliseconds(time.Second), FirstByteMS: observed.Milliseconds(time.Second)},
		Request:  passed(request), Response: passed(response)}
}

func payloadOf(t *testing.T, act observed.Act) evidence.Payload {
	t.Helper()
	return must.Get(observed.Draft(act))(t).Payload
}

// a sighting is one thing that a recorder may seal, and what a verifier finds of it.
type sighting struct {
	name   string
	act    func() observed.Act
	change func(p *evidence.Payload)
	apart  []string
	shown  func(r *evidence.Record)
	status verify.Status
	rule   string

	first   bool // a record with the long context stands before it
	falsely bool // shown has a false disclosure, which is found, too
}

func call() observed.Act { return observedCall("call-2", traffic.OpenAIChat, aChat, anAnswer) }

func tool() observed.Act {
	return observedCall("call-2", aTool, `{"method":"tools/call"}`, `{"result":{}}`)
}

// message is a message that an agent got and answered.
func message() observed.Act {
	a := observedCall("call-2", traffic.A2A10, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Is it in Bern?"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"Yes."}]}}}`)
	a.ActionType, a.Side = evidence.ObservedMessage, evidence.Answered
	return a
}

// copying is a use of a tool whose request copies from the first record.
func copying() observed.Act {
	act := observedCall("call-2", aTool, longContext+"And now this.", `{"result":{}}`)
	act.Request.Earlier = [][]byte{[]byte(longContext)}
	return act
}

// with changes an act.
func with(act func() observed.Act, change func(*observed.Act)) func() observed.Act {
	return func() observed.Act {
		a := act()
		change(&a)
		return a
	}
}

// inBody changes the text of a body's member.
func inBody(old, new string) func(*evidence.Payload) {
	return func(p *evidence.Payload) {
		changed := strings.Replace(string(p.RequestBody), old, new, 1)
		if changed == string(p.RequestBody) {
			panic("the change does not apply to " + changed)
		}
		p.RequestBody = jsontext.Value(changed)
	}
}

var bothBodies = []string{"/request_body", "/response_body"}

// tooled is a call whose tools stand in its input.
func tooled() observed.Act {
	return observedCall("call-2", traffic.OpenAIResponses, `{"model":"m","input":[{"type":"additional_tools","tools":[{"name":"look"}]},{"role":"user","content":"Hi"}]}`,
		`{"model":"m-1","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}`)
}

// personal is a call that says who asks beside the conversation, and searches.
func personal() observed.Act {
	return observedCall("call-2", traffic.OpenAIChat, `{"model":"m","user":"Anna K.","temperature":1,"messages":[{"role":"user","content":"Where is parcel 17?"}]}`,
		`{"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"In Kassel."}}],"citations":["https://example.org/anna"],"usage":{"total_tokens":7,"note":"for Anna"}}`)
}

// sightings break one rule each. Their outer layers are right: signature, chain, place and stamp.
func sightings() []sighting {
	refuted, open := verify.Refuted, verify.NotProved
	return []sighting{
		{name: "projection: a call", act: call, status: verify.Proved},
		{name: "projection: a call in the process", act: with(call, func(a *observed.Act) { a.Vantage = evidence.InProcess }), status: verify.Proved},
		{name: "projection: a call sealed apart", act: call, apart: bothBodies, status: verify.Proved},
		{name: "projection: another model", act: call, change: func(p *evidence.Payload) { p.Model = "m2" }, status: refuted, rule: "projection"},
		{name: "projection: another version", act: call, change: func(p *evidence.Payload) { p.ModelVersion = "m-2025" }, status: refuted, rule: "projection"},
		{name: "projection: an answer beside the bytes", act: call, change: func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Kassel."`) }, status: open, rule: "projection"},
		{name: "projection: an answer beside the bytes, withheld", act: call, change: func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Bonn."`) }, apart: []string{"/response"},
			shown: func(r *evidence.Record) { r.Disclosures = nil }, status: open, rule: "projection"},
		{name: "projection: a prompt beside the bytes", act: call, change: func(p *evidence.Payload) { p.Prompt = jsontext.Value(`"Where is it?"`) }, status: open, rule: "projection"},
		{name: "projection: an answer beside the bytes, and another model", act: call, change: func(p *evidence.Payload) { p.Model, p.Response = "m2", jsontext.Value(`"In Kassel."`) }, status: refuted, rule: "projection"},
		{name: "projection: another end", act: call, change: func(p *evidence.Payload) { p.Observed.Finish = "length" }, status: refuted, rule: "projection"},
		{name: "projection: a call that nobody asked for", act: call, change: func(p *evidence.Payload) { p.Observed.Calls = []evidence.ObservedUse{{ID: "c1", Name: "refund"}} }, status: refuted, rule: "projection"},
		{name: "a fact whose bytes are withheld", act: call, change: func(p *evidence.Payload) { p.ModelVersion = "m-2025" }, apart: []string{"/response_body"},
			shown: func(r *evidence.Record) { r.Disclosures = nil }, status: open, rule: "withheld"},
		{name: "projection: other settings", act: call, change: func(p *evidence.Payload) { p.Parameters = jsontext.Value(`{"temperature":0}`) }, status: refuted, rule: "projection"},
		{name: "projection: settings and counts without who asks", act: personal, status: verify.Proved},
		{name: "projection: a text of the request among the settings", act: personal, change: func(p *evidence.Payload) {
			p.Parameters = jsontext.Value(`{"temperature":1,"user":"Anna K."}`)
		}, status: refuted, rule: "projection"},
		{name: "projection: a text of the answer among the counts", act: personal, change: func(p *evidence.Payload) {
			p.Observed.Usage = jsontext.Value(`{"note":"for Anna","total_tokens":7}`)
		}, status: refuted, rule: "projection"},
		{name: "projection: an address among the references", act: personal, change: func(p *evidence.Payload) {
			p.Observed.ContextByReference = []string{"url:https://example.org/anna"}
		}, status: refuted, rule: "projection"},
		{name: "projection: other usage", act: call, change: func(p *evidence.Payload) { p.Observed.Usage = jsontext.Value(`{"total_tokens":8}`) }, status: refuted, rule: "projection"},
		{name: "projection: references that nobody made", act: call, change: func(p *evidence.Payload) { p.Observed.ContextByReference = []string{"file:1"} }, status: refuted, rule: "projection"},
		{name: "projection: a status that makes it an error", act: with(call, func(a *observed.Act) { a.Response = passed(`{"error":{"message":"no"}}`) }), status: verify.Proved},
		{name: "projection: parsed by somebody else, and another model", act: with(call, func(a *observed.Act) { a.Vantage, a.Fidelity = evidence.InProcess, evidence.Parsed }),
			change: func(p *evidence.Payload) { p.Model = "m2" }, status: refuted, rule: "projection"},
		{name: "projection: tools in the input", act: tooled, status: verify.Proved},
		{name: "projection: telemetry with bytes", act: with(call, func(a *observed.Act) {
			a.ActionType, a.Vantage, a.Fidelity = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes
		}), status: open, rule: "second-hand"},

		{name: "bytes of a tool", act: tool, status: verify.Proved},
		{name: "no bytes", act: with(tool, func(a *observed.Act) { a.Request, a.Response = passed(""), nil }), status: verify.Proved},
		{name: "another digest", act: tool, change: func(p *evidence.Payload) { p.Observed.Request.SHA256[0] ^= 1 }, status: refuted, rule: "digest"},
		{name: "another number of bytes", act: tool, change: func(p *evidence.Payload) { p.Observed.Response.Bytes-- }, status: refuted, rule: "digest"},
		{name: "other bytes", act: tool, change: inBody("tools/call", "tools/list"), status: refuted, rule: "digest"},
		{name: "other bytes, sealed apart", act: tool, change: inBody("tools/call", "tools/list"), apart: bothBodies, status: refuted, rule: "digest"},
		{name: "bytes where there were none", act: tool, change: func(p *evidence.Payload) { p.Observed.Response = nil }, status: refuted, rule: "digest"},
		{name: "another digest after decoding", act: with(tool, func(a *observed.Act) { a.Response.Encoding = "gzip" }),
			change: func(p *evidence.Payload) { p.Observed.Response.DecodedSHA256[0] ^= 1 }, status: refuted, rule: "digest"},
		{name: "an encoding that was refused", act: with(tool, func(a *observed.Act) { a.Response.Encoding, a.Response.Decoded = "gzip", evidence.DecodingRefused }), status: open, rule: "readers"},
		{name: "bytes withheld", act: tool, apart: bothBodies, shown: func(r *evidence.Record) { r.Disclosures = nil }, status: open, rule: "withheld"},
		{name: "one direction withheld, the other wrong", act: tool, change: func(p *evidence.Payload) { p.Observed.Request.SHA256[0] ^= 1 }, apart: bothBodies,
			shown: func(r *evidence.Record) { r.Disclosures = r.Disclosures[:1] }, status: refuted, rule: "digest"},
		{name: "one body falsely disclosed, and the other has other bytes", act: tool, change: inBody("tools/call", "tools/list"), apart: bothBodies,
			falsely: true, shown: func(r *evidence.Record) { r.Disclosures[1].Value = jsontext.Value(`"{}"`) }, status: refuted, rule: "digest"},
		{name: "bytes not sealed", act: with(tool, func(a *observed.Act) { a.Response.Kept = nil }), status: open, rule: "unsealed"},
		{name: "only the beginning", act: with(tool, func(a *observed.Act) { a.Response.Bytes, a.Response.Truncated = 1000, true }), status: open, rule: "truncated"},
		{name: "masked", act: with(tool, func(a *observed.Act) {
			a.Response.SHA256, a.Response.Masked = evidence.DigestOf([]byte("a secret")), true
		}), status: open, rule: "masked"},
		{name: "masked, and another number of bytes", act: with(tool, func(a *observed.Act) { a.Response.Masked = true }),
			change: func(p *evidence.Payload) { p.Observed.Response.Bytes++ }, status: refuted, rule: "digest"},
		{name: "masked, and other bytes", act: with(tool, func(a *observed.Act) { a.Response.Masked = true }),
			change: func(p *evidence.Payload) { p.Observed.Response.DecodedSHA256[0] ^= 1 }, status: refuted, rule: "digest"},
		{name: "projection: a message", act: message, status: verify.Proved},
		{name: "projection: a message, and another method", act: message, change: func(p *evidence.Payload) { p.Parameters = jsontext.Value(`{"method":"GetTask"}`) }, status: refuted, rule: "projection"},
		{name: "projection: a message, and one flipped byte", act: message, change: inBody("Bern", "Born"), status: refuted, rule: "digest"},
		{name: "a copy", act: copying, first: true, status: verify.Proved},
		{name: "a copy, sealed apart", act: copying, first: true, apart: bothBodies, status: verify.Proved},
		{name: "a copy of what is not there", act: copying, status: open, rule: "missing"},
		{name: "a copy from behind the end", act: copying, first: true, change: inBody(`"at":0`, `"at":1`), status: refuted, rule: "digest"},
		{name: "a copy that is too long", act: copying, first: true, change: inBody(`"length":1180`, `"length":33000000`), status: refuted, rule: "digest"},
		{name: "a copy of less", act: copying, first: true, change: inBody(`"length":1180`, `"length":1179`), status: refuted, rule: "digest"},
		{name: "a copy of itself", act: copying, first: true, change: func(p *evidence.Payload) {
			p.RequestBody = jsontext.Value(strings.Replace(string(p.RequestBody), evidence.DigestOf([]byte(longContext)).String(), p.Observed.Request.SHA256.String(), 1))
		}, status: open, rule: "missing"},
		{name: "parsed by somebody else", act: with(tool, func(a *observed.Act) { a.Fidelity, a.Vantage = evidence.Parsed, evidence.InProcess }), status: open, rule: "second-hand"},
		{name: "telemetry", act: func() observed.Act {
			a := observedCall("call-2", "otlp", "", "")
			a.ActionType, a.Vantage, a.Fidelity, a.Request, a.Response = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes, nil, nil
			a.Model, a.Payload.Response = "m", jsontext.Value(`"In Kassel."`)
			return a
		}, status: open, rule: "second-hand"},
		{name: "a witness of itself", act: with(tool, func(a *observed.Act) { a.Agent = "gate" }), status: open, rule: "recorder-agent"},
		{name: "a protocol that nobody reads", act: with(tool, func(a *observed.Act) { a.Payload.Response = jsontext.Value(`"a word"`) }), status: open, rule: "projection"},
		{name: "lost in a crash", act: with(tool, func(a *observed.Act) { a.Ended, a.EndedMS = evidence.LostInCrash, nil }), status: open, rule: "gap"},
	}
}

// bundle seals a sighting, and the first record before it.
func (s *sighting) bundle(t *testing.T, h *jurattest.House) (*evidence.Bundle, *evidence.Record) {
	t.Helper()
	var records []*evidence.Record
	if s.first {
		records = append(records, h.Seal(t, payloadOf(t, observedCall("call-1", aTool, longContext, "{}"))))
	}
	act := s.act()
	p := payloadOf(t, act)
	if s.first {
		p.PreviousRecord = records[0].Digest
	}
	if s.change != nil {
		s.change(&p)
	}
	r := h.Seal(t, p, s.apart...)
	b := h.Bundle(t, append(records, r)...)
	r = b.Records[len(b.Records)-1]
	if s.shown != nil {
		s.shown(r)
	}
	return b, r
}

func TestVantage(t *testing.T) {
	for _, s := range sightings() {
		t.Run(s.name, func(t *testing.T) {
			h := jurattest.New(t)
			b, r := s.bundle(t, h)
			report := verify.Bundle(b, h.Options(t))
			if s.rule == "" {
				r = nil
			}
			if f := report.Of(verify.Vantage); s.falsely && (f.Status != s.status || f.Rule != s.rule) {
				t.Errorf("%+v", f)
			} else if !s.falsely {
				expectVantage(t, report, s.status, s.rule, r)
			}
			must.Hold(t, (report.Outcome == verify.Refuted) == (s.status == verify.Refuted), "outcome %s", report.Outcome)
			must.Hold(t, s.status == verify.Refuted || slices.Contains(report.Uncounted, verify.Vantage) || s.status == verify.Proved,
				"it counts, though nobody asked")
			o := h.Options(t)
			o.Require = []verify.Guarantee{verify.Vantage}
			must.Equal(t, verify.Bundle(b, o).Outcome, s.status, "required")
		})
	}
}

// expectVantage checks the answer, and that nothing else is found but that the operator keeps the keys.
func expectVantage(t *testing.T, report *verify.Report, status verify.Status, rule string, record *evidence.Record) {
	t.Helper()
	name := ""
	if record != nil {
		name = record.Payload.RecordID
	}
	if got := report.Of(verify.Vantage); got.Status != status || got.Rule != rule || got.Record != name || got.Reason == "" {
		t.Errorf("%+v; want %s by rule %q, naming %q", got, status, rule, name)
	}
	for _, f := range report.Details {
		must.Hold(t, f.Guarantee == verify.NonRepudiation || f.Guarantee == verify.Vantage, "the report has a finding that the test did not cause: %+v", f)
	}
}

// TestVantageOfOneRecord: a record in a file of its own is judged as in a bundle; what it copies from is not there.
func TestVantageOfOneRecord(t *testing.T) {
	for _, s := range sightings() {
		h := jurattest.New(t)
		_, r := s.bundle(t, h)
		alone := *r
		alone.Log = nil
		got := verify.Record(&alone, h.Options(t)).Of(verify.Vantage)
		want := s.rule
		if s.first && s.rule != "missing" {
			want = "missing"
		}
		must.Hold(t, got.Rule == want && (got.Status == verify.Refuted) == (want == s.rule && s.status == verify.Refuted),
			"%s: %+v, want %q", s.name, got, want)
	}
}

// TestSeenBeforeAnAgent: of a recorder before an agent that answers, the report does not say that it saw what the agent asked of others.
func TestSeenBeforeAnAgent(t *testing.T) {
	h := jurattest.New(t)
	asked := message()
	asked.RequestID, asked.Side = "call-3", evidence.Asked
	r := verify.Bundle(h.Bundle(t, h.Seal(t, payloadOf(t, message())), h.Seal(t, payloadOf(t, asked))), h.Options(t))
	const want = `bytes seen by the recorder "gate" between the agent and those who ask it; bytes seen by the recorder "gate" between the agent and the upstream: `
	must.Hold(t, len(r.Seen) == 2 && r.Seen[0].Side == evidence.Answered && r.Seen[1].Side == "" && strings.HasPrefix(r.Of(verify.Vantage).Reason, want),
		"%+v %s", r.Seen, r.Of(verify.Vantage).Reason)
}

// TestVantageInWords: a report says from where a recorder saw.
func TestVantageInWords(t *testing.T) {
	for vantage, says := range map[evidence.Vantage]string{
		evidence.Proxy: `bytes seen by the recorder "gate" between the agent and the upstream`, evidence.ProxyMITM: "inside a TLS connection that it opened",
		evidence.InProcess: "seen inside the agent's own process", evidence.Examiner: "asked the agent itself"} {
		h := jurattest.New(t)
		act := call()
		act.Vantage = vantage
		r := verify.Bundle(h.Bundle(t, h.Seal(t, payloadOf(t, act))), h.Options(t))
		got := r.Of(verify.Vantage)
		must.Hold(t, got.Status == verify.Proved && strings.Contains(got.Reason, says) && strings.Contains(got.Reason, "is not shown"), "%+v", got)
		if len(r.Seen) != 1 || r.Seen[0].Vantage != vantage || r.Seen[0].Recorder != "gate" || r.Seen[0].Records != 1 || r.Seen[0].Fidelity != evidence.ByBytes {
			t.Errorf("%+v", r.Seen)
		}
	}
	h := jurattest.New(t)
	r := verify.Bundle(h.Bundle(t, h.Seal(t, output("a"))), h.Options(t))
	must.Hold(t, r.Seen == nil && !slices.ContainsFunc(r.Guarantees, func(f verify.Finding) bool { return f.Guarantee == verify.Vantage }),
		"vantage is asked where nobody recorded")
}

// events are events of a recorder, and what is found of them.
func events() []struct {
	name  string
	event observed.Event
	rule  string
} {
	return []struct {
		name  string
		event observed.Event
		rule  string
	}{
		{"a heartbeat", observed.Event{Event: observed.Heartbeat, Calls: new(int64(3)), Since: "2026-01-01T00:00:00Z"}, ""},
		{"a gap", observed.Event{Event: observed.Gap, Reason: "the disk is full", Missed: []observed.Missed{{Agent: "shop-bot", Calls: 2, Minute: "2026-01-01T00:00:00Z"}}}, "gap"},
		{"a crash", observed.Event{Event: observed.LostInCrash, Agent: "shop-bot", Began: "2026-01-01T00:00:00Z", Protocol: aTool, RequestSHA256: evidence.DigestOf(nil)}, "gap"},
	}
}

func eventOf(t *testing.T, e observed.Event) evidence.Payload {
	t.Helper()
	return must.Get(e.Payload("gate", "2026-01-01T00:00:00Z", "talk"))(t)
}

// TestGaps: what a recorder says that it missed is a doubt about what it saw, and about completeness where that is asked.
func TestGaps(t *testing.T) {
	for _, e := range events() {
		h := jurattest.New(t)
		first := h.Seal(t, payloadOf(t, tool()))
		p := eventOf(t, e.event)
		p.PreviousRecord = first.Digest
		r := h.Seal(t, p)
		b := h.Bundle(t, first, r)
		status, record := verify.Proved, (*evidence.Record)(nil)
		if e.rule != "" {
			status, record = verify.NotProved, r
		}
		expectVantage(t, verify.Bundle(b, h.Options(t)), status, e.rule, record)
		o := h.Options(t)
		o.Checkpoint = b.Checkpoint
		got := verify.Bundle(b, o).Of(verify.Completeness)
		must.Hold(t, (got.Rule == "gap") == (e.rule == "gap"), "%s: %+v", e.name, got)
	}
}

// TestVantageRests: what a recorder saw is proved only as far as its records are.
func TestVantageRests(t *testing.T) {
	h := jurattest.New(t)
	b := h.Bundle(t, h.Seal(t, payloadOf(t, tool())))
	o := h.Options(t)
	o.Trust.Keys = nil
	r := verify.Bundle(b, o)
	got := r.Of(verify.Vantage)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "rests", "%+v", got)
}

// TestRecorderIsNotTheAgent: what is signed by the agent's key is not what a recorder saw, whatever name it has.
func TestRecorderIsNotTheAgent(t *testing.T) {
	h := jurattest.New(t)
	signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleAgent, "gate"))(t)
	draft := must.Get(evidence.NewDraft(payloadOf(t, tool())))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft, signers))(t)
	report := verify.Bundle(h.Bundle(t, r), h.Options(t))
	got := report.Of(verify.Authentication)
	must.Hold(t, got.Status == verify.Refuted && got.Rule == "actor", "%+v", got)
	got = report.Of(verify.Vantage)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "rests", "%+v", got)
}

// recordedVectors are the sightings and events as vectors.
func recordedVectors(t *testing.T) []given {
	var list []given
	for _, s := range sightings() {
		h := jurattest.NewForStrangers(t)
		b, _ := s.bundle(t, h)
		list = append(list, givenBundle(t, slug("recorded", s.name), b, h.Options(t)))
	}
	for _, e := range events() {
		h := jurattest.NewForStrangers(t)
		b := h.Bundle(t, h.Seal(t, eventOf(t, e.event)))
		list = append(list, givenBundle(t, slug("recorded", e.name), b, h.Options(t)))
	}
	h := jurattest.NewForStrangers(t)
	none := eventOf(t, events()[0].event)
	none.Response = jsontext.Value(`{"event":"heartbeat"}`)
	b := h.Bundle(t, h.Seal(t, none))
	list = append(list, givenBundle(t, slug("recorded", "an event that is none"), b, h.Options(t)))
	return list
}

// TestSessionGrowsTheLog: 100 calls that each send the whole context of 400 KB make a log that is at most twice as long as the longest
// request: payloads, signatures, a time-stamp token for each record, and the values and salts that open commitments. Each request is rebuilt
// to its digest.
func TestSessionGrowsTheLog(t *testing.T) {
	h := jurattest.New(t)
	random := rand.New(rand.NewPCG(3, 3))
	words := strings.Fields("the parcel was sent to Kassel yesterday, and \"nobody\" knows whether it has come. Ask the depot; then answer the customer")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[random.IntN(len(words))] + " ")
		}
		return b.String()
	}
	messages := []string{fmt.Sprintf(`{"role":"system","content":%q}`, text(350_000))}
	var records []*evidence.Record
	var earlier [][]byte
	longest := 0
	for i := range 100 {
		messages = append(messages, fmt.Sprintf(`{"role":"user","content":%q}`, text(400)))
		request := `{"model":"m","messages":[` + strings.Join(messages, ",") + `],"stream":false}`
		act := observedCall(fmt.Sprint("call-", i), traffic.OpenAIChat, request, anAnswer)
		act.Request.Earlier = earlier
		p := payloadOf(t, act)
		if i > 0 {
			p.PreviousRecord = records[i-1].Digest
		}
		records = append(records, h.Seal(t, p, "/request_body", "/response_body"))
		earlier, longest = [][]byte{[]byte(request)}, max(longest, len(request))
		messages = append(messages, `{"role":"assistant","content":"In Kassel."}`)
	}
	b := h.Bundle(t, records...)
	kept := 0
	for _, r := range b.Records {
		kept += len(r.Canonical()) + len(slices.Concat(r.Signatures...))
		for _, stamp := range r.Timestamps {
			kept += len(stamp.Token)
		}
		for _, d := range r.Disclosures {
			kept += len(d.Pointer) + len(d.Salt) + len(d.Value)
		}
	}
	t.Logf("%d bytes for a longest request of %d: %.2f times as many", kept, longest, float64(kept)/float64(longest))
	must.Hold(t, kept <= 2*longest, "the records have %d bytes, and the longest request has %d", kept, longest)
	got := verify.Bundle(b, h.Options(t)).Of(verify.Vantage)
	must.Hold(t, got.Status == verify.Proved, "%+v", got)
	var w observed.Window
	for i, r := range b.Records {
		read := w.Read(observed.Open(r))
		must.Need(t, len(read.Errs) == 0 && evidence.DigestOf(read.Request) == r.Payload.Observed.Request.SHA256, "call %d: %v", i, read.Errs)
	}
}

func stream(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// spoken are acts of every protocol that is read.
func spoken() map[string]observed.Act {
	typed := func(a observed.Act, path, response string) observed.Act {
		a.Path, a.Response.Type = path, response
		return a
	}
	const events = "text/event-stream"
	chat := observedCall("call-2", traffic.OpenAIChat, `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Where?"},{"type":"image_url","image_url":{"url":"https://u:p@example.org/a.png?b"}}]}]}`,
		stream(`{"model":"m-1","choices":[{"index":0,"delta":{"content":"I look."}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":9}}`, `[DONE]`))
	responses := observedCall("call-2", traffic.OpenAIResponses, `{"model":"m","instructions":"Be short.","input":"Where?","previous_response_id":"resp_1","tools":[{"type":"web_search"}]}`,
		stream(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"In Kassel."}`, `{"type":"response.completed","response":{"id":"resp_2","status":"completed","model":"m-1","output":[],"usage":{"input_tokens":3}}}`))
	messages := observedCall("call-2", traffic.AnthropicMessages, `{"model":"m","max_tokens":9,"system":"Be short.","mcp_servers":[{"url":"https://mcp.example.org/"}],"messages":[{"role":"user","content":"Where?"}]}`,
		`{"type":"message","model":"m-1","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"In "},{"type":"text","text":"Kassel."}],"usage":{"output_tokens":3}}`)
	generate := observedCall("call-2", traffic.GeminiGenerate, `{"contents":[{"parts":[{"text":"Where?"}]}],"tools":[{"googleSearch":{}}],"generationConfig":{"temperature":0.5}}`,
		`[{"candidates":[{"content":{"parts":[{"text":"In "}]}}],"modelVersion":"m-1"},{"candidates":[{"content":{"parts":[{"text":"Kassel."}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}]`)
	tool := observedCall("call-2", "mcp/2025-06-18", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"n":17}}}`,
		stream(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"In Kassel."}]}}`))
	tool.ActionType = evidence.ObservedTool
	agent := message()
	agent.Request = passed(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m1","role":"user","referenceTaskIds":["t0"],"parts":[{"kind":"text","text":"Where?"}]}}}`)
	agent.Response = passed(`{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"In Kassel."},{"kind":"file","file":{"uri":"https://example.org/f"}}]}]}}`)
	span := observedCall("call-2", traffic.OTLP, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},`+
		`{"key":"gen_ai.response.model","value":{"stringValue":"m-1"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"3"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"uri\",\"uri\":\"https://example.org/a\"}]}]"}},`+
		`{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Kassel.\"}]}]"}}]}]}]}]}`, "")
	span.ActionType, span.Vantage, span.Fidelity, span.Response = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes, nil
	return map[string]observed.Act{"chat": typed(chat, "/v1/chat/completions", events), "responses": typed(responses, "/v1/responses", events), "messages": messages,
		"generate": typed(generate, "/v1beta/models/m:streamGenerateContent", "application/json"), "tool": typed(tool, "/mcp", events), "agent": typed(agent, "/", "application/json"), "span": span}
}

// stating are what a record may say otherwise than its bytes.
var stating = map[string]func(p *evidence.Payload){
	"model":                func(p *evidence.Payload) { p.Model = "m2" },
	"model-version":        func(p *evidence.Payload) { p.ModelVersion = "m-2" },
	"parameters":           func(p *evidence.Payload) { p.Parameters = jsontext.Value(`{"temperature":1}`) },
	"finish":               func(p *evidence.Payload) { p.Observed.Finish = "never" },
	"calls":                func(p *evidence.Payload) { p.Observed.Calls = []evidence.ObservedUse{{ID: "c9", Name: "look"}} },
	"usage":                func(p *evidence.Payload) { p.Observed.Usage = jsontext.Value(`{"total_tokens":8}`) },
	"context-by-reference": func(p *evidence.Payload) { p.Observed.ContextByReference = []string{"file:1"} },
}

// TestSecondVerifierOnRecordings compares the two verifiers on acts of every protocol, as a recorder seals them, and with each member that says something else.
func TestSecondVerifierOnRecordings(t *testing.T) {
	h := jurattest.New(t)
	var files []given
	take := func(name string, p evidence.Payload, refuted bool) {
		b := h.Bundle(t, h.Seal(t, p))
		got := verify.Bundle(b, verify.Options{}).Of(verify.Vantage)
		must.Hold(t, (got.Status == verify.Refuted && got.Rule == "projection") == refuted, "%s: %+v", name, got)
		files = append(files, givenBundle(t, name, b, verify.Options{}))
	}
	acts := spoken()
	for _, name := range slices.Sorted(maps.Keys(acts)) {
		honest := payloadOf(t, acts[name])
		must.Hold(t, honest.Response == nil && honest.Parameters != nil, "%s: it states what was said, or no settings", name)
		take(name, honest, false)
		for _, member := range slices.Sorted(maps.Keys(stating)) {
			p := payloadOf(t, acts[name])
			stating[member](&p)
			take(fmt.Sprintf("%s-%s", name, member), p, true)
		}
	}
	compareOver(t, files)
}

// TestLeftOut: what a record leaves out and its bytes say, the verifier says.
func TestLeftOut(t *testing.T) {
	for name, act := range spoken() {
		full := payloadOf(t, act)
		p := payloadOf(t, act)
		p.Model, p.ModelVersion, p.Observed.Usage, p.Observed.ContextByReference = "", "", nil, nil
		h := jurattest.New(t)
		r := h.Seal(t, p)
		got := verify.Bundle(h.Bundle(t, r), h.Options(t)).Of(verify.Vantage)
		if act.Fidelity != evidence.ByBytes {
			continue // which is not proved
		}
		must.Hold(t, got.Status == verify.Proved, "%s: %+v", name, got)
		for what, says := range map[string]string{full.Model: "the model %q was asked", full.ModelVersion: "the model %q answered"} {
			must.Hold(t, what == "" || strings.Contains(got.Reason, fmt.Sprintf(says, what)), "%s: the model %s is not said: %s", name, what, got.Reason)
		}
		must.Hold(t, full.Observed.Usage == nil || strings.Contains(got.Reason, "usage "), "%s: the usage is not said: %s", name, got.Reason)
		for _, reference := range full.Observed.ContextByReference {
			must.Hold(t, strings.Contains(got.Reason, reference), "%s: %s is not said: %s", name, reference, got.Reason)
		}
		h = jurattest.New(t)
		got = verify.Bundle(h.Bundle(t, h.Seal(t, full)), h.Options(t)).Of(verify.Vantage)
		must.Hold(t, !strings.Contains(got.Reason, "leave out"), "%s: nothing is left out: %s", name, got.Reason)
	}
}

// TestReadersOfOneMessage: what a recorder decoded is proved only where the side that got it had to decode it, too. Both verifiers say the same.
func TestReadersOfOneMessage(t *testing.T) {
	encoded := func(encoding, accepts string) func(*observed.Act) {
		return func(a *observed.Act) {
			a.Response.Encoding = encoding
			if accepts != "" {
				a.Request.Headers = observed.Headers(map[string]string{"accept-encoding": accepts})
			}
		}
	}
	tests := map[string]struct {
		change func(*observed.Act)
		proved bool
	}{
		"plain":                  {func(*observed.Act) {}, true},
		"one-of-several":         {encoded("br", "gzip, deflate, br;q=0.9"), true},
		"the-other-name":         {encoded("x-gzip", "gzip"), true},
		"a-star":                 {encoded("zstd", "gzip, *;q=0.1"), true},
		"two-after-each-other":   {encoded("gzip, br", "br,gzip"), true},
		"two-and-one-offered":    {encoded("gzip,br", "gzip"), false},
		"none-offered":           {encoded("gzip", ""), false},
		"another-offered":        {encoded("gzip", "deflate, br, zstd"), false},
		"identity-offered":       {encoded("gzip", "identity"), false},
		"weight-nought":          {encoded("gzip", "gzip;q=0, *"), false},
		"weight-0.000":           {encoded("gzip", "gzip; q=0.000 "), false},
		"weight-of-another-kind": {encoded("gzip", "gzip;Q=0"), false},
		"star-of-nought":         {encoded("gzip", "*;q=0"), false},
		"offered-and-refused":    {encoded("gzip", "gzip, gzip;q=0"), false},
		"refused-and-offered":    {encoded("gzip", "gzip;q=0, gzip"), false},
		"twice":                  {encoded("gzip,gzip", "gzip"), false},
		"twice-by-two-names":     {encoded("gzip, x-gzip", "gzip"), false},
		"unknown":                {encoded("compress", "compress, *"), false},
		"of-two-headers":         {encoded("gzip and br", "gzip, br, *"), false},
		"an-identity-in-it":      {encoded("gzip, identity", "gzip, identity"), false},
		"in-other-letters":       {encoded("gzİp", "gzip, *"), false},
		"an-encoded-request":     {func(a *observed.Act) { a.Request.Encoding = "gzip" }, false},
		"an-empty-request-encoded": {func(a *observed.Act) {
			a.Request, a.Protocol = passed(""), aTool
			a.Request.Encoding = "gzip"
		}, true},
		"a-refused-request":   {func(a *observed.Act) { a.Request.Encoding, a.Request.Decoded = "br", evidence.DecodingRefused }, false},
		"a-refused-response":  {func(a *observed.Act) { encoded("gzip", "gzip")(a); a.Response.Decoded = evidence.DecodingRefused }, false},
		"two-types":           {func(a *observed.Act) { a.Response.Type = "application/json, text/event-stream" }, false},
		"a-request-two-types": {func(a *observed.Act) { a.Request.Type = "application/json, text/plain" }, false},
	}
	var files []given
	for name, test := range tests {
		h := jurattest.New(t)
		act := with(call, test.change)()
		b := h.Bundle(t, h.Seal(t, payloadOf(t, act)))
		want, rule := verify.Proved, ""
		if !test.proved {
			want, rule = verify.NotProved, "readers"
		}
		got := verify.Bundle(b, h.Options(t)).Of(verify.Vantage)
		must.Hold(t, got.Status == want && got.Rule == rule, "%s: %+v", name, got)
		files = append(files, givenBundle(t, name, b, verify.Options{}))
	}
	compareOver(t, files)
}
