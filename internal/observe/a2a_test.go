package observe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/observe"
)

const a2aSent = `{"jsonrpc":"2.0","id":7,"method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","contextId":"c1","referenceTaskIds":["t0"],"parts":[
	{"kind":"text","text":"Where is my parcel?"},{"kind":"data","data":{"order":12}},
	{"kind":"file","file":{"name":"a.png","mimeType":"image/png","bytes":"aGVsbG8="}},{"kind":"file","file":{"uri":"https://u:p@example.org/a.png?sig=s"}}]},
	"configuration":{"blocking":true,"acceptedOutputModes":["text"],"pushNotificationConfig":{"url":"https://example.org/hook","token":"push-secret","authentication":{"credentials":"push-secret"}}}}}`

// a2aSamples are calls of both versions and both bindings, as the specification and the SDKs write them.
var a2aSamples = []sample{
	{
		name: "a2a 0.3, JSON-RPC",
		call: observe.Call{Protocol: observe.A2A03, Path: "/", Status: 200, Request: []byte(a2aSent)},
		whole: `{"jsonrpc":"2.0","id":7,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"completed","message":{"kind":"message","messageId":"m4","role":"agent","parts":[{"kind":"text","text":"Done."}]}},
			"history":[{"kind":"message","role":"agent","messageId":"m0","parts":[{"kind":"text","text":"Hello"}]},{"kind":"message","role":"user","messageId":"m1","parts":[{"kind":"text","text":"Where is my parcel?"}]},
				{"kind":"message","role":"agent","messageId":"m2","parts":[{"kind":"text","text":"I look."},{"kind":"data","data":{"name":"track","id":"k1","args":{"order":12}}},{"kind":"data","data":{"name":"track","id":"k1","response":{"at":"Bern"}}}]}],
			"artifacts":[{"artifactId":"a1","name":"report","parts":[{"kind":"text","text":"It is in Bern."},{"kind":"file","file":{"name":"map.png","bytes":"aGVsbG8="}}]}]}}`,
		stream: events(
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"submitted"}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"status-update","taskId":"t1","contextId":"c1","final":false,"status":{"state":"working","message":{"kind":"message","messageId":"m2","role":"agent","parts":[{"kind":"text","text":"I look."},{"kind":"data","data":{"name":"track","id":"k1","args":{"order":12}}},{"kind":"data","data":{"name":"track","id":"k1","response":{"at":"Bern"}}}]}}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","name":"report","parts":[{"kind":"text","text":"It is"}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":" in "}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"artifact-update","taskId":"t1","contextId":"c1","append":true,"lastChunk":true,"artifact":{"artifactId":"a1","parts":[{"kind":"text","text":"Bern."},{"kind":"file","file":{"name":"map.png","bytes":"aGVsbG8="}}]}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"kind":"status-update","taskId":"t1","contextId":"c1","final":true,"status":{"state":"completed","message":{"kind":"message","messageId":"m4","role":"agent","parts":[{"kind":"text","text":"Done."}]}}}}`),
		want: `{
			"parameters": {"method": "message/send", "messageId": "m1", "contextId": "c1", "blocking": true, "acceptedOutputModes": ["text"]},
			"prompt": [{"role": "user", "content": [{"type": "text", "text": "Where is my parcel?"}, {"type": "text", "text": "{\"order\":12}"},
				{"type": "file", "name": "a.png", "bytes": 5, "media_type": "image/png", "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
				{"type": "file", "url": "https://example.org/a.png"}]}],
			"response": [
				{"role": "assistant", "content": "I look.", "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "track", "arguments": "{\"order\":12}"}}]},
				{"role": "tool", "name": "track", "tool_call_id": "k1", "content": "{\"at\":\"Bern\"}"},
				{"role": "assistant", "name": "artifact", "content": [{"type": "text", "text": "It is in Bern."},
					{"type": "file", "name": "map.png", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]},
				{"role": "assistant", "content": "Done."}],
			"finish": "completed", "provider_id": "t1",
			"context_by_reference": ["task:t0", "url"], "conversation": ["context:c1", "task:t1"],
			"complete": true}`,
	},
	{
		name:  "a2a 1.0, JSON-RPC",
		call:  observe.Call{Protocol: observe.A2A10, Path: "/agent", Status: 200, Request: []byte(`{"jsonrpc":"2.0","id":"x","method":"SendStreamingMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","taskId":"t1","parts":[{"text":"Go on."},{"raw":"aGVsbG8=","filename":"a.txt","mediaType":"text/plain"}]}}}`)},
		whole: `{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"Which one?"}]}}}}}`,
		stream: events(`{"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING"}}}}`,
			`{"jsonrpc":"2.0","id":"x","result":{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"Which one?"}]}}}}}`),
		want: `{
			"parameters": {"method": "SendStreamingMessage", "messageId": "m1", "taskId": "t1"},
			"prompt": [{"role": "user", "content": [{"type": "text", "text": "Go on."}, {"type": "file", "name": "a.txt", "media_type": "text/plain", "bytes": 5, "digest": "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}],
			"response": "Which one?", "finish": "TASK_STATE_INPUT_REQUIRED", "provider_id": "t1", "conversation": ["context:c1", "task:t1"], "complete": true}`,
	},
	{
		name:   "a2a 1.0, HTTP with JSON",
		call:   observe.Call{Protocol: observe.A2A10, Path: "/v1/message:stream", Status: 200, Request: []byte(`{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"Hi"}]},"configuration":{"returnImmediately":true}}`)},
		whole:  `{"message":{"messageId":"m2","contextId":"c9","role":"ROLE_AGENT","parts":[{"text":"Hello."},{"url":"https://example.org/f","filename":"f"},{"data":[1]}]}}`,
		stream: events(`{"message":{"messageId":"m2","contextId":"c9","role":"ROLE_AGENT","parts":[{"text":"Hello."},{"url":"https://example.org/f","filename":"f"},{"data":[1]}]}}`),
		want: `{
			"parameters": {"method": "message:stream", "messageId": "m1", "returnImmediately": true},
			"prompt": [{"role": "user", "content": "Hi"}],
			"response": {"role": "assistant", "content": [{"type": "text", "text": "Hello."}, {"type": "file", "name": "f", "url": "https://example.org/f"}, {"type": "text", "text": "[1]"}]},
			"provider_id": "m2", "conversation": ["context:c9"], "complete": true}`,
	},
}

func a2aReplies() []reply {
	send := func(status int, response string, want observe.Projection) reply {
		return reply{protocol: observe.A2A10, status: status, response: response, want: want}
	}
	return []reply{
		send(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`, observe.Projection{Complete: true, Error: "-32001: Task not found"}),
		send(200, `{"jsonrpc":"2.0","id":1,"error":{}}`, observe.Projection{Complete: true, Error: "an error without words"}),
		send(404, `{"error":{"code":404,"status":"NOT_FOUND","message":"no"}}`, observe.Projection{Complete: true, Error: "NOT_FOUND: no"}),
		send(502, `<html>`, observe.Projection{Error: "status 502"}),
		send(200, `<html>`, observe.Projection{State: observe.Failed, Problem: "answer: it is neither JSON nor a stream of events"}),
		send(200, `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, observe.Projection{Complete: true, State: observe.Failed, Problem: "answer: it has no message, task or update of one"}),
		send(200, `{"jsonrpc":"2.0","id":2,"result":{"message":{"role":"ROLE_USER","parts":[{"text":"a"}]}}}`,
			observe.Projection{Complete: true, Output: []byte(`"a"`), Problem: `answer: its id is that of another request; answer: its message has the role "ROLE_USER": read as the agent's`}),
		send(200, `{"id":1,"result":{"message":{"role":"ROLE_AGENT","parts":[{"nothing":1e400},7]}}}`,
			observe.Projection{Complete: true, Output: []byte(`{"content":[{"text":"[part] {\"nothing\":1e400}","type":"text"},{"text":"[part] 7","type":"text"}],"role":"assistant"}`),
				Problem: "answer: part 0: it has no text, data or file; answer: part 1: it has no text, data or file"}),
		send(200, `{"id":1,"result":{"task":{"id":"t","id":"t2","status":{"state":"TASK_STATE_WORKING"}}}}`,
			observe.Projection{Complete: true, ProviderID: "t2", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t2"}, Problem: `answer: at /result/task/id: the object has this member twice: read as most libraries do`}),
		send(200, events(`{"id":1,"result":{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}}}`, `what`, `{"id":1,"error":{"code":-32603,"message":"broke"}}`),
			observe.Projection{ProviderID: "t", Finish: "TASK_STATE_WORKING", Conversation: []string{"task:t"}, State: observe.Failed, Error: "-32603: broke", Problem: "answer: event 2: invalid character 'w': want a value; names and texts must be in double quotes, not single ones"}),
		send(200, events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"data":1},{"text":"y"}]}}}}`, `{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"z"}]}}}}`),
			observe.Projection{Output: []byte(`{"content":[{"text":"x","type":"text"},{"text":"1","type":"text"},{"text":"yz","type":"text"}],"name":"artifact","role":"assistant"}`)}),
	}
}

func (r *reply) a2aCall() observe.Call {
	return observe.Call{Protocol: r.protocol, Path: "/", Status: r.status, Request: []byte(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"role":"ROLE_USER","parts":[]}}}`), Response: []byte(r.response)}
}

// TestA2AReplies: what is no answer is said to be none, and why.
func TestA2AReplies(t *testing.T) {
	for n, r := range a2aReplies() {
		got := project(t, r.a2aCall())
		got.Prompt = nil
		if diff := cmp.Diff(r.want, got.Projection); diff != "" {
			t.Errorf("reply %d, %s (-want +got):\n%s", n, r.response, diff)
		}
	}
}

// TestA2ARequests: what was asked is said, whatever it is, and no secret of a notification is.
func TestA2ARequests(t *testing.T) {
	for _, r := range []struct{ path, request, response, want string }{
		{"/", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t1","historyLength":3}}`, `{"id":1,"result":{"kind":"task","id":"t1","contextId":"c1","status":{"state":"working"}}}`,
			`{"parameters":{"method":"tasks/get","taskId":"t1","historyLength":3},"finish":"working","provider_id":"t1","conversation":["context:c1","task:t1"],"complete":true}`},
		{"/v1/tasks/t1:cancel", ``, `{"id":"t1","contextId":"c1","status":{"state":"TASK_STATE_CANCELED"}}`,
			`{"parameters":{"method":"tasks:cancel","taskId":"t1"},"finish":"TASK_STATE_CANCELED","provider_id":"t1","conversation":["context:c1","task:t1"],"complete":true}`},
		{"/tasks/t1", ``, ``, `{"parameters":{"method":"tasks","taskId":"t1"},"conversation":["task:t1"],"complete":false}`},
		{"/tasks/t1/pushNotificationConfigs", `{"token":"push-secret"}`, `{"token":"push-secret"}`, `{"parameters":{"method":"pushNotificationConfigs"},"complete":true}`},
		{"/", `{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t1","pushNotificationConfig":{"token":"push-secret"}}}`, `{"id":1,"result":{"pushNotificationConfig":{"token":"push-secret"}}}`,
			`{"parameters":{"method":"tasks/pushNotificationConfig/set"},"complete":true}`},
		{"/", `{"jsonrpc":"2.0","id":1,"method":"agent/own","params":{}}`, `{"id":1,"result":7}`, `{"parameters":{"method":"agent/own"},"complete":true,"problem":"request: \"agent/own\" is no method of A2A"}`},
		{"/", ``, ``, `{"complete":false,"projection":"failed","problem":"request: it is empty"}`},
		{"/", `[{"method":"message/send"}]`, ``, `{"complete":false,"projection":"failed","problem":"request: it has the wrong type"}`},
		{"/", `{"method":"message/send","params":{}}`, ``, `{"parameters":{"method":"message/send"},"complete":false,"projection":"failed","problem":"request: it has no message"}`},
	} {
		got := marshal(t, project(t, observe.Call{Protocol: observe.A2A03, Path: r.path, Status: 200, Request: []byte(r.request), Response: []byte(r.response)}))
		if diff := cmp.Diff(form(t, []byte(r.want)), form(t, got)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", r.path, r.request, diff)
		}
		if strings.Contains(string(got), "push-secret") {
			t.Errorf("the secret is in %s", got)
		}
	}
}

func TestA2AProtocol(t *testing.T) {
	for call, want := range map[string]string{
		"POST /": observe.A2A03, "POST / 1.0": observe.A2A10, "POST /any/agent 0.3": observe.A2A03, "POST /message:send 1.0": observe.A2A10, "POST / 2.7": "a2a/2.7",
		"GET /tasks/t 1.0": observe.A2A10, "GET /v1/tasks": observe.A2A03, "DELETE /tasks/t/pushNotificationConfigs/c 1.0": observe.A2A10, "GET /v1/card": observe.A2A03, "GET /extendedAgentCard 1.0": observe.A2A10,
		"GET /.well-known/agent-card.json": "", "GET /": "", "GET /card": "", "POST / one\n": "", "POST / 1": "",
	} {
		method, rest, _ := strings.Cut(call, " ")
		path, version, _ := strings.Cut(rest, " ")
		if got := observe.A2AProtocol(method, path, version); got != want {
			t.Errorf("%q: %q, want %q", call, got, want)
		}
	}
}

// TestA2AGrows: an artifact of many pieces takes time in proportion to them.
func TestA2AGrows(t *testing.T) {
	const pieces = 60_000
	piece := strings.Repeat(events(`{"id":1,"result":{"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"`+strings.Repeat("x", 60)+`"}]}}}}`), pieces)
	r := reply{protocol: observe.A2A10, status: 200, response: piece}
	done := make(chan int)
	go func() { done <- len(project(t, r.a2aCall()).Output) }()
	select {
	case n := <-done:
		if n < 60*pieces {
			t.Errorf("%d bytes of %d", n, 60*pieces)
		}
	case <-time.After(time.Minute):
		t.Fatal(fmt.Sprint("not read after a minute: ", len(piece), " bytes"))
	}
}
