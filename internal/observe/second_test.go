package observe_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/must"
	"jurat/internal/observe"
)

var (
	mutants    = flag.Int("mutants", 2_000, "how many changed calls the second verifier reads")
	mutantSeed = flag.Uint64("mutant-seed", 1, "the seed of the changes")
)

// TestSecondFacts: a verifier that was written from docs/facts.md, in another language, finds the same facts in calls of all protocols, whole, in streams, cut, and
// with one or a few values changed, taken away or written twice.
func TestSecondFacts(t *testing.T) {
	random := rand.New(rand.NewPCG(*mutantSeed, 0))
	calls := secondCalls(t)
	known := vocabularyOf(calls)
	for from := len(calls); len(calls) < from+*mutants; {
		calls = append(calls, changed(random, calls[random.IntN(from)], known))
	}
	calls = append(calls, many()...)
	var input bytes.Buffer
	for _, c := range calls {
		doc, err := json.Marshal(map[string]any{"protocol": c.Protocol, "path": c.Path, "status": c.Status,
			"request": base64.StdEncoding.EncodeToString(c.Request), "response": base64.StdEncoding.EncodeToString(c.Response)})
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(doc, '\n'))
	}
	var complaints bytes.Buffer
	run := exec.Command(python(t), filepath.Join("..", "..", "testdata", "second-verifier", "facts.py"))
	run.Stdin, run.Stderr = &input, &complaints
	output, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
	second := strings.Split(strings.TrimSuffix(string(output), "\n"), "\n")
	if len(second) != len(calls) {
		t.Fatalf("%d calls, and the second verifier has read %d", len(calls), len(second))
	}
	differences := 0
	for i, c := range calls {
		if want := stated(t, factsOf(c)); want != second[i] {
			if differences++; differences <= 5 {
				t.Errorf("%s %s, status %d, %s\n%s\n%s\nthis program: %s\nthe second:   %s", c.Protocol, c.Path, c.Status, c.ResponseType, c.Request, c.Response, want, second[i])
			}
		}
	}
	if differences > 0 {
		t.Errorf("%d of %d calls have other facts", differences, len(calls))
	}
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("the second verifier cannot run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadDir(filepath.Join("..", "..", "testdata", "second-verifier")); err != nil { // so that results of tests are kept only while its files stay the same
		t.Fatal(err)
	}
	return path
}

// factsOf finds the facts in a call.
func factsOf(c observe.Call) observed.Facts {
	f, _ := observed.FactsOf(&evidence.Observed{Protocol: c.Protocol, Path: c.Path, Status: int64(c.Status), Request: new(evidence.ObservedBody), Response: new(evidence.ObservedBody)}, c.Request, c.Response)
	return f
}

// stated is what a record states of facts, in canonical form.
func stated(t *testing.T, f observed.Facts) string {
	t.Helper()
	return string(canonical(t, marshal(t, struct {
		Model              string                 `json:"model,omitzero"`
		ModelVersion       string                 `json:"model_version,omitzero"`
		Parameters         jsontext.Value         `json:"parameters,omitzero"`
		Usage              jsontext.Value         `json:"usage,omitzero"`
		Finish             string                 `json:"finish,omitzero"`
		Calls              []evidence.ObservedUse `json:"calls,omitzero"`
		ContextByReference []string               `json:"context_by_reference,omitzero"`
	}{f.Model, f.ModelVersion, f.Parameters, f.Usage, f.Finish, f.Calls, f.ContextByReference})))
}

func canonical(t testing.TB, doc []byte) []byte {
	t.Helper()
	form := must.Get(evidence.Canonical(doc))(t)
	return form
}

// secondCalls are the calls of the other tests.
func secondCalls(t *testing.T) (calls []observe.Call) {
	add := func(c observe.Call, response, kind string) {
		c.Response, c.ResponseType = []byte(response), kind
		calls = append(calls, c)
	}
	for _, s := range slices.Concat(samples, a2aSamples) {
		add(s.call, s.whole, "application/json")
		add(s.call, s.stream, "text/event-stream")
		add(s.call, s.stream[:len(s.stream)/2], "text/event-stream")
	}
	for _, r := range slices.Concat(replies(), a2aReplies()) {
		add(observe.Call{Protocol: r.protocol, Path: "/v1beta/models/m:generateContent", Status: r.status, Request: []byte(`{"method":"message/send","id":1,"params":{}}`)}, r.response, "")
	}
	for _, p := range passages {
		calls = append(calls, p.call())
	}
	for _, c := range mcpCases {
		calls = append(calls, c.call)
	}
	for _, told := range tellings(t) {
		calls = append(calls, observe.Call{Protocol: observe.OTLP, Request: told})
	}
	for _, c := range factCases {
		calls = append(calls, c.call)
	}
	return append(calls, finePoints()...)
}

// finePoints are calls on which verifiers part that are a little different.
func finePoints() (calls []observe.Call) {
	answer := func(protocol, response string) {
		calls = append(calls, observe.Call{Protocol: protocol, Path: "/v1beta/models/m:generateContent", Status: 200, Request: []byte(`{"messages":[],"contents":[],"input":[]}`), Response: []byte(response)})
	}
	answer(observe.AnthropicMessages, events(`{"type":"message_start","message":{"usage":{"a":1,"b":2}}}`, `{"type":"message_delta","usage":{"b":3,"a":null}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":{}}}`, `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{\"a\""}}`))
	nines := strings.Repeat("9", 5000)
	answer(observe.OpenAIChat, `{"choices":[{"index":`+nines+`,"message":{"content":"a"}}],"usage":{"prompt_tokens":`+nines+`}}`)
	deep := strings.Repeat(`{"arrayValue":{"values":[`, 3000) + strings.Repeat("]}}", 3000)
	for _, v := range []string{`{"intValue":"` + nines + `"}`, `{"intValue":"` + strings.Repeat("0", 5000) + `7"}`, deep} {
		calls = append(calls, observe.Call{Protocol: observe.OTLP, Request: []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.usage.input_tokens","value":` + v + `}]}]}]}]}`)})
	}
	for _, depth := range []int{9_998, 9_999, 10_000, 10_001, 20_000} {
		answer(observe.OpenAIChat, `{"model":"m","x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}{"model":"n"}`)
	}
	for _, body := range []string{`{"model":"a"}{"model":"b"} 7 {"model":"c"}`, `[{"model":"a"},7,{"model":"b"}]`, "\ufeff {\"model\":\"a\"}", `7 {"model":"a"}`, "data:{\"model\":\ndata: \"a\"}", "data: {\"model\":\"a\"}\r\rdata: [DONE]\r\rdata: {\"model\":\"b\"}\r\r",
		`{"model":"a","model":7}`, `{"usage":{"a":[1,{"b":"standard"}],"c d":1,"e":-0,"f":1e400,"g":"AUTO"}}`, `{"model":"a` + "\x01" + `"}`, `{"model":01}`, `{"model":NaN}`} {
		answer(observe.OpenAIChat, body)
	}
	return calls
}

// tellings are spans of the conventions that are read, and events.
func tellings(t *testing.T) [][]byte {
	first, second, third := openInference(t)
	const messages = `[{"role":"user","parts":[{"type":"text","content":"Where?"},{"type":"uri","modality":"image","uri":"https://u@example.org/a?b"},{"type":"tool_call_response","id":"c1","response":{"at":1}},{"type":"odd","x":1}]}]`
	const said = `[{"role":"assistant","finish_reason":"stop","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"c1","name":"look","arguments":{"n":1}},{"type":"text","content":"Here."}]}]`
	logs := func(name, more string, list ...any) []byte {
		return []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"` + name + `"` + more + `,"attributes":` + attrs(t, list...) + `}]}]}]}`)
	}
	return [][]byte{
		first, second, third,
		span(t, `,"kind":3,"startTimeUnixNano":"5","status":{"code":2,"message":"no"}`, "gen_ai.operation.name", "chat", "gen_ai.provider.name", "p", "gen_ai.request.model", "m", "gen_ai.response.model", "m-1", "gen_ai.request.top_k", 40,
			"gen_ai.request.stop_sequences", raw(`{"arrayValue":{"values":[{"stringValue":"x"},{"doubleValue":0.5},{"boolValue":true},{"bytesValue":"aGk="},{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"9007199254740993"}}]}}]}}`),
			"gen_ai.usage.input_tokens", 3, "gen_ai.usage.output_tokens", 4, "gen_ai.system_instructions", "Be kind.", "gen_ai.input.messages", messages, "gen_ai.output.messages", said, "gen_ai.tool.definitions", `[{"type":"function","name":"look"}]`, "server.address", "h"),
		span(t, "", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "look", "gen_ai.tool.call.id", "c1", "gen_ai.tool.call.arguments", `{"n":1}`, "gen_ai.tool.call.result", "a tree"),
		span(t, "", "gen_ai.request.model", "m", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "Where?", "gen_ai.completion.0.content", "Here.", "llm.usage.total_tokens", 9, "gen_ai.usage.prompt_tokens", 3, "gen_ai.usage.completion_tokens", 4),
		span(t, "", "ai.operationId", "ai.generateText.doGenerate", "gen_ai.request.model", "m", "ai.prompt.messages", `[{"role":"user","content":"Where?"}]`, "ai.response.text", "Here."),
		span(t, "", "traceloop.span.kind", "agent", "traceloop.entity.input", "Where?", "traceloop.entity.output", "Here."),
		span(t, "", "openinference.span.kind", "AGENT", "input.value", "Where?", "output.value", "Here.", "llm.tools.0.tool.json_schema", `{"function":{"name":"look"}}`),
		[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"events":[{"name":"gen_ai.user.message","attributes":` + attrs(t, "content", "Where?") + `},{"name":"gen_ai.content.prompt","attributes":` + attrs(t, "gen_ai.prompt", `[{"role":"user","content":"Well?"}]`) +
			`},{"name":"gen_ai.choice","attributes":` + attrs(t, "message", `{"content":"Here.","tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]}`, "index", 0) + `},{"name":"gen_ai.content.completion","attributes":` + attrs(t, "gen_ai.completion", "There.") + `}]}]}]}]}`),
		logs("gen_ai.tool.message", `,"body":{"kvlistValue":{"values":[{"key":"id","value":{"stringValue":"c1"}},{"key":"content","value":{"stringValue":"a tree"}}]}}`),
		logs("gen_ai.choice", `,"body":{"stringValue":"{\"index\":1,\"message\":{\"content\":\"Here.\"}}"}`),
		logs("gen_ai.client.inference.operation.details", "", "gen_ai.input.messages", messages, "gen_ai.output.messages", said),
		logs("", `,"body":{"stringValue":"x"}`, "event.name", "gen_ai.assistant.message", "gen_ai.event.content", `{"content":"Here."}`),
	}
}

// tokens are what a change replaces: values, and what stands between them.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null|[{}\[\],:]|\n`)

// odd are values that hostile bodies have.
var odd = []string{`null`, `0`, `-1`, `1`, `1.0`, `1e400`, `9007199254740993`, `""`, `true`, `false`, `{}`, `[]`, `{"a":1,"a":2}`, `[null]`, `"\ud83d"`, `"\ud83d\ude00"`, "\"\xff\"", `"a\u0000b"`, `"x y"`, `"data:image/png;base64,aGk="`,
	`"https://u:p@example.org/a b?c#d"`, `"//h/é"`, `":"`, `"a:b"`, `"http://[::1%25z]:80/%zz"`, `"X://h:1:2/[x]"`, `{"text":"a","type":"text"}`, `"2"`, `"aGk"`, "\ufeff", " ", `"\n"`}

// names finds where members begin.
var names = regexp.MustCompile(`"[^"\\\\\n]*"\s*:`)

// A vocabulary has what stands in the calls, with which a change replaces something else: so that it meets members that are read.
type vocabulary struct {
	tokens  []string
	members []string            // names and values
	values  map[string][]string // by name with its colon
}

func vocabularyOf(calls []observe.Call) *vocabulary {
	v, known := &vocabulary{values: map[string][]string{}}, map[string]bool{}
	note := func(list *[]string, text string) {
		if len(text) < 400 && !known[text] {
			known[text], *list = true, append(*list, text)
		}
	}
	for _, c := range calls {
		for _, body := range [][]byte{c.Request, c.Response} {
			for _, one := range tokens.FindAll(body, -1) {
				note(&v.tokens, string(one))
			}
			for _, at := range names.FindAllIndex(body, -1) {
				value, is := valueAt(body, at[1])
				if name := string(body[at[0]:at[1]]); is && len(value) < 400 && !known[name+value] {
					v.values[name] = append(v.values[name], value)
					note(&v.members, name+value)
				}
			}
		}
	}
	return v
}

// valueAt returns the value that begins at an offset.
func valueAt(body []byte, at int) (string, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(body[at:]), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := d.ReadValue()
	return string(body[at : at+int(d.InputOffset())]), err == nil && len(value) > 0
}

func pick(random *rand.Rand, list []string) string { return list[random.IntN(len(list))] }

// changed changes one direction of a call, in one to three places.
func changed(random *rand.Rand, c observe.Call, known *vocabulary) observe.Call {
	c.Request, c.Response = bytes.Clone(c.Request), bytes.Clone(c.Response)
	body := &c.Request
	if len(c.Response) > 0 && random.IntN(2) == 0 {
		body = &c.Response
	}
	for range 1 + random.IntN(3) {
		*body = changedBody(random, *body, known)
	}
	if random.IntN(20) == 0 {
		c.Path = []string{"", "/server", "/v1/messages", "/a/deployments/d%20e/chat/completions", "/v1/responses/resp_1?x", "/v1beta/tunedModels/t:generateContent", "/v1internal:generateContent", "/tasks/t1:cancel", "/message:send",
			"/v1/publishers/anthropic/models/c%20d:rawPredict", "/model/a%2Fb/invoke", "/v1/card", "/tasks/t/pushNotificationConfigs"}[random.IntN(13)]
	}
	if random.IntN(20) == 0 {
		c.ResponseType = []string{"", "application/json", "Text/Event-Stream ; x"}[random.IntN(3)]
	}
	return c
}

func changedBody(random *rand.Rand, body []byte, known *vocabulary) []byte {
	places := tokens.FindAllIndex(body, -1)
	if len(places) == 0 {
		return body
	}
	at := places[random.IntN(len(places))]
	other := places[random.IntN(len(places))]
	put := func(from, to int, with []byte) []byte { return slices.Concat(body[:from], with, body[to:]) }
	switch random.IntN(14) {
	case 0:
		return put(at[0], at[1], []byte(pick(random, odd)))
	case 1:
		return put(at[0], at[1], []byte(pick(random, known.tokens)))
	case 2:
		return put(at[0], at[1], body[other[0]:other[1]])
	case 3:
		return put(at[0], at[1], nil)
	case 4: // what stands between two tokens is written again
		if other[0] < at[1] {
			at, other = other, at
		}
		return put(other[1], other[1], slices.Concat([]byte(","), body[at[0]:other[1]]))
	case 5, 6: // another member
		if brace := bytes.IndexByte(body[at[0]:], '{'); brace >= 0 {
			return put(at[0]+brace+1, at[0]+brace+1, []byte(pick(random, known.members)+","))
		}
		return body
	case 7:
		return body[:random.IntN(len(body)+1)]
	}
	return changedMember(random, body, known)
}

// changedMember gives a member another value, or writes it twice.
func changedMember(random *rand.Rand, body []byte, known *vocabulary) []byte {
	members := names.FindAllIndex(body, -1)
	if len(members) == 0 {
		return body
	}
	at := members[random.IntN(len(members))]
	name := string(body[at[0]:at[1]])
	value, is := valueAt(body, at[1])
	if !is || len(known.values[name]) == 0 {
		return body
	}
	another := pick(random, known.values[name])
	if random.IntN(6) == 0 {
		another = pick(random, odd)
	}
	end := at[1] + len(value)
	switch random.IntN(4) {
	case 0: // an element twice
		if strings.HasPrefix(another, "[") && strings.HasPrefix(value, "[") {
			another = strings.TrimSuffix(value, "]") + "," + strings.TrimPrefix(another, "[")
		}
	case 1:
		another = value + "," + name + another
	case 2:
		another += "," + name + value
	}
	return slices.Concat(body[:at[1]], []byte(another), body[end:])
}
