package convo_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/convo"
	"jurat/internal/must"
)

// The same answer, whole and as a stream, in each vendor's published form.
var streams = []struct {
	name   string
	whole  string
	stream string
	read   func([]byte) (convo.Streamed, error)
}{
	{"responses",
		`{"status":"completed","model":"o-1","output":[{"type":"reasoning","content":[]},{"type":"message","content":[{"type":"output_text","text":"It is so."}]}],"usage":{"input_tokens":3,"output_tokens":4}}`,
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\",\"model\":\"o-1\",\"output\":[]}}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\"It is\"}\n\n" +
			"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"content_index\":0,\"delta\":\" so.\"}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"model\":\"o-1\",\"output\":[{\"type\":\"reasoning\",\"content\":[]},{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"It is so.\"}]}],\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n",
		convo.ReadResponsesStream},
	{"chat",
		`{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"It is so.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"function","function":{"name":"go","arguments":"{}"}}]}}]}`,
		": keep-alive\n\ndata: {\"model\":\"m\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It is\"},\"finish_reason\":null}]}\n\n" +
			"data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" so.\",\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"at\\\"\"}}]}}]}\n\n" +
			"data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}},{\"index\":1,\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"go\",\"arguments\":\"{}\"}}]}}]}\n\n" +
			"data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n" +
			"data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\ndata: [DONE]\n\n",
		convo.ReadChatStream},
	{"messages",
		`{"type":"message","content":[{"type":"thinking"},{"type":"text","text":"It is so."},{"type":"tool_use","id":"t1","name":"look","input":{"at":1}}],"stop_reason":"tool_use"}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"type\":\"message\",\"model\":\"c-1\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n" +
			"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"It is\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\" so.\"}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"look\",\"input\":{}}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"at\\\"\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\":1}\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		convo.ReadMessagesStream},
	{"generate",
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"It is"},{"text":" so."},{"functionCall":{"name":"look","args":{"at":1}}}]},"finishReason":"STOP"}]}`,
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"hm\",\"thought\":true},{\"text\":\"It is\"}]}}],\"modelVersion\":\"g-1\"}\r\n\r\n" +
			"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\" so.\"}]}}],\"usageMetadata\":{\"promptTokenCount\":3}}\r\n\r\n" +
			"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"look\",\"args\":{\"at\":1}}}]},\"finishReason\":\"STOP\"}],\"modelVersion\":\"g-1\",\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":4}}\r\n\r\n",
		convo.ReadGenerateStream},
	{"generate as an array",
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"It is"},{"text":" so."}]},"finishReason":"STOP"}]}`,
		"[{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"It is\"}]}}],\"modelVersion\":\"g-1\"},\n" +
			"{\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\" so.\"}]},\"finishReason\":\"STOP\"}]}]",
		convo.ReadGenerateStream},
}

// TestStreams: a stream gives the same answer as the whole form, without what no reader of messages reads. Any shorter part of it gives ErrCut.
func TestStreams(t *testing.T) {
	for _, s := range streams {
		var want any
		must.Do(t, json.Unmarshal([]byte(s.whole), &want))
		for _, lines := range []string{"\n", "\r\n", "\r"} {
			stream := strings.ReplaceAll(strings.ReplaceAll(s.stream, "\r\n", "\n"), "\n", lines)
			var got any
			must.Do(t, json.Unmarshal(must.Get(s.read([]byte(stream)))(t).Answer, &got))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-whole +stream):\n%s", s.name, diff)
			}
		}
		for n := range len(strings.TrimRight(s.stream, "\r\n")) - 1 { // the line ends at the end may be missing
			if _, err := s.read([]byte(s.stream[:n])); !errors.Is(err, convo.ErrCut) {
				t.Fatalf("%s, the first %d bytes: %v", s.name, n, err)
			}
		}
	}
}

// TestStreamsCutKeepText: the text received before a stream was cut is returned.
func TestStreamsCutKeepText(t *testing.T) {
	for _, s := range streams {
		half := s.stream[:strings.LastIndex(s.stream, " so.")]
		got, err := s.read([]byte(half[:max(strings.LastIndex(half, "\n\n"), strings.LastIndex(half, "\r\n\r\n"), strings.LastIndex(half, ",\n"))+4]))
		if !errors.Is(err, convo.ErrCut) {
			t.Fatalf("%s: %v", s.name, err)
		}
		must.Contain(t, string(got.Answer), "It is")
	}
}

// TestStreamErrors: an error within a stream gives a StreamError with the vendor's body.
func TestStreamErrors(t *testing.T) {
	for name, stream := range map[string]string{
		"responses": "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\"}\n\n",
		"chat":      "data: {\"error\":{\"message\":\"m\"}}\n\n",
		"messages":  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n",
		"generate":  "data: {\"error\":{\"status\":\"UNAVAILABLE\",\"message\":\"m\"}}\n\n",
	} {
		for _, s := range streams {
			if s.name != name {
				continue
			}
			_, err := s.read([]byte(stream))
			var told *convo.StreamError
			if !errors.As(err, &told) || !strings.Contains(string(told.Body), `"m"`) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

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
		for _, s := range streams {
			if s.name != tt.name {
				continue
			}
			if _, err := s.read([]byte(tt.stream)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.stream, err, tt.want)
			}
		}
	}
}

// FuzzStreams: no stream causes a panic, and each gives an answer or an error.
func FuzzStreams(f *testing.F) {
	for _, s := range streams {
		f.Add(s.stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		for _, s := range streams {
			if got, err := s.read([]byte(stream)); err == nil && !got.Answer.IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Errorf("%s: no answer and no error", s.name)
			}
		}
	})
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
	if got, want := argsOf(t, a), `{"a":"xx","b":["x",{},{"c d":[{},"x"]}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
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
		if err == nil || !strings.Contains(err.Error(), "more than 65536 values: the others are left out") {
			t.Errorf("%s: %v", name, err)
		}
		if args := argsOf(t, a); !strings.Contains(args, `[{},{},{},{},{},{},{},{},"x"]`) {
			t.Errorf("%s: what came before is lost: %.200s", name, args)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 50*uint64(len(stream)) {
			t.Errorf("%s: %d kB take %d MB", name, len(stream)/1000, used/1e6)
		}
	}
}

// TestLongPath: a path that takes long to read is refused.
func TestLongPath(t *testing.T) {
	for length, refused := range map[int]bool{4000: false, 5000: true} {
		_, err := convo.ReadGenerateStream([]byte(pieces("$['"+strings.Repeat("a", length)+"']") + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"))
		if got := err != nil && strings.Contains(err.Error(), "longer than 4096 bytes"); got != refused {
			t.Errorf("%d: %v", length, err)
		}
	}
}
