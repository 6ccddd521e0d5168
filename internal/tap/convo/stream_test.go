package convo_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"jurat/internal/tap/convo"
	"jurat/internal/test/must"
)

// readers are those of streams, by the form that they read. What they make of whole and of cut streams, package traffic tests.
var readers = map[string]func([]byte) (convo.Streamed, error){"responses": convo.ReadResponsesStream, "chat": convo.ReadChatStream,
	"messages": convo.ReadMessagesStream, "generate": convo.ReadGenerateStream}

// TestStreamsRefuse: the error on data outside the protocol names its place. Large indexes must not allocate memory.
func TestStreamsRefuse(t *testing.T) {
	for _, tt := range []struct{ name, stream, want string }{
		{"responses", "data: {\"type\":\"response.completed\"}\n\n", "no response"},
		{"chat", "data: {\"choices\":[{\"index\":1000000000,\"delta\":{}}]}\n\n", "out of range"},
		{"chat", "data: {\"choices\":[{\"index\":-1,\"delta\":{}}]}\n\n", "out of range"},
		{"chat", "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":77777}]}}]}\n\n", "out of range"},
		{"chat", "data: {\"choices\":7}\n\n", "/choices has the wrong type"},
		{"messages", "data: {\"type\":\"message_start\"}\n\n", "no message"},
		{"messages", "data: {\"type\":\"content_block_start\",\"index\":99999}\n\n", "out of range"},
		{"messages", "data: {\"type\":\"content_block_delta\",\"index\":1}\n\n", "not started"},
		{"generate", "data: {\"candidates\":[null]}\n\n", "null"},
		{"generate", "data: {\"candidates\":[{\"index\":88888}]}\n\n", "out of range"},
		{"generate", "data: nothing\n\n", "does not follow the vendor's protocol"},
	} {
		_, err := readers[tt.name]([]byte(tt.stream))
		must.Hold(t, err != nil && strings.Contains(err.Error(), tt.want), "%s: %v, want %s", tt.stream, err, tt.want)
	}
}

// TestStreamsEnd: the error of a stream that ends early says whether all answers had stopped.
func TestStreamsEnd(t *testing.T) {
	const stopped, unstopped = `{"index":0,"finish_reason":"stop"}`, `{"index":1,"delta":{}}`
	for _, tt := range []struct {
		name, stream string
		unended      bool
	}{
		{"chat", `{"choices":[` + stopped + `]}`, true}, {"chat", `{"choices":[` + stopped + `,` + unstopped + `]}`, false}, {"chat", `null`, false},
		{"messages", `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, true}, {"messages", `{"type":"ping"}`, false},
		{"responses", `{"type":"response.output_text.delta","delta":"So."}`, false}, {"generate", `{"candidates":[{"content":{"parts":[]}}]}`, false},
	} {
		_, err := readers[tt.name]([]byte("data: " + tt.stream + "\n\n"))
		must.Hold(t, errors.Is(err, convo.ErrCut) && errors.Is(err, convo.ErrUnended) == tt.unended, "%s: %v", tt.stream, err)
	}
}

// argsOf are the arguments of the first call.
func argsOf(t *testing.T, a convo.Streamed) string {
	t.Helper()
	part := must.Get(convo.ReadLenient(a.Answer))(t).Get("candidates").List()[0].Get("content").Get("parts").List()[0]
	return string(part.Get("functionCall").Get("args").Raw())
}

func pieces(paths ...string) string {
	var b strings.Builder
	b.WriteString("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"x\",\"willContinue\":true}}]}}]}\n\n")
	for _, path := range paths {
		b.WriteString("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"partialArgs\":[{\"jsonPath\":\"" + path + "\",\"stringValue\":\"x\"}],\"willContinue\":true}}]}}]}\n\n")
	}
	return b.String()
}

// TestPartialArguments: values are where their paths say, and elements without a piece are empty objects.
func TestPartialArguments(t *testing.T) {
	a := must.Get(convo.ReadGenerateStream([]byte(pieces("$.b[2]['c d'][1]", "$.b[0]", "$.a", "$.a") + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n")))(t)
	got, want := argsOf(t, a), `{"a":"xx","b":["x",{},{"c d":[{},"x"]}]}`
	must.Hold(t, got == want, "%s, want %s", got, want)
}

// TestPartialArgumentsAreBounded: paths that ask for many values take no memory out of proportion, and an error says that some are left out.
func TestPartialArgumentsAreBounded(t *testing.T) {
	var paths, calls []string
	for i := range 1_500 {
		paths = append(paths, fmt.Sprintf("$.n%d%s", i, strings.Repeat("[8]", 63)))
		calls = append(calls, pieces(fmt.Sprintf("$.n%s", strings.Repeat("[8]", 63))))
	}
	for name, stream := range map[string]string{"one call": pieces(paths...), "many calls": strings.ReplaceAll(strings.Join(calls, ""), `"stringValue":"x"}],"willContinue":true`, `"stringValue":"x"}],"willContinue":false`)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := convo.ReadGenerateStream([]byte(stream))
		runtime.ReadMemStats(&after)
		must.Hold(t, err != nil && strings.Contains(err.Error(), "more than 65536 values: the others are left out"), "%s: %v", name, err)
		args := argsOf(t, a)
		must.Hold(t, strings.Contains(args, `[{},{},{},{},{},{},{},{},"x"]`), "%s: what came before is lost: %.200s", name, args)
		used := after.TotalAlloc - before.TotalAlloc
		must.Hold(t, used <= 50*uint64(len(stream)), "%s: %d kB take %d MB", name, len(stream)/1000, used/1e6)
	}
}

// TestLongPath: a path that takes long to read is refused.
func TestLongPath(t *testing.T) {
	for length, refused := range map[int]bool{4000: false, 5000: true} {
		_, err := convo.ReadGenerateStream([]byte(pieces("$['"+strings.Repeat("a", length)+"']") + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"))
		got := err != nil && strings.Contains(err.Error(), "longer than 4096 bytes")
		must.Hold(t, got == refused, "%d: %v", length, err)
	}
}
