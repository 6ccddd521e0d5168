package llmtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/court/llm"
	. "jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
)

var record = flag.Bool("record", false, "write testdata/recorded.jsonl anew: most of it was made with the vendors' own SDKs, so look at each line that changes")

// A recorded exchange has the requests of one call, and how its answer was read.
type recorded struct {
	Name     string
	Requests []recordedRequest
	Answer   *recordedAnswer `json:",omitempty"`
	Error    *recordedError  `json:",omitempty"`
}

type recordedRequest struct {
	Method, Path string
	Header       map[string]string // of the protocol; the key is [key]
	Body         any
}

type recordedAnswer struct {
	Text, Model, Version, FinishReason string
	Usage                              llm.Usage
}

type recordedError struct {
	Kind       llm.Kind
	Status     int
	Detail     string // "" of what is not the protocol: the words were an SDK's
	RetryAfter time.Duration
	Answer     recordedAnswer
}

// protocolHeaders are the headers in the vendors' references. The SDKs also send headers about themselves.
var protocolHeaders = []string{"Content-Type", "Authorization", "X-Api-Key", "Anthropic-Version", "X-Goog-Api-Key"}

// TestRecorded compares the adapters with what the vendors' own SDKs sent and read, recorded when the adapters were
// built on them: openai-go 3.95.0, anthropic-sdk-go 1.84.0 and genai 1.77.0. Lines on odd envelopes were recorded anew since, without
// the SDKs: a whole answer counts, and more of a failed one is known.
func TestRecorded(t *testing.T) {
	got := exchanges(t)
	file := filepath.Join("testdata", "recorded.jsonl")
	if *record {
		var doc bytes.Buffer
		for _, x := range got {
			must.Do(t, json.NewEncoder(&doc).Encode(x))
		}
		must.Do(t, os.WriteFile(file, doc.Bytes(), 0o644))
	}
	doc := must.Get(os.ReadFile(file))(t)
	var want []recorded
	for line := range bytes.Lines(doc) {
		var x recorded
		must.Do(t, json.Unmarshal(line, &x))
		want = append(want, x)
	}
	must.Need(t, len(want) != 0 && len(got) == len(want), "%d exchanges, %d were recorded", len(got), len(want))
	for i := range want {
		if diff := cmp.Diff(want[i], through(t, got[i])); diff != "" {
			t.Errorf("%s (-recorded +now):\n%s", want[i].Name, diff)
		}
	}
}

// through returns an exchange as it is after a round trip through JSON.
func through(t *testing.T, x recorded) (out recorded) {
	t.Helper()
	doc, err := json.Marshal(x)
	if err == nil {
		err = json.Unmarshal(doc, &out)
	}
	must.Do(t, err)
	return out
}

func exchanges(t *testing.T) (all []recorded) {
	for _, a := range adapters {
		for n, reply := range replies() {
			s := New(t, a.Vendor, Always(reply))
			answer, err := a.model(t, s.Config(some)).Ask(t.Context(), question)
			all = append(all, exchange(fmt.Sprintf("%s reply %d: failure %d %s", a.Name, n, reply.Failure, reply.Block), s, answer, err))
		}
		for n, q := range questions(a) {
			s := New(t, a.Vendor, Say("ok"))
			answer, err := a.model(t, s.Config(q.Settings)).Ask(t.Context(), q.Question)
			all = append(all, exchange(fmt.Sprintf("%s question %d", a.Name, n), s, answer, err))
		}
		for n, b := range bodies() {
			answer, err := a.model(t, llm.Config{BaseURL: odd(t, b.status, b.text), Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
			all = append(all, exchange(fmt.Sprintf("%s body %d: %d %.50s", a.Name, n, b.status, b.text), nil, answer, err))
		}
	}
	return all
}

// replies are all replies of the vendors' servers, except those with error texts of the operating system.
func replies() []Reply {
	list := []Reply{
		{Text: `{"why":"<ok> 証"}`, Model: "model-1.5-2026-01-01"},
		{Text: "no JSON", Usage: llm.Usage{Input: 1, Output: 2}},
		{Text: ""}, {Text: "x", Usage: llm.Usage{Input: 5, Output: -3}}, {Text: "x", Model: "a\nb"},
	}
	for f := RateLimited; f <= OtherShape; f++ {
		list = append(list, Reply{Failure: f, Text: `{"why":`})
	}
	list[5].RetryAfter = 7 * time.Second
	list = append(list, Reply{Failure: EchoedKey}, Reply{Failure: NoSchemas, Text: "{}"})
	for _, block := range []string{"content_filter", "bio", "RECITATION", "OTHER"} {
		list = append(list, Reply{Failure: Blocked, Block: block}, Reply{Failure: PromptBlocked, Block: block})
	}
	return list
}

type asked struct {
	llm.Question
	llm.Settings
}

func questions(a adapter) (list []asked) {
	for _, q := range []llm.Question{question, {Messages: []llm.Message{{Text: "hello"}}}} {
		for _, s := range a.settings() {
			list = append(list, asked{q, s})
		}
	}
	return list
}

type body struct {
	status int
	text   string
}

// bodies are malformed bodies that no vendor's server sends, given to every adapter.
func bodies() (list []body) {
	for _, text := range []string{``, `null`, `[]`, `1`, `"x"`, `{}`, `{"candidates":1}`, `{"candidates":[1]}`, `{"candidates":[null]}`,
		`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thought":true},{"text":"c"}]},"finishReason":"STOP"}],"modelVersion":"g-1"}`,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}`,
		`{"candidates":[{"content":{"parts":"x"},"finishReason":"STOP"}]}`, `{"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"g-1"}`,
		`{"promptFeedback":{"blockReason":"BLOCKLIST","blockReasonMessage":"words"}}`,
		`{"type":"message","role":"assistant","model":"c-1","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_read_input_tokens":2,"cache_creation_input_tokens":1,"output_tokens":4}}`,
		`{"type":"message","role":"assistant","model":"c-1","content":[{"type":"text","text":"a"}],"stop_reason":"pause_turn","usage":{"input_tokens":3,"output_tokens":4}}`,
		`{"type":"message","role":"assistant","model":"c-1","content":[{"type":"text","text":"a"}],"stop_reason":"stop_sequence","usage":{"input_tokens":3,"output_tokens":4}}`,
		`{"type":"message","role":"assistant","model":"c-1","content":[],"stop_reason":null,"usage":{}}`,
		`{"type":"message","model":"c-1","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded","usage":{}}`,
		`{"type":"message","content":{},"stop_reason":[]}`, `{"status":"completed","output":{}}`,
		`{"status":"completed","model":"o-1","output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]},{"type":"web_search_call"}],"usage":{"input_tokens":3,"output_tokens":4}}`,
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"o-1","output":[]}`,
		`{"status":"queued","output":[]}`, `{"status":"failed","output":[],"error":null}`, `{"status":"failed","output":[],"model":"o-1","error":{"code":"rate_limit_exceeded","message":"so it is"}}`,
		`{"status":"cancelled","output":[],"model":"o-1"}`,
		`{"choices":7}`, `{"choices":[]}`, `{"choices":[{},{}]}`, `{"choices":[{"message":{"content":"a"},"finish_reason":"tool_calls"}]}`,
		`{"error":{"message":"it broke"}}`} {
		list = append(list, body{200, text})
	}
	for _, text := range []string{``, `<p>some page`, `{}`, `{"error":"in words"}`, `{"error":{"message":"m","type":"t","code":"c"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
		`{"error":{"status":"INVALID_ARGUMENT","message":"The input token count (9) exceeds the maximum","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3.5s"}]}}`} {
		for _, status := range []int{400, 401, 403, 404, 408, 413, 429, 500, 503, 529} {
			list = append(list, body{status, text})
		}
	}
	return list
}

func exchange(name string, s *Server, answer llm.Answer, err error) recorded {
	x := recorded{Name: name}
	key := "some-long-key"
	if s != nil {
		key = s.Key
		for _, r := range s.Requests() {
			x.Requests = append(x.Requests, requestOf(r, key))
		}
	}
	var failure *llm.Error
	switch {
	case err == nil:
		told := answerOf(answer)
		x.Answer = &told
	case errors.As(err, &failure):
		x.Error = &recordedError{failure.Kind, failure.Status, failure.Detail, failure.RetryAfter, answerOf(failure.Answer)}
		if failure.Kind == llm.Malformed && failure.Status == 0 {
			x.Error.Detail = ""
		}
	default:
		x.Error = &recordedError{Detail: err.Error()}
	}
	return x
}

func requestOf(r Request, key string) recordedRequest {
	q := recordedRequest{Method: http.MethodPost, Path: r.Path, Header: map[string]string{}}
	for _, name := range protocolHeaders {
		if v := r.Header.Get(name); v != "" {
			q.Header[name] = strings.ReplaceAll(v, key, "[key]")
		}
	}
	if err := json.Unmarshal(r.Body, &q.Body); err != nil {
		q.Body = string(r.Body)
	}
	return q
}

func answerOf(a llm.Answer) recordedAnswer {
	return recordedAnswer{a.Text, a.Model, a.Version, a.FinishReason, a.Usage}
}

// canned is an HTTP transport that gives every request the same answer.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// FuzzResponse: any response gives an answer with text and a plausible number of tokens, or an error of a documented
// kind.
func FuzzResponse(f *testing.F) {
	kinds := map[llm.Kind]bool{llm.Refused: true, llm.RateLimited: true, llm.Unauthorised: true, llm.NotFound: true, llm.Unavailable: true, llm.Malformed: true, llm.TooLong: true}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		for _, a := range adapters {
			m := must.Get(a.make(llm.Config{BaseURL: "http://127.0.0.1", Key: "some-long-key", Settings: some, HTTP: &http.Client{Transport: canned{status, body}}}))(t)
			answer, err := m.Ask(t.Context(), question)
			var e *llm.Error
			switch {
			case err == nil:
				must.Hold(t, status < 300 && answer.Text != "" && answer.Usage.Input >= answer.Usage.Cached && answer.Usage.Output >= answer.Usage.Reasoning,
					"%s: status %d gives %+v", a, status, answer)
			case !errors.As(err, &e) || !kinds[e.Kind]:
				t.Errorf("%s: %v", a, err)
			}
		}
	})
}
