package verify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
	"jurat/jurattest"
	"jurat/verify"
)

func stream(events ...string) string { return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n" }

// spoken are acts of every protocol that is read.
func spoken() map[string]observed.Act {
	typed := func(a observed.Act, path, response string) observed.Act {
		a.Path, a.Response.Type = path, response
		return a
	}
	const events = "text/event-stream"
	chat := observedCall("call-2", observe.OpenAIChat, `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Where?"},{"type":"image_url","image_url":{"url":"https://u:p@example.org/a.png?b"}}]}]}`,
		stream(`{"model":"m-1","choices":[{"index":0,"delta":{"content":"I look."}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":9}}`, `[DONE]`))
	responses := observedCall("call-2", observe.OpenAIResponses, `{"model":"m","instructions":"Be short.","input":"Where?","previous_response_id":"resp_1","tools":[{"type":"web_search"}]}`,
		stream(`{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"In Kassel."}`, `{"type":"response.completed","response":{"id":"resp_2","status":"completed","model":"m-1","output":[],"usage":{"input_tokens":3}}}`))
	messages := observedCall("call-2", observe.AnthropicMessages, `{"model":"m","max_tokens":9,"system":"Be short.","mcp_servers":[{"url":"https://mcp.example.org/"}],"messages":[{"role":"user","content":"Where?"}]}`,
		`{"type":"message","model":"m-1","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"In "},{"type":"text","text":"Kassel."}],"usage":{"output_tokens":3}}`)
	generate := observedCall("call-2", observe.GeminiGenerate, `{"contents":[{"parts":[{"text":"Where?"}]}],"tools":[{"googleSearch":{}}],"generationConfig":{"temperature":0.5}}`,
		`[{"candidates":[{"content":{"parts":[{"text":"In "}]}}],"modelVersion":"m-1"},{"candidates":[{"content":{"parts":[{"text":"Kassel."}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}]`)
	tool := observedCall("call-2", "mcp/2025-06-18", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"n":17}}}`,
		stream(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"In Kassel."}]}}`))
	tool.Type = evidence.ObservedTool
	agent := message()
	agent.Request = passed(`{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m1","role":"user","referenceTaskIds":["t0"],"parts":[{"kind":"text","text":"Where?"}]}}}`)
	agent.Response = passed(`{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t1","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"In Kassel."},{"kind":"file","file":{"uri":"https://example.org/f"}}]}]}}`)
	span := observedCall("call-2", observe.OTLP, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.request.model","value":{"stringValue":"m"}},`+
		`{"key":"gen_ai.response.model","value":{"stringValue":"m-1"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":"3"}},{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"uri\",\"uri\":\"https://example.org/a\"}]}]"}},`+
		`{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Kassel.\"}]}]"}}]}]}]}]}`, "")
	span.Type, span.Vantage, span.Fidelity, span.Response = evidence.ObservedSpan, evidence.Telemetry, evidence.ByAttributes, nil
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
		if got := verify.Bundle(b, verify.Options{}).Of(verify.Vantage); (got.Status == verify.Refuted && got.Rule == "projection") != refuted {
			t.Errorf("%s: %+v", name, got)
		}
		files = append(files, givenBundle(t, name, b, verify.Options{}))
	}
	acts := spoken()
	for _, name := range slices.Sorted(maps.Keys(acts)) {
		honest := payloadOf(t, acts[name])
		if honest.Response != nil || honest.Parameters == nil {
			t.Errorf("%s: it states what was said, or no settings", name)
		}
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
		if got.Status != verify.Proved {
			t.Errorf("%s: %+v", name, got)
		}
		for what, says := range map[string]string{full.Model: "the model %q was asked", full.ModelVersion: "the model %q answered"} {
			if what != "" && !strings.Contains(got.Reason, fmt.Sprintf(says, what)) {
				t.Errorf("%s: the model %s is not said: %s", name, what, got.Reason)
			}
		}
		if full.Observed.Usage != nil && !strings.Contains(got.Reason, "usage ") {
			t.Errorf("%s: the usage is not said: %s", name, got.Reason)
		}
		for _, reference := range full.Observed.ContextByReference {
			if !strings.Contains(got.Reason, reference) {
				t.Errorf("%s: %s is not said: %s", name, reference, got.Reason)
			}
		}
		h = jurattest.New(t)
		if got := verify.Bundle(h.Bundle(t, h.Seal(t, full)), h.Options(t)).Of(verify.Vantage); strings.Contains(got.Reason, "leave out") {
			t.Errorf("%s: nothing is left out: %s", name, got.Reason)
		}
	}
}
