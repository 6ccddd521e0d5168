package subject

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	gocmp "github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/test/must"
)

// A seenCall is what a recorder saw of one call to a model, in a few words.
type seenCall struct {
	chain, request, response string
	more                     string // members of observed
	ended                    evidence.Ended
	earlier                  []string // bodies that the request copies from
	gemini                   bool     // the server is Gemini's
	protocol                 string   // "": openai.chat, or Gemini's
}

// seen makes the exhibit of a recorded call to a server of chat completions.
func seen(t testing.TB, n int, c seenCall) Exhibit {
	t.Helper()
	c.ended, c.chain = cmp.Or(c.ended, evidence.Complete), cmp.Or(c.chain, "main")
	body := func(text string, earlier ...string) (stated, value string) {
		var from [][]byte
		for _, e := range earlier {
			from = append(from, []byte(e))
		}
		v := must.Get(evidence.FormatBody(observed.Pieces([]byte(text), from...)...))(t)
		return fmt.Sprintf(`{"bytes":%d,"sha256":%q,"type":"application/json"}`, len(text), evidence.DigestOf([]byte(text))), string(v)
	}
	request, requestBody := body(c.request, c.earlier...)
	response, responseBody := body(c.response)
	protocol, path := "openai.chat", "/v1/chat/completions"
	if c.gemini {
		protocol, path = "gemini.generate", "/v1beta/models/m:generateContent"
	}
	if c.protocol != "" {
		protocol, path = c.protocol, map[string]string{"anthropic.messages": "/v1/messages", "openai.responses": "/v1/responses"}[c.protocol]
	}
	return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_call","agent_id":"tap","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z","chain_id":%q,
		"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":%q,"fidelity":"bytes","vantage":"proxy","protocol":%q,"path":%q,"status":200,"request":%s,"response":%s%s},
		"request_body":%s,"response_body":%s`, n, c.chain, c.ended, protocol, path, request, response, c.more, requestBody, responseBody))
}

func chatRequest(messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
}

func chatAnswer(message string) string {
	return `{"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":` + message + `}]}`
}

// content is one of Gemini's contents.
func content(role string, parts ...string) string {
	return `{"role":"` + role + `","parts":[` + strings.Join(parts, ",") + `]}`
}

// gets is a call by Gemini of a tool, and got its result, with the id that a program gave; "": none.
func gets(id string) string {
	return `{"functionCall":{` + idMember(id) + `"name":"get","args":{"n":1}}}`
}

func got(id string) string {
	return `{"functionResponse":{` + idMember(id) + `"name":"get","response":{"for":"` + id + `"}}}`
}

func idMember(id string) string {
	if id == "" {
		return ""
	}
	return `"id":"` + id + `",`
}

func geminiRequest(turns ...string) string { return `{"contents":[` + strings.Join(turns, ",") + `]}` }

func geminiAnswer(turn string) string {
	return `{"modelVersion":"m-1","candidates":[{"content":` + turn + `,"finishReason":"STOP","index":0}]}`
}

// geminiCalls are calls of a program that gives these ids to two calls, one after the other, of the same tool with the same arguments. A third has no answer.
func geminiCalls(t testing.TB, first, second string) []Exhibit {
	ask, done := content("user", `{"text":"Hi"}`), content("model", `{"text":"Done"}`)
	one, two := []string{content("model", gets(first)), content("user", got(first))}, []string{content("model", gets(second)), content("user", got(second))}
	return []Exhibit{
		seen(t, 1, seenCall{gemini: true, request: geminiRequest(ask), response: geminiAnswer(content("model", gets("")))}),
		seen(t, 2, seenCall{gemini: true, request: geminiRequest(slices.Concat([]string{ask}, one)...), response: geminiAnswer(content("model", gets("")))}),
		seen(t, 3, seenCall{gemini: true, request: geminiRequest(slices.Concat([]string{ask}, one, two)...), response: geminiAnswer(done)}),
		seen(t, 4, seenCall{gemini: true, request: geminiRequest(slices.Concat([]string{ask}, one, two, []string{done, content("model", gets("own")), ask})...), response: geminiAnswer(done)}),
	}
}

func said(role, text string) string {
	doc, err := json.Marshal(map[string]string{"role": role, "content": text}, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(doc)
}

var (
	brief   = said("system", "Be brief.")
	hi      = said("user", "Hi")
	helloed = said("assistant", "Hello")
	search  = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"a\": 1, \"b\": 2}"}}]}`
	again   = `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"b\":2,\"a\":1}"}}]}`
	found   = `{"role":"tool","tool_call_id":"c1","content":"one"}`
)

func TestWhatRecordersSaw(t *testing.T) {
	for name, one := range map[string]struct {
		records []Exhibit
		want    string
	}{
		"a conversation": {[]Exhibit{
			seen(t, 1, seenCall{request: chatRequest(brief, hi), response: chatAnswer(helloed)}),
			seen(t, 2, seenCall{request: chatRequest(brief, hi, helloed, said("user", "Bye")), response: chatAnswer(said("assistant", "Bye!"))})},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello\n4 user prompt: Bye\n5 assistant response: Bye!"},
		"a call whose arguments a library wrote anew": {[]Exhibit{
			seen(t, 1, seenCall{request: chatRequest(hi), response: chatAnswer(search)}),
			seen(t, 2, seenCall{request: chatRequest(hi, again, found), response: chatAnswer(helloed)})},
			"1 user prompt: Hi\n2 assistant response: search({\"a\": 1, \"b\": 2})->3\n3 tool prompt: one\n4 assistant response: Hello"},
		"calls to which the program gives ids": {geminiCalls(t, "run_1", "run_2"), "1 user prompt: Hi\n" +
			"2 assistant response: get({\"n\":1})->3\n3 tool prompt: {\"for\":\"run_1\"}\n4 assistant response: get({\"n\":1})->5\n5 tool prompt: {\"for\":\"run_2\"}\n6 assistant response: Done\n" +
			"7 assistant prompt: get({\"n\":1})->0\n8 user prompt: Hi\n9 assistant response: Done"},
		"calls without ids": {geminiCalls(t, "", ""), "1 user prompt: Hi\n" +
			"2 assistant response: get({\"n\":1})->3\n3 tool prompt: {\"for\":\"\"}\n4 assistant response: get({\"n\":1})->5\n5 tool prompt: {\"for\":\"\"}\n6 assistant response: Done\n" +
			"7 assistant prompt: get({\"n\":1})->0\n8 user prompt: Hi\n9 assistant response: Done"},
		"another attempt": {[]Exhibit{
			seen(t, 1, seenCall{request: chatRequest(brief, hi), response: `{"error":{"message":"busy","code":"overloaded"}}`}),
			seen(t, 2, seenCall{request: chatRequest(brief, hi), response: chatAnswer(helloed), more: `,"retry_of":"r1"`}),
			seen(t, 3, seenCall{request: chatRequest(brief, hi), response: chatAnswer(helloed), more: `,"retry_of":"r1"`})},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 recorder observed: The provider answered with an error: overloaded: busy. How it ended: the answer came to its end, with status 200.\n" +
				"4 assistant response: Hello\n5 recorder observed: This is another attempt of the request r1. How it ended: the answer came to its end, with status 200.\n" +
				"6 recorder observed: This is another attempt of the request r1. The answer is again that of message 4. How it ended: the answer came to its end, with status 200."},
		"conversations side by side": {[]Exhibit{
			seen(t, 1, seenCall{request: chatRequest(brief, hi), response: chatAnswer(helloed)}),
			seen(t, 2, seenCall{request: chatRequest(brief, said("user", "Plan")), response: chatAnswer(said("assistant", "A9"))}),
			seen(t, 3, seenCall{request: chatRequest(brief, hi, helloed, said("user", "Bye")), response: chatAnswer(said("assistant", "Bye!"))}),
			seen(t, 4, seenCall{request: chatRequest(brief, said("user", "Plan"), said("assistant", "A9"), said("user", "Go")), response: chatAnswer(said("assistant", "Gone"))})},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello\n4 user prompt: Plan\n5 assistant response: A9\n6 user prompt: Bye\n7 assistant response: Bye!\n8 user prompt: Go\n9 assistant response: Gone"},
		"another chain": {[]Exhibit{
			seen(t, 1, seenCall{chain: "a", request: chatRequest(hi), response: chatAnswer(helloed)}),
			seen(t, 2, seenCall{chain: "b", request: chatRequest(hi), response: chatAnswer(helloed)})},
			"1 user prompt: Hi\n2 assistant response: Hello\n3 user prompt: Hi\n4 assistant response: Hello"},
		"a program that forgets": {[]Exhibit{
			seen(t, 1, seenCall{request: chatRequest(brief, hi), response: chatAnswer(helloed)}),
			seen(t, 2, seenCall{request: chatRequest(brief, hi, helloed, said("user", "More")), response: chatAnswer(said("assistant", "So"))}),
			seen(t, 3, seenCall{request: chatRequest(brief, said("user", "More"), said("assistant", "So"), said("user", "Bye")), response: chatAnswer(said("assistant", "Bye!"))})},
			"1 system prompt: Be brief.\n2 user prompt: Hi\n3 assistant response: Hello\n4 user prompt: More\n5 assistant response: So\n6 user prompt: Bye\n7 assistant response: Bye!"},
		"an answer that no record has": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi, said("assistant", "I never said it"), said("user", "Well?")), response: chatAnswer(helloed)})},
			"1 user prompt: Hi\n2 assistant prompt: I never said it\n3 user prompt: Well?\n4 assistant response: Hello"},
		"a provider that claims to be the user": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi), response: chatAnswer(said("user", "Do it."))})},
			"1 user prompt: Hi\n2 assistant response: Do it.\n" + `3 recorder observed: What the bytes say is not wholly known: answer: its message has the role "user": read as the model's. How it ended: the answer came to its end, with status 200.`},
		"an answer that broke off": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi), response: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n", ended: evidence.ClientGone})},
			"1 user prompt: Hi\n2 assistant response: Hel\n3 recorder observed: How it ended: the agent went away before the end of the answer, with status 200."},
		"context that the provider has": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi), response: chatAnswer(helloed), more: `,"context_by_reference":["file:f1"],"missing":["trailers"]`})},
			"1 user prompt: Hi\n2 assistant response: Hello\n3 recorder observed: A part of what the model was given was kept or fetched by the provider, and is not in the bytes: file:f1. By its own word the recorder did not see: trailers. How it ended: the answer came to its end, with status 200."},
		"an unknown role": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi, said("critic", "Bad.")), response: chatAnswer(helloed)})},
			"1 user prompt: Hi\n2 recorder prompt: {\"content\":\"Bad.\",\"role\":\"critic\"}\n3 assistant response: Hello"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fromRecords(t, one.records...)
			must.Equal(t, gocmp.Diff(one.want, script(c)), "")
			again := must.Get(Parse(c.Material()))(t)
			diff := gocmp.Diff(c.Messages, again.Messages)
			must.Hold(t, diff == "" && NameIn(c.Material()) == "clerk-bot" && c.Card.Name == "clerk-bot", "read again, of %q: %s", NameIn(c.Material()), diff)
		})
	}
}

// TestHeadOfWhatRecordersSaw: jurors are told from where it was seen, how much of it, and what of the prompt they have read.
func TestHeadOfWhatRecordersSaw(t *testing.T) {
	first := chatRequest(brief, hi)
	c := fromRecords(t,
		seen(t, 1, seenCall{request: first, response: chatAnswer(helloed)}),
		seen(t, 2, seenCall{request: chatRequest(brief, hi, helloed, said("user", "More"), said("assistant", "Never said"), said("user", "Bye")), response: chatAnswer(said("assistant", "Bye!"))}),
		exhibit(t, 3, `"action_type":"observed_span","agent_id":"tap","request_id":"r3","timestamp":"2026-01-31T16:15:00Z","model":"m","model_version":"m-1","prompt":"Hi","response":"Hello",
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"attributes","vantage":"telemetry","protocol":"otlp"}`))
	for number, want := range map[int]string{
		1: `observed_call of the agent "clerk-bot": bytes seen by the recorder "tap" between the agent and the upstream, every one; protocol openai.chat; the answer came to its end, with status 200, at 2026-01-31T16:15:00Z by its own word; no time is proved; it begins a conversation`,
		4: `no time is proved; its prompt begins with the messages 1 to 3, not shown again; 1 of the prompt's messages are earlier answers of the agent only by the word of its own program`,
		8: `observed_span of the agent "clerk-bot": told by the agent's telemetry to the recorder "tap", only what that software chose to tell, second hand; protocol otlp; the answer came to its end; model asked for "m"; model that answered, by the provider's word, "m-1"`,
	} {
		m := c.Message(number)
		must.Hold(t, m != nil && strings.Contains(m.Head, want), "message %d: %+v\nwant %s", number, m, want)
	}
	if m := c.Message(9); m == nil || m.Role != Assistant || m.Text != "Hello" || m.Name != "clerk-bot" || len(c.Messages) != 10 || !strings.HasPrefix(c.Message(10).Text, "This is second hand: ") {
		t.Errorf("%d messages, the last %+v", len(c.Messages), m)
	}
}

// TestWhatAFileTold: of an imported file, each message is shown, also one that stood there before; that a result is an error stays; and what is missing
// is said once in a chain.
func TestWhatAFileTold(t *testing.T) {
	told := func(n int, chain, prompt, response, missing, ended string) Exhibit {
		if response != "" {
			response = `,"response":` + response
		}
		return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_span","agent_id":"importer","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z","chain_id":%q,"prompt":%s%s,
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":%q,"fidelity":"attributes","missing":%s,"vantage":"telemetry","protocol":"import/claude-code"}`, n, chain, prompt, response, ended, missing))
	}
	c := fromRecords(t,
		told(1, "a", `[`+hi+`]`, `"Hello"`, `["headers","when it was said"]`, "complete"),
		told(2, "a", `[`+hi+`]`, `"Hello"`, `["headers"]`, "complete"),
		told(3, "a", `[`+hi+`]`, `[`+search+`]`, `["headers","counts"]`, "complete"),
		told(4, "a", `[{"role":"tool","tool_call_id":"c1","content":"none","is_error":true}]`, "", `["headers"]`, "upstream_error"),
		told(5, "b", `"Hi"`, `"Hello"`, `["headers"]`, "complete"))
	const secondHand = "recorder observed: This is second hand: a file that others wrote tells it, and nobody saw it. What it does not tell: "
	want := "1 user prompt: Hi\n2 assistant response: Hello\n3 " + secondHand + "headers; when it was said. How it ended: the answer came to its end.\n" +
		"4 user prompt: Hi\n5 assistant response: Hello\n" +
		"6 user prompt: Hi\n7 assistant response: search({\"a\": 1, \"b\": 2})->9\n8 " + secondHand + "counts. How it ended: the answer came to its end.\n" +
		"9 tool prompt: none\n10 recorder observed: How it ended: no answer came.\n" +
		"11 user prompt: Hi\n12 assistant response: Hello\n13 " + secondHand + "headers. How it ended: the answer came to its end."
	diff := gocmp.Diff(want, script(c))
	must.Hold(t, diff == "", "(-want +got)\n%s", diff)
	if !c.Message(9).Failed || !strings.Contains(c.Message(1).Head, `told by a file that others wrote, which the recorder "importer" imported, only what that software chose to tell, second hand; protocol import/claude-code`) {
		t.Errorf("%+v\n%s", c.Message(9), c.Message(1).Head)
	}
}

// TestWhatTelemetryTold: acts that telemetry tells of are read from what it told, and each says that nobody saw it.
func TestWhatTelemetryTold(t *testing.T) {
	told := func(n int, missing, attributes string) Exhibit {
		body := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","attributes":[` + attributes + `]}]}]}]}`
		value := must.Get(evidence.FormatBody(observed.Pieces([]byte(body))...))(t)
		return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_span","agent_id":"tap","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z","chain_id":"main",
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"attributes","vantage":"telemetry","protocol":"otlp","missing":[%q],"request":{"bytes":%d,"sha256":%q,"type":"application/json"}},
			"request_body":%s`, n, missing, len(body), evidence.DigestOf([]byte(body)), value))
	}
	attribute := func(key, value string) string {
		doc := must.Get(json.Marshal(value))(t)
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%s}}`, key, doc)
	}
	list := func(attributes ...string) string { return strings.Join(attributes, ",") }
	const (
		user = `{"role":"user","parts":[{"type":"text","content":"Hi"}]}`
		call = `{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"search","arguments":{"a":1}}]}`
	)
	c := fromRecords(t,
		told(1, "the bytes", list(attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.input.messages", "["+user+"]"), attribute("gen_ai.output.messages", "["+call+"]"))),
		told(2, "the bytes", list(attribute("gen_ai.operation.name", "execute_tool"), attribute("gen_ai.tool.name", "search"), attribute("gen_ai.tool.call.id", "c1"), attribute("gen_ai.tool.call.arguments", `{"a":1}`), attribute("gen_ai.tool.call.result", "one"))),
		told(3, "the bytes", list(attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.input.messages", "["+user+","+call+`,{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"one"}]}]`), attribute("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"One."}]}]`))),
		told(4, "gen_ai.input.messages: cut off", list(attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.input.messages", "["+user[:20]), attribute("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Two."}]}]`))),
		told(5, "prompt: not told here", list(attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "m"))))
	const secondHand = "recorder observed: This is second hand: the agent's own telemetry tells it, and nobody saw it. What it does not tell: "
	want := "1 user prompt: Hi\n2 assistant response: search({\"a\":1})->4\n3 " + secondHand + "the bytes. How it ended: the answer came to its end.\n4 tool response: one\n5 " + secondHand + "the bytes. How it ended: the answer came to its end.\n" +
		"6 tool prompt: one\n7 assistant response: One.\n8 " + secondHand + "the bytes. How it ended: the answer came to its end.\n9 assistant response: Two.\n10 " + secondHand + "gen_ai.input.messages: cut off. How it ended: the answer came to its end.\n11 " + secondHand + "prompt: not told here. How it ended: the answer came to its end."
	diff := gocmp.Diff(want, script(c))
	must.Hold(t, diff == "", "(-want +got)\n%s", diff)
}

// TestBodiesOfCalls: bodies are put together from earlier ones, and what cannot be read is named.
func TestBodiesOfCalls(t *testing.T) {
	long := said("user", strings.Repeat("word ", 400))
	first, second := chatRequest(long), chatRequest(long, helloed, hi)
	one := seen(t, 1, seenCall{request: first, response: chatAnswer(helloed)})
	two := seen(t, 2, seenCall{request: second, response: chatAnswer(said("assistant", "Bye!")), earlier: []string{first}})
	must.Need(t, strings.Contains(string(two.Payload), `"pieces"`), "nothing is copied")
	if c := fromRecords(t, one, two); len(c.Messages) != 4 || c.Messages[2].Text != "Hi" || c.Messages[3].Text != "Bye!" {
		t.Errorf("%s", script(c))
	}
	stated := `"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy"`
	record := func(kind, observed, more string) Exhibit {
		return exhibit(t, 9, fmt.Sprintf(`"action_type":%q,"agent_id":"tap","request_id":"r9","timestamp":"2026-01-31T16:15:00Z","observed":{%s,%s}%s`, kind, stated, observed, more))
	}
	digest := func(text string) string {
		return fmt.Sprintf(`{"bytes":%d,"sha256":%q}`, len(text), evidence.DigestOf([]byte(text)))
	}
	commitment := "hmac-sha256:" + strings.Repeat("1", 64)
	const ended = " How it ended: the answer came to its end."
	for name, test := range map[string]struct {
		record Exhibit
		want   string
	}{
		"the earlier body is elsewhere": {two, "1 assistant response: Bye!\n2 recorder observed: The bytes of the request repeat those of an earlier record, which the evidence does not have. How it ended: the answer came to its end, with status 200."},
		"other bytes than stated": {record("observed_call", `"protocol":"openai.chat","request":`+digest(first), `,"request_body":"something else","response":"Hello"`),
			"1 assistant response: Hello\n2 recorder observed: The bytes of the request are not those that the record states." + ended},
		"no bytes": {record("observed_call", `"protocol":"openai.chat","request":`+digest(first), `,"response":[{"role":"assistant","content":"Hello"},{"role":"tool","tool_call_id":"x","content":"one"}]`),
			"1 assistant response: Hello\n2 tool response: one\n3 recorder observed: The bytes of the request are not sealed." + ended},
		"withheld": {record("observed_call", `"protocol":"openai.chat","request":`+digest(first), fmt.Sprintf(`,"request_body":%q,"response":%q,"sealed_apart":["/request_body","/response"]`, commitment, commitment)),
			"1 assistant response: [withheld: /response was sealed apart, and the evidence does not have it]\n2 recorder observed: The bytes of the request were sealed apart, and the evidence does not have them." + ended},
		"encoded": {record("observed_call", `"protocol":"openai.chat","request":{"bytes":2,"sha256":"`+evidence.DigestOf([]byte("xx")).String()+`","encoding":"dcb","decoded":"refused"}`, `,"request_body":"xx"`),
			"1 recorder prompt: xx\n2 recorder observed: The request is sealed as it was encoded, and is not read." + ended},
		"a protocol that no reader knows": {record("observed_tool", `"protocol":"other/1","request":`+digest("ask")+`,"response":`+digest("\xff\xfe"), `,"request_body":"ask","response_body":{"base64":"//4="}`),
			"1 recorder prompt: ask\n2 recorder response: [response of 2 bytes that are no text]"},
		"tools that are stated": {record("observed_tool", `"protocol":"other/1","request":`+digest("ask"), `,"request_body":"ask","tools_used":[{"name":"go","arguments":{},"result":"gone"}]`),
			"1 assistant tools_used: go({})->2\n2 tool tools_used: gone"},
		"an event of the recorder": {exhibit(t, 9, `"action_type":"recorder_event","agent_id":"tap","timestamp":"2026-01-31T16:15:00Z","response":{"event":"stop","reason":"maintenance"}`),
			`1 recorder response: recorder_event: {"event":"stop","reason":"maintenance"}`},
	} {
		diff := gocmp.Diff(test.want, script(fromRecords(t, test.record)))
		must.Hold(t, diff == "", "%s (-want +got)\n%s", name, diff)
	}
}

// TestCopiesAreBounded: small records that copy a large body many times are refused before they take the time of all of it.
func TestCopiesAreBounded(t *testing.T) {
	large := chatRequest(said("user", strings.Repeat("x", 1<<20)))
	list := []Exhibit{seen(t, 1, seenCall{request: large, response: chatAnswer(helloed)})}
	copied := fmt.Sprintf(`{"at":0,"from":%q,"length":%d}`, evidence.DigestOf([]byte(large)), len(large))
	for n := 2; n < 20; n++ {
		list = append(list, exhibit(t, n, fmt.Sprintf(`"action_type":"observed_call","agent_id":"tap","request_id":"r","timestamp":"2026-01-31T16:15:00Z",
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"openai.chat","request":{"bytes":1,"sha256":%q}},
			"request_body":{"pieces":[%s]}`, evidence.DigestOf(nil), strings.Repeat(copied+",", 29)+copied)))
	}
	_, err := FromRecords(nil, list, Verification{Outcome: Proved})
	must.Hold(t, err != nil && strings.Contains(err.Error(), "more than 256 MiB: put fewer records before the jury"), "%v", err)
}

// TestToolUsedTwice: two uses of a tool that are alike are two acts, each with its result; and a model's call is not taken for them.
func TestToolUsedTwice(t *testing.T) {
	use := func(n int) Exhibit {
		ask, answer := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refund","arguments":{"order":"A-17"}}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Refunded."}]}}`
		return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_tool","agent_id":"tap","request_id":"r","timestamp":"2026-01-31T16:15:00Z","chain_id":"c",
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"mcp/2025-06-18","path":"/client","method":"tools/call",
			"request":{"bytes":%d,"sha256":%q},"response":{"bytes":%d,"sha256":%q}},"request_body":%q,"response_body":%q`, len(ask), evidence.DigestOf([]byte(ask)), len(answer), evidence.DigestOf([]byte(answer)), ask, answer))
	}
	const want = `1 assistant prompt: refund({"order":"A-17"})->2
2 tool response: Refunded.
3 assistant prompt: refund({"order":"A-17"})->4
4 tool response: Refunded.`
	diff := gocmp.Diff(want, script(fromRecords(t, use(1), use(2))))
	must.Hold(t, diff == "", "(-want +got)\n%s", diff)
}

// TestToolUseIsLinked: of a use of a tool a juror is told for which call of the agent's model it stands, and if the agent's program did something else than its model asked for.
func TestToolUseIsLinked(t *testing.T) {
	use := func(n int, id, arguments string) Exhibit {
		ask, answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":%s,"_meta":{"claudecode/toolUseId":%q}}}`, arguments, id), `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one"}]}}`
		return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_tool","agent_id":"tap","request_id":"r","timestamp":"2026-01-31T16:15:00Z","chain_id":"main",
			"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"mcp/2025-06-18","path":"/client","method":"tools/call",
			"request":{"bytes":%d,"sha256":%q},"response":{"bytes":%d,"sha256":%q}},"request_body":%q,"response_body":%q`, len(ask), evidence.DigestOf([]byte(ask)), len(answer), evidence.DigestOf([]byte(answer)), ask, answer))
	}
	c := fromRecords(t, seen(t, 1, seenCall{request: chatRequest(hi), response: chatAnswer(search)}), use(2, "c1", `{"b":2,"a":1}`), use(3, "c1", `{"a":1,"b":3}`), use(4, "", `{"a":1,"b":2}`), use(5, "", `{"a":4}`),
		seen(t, 6, seenCall{request: chatRequest(hi, search, found), response: chatAnswer(helloed)}))
	const script1 = `1 user prompt: Hi
2 assistant response: search({"a": 1, "b": 2})->11
3 assistant prompt: search({"a":1,"b":2})->4`
	got := script(c)
	must.Hold(t, strings.HasPrefix(got, script1), "%s", got)
	for number, want := range map[int]string{3: "the agent's model asked for it in message 2, as the id says", 5: "with another tool or other arguments", 7: "in message 2 the agent's model asked for this tool", 9: ""} {
		head := c.Messages[number-1].Head
		must.Hold(t, (want != "" || !strings.Contains(head, "the agent's model")) && strings.Contains(head, want) && head != "", "message %d: %s", number, head)
	}
}

// TestToolUseOfAProgramsWord: what a program says of earlier answers in a prompt, and what another agent's model asked for, is not said to be what the agent's model asked for.
func TestToolUseOfAProgramsWord(t *testing.T) {
	use := func(n int, agent, id string) Exhibit {
		ask, answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"a":1,"b":2},"_meta":{"claudecode/toolUseId":%q}}}`, id), `{"jsonrpc":"2.0","id":1,"result":{}}`
		return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_tool","agent_id":"tap","request_id":"r","timestamp":"2026-01-31T16:15:00Z","chain_id":"main",
			"observed":{"agent":%q,"began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"mcp/2025-06-18","path":"/client","method":"tools/call",
			"request":{"bytes":%d,"sha256":%q},"response":{"bytes":%d,"sha256":%q}},"request_body":%q,"response_body":%q`, agent, len(ask), evidence.DigestOf([]byte(ask)), len(answer), evidence.DigestOf([]byte(answer)), ask, answer))
	}
	for name, tt := range map[string]struct {
		exhibits []Exhibit
		says     string
	}{
		"an id in a prompt":               {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi, search, found), response: chatAnswer(helloed)}), use(2, "clerk-bot", "c1")}, "no recorder saw"},
		"the same arguments, in a prompt": {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi, search, found), response: chatAnswer(helloed)}), use(2, "clerk-bot", "")}, "no recorder saw"},
		"another agent's model":           {[]Exhibit{seen(t, 1, seenCall{request: chatRequest(hi), response: chatAnswer(search)}), use(2, "other-bot", "c1")}, ""},
	} {
		c := fromRecords(t, tt.exhibits...)
		head := ""
		for _, m := range c.Messages {
			if m.Head != "" {
				head = m.Head // that of the last record
			}
		}
		must.Hold(t, strings.Contains(head, "observed_tool") && !strings.Contains(head, "the agent's model asked") && strings.Contains(head, tt.says),
			"%s: %s", name, head)
	}
}

// exchanged makes the exhibit of an exchange of messages that a recorder saw.
func exchanged(t testing.TB, n int, side evidence.Side, request, response string) Exhibit {
	t.Helper()
	return exhibit(t, n, fmt.Sprintf(`"action_type":"observed_message","agent_id":"tap","request_id":"r%d","timestamp":"2026-01-31T16:15:00Z","chain_id":"recorded/clerk-bot/c1",
		"observed":{"agent":"clerk-bot","began":"2026-01-31T16:14:00Z","ended":"complete","fidelity":"bytes","vantage":"proxy","protocol":"a2a/1.0","path":"/","side":%q,"status":200,"upstream":{"origin":"https://shop.example"},
		"request":{"bytes":%d,"sha256":%q},"response":{"bytes":%d,"sha256":%q}},"request_body":%q,"response_body":%q`,
		n, side, len(request), evidence.DigestOf([]byte(request)), len(response), evidence.DigestOf([]byte(response)), request, response))
}

func rpc(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
}

func sentMessage(text string) string {
	return rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","contextId":"c1","parts":[{"text":"`+text+`"}]}}`)
}

func aTask(state, message string, artifacts ...string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t1","contextId":"c1","status":{"state":"` + state + `","message":{"messageId":"s","role":"ROLE_AGENT","parts":[` + message + `]}},"artifacts":[` + strings.Join(artifacts, ",") + `]}}}`
}

// TestExchanges: the agent that was recorded speaks for itself, whether it asks or answers; the other one is never taken for it.
func TestExchanges(t *testing.T) {
	look := `{"text":"I look."},{"data":{"name":"track","id":"k1","args":{"order":12}}},{"data":{"name":"track","id":"k1","response":"Bern"}}`
	report := `{"artifactId":"a1","parts":[{"text":"It is in Bern."},{"raw":"aGVsbG8=","filename":"map.png"}]}`
	records := func(side evidence.Side) []Exhibit {
		return []Exhibit{
			exchanged(t, 1, side, sentMessage("Where is it?"), aTask("TASK_STATE_WORKING", look)),
			exchanged(t, 2, side, rpc("GetTask", `{"id":"t1"}`), aTask("TASK_STATE_WORKING", look)),
			exchanged(t, 3, side, rpc("GetTask", `{"id":"t1"}`), aTask("TASK_STATE_COMPLETED", `{"text":"Done."}`, report)),
			exchanged(t, 4, side, sentMessage("Where is it?"), aTask("TASK_STATE_COMPLETED", `{"text":"Done."}`)),
			exchanged(t, 5, side, sentMessage("Well?"), `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`),
		}
	}
	working := "The state of the task, in the agent's word: TASK_STATE_WORKING."
	ended := " How it ended: the answer came to its end, with status 200."
	for side, want := range map[evidence.Side]string{
		evidence.Answered: "1 user prompt: Where is it?\n2 assistant response: I look.track({\"order\":12})->3\n3 tool response: Bern\n4 recorder observed: " + working + ended + "\n" +
			"5 recorder observed: " + working + " The answer has again what stands in message 2, 3." + ended + "\n6 assistant response: It is in Bern.\n[file map.png]\n7 assistant response: Done.\n" +
			"8 user prompt: Where is it?\n9 assistant response: Done.\n10 user prompt: Well?\n11 recorder observed: The provider answered with an error: -32001: Task not found." + ended,
		evidence.Asked: "1 assistant prompt: Where is it?\n2 user response: I look.track({\"order\":12})->3\n3 tool response: Bern\n4 recorder observed: " + working + ended + "\n" +
			"5 recorder observed: " + working + " The answer has again what stands in message 2, 3." + ended + "\n6 user response: It is in Bern.\n[file map.png]\n7 user response: Done.\n" +
			"8 assistant prompt: Where is it?\n9 user response: Done.\n10 assistant prompt: Well?\n11 recorder observed: The provider answered with an error: -32001: Task not found." + ended,
	} {
		c := fromRecords(t, records(side)...)
		diff := gocmp.Diff(want, script(c))
		must.Hold(t, diff == "", "%s (-want +got)\n%s", side, diff)
		for _, m := range c.Messages {
			must.Hold(t, (m.Role == Assistant) == (m.Name == "clerk-bot" || m.Name == "artifact" && side == evidence.Answered),
				"%s: message %d of the %s is by %q", side, m.Number, m.Role, m.Name)
		}
		head := map[evidence.Side]string{evidence.Asked: "this agent asked, and another one answered", evidence.Answered: `bytes seen by the recorder "tap" between the agent and those who ask it`}[side]
		must.Hold(t, strings.Contains(c.Messages[0].Head, head) && strings.Contains(c.Messages[0].Head, "bytes seen by the recorder"),
			"%v", c.Messages[0].Head)
		must.Equal(t, c.Card.Name, "clerk-bot")
	}
}

func TestFor(t *testing.T) {
	var c askedCalls
	n, how := c.For("x", "read", "{}")
	must.Hold(t, n == 0 && how == askedUnknown, "a call is found where there is none")
	c.Add(askedCall{"x", "mcp__files__read", `{"a":1}`, 3})
	c.Add(askedCall{"", "write", `{"a":1}`, 4})
	c.Add(askedCall{"y", "read", `{"a":1}`, 5})
	for _, test := range []struct {
		id, tool, arguments string
		number              int
		how                 askedHow
	}{
		{"x", "read", `{"a":1}`, 3, askedByID},
		{"x", "mcp__files__read", `{"a":1}`, 3, askedByID},
		{"x", "read", `{"a":2}`, 3, askedOtherwise},
		{"x", "write", `{"a":1}`, 3, askedOtherwise},
		{"", "read", `{"a":1}`, 5, askedAlike},
		{"z", "write", `{"a":1}`, 4, askedAlike},
		{"", "files__read", `{"a":1}`, 0, askedUnknown},
		{"", "read", `{"a":2}`, 0, askedUnknown},
	} {
		n, how := c.For(test.id, test.tool, test.arguments)
		must.Hold(t, n == test.number && how == test.how, "%+v: message %d, %d", test, n, how)
	}
	c.Add(askedCall{"__", "__", "", 6})
	n, how = c.For("__", "__", "")
	must.Hold(t, n == 6 && how == askedByID, "%v %v", n, how)
}

// prompt makes a message of each letter.
func prompt(letters string) (list []shownMessage) {
	for _, letter := range letters {
		list = append(list, shownAs("user", string(letter)))
	}
	return list
}

// TestTalk: of each prompt, what was shown before is found, whatever came in between.
func TestTalk(t *testing.T) {
	talks := talks{}
	talk, shown := talks.Of("agent", "chain"), 0
	for _, step := range []struct{ prompt, answer, want string }{
		{"sab", "c", ""},
		{"sab", "c", "1 2 3"},     // the same answer again
		{"sab", "d", "1 2 3"},     // another answer
		{"sabce", "f", "1 2 3 4"}, // on from the first
		{"sabde", "g", "1 2 3 5"}, // on from the other
		{"sxy", "z", "1"},         // another conversation with the same instructions
		{"sabcefh", "i", "1 2 3 4 6 7"},
		{"sefhij", "k", "1 6 7 13 14"}, // what is long ago was left out
		{"sk", "", "1 16"},
		{"q", "", ""},
	} {
		asked, answered := prompt(step.prompt), prompt(step.answer)
		line := talk.Repeated(asked)
		var numbers []string
		for _, s := range line {
			numbers = append(numbers, fmt.Sprint(s.Number))
		}
		got := strings.Join(numbers, " ")
		must.Hold(t, got == step.want, "%s: %s, want %s", step.prompt, got, step.want)
		fresh := asked[len(line):]
		if talk.Ends(asked, answered) == 0 {
			fresh = slices.Concat(fresh, answered)
		} else if step.prompt+step.answer != "sabc" || shown != 4 {
			t.Errorf("%s: the answer %s was given before", step.prompt, step.answer)
		}
		for _, m := range fresh {
			shown++
			line = append(line, stood{m, shown})
		}
		talk.Keep(line)
	}
	other := talks.Of("agent", "other")
	must.Hold(t, len(other.Repeated(prompt("sab"))) == 0 && talks.Of("agent", "chain") == talk, "chains are not apart")
	must.Hold(t, shownAs("a", "bc") != shownAs("ab", "c"), "texts run into each other")
}

func TestNumbers(t *testing.T) {
	for want, numbers := range map[string][]int{
		"message 4":                          {4},
		"the messages 1 to 3":                {1, 2, 3},
		"the messages 1, 3 to 4, 9":          {1, 3, 4, 9},
		"the messages 1, 3, 5, 7, 9, others": {1, 3, 5, 7, 9, 11, 13},
	} {
		var line []stood
		for _, n := range numbers {
			line = append(line, stood{Number: n})
		}
		diff := gocmp.Diff(want, numbersOf(line))
		must.Hold(t, diff == "", "%v", diff)
	}
}
