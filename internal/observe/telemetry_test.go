package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/internal/must"
	"jurat/internal/observe"
)

// attrs writes attributes: strings, whole numbers, or JSON of a value of OTLP.
func attrs(t *testing.T, list ...any) string {
	t.Helper()
	var texts []string
	for i := 0; i < len(list); i += 2 {
		var value string
		switch v := list[i+1].(type) {
		case string:
			doc := must.Get(json.Marshal(v))(t)
			value = `{"stringValue":` + string(doc) + `}`
		case int:
			value = fmt.Sprintf(`{"intValue":"%d"}`, v)
		case raw:
			value = string(v)
		}
		texts = append(texts, fmt.Sprintf(`{"key":%q,"value":%s}`, list[i], value))
	}
	return "[" + strings.Join(texts, ",") + "]"
}

type raw string

// span is a span with members and attributes.
func span(t *testing.T, members string, list ...any) []byte {
	t.Helper()
	return []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331"` + members + `,"attributes":` + attrs(t, list...) + `}]}]}]}`)
}

func told(t *testing.T, body []byte) said {
	t.Helper()
	return project(t, observe.Call{Protocol: observe.OTLP, Request: body})
}

// TestConventions: whichever convention a sender keeps to, the projection has the same messages.
func TestConventions(t *testing.T) {
	const (
		system = `{"content":"Be short.","role":"system"}`
		user   = `{"content":"Where is parcel 17?","role":"user"}`
		calls  = `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}`
		result = `{"content":"Kassel","role":"tool","tool_call_id":"c1"}`
		prompt = "[" + system + "," + user + "," + calls + "," + result + "]"
		input  = `[{"role":"user","parts":[{"type":"text","content":"Where is parcel 17?"}]},{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"c1","name":"find","arguments":{"n":17}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"Kassel"}]}]`
		answer = `[{"role":"assistant","parts":[{"type":"text","content":"In Kassel."}],"finish_reason":"stop"}]`
	)
	chat := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m", "gen_ai.response.model", "m-1"}
	for name, body := range map[string][]byte{
		"OpenTelemetry": span(t, "", append(chat, "gen_ai.system_instructions", `[{"type":"text","content":"Be short."}]`, "gen_ai.input.messages", input, "gen_ai.output.messages", answer)...),
		"OpenTelemetry, as values": span(t, "", append(chat, "gen_ai.system_instructions", "Be short.", "gen_ai.input.messages", input, "gen_ai.output.messages",
			raw(`{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"role","value":{"stringValue":"assistant"}},{"key":"finish_reason","value":{"stringValue":"stop"}},{"key":"parts","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"type","value":{"stringValue":"text"}},{"key":"content","value":{"stringValue":"In Kassel."}}]}}]}}}]}}]}}`))...),
		"events of a span": span(t, `,"events":[{"name":"gen_ai.system.message","attributes":`+attrs(t, "content", "Be short.")+`},{"name":"gen_ai.user.message","attributes":`+attrs(t, "gen_ai.event.content", `{"content":"Where is parcel 17?"}`)+
			`},{"name":"gen_ai.assistant.message","attributes":`+attrs(t, "tool_calls", `[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"n\":17}"}}]`)+`},{"name":"gen_ai.tool.message","attributes":`+attrs(t, "id", "c1", "content", "Kassel")+
			`},{"name":"gen_ai.choice","attributes":`+attrs(t, "index", 0, "finish_reason", "stop", "message", `{"content":"In Kassel."}`)+`}]`, chat...),
		"OpenInference": span(t, "", "openinference.span.kind", "LLM", "gen_ai.response.model", "m-1", "llm.model_name", "m", "llm.finish_reason", "stop", "llm.input_messages.0.message.role", "system", "llm.input_messages.0.message.content", "Be short.",
			"llm.input_messages.1.message.role", "user", "llm.input_messages.1.message.contents.0.message_content.type", "text", "llm.input_messages.1.message.contents.0.message_content.text", "Where is parcel 17?",
			"llm.input_messages.2.message.role", "assistant", "llm.input_messages.2.message.tool_calls.0.tool_call.id", "c1", "llm.input_messages.2.message.tool_calls.0.tool_call.function.name", "find", "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments", `{"n":17}`,
			"llm.input_messages.3.message.role", "tool", "llm.input_messages.3.message.tool_call_id", "c1", "llm.input_messages.3.message.content", "Kassel", "llm.output_messages.0.message.role", "assistant", "llm.output_messages.0.message.content", "In Kassel.",
			"input.value", "whatever", "output.value", "whatever"),
		"an event with the details": []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","eventName":"gen_ai.client.inference.operation.details","attributes":` +
			attrs(t, append(chat, "gen_ai.system_instructions", `[{"type":"text","content":"Be short."}]`, "gen_ai.input.messages", input, "gen_ai.output.messages", answer)...) + `}]}]}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			p := told(t, body)
			if string(p.Prompt) != prompt || string(p.Output) != `"In Kassel."` || p.Model != "m" || p.ModelVersion != "m-1" || p.Finish != "stop" || p.Problem != "" || !p.Complete {
				t.Errorf("prompt\n%s\nwant\n%s\nanswer %s, model %q, %q, finish %q, problem %q", p.Prompt, prompt, p.Output, p.Model, p.ModelVersion, p.Finish, p.Problem)
			}
		})
	}
}

// TestToolsTold reads the use of a tool by each convention.
func TestToolsTold(t *testing.T) {
	for name, list := range map[string][]any{
		"OpenTelemetry": {"gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "find", "gen_ai.tool.call.id", "c1", "gen_ai.tool.call.arguments", `{"n":17}`, "gen_ai.tool.call.result", "Kassel"},
		"OpenInference": {"openinference.span.kind", "TOOL", "tool.name", "find", "tool_call.id", "c1", "tool.parameters", `{"n":"number"}`, "input.value", `{"n":17}`, "output.value", "Kassel"},
	} {
		p := told(t, span(t, "", list...))
		if string(p.Prompt) != `[{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}]` || string(p.Output) != `{"content":"Kassel","role":"tool","tool_call_id":"c1"}` || p.Problem != "" {
			t.Errorf("%s: %s, %s, %q", name, p.Prompt, p.Output, p.Problem)
		}
	}
	p := told(t, span(t, `,"status":{"code":2,"message":"no such parcel"}`, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "find", "gen_ai.tool.call.result", "none"))
	if !strings.Contains(string(p.Output), `"is_error":true`) || p.Error != "no such parcel" || !strings.Contains(p.Problem, "arguments of the tool: not told") || p.Complete {
		t.Errorf("a tool that failed: %+v", p)
	}
}

// TestUntold: what a sender left out, cut off, hid, or told in a way that is not read is named, and never taken for the whole.
func TestUntold(t *testing.T) {
	chat := []any{"gen_ai.operation.name", "chat", "gen_ai.request.model", "m"}
	whole := `[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat("long ", 200) + `"}]}]`
	answer := []any{"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Yes."}]}]`}
	for name, test := range map[string]struct {
		body    []byte
		missing string // what is named
		prompt  bool   // there is one all the same
	}{
		"a truncated attribute":    {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", whole[:700])...), "gen_ai.input.messages: what is told has 700 characters and is not whole JSON", false},
		"truncated instructions":   {span(t, "", append(append(chat, answer...), "gen_ai.system_instructions", `[{"type":"te`, "gen_ai.input.messages", whole)...), "gen_ai.system_instructions: what is told has 12 characters", false},
		"instructions alone":       {span(t, "", append(append(chat, answer...), "gen_ai.system_instructions", "Be short.")...), "gen_ai.input.messages: not told", true},
		"a usual limit":            {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", strings.Repeat("x", 1024), "llm.output_messages.0.message.content", "y"), "llm.input_messages.0.message.content: it has 1024 characters", true},
		"two of the same length":   {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.content", strings.Repeat("é", 777), "llm.output_messages.0.message.content", strings.Repeat("z", 777)), "llm.output_messages.0.message.content: it has 777 characters", true},
		"arguments that break off": {span(t, "", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "f", "gen_ai.tool.call.arguments", `{"n":1`, "gen_ai.tool.call.result", "r"), "gen_ai.tool.call.arguments: it begins as JSON", true},
		"no content":               {span(t, "", append(chat, answer...)...), "prompt: not told here", false},
		"no answer":                {span(t, "", append(chat, "gen_ai.input.messages", whole)...), "response: not told here", true},
		"hidden":                   {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", "__REDACTED__")...), "gen_ai.input.messages: the sender has hidden it", false},
		"dropped attributes":       {span(t, `,"droppedAttributesCount":7`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "7 attributes of the span", true},
		"dropped events":           {span(t, `,"droppedEventsCount":2`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "2 events of the span", true},
		"a message that is gone":   {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.0.message.content", "a", "llm.input_messages.3.message.content", "b", "llm.output_messages.0.message.content", "y"), "numbers 1 to 2 of a list: their attributes were dropped", true},
		"the first is gone":        {span(t, "", "openinference.span.kind", "LLM", "llm.input_messages.1.message.content", "b", "llm.output_messages.0.message.content", "y"), "numbers 0 to 0 of a list: their attributes were dropped", true},
		"a sampled trace":          {span(t, `,"traceState":"a=b,ot=rv:1;th:c"`, append(append(chat, answer...), "gen_ai.input.messages", whole)...), "a sample of them alone (tracestate th:c)", true},
		"another convention":       {span(t, "", append(append(chat, answer...), "gen_ai.odd.messages", whole)...), "attributes that are not read here: gen_ai.odd.messages", false},
		"messages of OpenLLMetry":  {span(t, "", "llm.request.type", "chat", "gen_ai.request.model", "m", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "Where?", "gen_ai.completion.0.content", "Here."), "attributes that are not read here: gen_ai.completion.0.content, gen_ai.prompt.0.content", false},
		"messages of the AI SDK":   {span(t, "", "ai.operationId", "ai.generateText.doGenerate", "gen_ai.request.model", "m", "ai.prompt.messages", `[{"role":"user","content":"Where?"}]`, "ai.response.text", "Here."), "attributes that are not read here: ai.operationId, ai.prompt.messages, ai.response.text", false},
		"messages of a draft":      {span(t, `,"events":[{"name":"gen_ai.content.prompt","attributes":`+attrs(t, "gen_ai.prompt", `[{"role":"user","content":"Where?"}]`)+`}]`, append(chat, answer...)...), "an event that is not read here: gen_ai.content.prompt", false},
		"the sender's own form":    {span(t, "", "openinference.span.kind", "LLM", "llm.model_name", "m", "input.value", `{"messages":[]}`, "llm.output_messages.0.message.content", "y"), "prompt: told only in a form of the sender's own (input.value)", false},
		"an attribute twice":       {span(t, "", append(append(chat, answer...), "gen_ai.input.messages", whole, "gen_ai.request.model", "n")...), "gen_ai.request.model: it stands there more than once", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := told(t, test.body)
			if !strings.Contains(p.Problem, test.missing) {
				t.Errorf("%q does not say %q", p.Problem, test.missing)
			}
			if (p.Prompt != nil) != test.prompt {
				t.Errorf("prompt %s", p.Prompt)
			}
		})
	}
	// A value that is whole JSON is not doubted, whatever its length.
	text := `[{"role":"user","parts":[{"type":"text","content":"` + strings.Repeat("x", 1024-56) + `"}]}]`
	if p := told(t, span(t, "", append(append(chat, answer...), "gen_ai.input.messages", text)...)); len(text) != 1024 || p.Problem != "" {
		t.Errorf("%d characters, problem %q", len(text), p.Problem)
	}
}

// TestManyMessagesTold: messages stand in the order of their numbers, not of their names.
func TestManyMessagesTold(t *testing.T) {
	list, want := []any{"openinference.span.kind", "LLM", "llm.output_messages.0.message.content", "Yes."}, []string{}
	for n := 11; n >= 0; n-- {
		list = append(list, fmt.Sprintf("llm.input_messages.%d.message.content", n), fmt.Sprintf("message %d", n))
	}
	for n := range 12 {
		want = append(want, fmt.Sprintf(`{"content":"message %d","role":"user"}`, n))
	}
	if p := told(t, span(t, "", list...)); string(p.Prompt) != "["+strings.Join(want, ",")+"]" || p.Problem != "" {
		t.Errorf("%s, %q", p.Prompt, p.Problem)
	}
}

// TestPartsTold: pictures and files are described; other parts are shown whole.
func TestPartsTold(t *testing.T) {
	p := told(t, span(t, "", "gen_ai.operation.name", "chat", "gen_ai.input.messages", `[{"role":"human","name":"Ann","parts":[{"type":"blob","modality":"image","mime_type":"image/png","content":"AAAA"},{"type":"uri","modality":"image","uri":"https://u:p@x.example/a.png?key=1"},{"type":"file","modality":"video","file_id":"f1"},{"type":"odd","x":1}]}]`,
		"gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"A"}],"finish_reason":"stop"},{"role":"assistant","parts":[{"type":"text","content":"B"}]}]`))
	for _, want := range []string{`"name":"Ann","role":"user"`, `"bytes":3`, `"url":"https://x.example/a.png"`, `"file_id":"f1"`, `[odd] {\"type\":\"odd\",\"x\":1}`} {
		if !strings.Contains(string(p.Prompt), want) {
			t.Errorf("%s has no %s", p.Prompt, want)
		}
	}
	if string(p.Output) != `"A"` || p.Alternatives != 1 {
		t.Errorf("%s, %d", p.Output, p.Alternatives)
	}
}

// TestManyLongTexts: to look for values that a limit may have cut takes time by their number. By its square it took minutes for as many as a record holds.
func TestManyLongTexts(t *testing.T) {
	var list []any
	for i := range 40_000 {
		list = append(list, fmt.Sprint(i), fmt.Sprintf("%065d", i))
	}
	told, began := span(t, "", list...), time.Now()
	p := project(t, observe.Call{Protocol: observe.OTLP, Request: told})
	if took := time.Since(began); took > time.Minute || !strings.Contains(p.Problem, "0: it has 65 characters, as long as a limit may be") {
		t.Errorf("%v, %.200s", took, p.Problem)
	}
}

// openInference are spans as OpenInference's libraries for OpenAI (4.2) and Anthropic (0.2) write them.
func openInference(t *testing.T) (responses, messages, several []byte) {
	out := func(n int, rest string) string { return fmt.Sprintf("llm.output_messages.%d.message.%s", n, rest) }
	in := func(n int, rest string) string { return fmt.Sprintf("llm.input_messages.%d.message.%s", n, rest) }
	responses = span(t, "", "openinference.span.kind", "LLM", "llm.model_name", "m-1", "llm.invocation_parameters", `{"model":"m"}`, in(0, "role"), "user", in(0, "content"), "Where?",
		"output.value", `{"id":"resp_1","model":"m-1","output":[]}`, out(0, "role"), "assistant", out(0, "contents.0.message_content.type"), "reasoning", out(0, "contents.0.message_content.text"), "hm",
		out(1, "role"), "assistant", out(1, "tool_calls.0.tool_call.id"), "c1", out(1, "tool_calls.0.tool_call.function.name"), "find", out(1, "tool_calls.0.tool_call.function.arguments"), `{"n":17}`)
	call := func(at string) []any {
		return []any{at + "tool_call.id", "c1", at + "tool_call.function.name", "find", at + "tool_call.function.arguments", `{"n":17}`}
	}
	list := []any{"openinference.span.kind", "LLM", "llm.model_name", "m-1", "llm.request.model_name", "m", "llm.response.model_name", "m-1", "llm.invocation_parameters", `{"model":"m","system":[{"type":"text","text":"Be short."}]}`,
		in(0, "role"), "user", in(0, "content"), "Where?", in(1, "role"), "assistant", in(1, "contents.0.message_content.type"), "text", in(1, "contents.0.message_content.text"), "I look.", in(1, "contents.1.message_content.type"), "tool_use",
		in(2, "role"), "user", in(2, "tool_call_id"), "c1", in(2, "content"), "Kassel", in(2, "contents.1.message_content.type"), "text", in(2, "contents.1.message_content.text"), "Well?", out(0, "content"), "In Kassel."}
	list = append(append(list, call(in(1, "tool_calls.0."))...), call(in(1, "contents.1."))...)
	messages = span(t, "", list...)
	several = span(t, "", "openinference.span.kind", "LLM", "llm.invocation_parameters", `{"n":2}`, in(0, "content"), "Where?", out(0, "content"), "Here.", out(1, "content"), "There.")
	return responses, messages, several
}

// TestOpenInferenceAsWritten: the parts of one answer are no answers of their own; what a tool returned is not the user's; a call stands once; the system
// prompt is in the prompt; and the model that was asked for is not the one that answered.
func TestOpenInferenceAsWritten(t *testing.T) {
	const calls = `"tool_calls":[{"function":{"arguments":"{\"n\":17}","name":"find"},"id":"c1","type":"function"}]}`
	responses, messages, several := openInference(t)
	if p := told(t, responses); string(p.Output) != `{"content":"","role":"assistant",`+calls || p.Alternatives != 0 || p.Model != "m" || p.ModelVersion != "m-1" || p.Problem != "" {
		t.Errorf("%+v\n%s", p, p.Output)
	}
	want := `[{"content":"Be short.","role":"system"},{"content":"Where?","role":"user"},{"content":"I look.","role":"assistant",` + calls + `,{"content":"Kassel","role":"tool","tool_call_id":"c1"},{"content":"Well?","role":"user"}]`
	if p := told(t, messages); string(p.Prompt) != want || p.Model != "m" || p.ModelVersion != "m-1" || p.Problem != "" {
		t.Errorf("%s\n%+v", p.Prompt, p)
	}
	if p := told(t, several); string(p.Output) != `"Here."` || p.Alternatives != 1 {
		t.Errorf("%s, %d", p.Output, p.Alternatives)
	}
}
