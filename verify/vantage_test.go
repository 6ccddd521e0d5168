package verify

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

const (
	chat   = `{"model":"m","messages":[{"role":"user","content":"Where is parcel 17?"}],"stream":true}`
	answer = "data: {\"id\":\"c-1\",\"model\":\"m-2026\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"In \"}}]}\n\n" +
		"data: {\"id\":\"c-1\",\"model\":\"m-2026\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Kassel.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
)

func passed(text, kind string) *observed.Body {
	return observed.Whole(text, kind)
}

func call(request, response string) observed.Act {
	began := time.Date(2026, 1, 31, 16, 15, 0, 0, time.UTC)
	return observed.Act{Payload: evidence.Payload{AgentID: "gate", RequestID: "call", Timestamp: evidence.FormatTime(began)},
		Observed: evidence.Observed{Agent: "shop-bot", Vantage: evidence.Proxy, Fidelity: evidence.ByBytes, Protocol: traffic.OpenAIChat, Path: "/v1/chat/completions", Status: 200, Ended: evidence.Complete, Began: evidence.FormatTime(began)},
		Request:  passed(request, "application/json"), Response: passed(response, "text/event-stream")}
}

// observedRecord is what a recorder seals, as a verifier gets it; nothing here looks at signatures.
func observedRecord(t testing.TB, act observed.Act) *evidence.Record {
	t.Helper()
	p := must.Get(observed.Draft(act))(t).Payload
	return &evidence.Record{Payload: p}
}

func judged(records ...*evidence.Record) (last *Finding) {
	var f sights
	for _, r := range records {
		last = f.Take(lookAt(r))
	}
	return last
}

// tool is a call of a tool of the Model Context Protocol, with an argument that canonical JSON does not have.
func tool(request, response string) observed.Act {
	act := call(request, response)
	act.ActionType, act.Protocol, act.Path, act.Method, act.Status = evidence.ObservedTool, "mcp/2025-06-18", "/client", "tools/call", 0
	return act
}

// TestFlippedByte: whichever byte of a body is another, the record is refuted; so with each byte of its settings.
func TestFlippedByte(t *testing.T) {
	flippedBytes(t, chat, answer, call)
	flippedBytes(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refund","arguments":{"order":9007199254740993}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Refunded."}]}}`, tool)
}

func flippedBytes(t *testing.T, chat, answer string, call func(request, response string) observed.Act) {
	t.Helper()
	found := judged(observedRecord(t, call(chat, answer)))
	must.Need(t, found == nil, "%+v", found)
	flips := 0
	for _, direction := range []string{chat, answer} {
		for i := range len(direction) {
			r := observedRecord(t, call(chat, answer))
			flipped := []byte(direction)
			flipped[i] ^= 1
			value := must.Get(evidence.FormatBody(evidence.Piece{Own: flipped, Length: int64(len(flipped))}))(t)
			if direction == chat {
				r.Payload.RequestBody = value
			} else {
				r.Payload.ResponseBody = value
			}
			found := judged(r)
			must.Need(t, found != nil && found.Rule == "digest" && found.Status == Refuted, "byte %d of %.20q: %+v", i, direction, found)
			flips++
		}
	}
	said := observedRecord(t, call(chat, answer)).Payload.Parameters
	for i := 1; i < len(said)-1; i++ {
		r := observedRecord(t, call(chat, answer))
		r.Payload.Parameters = bytes.Clone(said)
		r.Payload.Parameters[i] ^= 1
		found := judged(r)
		must.Need(t, found != nil && found.Rule == "projection" && found.Status == Refuted, "byte %d of %s: %+v", i, said, found)
		flips++
	}
	must.Hold(t, flips >= 200, "only %d flips", flips)
}

// TestCopiesAreBounded: a small file that copies for hours is not followed; what copies nothing is judged as ever.
func TestCopiesAreBounded(t *testing.T) {
	source := strings.Repeat("0123456789", 100)
	copying := call(source+"!", answer)
	copying.Request.Earlier = [][]byte{[]byte(source)}
	copying.Protocol = "other/1"
	r := observedRecord(t, copying)
	r.Payload.Model, r.Payload.ModelVersion, r.Payload.Parameters, r.Payload.Response = "", "", nil, nil
	f := sights{copied: maxCopied - 1000}
	first := call(source, answer)
	found := f.Take(lookAt(observedRecord(t, first)))
	must.Need(t, found == nil || found.Status != Refuted, "%+v", found)
	found = f.Take(lookAt(r))
	must.Need(t, found == nil, "within the bound: %+v", found)
	found = f.Take(lookAt(r))
	must.Hold(t, found != nil && found.Rule == "volume" && found.Status != Refuted, "beyond the bound: %+v", found)
	found = f.Take(lookAt(observedRecord(t, call(chat, answer))))
	must.Hold(t, found == nil, "a record that copies nothing: %+v", found)
}

// TestCircleOfCopies: bodies that copy from each other, and one that copies from itself, come to an end, and are not there.
func TestCircleOfCopies(t *testing.T) {
	a, b := observedRecord(t, call(chat+"a", answer)), observedRecord(t, call(chat+"b", answer))
	copies := func(from *evidence.Record) jsontext.Value {
		return jsontext.Value(fmt.Sprintf(`{"pieces":[{"at":0,"from":%q,"length":50},"x"]}`, from.Payload.Observed.Request.SHA256))
	}
	a.Payload.RequestBody, b.Payload.RequestBody = copies(b), copies(a)
	self := observedRecord(t, call(chat, answer))
	self.Payload.RequestBody = copies(self)
	var f sights
	for i, r := range []*evidence.Record{a, b, a, b, self, self} {
		found := f.Take(lookAt(r))
		must.Hold(t, found != nil && found.Rule == "missing" && found.Status != Refuted, "record %d: %+v", i, found)
	}
}

// TestBombIsNotOpened: bytes that a recorder could not decode are compared with their digest, and never decoded by who verifies.
func TestBombIsNotOpened(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 256 {
		must.Get(w.Write(zeros))(t)
	}
	must.Do(t, w.Close())
	act := call(chat, bomb.String())
	act.Response.Encoding, act.Response.Decoded = "gzip", evidence.DecodingRefused
	r := observedRecord(t, act)
	before := new(runtime.MemStats)
	runtime.ReadMemStats(before)
	found := judged(r)
	must.Hold(t, found != nil && found.Rule == "readers" && found.Status != Refuted, "%+v", found)
	after := new(runtime.MemStats)
	runtime.ReadMemStats(after)
	n := after.TotalAlloc - before.TotalAlloc
	must.Hold(t, n <= 64<<20, "%d bytes were allocated for a body of %d", n, bomb.Len())
	r.Payload.ModelVersion = "zeros"
	found = judged(r)
	must.Hold(t, found != nil && found.Status == Refuted && found.Rule == "projection", "a model that no bytes say: %+v", found)
}

// TestSessionIsFollowed: 100 calls that send 400 KB each time are all proved from one whole body.
func TestSessionIsFollowed(t *testing.T) {
	var f sights
	var earlier [][]byte
	context := strings.Repeat("The parcel was sent to Kassel. ", 13_000)
	total := 0
	for i := range 100 {
		context += fmt.Sprintf("And this is call %d. ", i)
		request := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}],"stream":true}`, context)
		act := call(request, answer)
		act.Request.Earlier = earlier
		r := observedRecord(t, act)
		total += len(r.Payload.RequestBody)
		earlier = [][]byte{[]byte(request)}
		found := f.Take(lookAt(r))
		must.Need(t, found == nil, "call %d: %+v", i, found)
	}
	must.Hold(t, total <= 2*len(context), "the records take %d bytes for a context of %d", total, len(context))
	s := f.seen
	must.Hold(t, len(s) == 1 && s[0].Records == 100, "%+v", s)
}

// TestEventsOfOthers: records that are no recorder's are left alone.
func TestEventsOfOthers(t *testing.T) {
	must.Hold(t, lookAt(&evidence.Record{Payload: evidence.Payload{ActionType: evidence.ModelOutput}}) == nil, "an agent's record is looked at")
}

// FuzzBodies: whatever a record has as bodies, a verifier ends with an answer, and refutes only with a reason.
func FuzzBodies(f *testing.F) {
	good := observedRecord(f, call(chat, answer))
	f.Add([]byte(good.Payload.RequestBody), []byte(good.Payload.ResponseBody), traffic.OpenAIChat, uint8(0))
	f.Add([]byte(`{"pieces":[{"at":0,"from":"`+evidence.DigestOf([]byte(chat)).String()+`","length":9}]}`), []byte(`{"base64":"/w=="}`), traffic.AnthropicMessages, uint8(1))
	f.Add([]byte(`""`), []byte(`"data: [["`), traffic.GeminiGenerate, uint8(2))
	f.Fuzz(func(t *testing.T, request, response []byte, protocol string, as uint8) {
		r := observedRecord(t, call(chat, answer))
		p := &r.Payload
		var err error
		if p.RequestBody, err = evidence.Canonical(request); err != nil {
			return
		}
		if p.ResponseBody, err = evidence.Canonical(response); err != nil {
			return
		}
		p.Observed.Protocol = protocol
		if as%2 == 1 { // so that the digests are right, and the bytes are read
			for _, b := range []struct {
				stated *evidence.ObservedBody
				value  jsontext.Value
			}{{p.Observed.Request, p.RequestBody}, {p.Observed.Response, p.ResponseBody}} {
				pieces, err := evidence.ParseBody(b.value)
				if err != nil || observed.Copies(pieces) > 0 {
					continue
				}
				body := must.Get(observed.Rebuild(pieces, nil))(t)
				b.stated.SHA256, b.stated.Bytes = evidence.DigestOf(body), int64(len(body))
			}
		}
		found := judged(observedRecord(t, call(chat, answer)), r)
		unchanged := bytes.Equal(p.RequestBody, good.Payload.RequestBody) && bytes.Equal(p.ResponseBody, good.Payload.ResponseBody)
		must.Hold(t, found == nil || found.Rule != "" && found.Reason != "" && (found.Status != Refuted || !unchanged || protocol != traffic.OpenAIChat),
			"%+v", found)
	})
}

// TestChanges: of each tool of which a server said something else than before, a reader is told which, and what was said.
func TestChanges(t *testing.T) {
	one, other := evidence.DigestOf([]byte("adds")), evidence.DigestOf([]byte("adds, and reads your keys"))
	e := observed.Event{Event: observed.ToolDefinitionChanged, Agent: "shop-bot", Server: "stdio:sums", Tool: "add", Before: one, After: other}
	p := must.Get(e.Payload("gate", "2026-01-31T16:15:00Z", "recorded/shop-bot/x"))(t)
	p.RecordID = "r1"
	var f sights
	found := f.Take(lookAt(&evidence.Record{Payload: p}))
	must.Hold(t, found == nil, "%+v", found)
	list := f.changes
	must.Hold(t, len(list) == 1 && list[0] == (ToolChange{"r1", "gate", "shop-bot", "stdio:sums", "add", one, other}), "%+v", list)
}

// TestTold: an imported act is second hand, whatever its bytes are, and the reason says that a file told it.
func TestTold(t *testing.T) {
	act := call(chat, answer)
	act.ActionType, act.Vantage, act.Fidelity, act.Protocol = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes, observed.Imported+"promptfoo"
	act.Payload.Response = jsontext.Value(`"In Kassel."`)
	for protocol, want := range map[string]string{
		observed.Imported + "promptfoo": `told by a file that others wrote, which the recorder "gate" imported: nobody saw the bytes`,
		"told/otherwise":                `told by the agent's telemetry to the recorder "gate": nobody saw the bytes`,
	} {
		act.Protocol = protocol
		f := judged(observedRecord(t, act))
		must.Hold(t, f != nil && f.Rule == "second-hand" && f.Status != Refuted && f.Reason == want, "%s: %+v", protocol, f)
	}
	act.Protocol = observed.Imported + "promptfoo"
	r := observedRecord(t, act)
	r.Payload.Observed.Request.SHA256 = evidence.DigestOf([]byte("something else"))
	f := judged(r)
	must.Hold(t, f != nil && f.Rule == "digest" && f.Status == Refuted, "another part of the file: %+v", f)
}

// TestWhatNoBytesSay: what was said is no fact in bytes, so what a record states of it is its recorder's word, whatever else the bytes prove.
func TestWhatNoBytesSay(t *testing.T) {
	for name, change := range map[string]func(*evidence.Payload){
		"tools_used": func(p *evidence.Payload) { p.ToolsUsed = jsontext.Value(`[{"name":"refund","result":"done"}]`) },
		"prompt":     func(p *evidence.Payload) { p.Prompt = jsontext.Value(`"Where is parcel 17?"`) },
		"response":   func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Kassel."`) },
		"context":    func(p *evidence.Payload) { p.Context = jsontext.Value(`"The order was paid."`) },
	} {
		for _, act := range []observed.Act{call(chat, answer), tool(`{"id":1,"method":"ping"}`, `{"id":1,"result":{}}`)} {
			r := observedRecord(t, act)
			change(&r.Payload)
			if found := judged(r); found == nil || found.Status == Refuted || found.Rule != "projection" || !strings.Contains(found.Reason, name) {
				t.Errorf("%s, %s: %+v", name, act.Protocol, found)
			}
		}
	}
}

// TestTelemetry: what telemetry told is never proved, and a record that says something else than what it was told is refuted.
func TestTelemetry(t *testing.T) {
	const told = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},` +
		`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"9"}},{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Kassel.\"}]}]"}}]}]}]}]}`
	span := func(change func(*evidence.Payload)) *Finding {
		act := call(told, "")
		act.ActionType, act.Protocol, act.Vantage, act.Fidelity, act.Response, act.Path, act.Status = evidence.ObservedSpan, observed.OTLP, evidence.Telemetry, evidence.ByAttributes, nil, "", 0
		r := observedRecord(t, act)
		must.Need(t, r.Payload.Response == nil && r.Payload.Model == "m", "%+v", r.Payload)
		change(&r.Payload)
		return judged(r)
	}
	for name, test := range map[string]struct {
		change  func(*evidence.Payload)
		rule    string
		refuted bool
	}{
		"as it was told":             {func(*evidence.Payload) {}, "second-hand", false},
		"an answer beside the bytes": {func(p *evidence.Payload) { p.Response = jsontext.Value(`"In Gera."`) }, "second-hand", false},
		"another model":              {func(p *evidence.Payload) { p.Model = "n" }, "projection", true},
		"other counts":               {func(p *evidence.Payload) { p.Observed.Usage = jsontext.Value(`{"input_tokens":8}`) }, "projection", true},
		"other bytes":                {func(p *evidence.Payload) { p.RequestBody = jsontext.Value(`"{}"`) }, "digest", true},
	} {
		found := span(test.change)
		must.Hold(t, found != nil && found.Rule == test.rule && (found.Status == Refuted) == test.refuted, "%s: %+v, want %s", name, found, test.rule)
	}
}
