package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"jurat/evidence"
	"jurat/internal/log/erasure"
	"jurat/internal/log/installation"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

// canaryMark begins each canary. What follows is a sentence, and another one in each place.
const canaryMark = "a canary no "

// placed makes of a document as a vendor has it one for each place of a text, with a canary there: each string, each object's unknown member, and that member's name.
func placed(t *testing.T, doc string) (list []string) {
	t.Helper()
	var whole any
	must.Do(t, json.Unmarshal([]byte(doc), &whole))
	canary := func() string { return fmt.Sprintf("%s%d sang in Kassel", canaryMark, placesSeen.Add(1)) }
	take := func() {
		text := must.Get(json.Marshal(whole))(t)
		list = append(list, string(text))
	}
	var in func(v any, put func(any))
	in = func(v any, put func(any)) {
		switch v := v.(type) {
		case string:
			put(canary())
			take()
			put(v)
		case []any:
			for i := range v {
				in(v[i], func(other any) { v[i] = other })
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				in(v[name], func(other any) { v[name] = other })
			}
			unknown := canary()
			v["x_unknown"], v[unknown] = []any{canary(), map[string]any{"user": canary()}}, canary()
			take()
			delete(v, "x_unknown")
			delete(v, unknown)
		}
	}
	in(whole, func(other any) { whole = other })
	return list
}

var placesSeen atomic.Int64

// vendorsPlaces are requests and answers as vendors have them, with whatever settings they know.
var vendorsPlaces = []struct{ path, request, answer string }{
	{"/up/v1/chat/completions", `{"model":"wise","user":"u","safety_identifier":"s","prompt_cache_key":"k","metadata":{"case":"c"},"prediction":{"type":"content","content":"p"},"stop":["s"],"temperature":0.5,"seed":7,
		"reasoning_effort":"low","service_tier":"auto","tool_choice":{"type":"function","function":{"name":"find"}},"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object"}}},
		"tools":[{"type":"function","function":{"name":"find","description":"d","parameters":{"type":"object"}}},{"type":"web_search"}],"functions":[{"name":"old"}],"modalities":["text"],"audio":{"voice":"v","format":"wav"},"logit_bias":{"5":1},
		"web_search_options":{"user_location":{"type":"approximate","approximate":{"city":"Kassel"}},"search_context_size":"low"},"plugins":[{"id":"web"}],"data_sources":[{"type":"azure_search","parameters":{"index":"i"}}],"search_parameters":{"mode":"auto"},
		"messages":[{"role":"system","content":"s","name":"n"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},{"type":"file","file":{"file_id":"file-1","filename":"f"}}]},
		{"role":"assistant","content":"a","audio":{"id":"audio_1"},"tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"r"}]}`,
		`{"id":"chatcmpl-1","object":"chat.completion","model":"wise-2026","system_fingerprint":"fp_1","service_tier":"default","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"fine","refusal":"r","annotations":[{"type":"url_citation","url_citation":{"url":"https://example.org/b","title":"t"}}]}}],
		"citations":["https://example.org/c"],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1,"kind":"k"},"tier":"standard","list":[{"modality":"TEXT","tokenCount":3}]}}`},
	{"/up/v1/responses", `{"model":"wise","user":"u","metadata":{"case":"c"},"previous_response_id":"resp_0","conversation":{"id":"conv_1"},"prompt":{"id":"pmpt_1","version":"2","variables":{"city":"Kassel"}},"instructions":"i","include":["reasoning.encrypted_content"],
		"reasoning":{"effort":"low","summary":"auto"},"text":{"format":{"type":"json_schema","name":"n","schema":{}},"verbosity":"low"},"truncation":"auto","tool_choice":"auto","service_tier":"auto",
		"tools":[{"type":"function","name":"find","description":"d"},{"type":"mcp","server_label":"l","server_url":"https://example.org/mcp","headers":{"a":"b"}},{"type":"mcp","server_label":"m","connector_id":"connector_1"},
		{"type":"file_search","vector_store_ids":["vs_1"]},{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-2"]}},{"type":"code_interpreter","container":"cntr_1"},{"type":"namespace","name":"n","tools":[{"name":"t"}]}],
		"input":[{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"https://example.org/a.png"},{"type":"input_file","file_id":"file-1"}]},{"type":"item_reference","id":"msg_0"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"find","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"r"},{"type":"mcp_call","server_label":"l","name":"n","arguments":"{}","output":"o"}]}`,
		`{"id":"resp_1","object":"response","status":"completed","model":"wise-2026","metadata":{"case":"c"},"output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q","sources":[{"type":"url","url":"https://example.org/d"}]}},
		{"type":"file_search_call","id":"fs_1","queries":["q"],"results":[{"file_id":"file-3","filename":"f","text":"t"}]},
		{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"fine","annotations":[{"type":"url_citation","url":"https://example.org/e","title":"t"},{"type":"file_citation","file_id":"file-4"}]}]}],
		"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7,"tier":"standard"}}`},
	{"/up/v1/messages", `{"model":"wise","max_tokens":9,"metadata":{"user_id":"u"},"stop_sequences":["s"],"service_tier":"auto","thinking":{"type":"enabled","budget_tokens":5},"tool_choice":{"type":"tool","name":"find"},"container":"container_1","output_config":{"effort":"low"},
		"mcp_servers":[{"type":"url","url":"https://example.org/mcp","name":"n"},{"name":"m"}],"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"tools":[{"name":"find","description":"d","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search","user_location":{"type":"approximate","city":"Kassel"}}],
		"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1;\nBe kind."}],"messages":[{"role":"user","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}},{"type":"document","title":"t","source":{"type":"file","file_id":"file_1"}},{"type":"container_upload","file_id":"file_2"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"find","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"r"}]}]}`,
		`{"id":"msg_1","type":"message","role":"assistant","model":"wise-2026","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn","stop_sequence":"s","usage":{"input_tokens":5,"output_tokens":2,"service_tier":"standard","inference_geo":"us","server_tool_use":{"web_search_requests":1,"kind":"k"}}}`},
	{"/up/v1beta/models/wise:generateContent", `{"labels":{"case":"c"},"cachedContent":"cachedContents/1","systemInstruction":{"parts":[{"text":"s"}]},"generationConfig":{"temperature":0.5,"stopSequences":["s"],"responseMimeType":"application/json","responseModalities":["TEXT"],"responseSchema":{"type":"OBJECT","description":"d"},
		"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"v"}}},"thinkingConfig":{"thinkingLevel":"LOW"}},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["find"]}},
		"tools":[{"functionDeclarations":[{"name":"find","description":"d"}]},{"googleSearch":{}}],"contents":[{"role":"user","parts":[{"text":"t"},{"fileData":{"mimeType":"image/png","fileUri":"https://example.org/v1beta/files/1"}}]},{"role":"model","parts":[{"functionCall":{"id":"1","name":"find","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"find","response":{"a":"b"}}}]}]}`,
		`{"responseId":"r1","modelVersion":"wise-001","candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"text":"fine"}]},"groundingMetadata":{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"https://example.org/f","title":"t"}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://example.org/g"}]}}],
		"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7,"trafficType":"ON_DEMAND","promptTokensDetails":[{"modality":"TEXT","tokenCount":5}]}}`},
	{"/mcp", `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"name":"find","arguments":{"q":"q"},"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":"p"}}}`,
		`{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"fine"},{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"t"}}],"structuredContent":{"a":"b"}}}`},
	{"/mcp", `{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"n","version":"1"},"capabilities":{}}}`, `{"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1"},"instructions":"i"}}`},
	{"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"c"}}`, `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"find","title":"t","description":"d","inputSchema":{"type":"object"}}],"nextCursor":"n"}}`},
	{"/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1","reason":"r"}}`, `{}`},
	{"/mcp", `{"jsonrpc":"2.0","id":"s1","result":{"role":"assistant","content":{"type":"text","text":"t"},"model":"wise"}}`, `{}`},
	{"/a2a", `{"jsonrpc":"2.0","id":"1","method":"SendMessage","params":{"configuration":{"acceptedOutputModes":["text/plain"],"blocking":true,"historyLength":3},"metadata":{"case":"c"},"message":{"messageId":"m1","contextId":"c1","taskId":"t1","referenceTaskIds":["t0"],"role":"ROLE_USER","metadata":{"case":"c"},
		"parts":[{"text":"t"},{"data":{"name":"n","args":{}}},{"url":"https://example.org/a","mediaType":"text/plain","filename":"f"}]}}}`,
		`{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"fine"}]}},"artifacts":[{"artifactId":"a1","name":"n","description":"d","parts":[{"text":"t"}]}],"metadata":{"case":"c"}}}}`},
	{"/a2a", `{"jsonrpc":"2.0","id":"2","method":"tasks/get","params":{"id":"t1","historyLength":3}}`, `{"jsonrpc":"2.0","id":"2","error":{"code":-32001,"message":"m","data":{"a":"b"}}}`},
}

// toldPlaces is what telemetry tells of calls, by several conventions.
func toldPlaces() (list []string) {
	text := func(name, value string) string {
		return fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, name, value)
	}
	for n, attributes := range [][]string{
		{text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.agent.name", "Kim"), text("gen_ai.conversation.id", "conv_1"), text("server.address", "api.example.org"), text("gen_ai.request.model", "wise"), text("gen_ai.response.model", "wise-2026"), text("gen_ai.response.id", "r1"),
			text("gen_ai.request.user", "u"), `{"key":"gen_ai.request.stop_sequences","value":{"arrayValue":{"values":[{"stringValue":"s"}]}}}`, `{"key":"gen_ai.request.temperature","value":{"doubleValue":0.5}}`, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"5"}}`, text("gen_ai.usage.kind", "k"),
			text("gen_ai.tool.definitions", `[{"type":"function","name":"find"}]`), text("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"t"},{"type":"uri","modality":"image","uri":"https://example.org/a"}]}]`), text("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"fine"}]}]`), text("enduser.id", "e")},
		{text("openinference.span.kind", "LLM"), text("session.id", "s1"), text("user.id", "u"), text("metadata", `{"case":"c"}`), text("llm.model_name", "wise"), text("llm.invocation_parameters", `{"temperature":0.5,"user":"u","stop":["s"]}`), text("llm.input_messages.0.message.role", "user"),
			text("llm.input_messages.0.message.content", "t"), text("llm.output_messages.0.message.content", "fine"), text("llm.tools.0.tool.name", "find"), `{"key":"llm.token_count.prompt","value":{"intValue":5}}`, text("llm.input_messages.0.message.content", "t")},
		{text("gen_ai.operation.name", "execute_tool"), text("gen_ai.tool.name", "find"), text("gen_ai.tool.call.id", "call_1"), text("gen_ai.tool.call.arguments", "{}"), text("gen_ai.tool.call.result", "fine"), text("gen_ai.tool.call.result", "{\"cut")},
	} {
		list = append(list, fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[%s]},"scopeSpans":[{"scope":{"name":"lib","version":"1"},"spans":[{"traceId":"0af7651916cd43dd8448eb2%09d","spanId":"b7ad6b7169203331","name":"chat wise","traceState":"ot=th:8","attributes":[%s],
			"droppedAttributesCount":1,"events":[{"name":"e","droppedAttributesCount":2,"attributes":[%s]}],"status":{"message":"m","code":2}}]}]}]}`, text("service.name", "another"), n, strings.Join(attributes, ","), text("exception.message", "x")))
	}
	return list
}

// filePlaces are files of others, by name.
var filePlaces = map[string]string{
	"chat.json":   `{"id":"c1","user":"u","metadata":{"case":"c"},"model":"wise","messages":[{"role":"user","content":"t","name":"n"},{"role":"assistant","content":"fine"}],"usage":{"prompt_tokens":5,"tier":"t"}}`,
	"export.json": `[{"id":"x1","conversation_id":"x1","title":"t","current_node":"b","mapping":{"a":{"id":"a","message":{"id":"m1","author":{"role":"user","name":"n"},"content":{"content_type":"text","parts":["t"]},"metadata":{"attachments":[{"name":"f"}]}}},"b":{"id":"b","parent":"a","message":{"id":"m2","author":{"role":"assistant"},"content":{"content_type":"text","parts":["fine"]},"metadata":{"model_slug":"wise"}}}}}]`,
	"claude.json": `[{"uuid":"0193d5a5-0000-7000-8000-000000000001","name":"t","chat_messages":[{"uuid":"m1","sender":"human","text":"t","created_at":"2026-01-31T16:15:00Z","content":[{"type":"text","text":"t"}],"attachments":[{"file_name":"f","extracted_content":"x"}]},{"uuid":"m2","sender":"assistant","text":"fine","content":[{"type":"text","text":"fine"},{"type":"odd","text":"x"}]}]}]`,
	"session.jsonl": `{"type":"user","uuid":"u1","sessionId":"s1","version":"2.1","cwd":"/x","timestamp":"2026-01-31T16:15:00Z","message":{"role":"user","content":"t"}}` + "\n" +
		`{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s1","version":"2.1","timestamp":"2026-01-31T16:15:01Z","message":{"id":"msg_1","role":"assistant","model":"wise","content":[{"type":"text","text":"fine"},{"type":"odd","text":"x"}],"usage":{"input_tokens":5,"service_tier":"standard"}}}`,
	"results.json": `{"evalId":"e1","results":{"version":3,"results":[{"id":"r1","provider":{"id":"openai:wise","label":"l"},"prompt":{"raw":"t","label":"l"},"vars":{"city":"Kassel"},"response":{"output":"fine","tokenUsage":{"total":7,"kind":"k"}},"testIdx":0,"promptIdx":0,"success":true}]}}`,
}

// TestNoCanaryIsLeft: whatever place of a request, of an answer, of telemetry or of a file a text stands in, no file of the data folder, of a backup, and of what is exported after everything was erased, has it in
// clear: it is sealed apart, or not at all.
func TestNoCanaryIsLeft(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	var answer atomic.Pointer[string]
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for name, value := range map[string]string{"Content-Type": "application/json", "X-Request-Id": canaryMark + "header", "Mcp-Session-Id": "s"} {
			w.Header().Set(name, value)
		}
		if kind := r.URL.Query().Get("encoding"); kind != "" {
			w.Header().Set("Content-Encoding", kind)
		}
		if r.URL.Query().Has("fails") {
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, *answer.Load())
	}))
	defer upstream.Close()
	calls := 0
	ask := func(at, method, path, request, says string, headers ...string) {
		t.Helper()
		answer.Store(&says)
		req := must.Get(http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(request)))(t)
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		answer := must.Get(http.DefaultClient.Do(req))(t)
		must.Get(io.Copy(io.Discard, answer.Body))(t)
		answer.Body.Close()
		calls++
	}
	for from, more := range map[string][]string{"/up/": {"proxy", "--upstream", "up=" + upstream.URL}, "/mcp": {"mcp", "--upstream", upstream.URL + "/mcp"}, "/a2a": {"a2a", "--as", "caller", "--upstream", upstream.URL}} {
		at, _, stop := serve(t, slices.Concat([]string{"--data", data, "record", more[0], "--agent", "mia", "--listen", "127.0.0.1:0"}, more[1:])...)
		at = strings.TrimSuffix(at, "/mcp")
		for _, v := range vendorsPlaces {
			if !strings.HasPrefix(v.path, from) {
				continue
			}
			for _, request := range placed(t, v.request) {
				ask(at, "POST", v.path, request, v.answer, "Content-Type", "application/json", "User-Agent", canaryMark+"agent", "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", canaryMark+"version")
			}
			for _, says := range placed(t, v.answer) {
				ask(at, "POST", v.path, v.request, says, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
			}
			says := canaryMark + "error"
			ask(at, "POST", v.path+"?fails=1", v.request, `{"error":{"code":"`+says+`","type":"`+says+`","message":"`+says+`"}}`, "Content-Type", "application/json; x=\""+says+"\"")
			ask(at, "POST", v.path+"?encoding=a+canary+no+encoding&q=a+canary+no+query", v.request, v.answer)
			ask(at, "POST", v.path, v.request, v.answer, "Content-Encoding", canaryMark+"encoding")
			ask(at, "POST", v.path, `{"`+says+`":}`, `{"`+says+`":}`)
		}
		if from != "/mcp" {
			for _, path := range []string{"v1/a%20canary%20no%20path/chat/completions", "a%20canary%20no%20path/x", "v1beta/models/a%20canary%20no%20path:generateContent", "tasks/a%20canary%20no%20path:cancel", "openai/deployments/a%20canary%20no%20path/chat/completions",
				"v1/responses/a%20canary%20no%20path"} {
				ask(at, "POST", strings.TrimSuffix(from, "a2a")+path, `{"messages":[]}`, `{}`)
				ask(at, "GET", strings.TrimSuffix(from, "a2a")+path, "", `{}`)
			}
			ask(at, "A-CANARY-NO-METHOD", strings.TrimSuffix(from, "a2a")+"v1/x", "", `{}`)
		}
		must.Equal(t, stop(), 0)
	}
	at, _, stop := serve(t, "--data", data, "record", "otlp", "--agent", "mia", "--listen", "127.0.0.1:0")
	for _, told := range toldPlaces() {
		for n, body := range placed(t, told) {
			ask(at, "POST", "/v1/traces", strings.ReplaceAll(body, "b7ad6b7169203331", fmt.Sprintf("b7ad6b7169%06d", n+1)), "", "Content-Type", "application/json")
		}
	}
	must.Equal(t, stop(), 0)
	files := t.TempDir()
	for name, file := range filePlaces {
		var variants []string
		for i, line := range strings.Split(file, "\n") {
			for _, one := range placed(t, line) {
				lines := strings.Split(file, "\n")
				lines[i] = one
				variants = append(variants, strings.Join(lines, "\n"))
			}
		}
		for n, text := range variants {
			path := filepath.Join(files, fmt.Sprintf("%d-%s", n, name))
			must.Do(t, os.WriteFile(path, []byte(text), 0o600))
			var out, errs bytes.Buffer // what has another form with a canary is refused
			run(t.Context(), []string{"--data", data, "import", path, "--agent", fmt.Sprintf("mia%d", n)}, stdio{in: strings.NewReader(""), out: &out, err: &errs})
		}
	}
	left := map[string]bool{}
	search := func(when, what string, text []byte) {
		text = bytes.ToLower(text)
		for _, mark := range []string{canaryMark, strings.ReplaceAll(canaryMark, " ", "%20"), strings.ReplaceAll(canaryMark, " ", "+"), strings.ReplaceAll(canaryMark, " ", "-")} {
			for at := bytes.Index(text, []byte(mark)); at >= 0; at = bytes.Index(text, []byte(mark)) {
				around := string(text[max(0, at-90):min(len(text), at+60)])
				must.Hold(t, left[around] || len(left) >= 60, "%s, %s: %q", when, what, around)
				left[around] = true
				text = text[at+len(mark):]
			}
		}
	}
	walk := func(when, folder string) {
		t.Helper()
		for path, text := range rig.Files(t, folder) {
			search(when, path, text)
		}
	}
	walk("before", data)
	records, erased := erasedSome(t, data)
	must.Hold(t, records >= calls && erased >= 10, "%d records of %d calls, of which %d texts were erased", records, calls, erased)
	walk("after", data)
	backup := filepath.Join(t.TempDir(), "backup")
	doing(t, 0, "--data", data, "backup", backup)
	walk("in the backup", filepath.Dir(backup))
	for _, record := range exportedAll(t, data) {
		search("exported", "a record", record)
	}
}

// erasedSome erases the texts of some of the records that seal any apart. It returns how many records these are, and how many texts were erased.
func erasedSome(t *testing.T, data string) (records, erased int) {
	t.Helper()
	i := must.Get(installation.Open(t.Context(), installation.Config{Dir: data}))(t)
	defer i.Close()
	var orders []erasure.Order
	for placed, err := range i.Ledger.Records(t.Context(), 0) {
		must.Do(t, err)
		if p := &placed.Record.Payload; len(p.SealedApart) > 0 {
			if records++; records%150 == 1 { // each searches the whole log for its text
				orders = append(orders, erasure.Order{RecordID: p.RecordID, Pointers: p.SealedApart, Reason: "a test", By: "tester", DespiteQuotes: true})
			}
		}
	}
	for _, order := range orders {
		done := must.Get(i.Apart.Erase(t.Context(), order))(t)
		erased += len(done.Now)
	}
	return records, erased
}

// exportedAll returns all records of a log as they are given out once their texts are erased: without them.
func exportedAll(t *testing.T, data string) (list [][]byte) {
	t.Helper()
	eachRecordIn(t, data, func(r *evidence.Record) {
		text := must.Get(r.Marshal())(t)
		list = append(list, text)
	})
	return list
}

// TestRecordKeepsNoSecret: credentials that come in any place are in no byte of the data folder and in nothing that the recorder, or the server of the same log, says, logs, measures or traces, also while calls are under way, after the recorder was killed, and
// after the next one has sealed what was left.
func TestRecordKeepsNoSecret(t *testing.T) {
	t.Parallel()
	hanging := make(chan bool, 1)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session=marked-4711")
		w.Header().Set("X-Session", "marked-4711")
		if r.URL.Query().Has("hang") {
			w.Write(bytes.Repeat([]byte(" "), 600<<10)) // a copy of it goes to the disk
			w.(http.Flusher).Flush()
			hanging <- true
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","model":"wise-2026","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
	}))
	defer model.Close()
	data := filepath.Join(t.TempDir(), "data")
	doing(t, 0, "--data", data, "init")
	token := regexp.MustCompile(`jurat_[A-Za-z0-9_-]+`).FindString(doing(t, 0, "--data", data, "access", "grant", "mia", "agent", "--reason", "a test", "--by", "tester"))
	must.Need(t, token != "", "no token")
	var said bytes.Buffer
	start := func() (*exec.Cmd, string) {
		t.Helper()
		proxy := exec.Command("jurat", "--data", data, "record", "proxy", "--listen", "127.0.0.1:0", "--log-json", "--upstream", "openai="+model.URL, "--upstream", "gone=http://127.0.0.1:1")
		endsWithTest(t, proxy)
		out := must.Get(proxy.StdoutPipe())(t)
		proxy.Stderr = &said
		must.Do(t, proxy.Start())
		at := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		return proxy, strings.TrimSpace(at)
	}
	call := func(at, path string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+path, strings.NewReader(`{"model":"wise","messages":[{"role":"user","content":"a question"}]}`))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{"Authorization": "Bearer marked-4711", "X-Api-Key": "marked-4711", "X-Goog-Api-Key": "marked-4711", "Api-Key": "marked-4711", "Cookie": "a=marked-4711",
			"Tracestate": "vendor=marked-4711", "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			"Proxy-Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("user:marked-4711")), "Mcp-Param-Token": "marked-4711", "X-Amz-Security-Token": "marked-4711", "Referer": "https://marked-4711@example.com/", "Content-Type": "application/json"} {
			req.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	secrets := []string{"marked-4711", token, base64.StdEncoding.EncodeToString([]byte("user:marked-4711"))}
	search := func(when string) {
		t.Helper()
		files := rig.Files(t, data)
		must.Need(t, len(files) >= 5, "%d files", len(files))
		for path, text := range files {
			for _, secret := range secrets {
				must.Hold(t, !bytes.Contains(text, []byte(secret)), "%s: a secret is in %s", when, path)
			}
		}
	}

	proxy, at := start()
	// A user in the address is what an HTTP client makes of http://user:password@host.
	host := strings.TrimPrefix(at, "http://")
	for _, path := range []string{"/r/" + token + "/openai/v1/chat/completions?key=marked-4711&api_key=marked-4711&other=marked-4711", "/r/" + token + "/gone/v1/chat/completions?key=marked-4711", "/r/marked-4711/openai/v1/chat/completions",
		"/openai/marked-4711", "/marked-4711/x"} {
		must.Do(t, call("http://user:marked-4711@"+host, path))
	}
	conn := must.Get(net.Dial("tcp", host))(t)
	fmt.Fprintf(conn, "GET http://user:marked-4711@%s/openai/x HTTP/1.1\r\nHost: marked-4711\r\nConnection: close\r\n\r\n", host)
	io.Copy(io.Discard, conn)
	conn.Close()
	go call(at, "/r/"+token+"/openai/v1/chat/completions?hang=1&key=marked-4711") //nolint:errcheck // it is broken off
	<-hanging
	search("while a call is under way")
	must.Do(t, proxy.Process.Kill())
	proxy.Wait() // it was killed
	search("after a crash")
	proxy, _ = start()
	must.Do(t, proxy.Process.Signal(os.Interrupt))
	must.Do(t, proxy.Wait())
	search("when all is sealed")
	operator := regexp.MustCompile(`jurat_[A-Za-z0-9_-]+`).FindString(doing(t, 0, "--data", data, "access", "grant", "olga", "operator", "--reason", "a test", "--by", "tester"))
	secrets = append(secrets, operator)
	served := serveWithSecrets(t, data, operator, call)
	search("after the server")
	outputs := said.String() + served + doing(t, 0, "--data", data, "doctor", "--recorders", "--json") + doing(t, 0, "--data", data, "records", "--action", "observed_call", "--json")
	for _, secret := range secrets {
		lacks(t, outputs, secret)
	}
	must.Equal(t, len(observedIn(t, data)), 3)
}

// serveWithSecrets runs the server of the log, makes requests with credentials in every place, and returns all that leaves it: its log, its metrics, and
// the traces that a collector got, which refuses them.
func serveWithSecrets(t *testing.T, data, token string, call func(at, path string) error) string {
	t.Helper()
	var traces bytes.Buffer // written while the server runs, read after it has ended
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(&traces, r.Body); err != nil || r.Header.Get("X-Key") != "marked-4711" {
			t.Errorf("%v, %q", err, r.Header.Get("X-Key"))
		}
		http.Error(w, "not now", http.StatusForbidden)
	}))
	defer collector.Close()
	server := exec.Command("jurat", "--data", data, "serve", "--addr", "127.0.0.1:0", "--log-json",
		"--otlp-endpoint", strings.Replace(collector.URL, "http://", "http://user:marked-4711@", 1))
	server.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_HEADERS=x-key=marked-4711")
	var log bytes.Buffer
	server.Stderr = &log
	endsWithTest(t, server)
	out := must.Get(server.StdoutPipe())(t)
	must.Do(t, server.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must.Need(t, err == nil, "%v\n%s", err, &log)
	at := strings.TrimSpace(line)
	for _, path := range []string{"/v1/records?key=marked-4711", "/v1/records/marked-4711", "/records/marked-4711?token=marked-4711", "/agents/marked-4711", "/marked-4711/x", "/recordings/marked-4711", "/link/marked-4711"} {
		must.Do(t, call(strings.Replace(at, "http://", "http://user:marked-4711@", 1), path))
	}
	read := func(path string) string {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil))(t)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Cookie", "a=marked-4711")
		req.Header.Set("Tracestate", "vendor=marked-4711")
		req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		answer := must.Get(http.DefaultClient.Do(req))(t)
		defer answer.Body.Close()
		return string(must.Get(io.ReadAll(answer.Body))(t))
	}
	read("/v1/records/marked-4711?key=marked-4711")
	read("/recordings?key=marked-4711")
	metrics := read("/metrics")
	must.Do(t, server.Process.Signal(os.Interrupt))
	err = server.Wait()
	must.Need(t, err == nil, "%v\n%s", err, &log)
	for what, has := range map[string]bool{"requests in the log": strings.Contains(log.String(), `"route":"GET /metrics"`), "metrics": strings.Contains(metrics, "go_goroutines"),
		"traces": bytes.Contains(traces.Bytes(), []byte("GET /metrics")), "that the traces were refused": strings.Contains(log.String(), "403 Forbidden")} {
		must.Hold(t, has, "there is nothing of %s:\n%s\n%s", what, &log, metrics)
	}
	return log.String() + metrics + traces.String()
}
