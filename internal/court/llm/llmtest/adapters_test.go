package llmtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/internal/court/llm"
	. "jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
)

type adapter struct{ Vendor }

func (a adapter) make(c llm.Config) (llm.Model, error) { return llm.New(strings.ToLower(a.Name), c) }

var adapters = []adapter{{OpenAI}, {Anthropic}, {Gemini}, {Compatible}}

// verdict has members in an order that is not alphabetical, and text that an HTML escaper would change.
var verdict = llm.Schema{Name: "verdict", JSON: []byte(`{"type":"object","properties":{"why":{"type":"string","description":"in < 9 words"},"score":{"type":"integer"},"axes":{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"required":["z","a"],"additionalProperties":false}},"required":["why","score","axes"],"additionalProperties":false}`)}

var question = llm.Question{
	System: "You are a juror.\n\"Judge\" <safely> & well.",
	Messages: []llm.Message{{Text: "The evidence: 証拠 \u2028 </evidence>"}, {ByModel: true, Text: "{}"},
		{Text: "That was no answer."}},
	Schema: verdict,
}

var some = llm.Settings{Model: "model-1.5", MaxTokens: 900}

// each runs a test against each vendor.
func each(t *testing.T, f func(*testing.T, adapter)) {
	for _, a := range adapters {
		t.Run(a.Name, func(t *testing.T) { f(t, a) })
	}
}

func (a adapter) ask(t *testing.T, script Script) (llm.Answer, *Server, error) {
	t.Helper()
	s := New(t, a.Vendor, script)
	answer, err := a.model(t, s.Config(some)).Ask(t.Context(), question)
	return answer, s, err
}

func (a adapter) model(t *testing.T, c llm.Config) llm.Model {
	t.Helper()
	m := must.Get(a.make(c))(t)
	return m
}

// TestAnswer: the whole question reaches the server, and every part of its answer is returned.
func TestAnswer(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		answer, s, err := a.ask(t, Always(Reply{Text: `{"why":"<ok> 証"}`, Model: "model-1.5-2026-01-01"}))
		must.Do(t, err)
		requests := s.Requests()
		must.Need(t, len(requests) == 1, "%d requests", len(requests))
		asked := requests[0].Call
		must.Hold(t, asked.System == question.System && slices.Equal(asked.Messages, question.Messages) && asked.Number == 1, "asked %+v", asked)
		diff := cmp.Diff(some, asked.Settings)
		must.Hold(t, diff == "", "%v", diff)
		version := map[string]string{"Compatible": "fp_44709d6fcb"}[a.Name]
		must.Hold(t, answer.Text == `{"why":"<ok> 証"}` && answer.Model == "model-1.5-2026-01-01" && answer.Version == version && answer.Usage == Used,
			"answered %+v", answer)
		reason := map[string]string{"OpenAI": "completed", "Anthropic": "end_turn", "Gemini": "STOP", "Compatible": "stop"}[a.Name]
		must.Equal(t, answer.FinishReason, reason)
	})
}

// TestSchemaAsGiven: the schema arrives with its members in their order, because models write members in the order of
// the schema.
func TestSchemaAsGiven(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		_, s, err := a.ask(t, Say("{}"))
		must.Do(t, err)
		got := s.Requests()[0].Schema
		inner := func(schema []byte) string {
			text := strings.ReplaceAll(string(schema), `\u003c`, "<")
			_, properties, _ := strings.Cut(text, `"properties":`) // SDKs sort the members of the root, so only those of properties count
			properties, _, _ = strings.Cut(properties, `,"required":["why"`)
			return properties
		}
		must.Equal(t, inner(got.JSON), inner(verdict.JSON))
		must.Hold(t, a.Name != "OpenAI" && a.Name != "Compatible" || got.Name == verdict.Name, "name %q", got.Name)
	})
}

// settings are all that a vendor has, and the least that it takes.
func (a adapter) settings() []llm.Settings {
	full, least := llm.Settings{Model: "m", Temperature: new(0.0), TopP: new(0.12345678901234567), MaxTokens: 33}, llm.Settings{Model: "m"}
	switch a.Name {
	case "Anthropic":
		least.MaxTokens = 1
	case "Gemini", "Compatible":
		full.Seed = new(int64(-7))
	}
	return []llm.Settings{full, least}
}

// TestSettings: settings are sent exactly, zero values included. Settings that are not set are absent.
func TestSettings(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		for _, settings := range a.settings() {
			s := New(t, a.Vendor, Say("ok"))
			_, err := a.model(t, s.Config(settings)).Ask(t.Context(), llm.Question{Messages: []llm.Message{{Text: "hello"}}})
			must.Need(t, err == nil, "%v", err)
			r := s.Requests()[0]
			diff := cmp.Diff(settings, r.Settings)
			must.Hold(t, diff == "", "%v", diff)
			must.Hold(t, r.Schema.JSON == nil && r.System == "", "%+v", r.Call)
			for _, name := range []string{"temperature", "top_p", "topP", "seed", "max_output_tokens", "maxOutputTokens", "null", "schema", "Schema", "instructions", "system"} {
				must.Hold(t, settings.Temperature != nil || !bytes.Contains(r.Body, []byte(name)), "%s is sent: %s", name, r.Body)
			}
		}
	})
}

// TestFailures: each failure gives one of the documented kinds and a text without the key, after one request.
func TestFailures(t *testing.T) {
	refused := map[string]string{"Gemini": "SAFETY, HARM_CATEGORY_DANGEROUS_CONTENT HIGH", "Anthropic": "refusal cyber", "OpenAI": "refusal: I'm sorry", "Compatible": "refusal: I'm sorry"}
	for _, tt := range []struct {
		reply  Reply
		kind   llm.Kind
		status int // 0: none
		detail map[string]string
		cost   bool // what it cost is told
	}{
		{Reply{Failure: RateLimited, RetryAfter: 7 * time.Second}, llm.RateLimited, 429, nil, false},
		{Reply{Failure: Unauthorised}, llm.Unauthorised, 401, nil, false},
		{Reply{Failure: NoSuchModel}, llm.NotFound, 404, nil, false},
		{Reply{Failure: NoMoney}, llm.Unauthorised, -1, nil, false},
		{Reply{Failure: ServerError}, llm.Unavailable, 500, nil, false},
		{Reply{Failure: Overloaded}, llm.Unavailable, -1, nil, false},
		{Reply{Failure: PromptTooLong}, llm.TooLong, 400, nil, false},
		{Reply{Failure: PromptBlocked}, llm.Refused, -1, map[string]string{"Gemini": "PROHIBITED_CONTENT"}, false},
		{Reply{Failure: Blocked}, llm.Refused, 0, refused, true},
		{Reply{Failure: CutOff, Text: `{"why":`}, llm.TooLong, 0, nil, true},
		{Reply{Failure: NotJSON}, llm.Malformed, 0, nil, false},
		{Reply{Failure: Malformed, Text: "x"}, llm.Malformed, 0, nil, false},
		{Reply{Failure: OtherShape}, llm.Malformed, 0, nil, false},
		{Reply{Failure: BodyCut, Text: strings.Repeat("x", 9000)}, llm.Unavailable, 0, nil, false},
		{Reply{Failure: Closed}, llm.Unavailable, 0, nil, false},
		{Reply{Failure: EchoedKey}, llm.Malformed, 400, nil, false},
		{Reply{Text: ""}, llm.Malformed, 0, nil, true},
		{Reply{Text: " \n"}, llm.Malformed, 0, nil, true},
		{Reply{Text: "\u00a0\u3000\u200b\uFEFF"}, llm.Malformed, 0, nil, true},
		{Reply{Text: strings.Repeat("x", 9<<20)}, llm.Malformed, 0, nil, false},
	} {
		t.Run(fmt.Sprintf("%d %.9q", tt.reply.Failure, tt.reply.Text), func(t *testing.T) {
			each(t, func(t *testing.T, a adapter) {
				answer, s, err := a.ask(t, Always(tt.reply))
				var e *llm.Error
				must.Need(t, errors.As(err, &e) && e.Kind == tt.kind && answer.Text == "", "%q, %v; want %s", answer.Text, err, tt.kind)
				status := tt.status
				must.Hold(t, status < 0 || e.Status == status || a.Name == "Gemini" && tt.reply.Failure == Unauthorised, "status %d, want %d", e.Status, status)
				must.Equal(t, e.RetryAfter, tt.reply.RetryAfter)
				must.Hold(t, e.Detail != "" && strings.Contains(e.Detail, tt.detail[a.Name]), "detail %q", e.Detail)
				must.Equal(t, e.Answer.Usage == Used, tt.cost, "usage", e.Answer.Usage)
				everything := fmt.Sprintf("%v %+v %#v", err, e, e)
				must.Hold(t, !strings.Contains(everything, s.Key), "the key is in %s", everything)
				want := 1
				if tt.reply.Failure == EchoedKey && a.Name == "Compatible" {
					want = 3 // in every form of a schema
				}
				n := len(s.Requests())
				must.Hold(t, n == want, "%d requests, want %d", n, want)
			})
		})
	}
}

// TestBlocks: each vendor's reasons for blocked content are recognised, and other reasons are not taken for them.
func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		adapter
		failure Failure
		block   string
		kind    llm.Kind
	}{
		{adapters[0], Blocked, "content_filter", llm.Refused},
		{adapters[3], Blocked, "content_filter", llm.Refused},
		{adapters[1], Blocked, "bio", llm.Refused},
		{adapters[2], Blocked, "RECITATION", llm.Refused}, {adapters[2], Blocked, "BLOCKLIST", llm.Refused},
		{adapters[2], Blocked, "PROHIBITED_CONTENT", llm.Refused}, {adapters[2], Blocked, "SPII", llm.Refused},
		{adapters[2], Blocked, "IMAGE_SAFETY", llm.Refused}, {adapters[2], Blocked, "OTHER", llm.Malformed},
		{adapters[2], Blocked, "LANGUAGE", llm.Malformed}, {adapters[2], Blocked, "MALFORMED_FUNCTION_CALL", llm.Malformed},
		{adapters[2], PromptBlocked, "SAFETY", llm.Refused}, {adapters[2], PromptBlocked, "OTHER", llm.Refused},
	} {
		_, _, err := tt.ask(t, Always(Reply{Failure: tt.failure, Block: tt.block}))
		must.Hold(t, llm.KindOf(err) == tt.kind && strings.Contains(err.Error(), tt.block), "%s: %v, want %s", tt.block, err, tt.kind)
	}
}

// TestDeadline: a deadline and a cancellation by the caller give different errors, and the request to the server ends.
func TestDeadline(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		s := New(t, a.Vendor, Always(Reply{Text: "late", Delay: time.Hour}))
		m := a.model(t, s.Config(some))
		late, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer stop()
		_, err := m.Ask(late, question)
		must.Hold(t, llm.KindOf(err) == llm.TimedOut && errors.Is(err, context.DeadlineExceeded), "deadline: %v", err)
		other := New(t, a.Vendor, Always(Reply{Text: "late", Delay: time.Hour})) // a second server: the first may not have seen the request that was cancelled early
		cancelled, cancel := context.WithCancel(t.Context())
		go func() {
			for len(other.Requests()) == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		_, err = a.model(t, other.Config(some)).Ask(cancelled, question)
		must.Hold(t, errors.Is(err, context.Canceled) && llm.KindOf(err) == "", "cancelled: %v", err)
		c := s.Config(some)
		c.HTTP = &http.Client{Timeout: 20 * time.Millisecond}
		_, err = a.model(t, c).Ask(t.Context(), question)
		must.Hold(t, llm.KindOf(err) == llm.TimedOut, "with a timeout of the HTTP client: %v", err)
	})
}

func TestNobodyListens(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	each(t, func(t *testing.T, a adapter) {
		_, err := a.model(t, llm.Config{BaseURL: gone.URL, Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
		must.Hold(t, llm.KindOf(err) == llm.Unavailable && strings.Contains(err.Error(), "refused"), "%v", err)
	})
}

// TestRedirect: key and evidence go only to the configured server.
func TestRedirect(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		var visits atomic.Int32
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
		defer elsewhere.Close()
		_, _, err := a.ask(t, Always(Reply{Failure: Redirected, Location: elsewhere.URL + "/v1"}))
		must.Hold(t, llm.KindOf(err) == llm.Malformed && strings.Contains(err.Error(), "redirects") && visits.Load() == 0,
			"%v, %d visits", err, visits.Load())
	})
}

// TestKeyStaysHere: the key is in no answer that the provider echoes, in no log and in no error of New.
func TestKeyStaysHere(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		var logged bytes.Buffer
		log.SetOutput(&logged)
		defer log.SetOutput(os.Stderr)
		s := New(t, a.Vendor, nil)
		echo := New(t, a.Vendor, func(Call) Reply { return Reply{Text: "your key is " + s.Key + "."} })
		echo.Key = s.Key
		answer, err := a.model(t, echo.Config(some)).Ask(t.Context(), question)
		must.Hold(t, err == nil && answer.Text == "your key is [key].", "%+v, %v", answer.Text, err)
		bad := s.Config(some)
		bad.BaseURL = "https://user:" + s.Key + "@host/"
		_, err = a.make(bad)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), s.Key), "%v", err)
		bad = s.Config(some)
		bad.Key += "\n"
		_, err = a.make(bad)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), s.Key), "%v", err)
		must.Hold(t, !strings.Contains(logged.String(), s.Key), "logged: %s", &logged)
	})
}

// TestEnvironment: environment variables of the vendors' SDKs change nothing.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1/")
	}
	for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "of-the-environment")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Extra: of-the-environment")
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	each(t, func(t *testing.T, a adapter) {
		_, s, err := a.ask(t, Say("ok"))
		must.Do(t, err)
		headers := fmt.Sprint(s.Requests()[0].Header)
		must.Hold(t, !strings.Contains(headers, "of-the-environment"), "%v", headers)
		_, err = a.make(llm.Config{BaseURL: s.URL, Settings: some})
		must.Hold(t, (err == nil) == (a.Name == "Compatible"), "without a key: %v", err)
	})
}

// TestConcurrent: a hundred concurrent calls each get their own answer, and leave no goroutines.
func TestConcurrent(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		transport := &http.Transport{}
		before := runtime.NumGoroutine()
		s := New(t, a.Vendor, func(c Call) Reply { return Reply{Text: "to " + c.Last(), Failure: Failure(0)} })
		c := s.Config(some)
		c.HTTP = &http.Client{Transport: transport}
		m := a.model(t, c)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				text := fmt.Sprintf("question %d", i)
				answer, err := m.Ask(t.Context(), llm.Question{Messages: []llm.Message{{Text: text}}, Schema: verdict})
				must.Hold(t, err == nil && answer.Text == "to "+text, "%q: %q, %v", text, answer.Text, err)
			})
		}
		wg.Wait()
		transport.CloseIdleConnections()
		for range 12_000 {
			if runtime.NumGoroutine() <= before+5 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	})
}

// TestNoSchemas: a server without support for schemas gets the schema as text instead. The adapter remembers that.
func TestNoSchemas(t *testing.T) {
	s := New(t, Compatible, Always(Reply{Text: "{}", Failure: NoSchemas}))
	m := adapters[3].model(t, s.Config(some))
	for range 2 {
		answer, err := m.Ask(t.Context(), question)
		must.Need(t, err == nil && answer.Text == "{}", "%v %v", answer, err)
	}
	requests := s.Requests()
	must.Need(t, len(requests) == 3 && requests[0].Schema.JSON != nil && requests[1].Schema.JSON == nil && requests[2].Schema.JSON == nil,
		"%d requests", len(requests))
	if !strings.HasPrefix(requests[2].System, question.System) || !strings.HasSuffix(requests[2].System, string(verdict.JSON)) ||
		!bytes.Contains(requests[2].Body, []byte(`"json_object"`)) {
		t.Errorf("%s", requests[2].Body)
	}
}

// TestOtherRefusalsAreNotTheSchemas: if a request is refused with and without a schema, the adapter does not conclude
// that schemas are unsupported.
func TestOtherRefusalsAreNotTheSchemas(t *testing.T) {
	s := New(t, Compatible, InTurn(Reply{Failure: EchoedKey}, Reply{Failure: EchoedKey}, Reply{Failure: EchoedKey}, Reply{Text: "{}"}))
	m := adapters[3].model(t, s.Config(some))
	answer, err := m.Ask(t.Context(), question)
	must.Hold(t, llm.KindOf(err) == llm.Malformed && answer.Retries == 2, "%v %v", err, answer.Retries)
	answer, err = m.Ask(t.Context(), question)
	must.Hold(t, err == nil && s.Requests()[3].Schema.JSON != nil && answer.Retries == 0, "%v", err)
}

// TestDialects: a server that refuses a form of the request gets the same question in another form, and is then asked in that
// form only. Refused requests are counted.
func TestDialects(t *testing.T) {
	has := func(body []byte, what string) bool { return bytes.Contains(body, []byte(what)) }
	for name, refuses := range map[string]func([]byte) string{
		"the older limit": func(b []byte) string {
			if has(b, `"max_tokens"`) {
				return `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`
			}
			return ""
		},
		"schemas": func(b []byte) string {
			if has(b, "json_schema") {
				return `{"error":{"message":"response_format json_schema is not supported"}}`
			}
			return ""
		},
		"every response format": func(b []byte) string {
			if has(b, "response_format") {
				return `{"detail":"extra fields not permitted"}`
			}
			return ""
		},
		"both": func(b []byte) string {
			if has(b, "response_format") {
				return `{"detail":"extra fields not permitted"}`
			} else if has(b, `"max_tokens"`) {
				return `{"error":"please use max_completion_tokens"}`
			}
			return ""
		},
	} {
		refused, taken := 0, [][]byte{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			must.Want(t, err, nil)
			if problem := refuses(body); problem != "" {
				refused++
				w.WriteHeader(http.StatusUnprocessableEntity)
				io.WriteString(w, problem)
				return
			}
			taken = append(taken, body)
			io.WriteString(w, `{"model":"m","choices":[{"message":{"content":"{}"},"finish_reason":"stop"}]}`)
		}))
		m := adapters[3].model(t, llm.Config{BaseURL: s.URL, Settings: some})
		for again := range 2 {
			before := refused
			answer, err := m.Ask(t.Context(), question)
			must.Hold(t, err == nil && answer.Text == "{}" && answer.Retries == refused-before && (again != 1 || answer.Retries == 0),
				"%s: %+v, %v, %d requests refused", name, answer, err, refused)
		}
		for _, body := range taken {
			must.Hold(t, has(body, "score") && has(body, "tokens\":900"), "%s: without the schema or the limit: %s", name, body)
		}
		s.Close()
	}
}

// TestWholeAnswers: an answer that is whole counts after one call, however odd its envelope is. What is odd in the
// bookkeeping is unknown, and nothing else is.
func TestWholeAnswers(t *testing.T) {
	const text = `{"why":"NaN, \"-Infinity\" \\ and } \ufeff"}`
	used := llm.Usage{Input: 120, Cached: 20, Output: 30, Reasoning: 10}
	type change = func(http.Header, string) string
	replace := func(pairs ...string) change {
		return func(_ http.Header, body string) string { return strings.NewReplacer(pairs...).Replace(body) }
	}
	typed := func(media string) change {
		return func(h http.Header, body string) string { h["Content-Type"] = []string{media}; return body }
	}
	for name, tt := range map[string]struct {
		change
		usage llm.Usage
	}{
		"as published":    {replace(), used},
		"text/plain":      {typed("text/plain; charset=utf-8"), used},
		"event stream":    {typed("text/event-stream"), used},
		"no type":         {typed(""), used},
		"no valid type":   {typed("application//json"), used},
		"byte order mark": {func(_ http.Header, body string) string { return "\uFEFF \r\n" + body }, used},
		"NaN":             {replace(`{"`, `{"x":[NaN,-Infinity,Infinity],"`), used},
		"duplicates":      {replace(`{"`, `{"x":1,"x":"2","`), used},
		"lone surrogate":  {replace(`{"`, `{"x":"\ud83d","`), used},
		"no UTF-8":        {replace(`{"`, "{\"x\":\"\xff\",\""), used},
		"ids are numbers": {replace(`"id":"`, `"id":7,"was":"`, `"responseId":"`, `"responseId":{},"was":"`), used},
		"no end":          {replace(`"completed"`, `""`, `"end_turn"`, `null`, `"STOP"`, `""`, `"stop"`, `null`), used},
		"eos":             {replace(`"completed"`, `"eos"`, `"end_turn"`, `"eos_token"`, `"STOP"`, `"FINISH_REASON_UNSPECIFIED"`, `"stop"`, `"eos"`), used},
		"another's end":   {replace(`"completed"`, `"STOP"`, `"end_turn"`, `"stop"`, `"STOP"`, `"end_turn"`, `"stop"`, `"COMPLETE"`), used},
		"mistyped end":    {replace(`"end_turn"`, `7`, `"STOP"`, `1`, `"stop"`, `["stop"]`), used},
		"no usage":        {replace(`"usage`, `"was`), llm.Usage{}},
		"usage null":      {replace(`"usage":`, `"usage":null,"was":`, `"usageMetadata":`, `"usageMetadata":null,"was":`), llm.Usage{}},
		"usage words":     {replace(`:120`, `:"120"`, `:100`, `:"100"`), llm.Usage{}},
		"usage parts":     {replace(`:120`, `:120.5`, `:100`, `:100.5`), llm.Usage{}},
		"negative":        {replace(`:30`, `:-30`, `:20`, `:-20`), llm.Usage{}},
		"does not add":    {replace(`:20`, `:2000`, `tail":`, `tail":`, `:120`, `:-1`, `:100`, `:-99999`), llm.Usage{}},
		"huge":            {replace(`:120`, `:9223372036854775807`, `:100`, `:9223372036854775807`), llm.Usage{}},
		"zero":            {replace(`:120`, `:0`, `:100`, `:0`, `:30`, `:0`, `:20`, `:0`, `:10`, `:0`), llm.Usage{}},
	} {
		each(t, func(t *testing.T, a adapter) {
			inner := New(t, a.Vendor, Say(text))
			calls := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				heard := httptest.NewRecorder()
				inner.ServeHTTP(heard, r)
				body := tt.change(w.Header(), heard.Body.String())
				io.WriteString(w, body)
			}))
			defer s.Close()
			c := inner.Config(some)
			c.BaseURL = s.URL + inner.URL[strings.LastIndex(inner.URL, ":")+len(":12345"):]
			answer, err := a.model(t, c).Ask(t.Context(), question)
			must.Hold(t, err == nil && answer.Text == text && answer.Model == some.Model && answer.Usage == tt.usage && calls == 1,
				"%s: %+v, %v, %d calls", name, answer, err, calls)
		})
	}
}

// TestCutOff: the words of every vendor for an incomplete answer are understood from every vendor's server.
func TestCutOff(t *testing.T) {
	for reason, want := range map[string]llm.Kind{"length": llm.TooLong, "LENGTH": llm.TooLong, "MAX_TOKENS": llm.TooLong, "max_tokens": llm.TooLong, "model_length": llm.TooLong,
		"content_filter": llm.Refused, "content-filter": llm.Refused, "SAFETY": llm.Refused, "refusal": llm.Refused} {
		for i, body := range []string{`{"status":%q,"output":[{"type":"message","content":[{"type":"output_text","text":"{}"}]}]}`,
			`{"type":"message","content":[{"type":"text","text":"{}"}],"stop_reason":%q}`,
			`{"candidates":[{"content":{"parts":[{"text":"{}"}]},"finishReason":%q}]}`,
			`{"choices":[{"message":{"content":"{}"},"finish_reason":%q}]}`} {
			_, err := adapters[i].model(t, llm.Config{BaseURL: odd(t, 200, fmt.Sprintf(body, reason)), Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
			if llm.KindOf(err) != want {
				t.Errorf("%s, %s: %v", adapters[i].Name, reason, err)
			}
		}
	}
}

// TestCompatibleWithoutKey: a local server without a key gets none.
func TestCompatibleWithoutKey(t *testing.T) {
	s := New(t, Compatible, Say("ok"))
	s.Key = ""
	_, err := adapters[3].model(t, s.Config(some)).Ask(t.Context(), question)
	must.Hold(t, err == nil, "%v", err)
}

// odd answers every request with a status and a body.
func odd(t *testing.T, status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestOddBodies: a malformed body with status 200 gives a Malformed error, not a panic.
func TestOddBodies(t *testing.T) {
	for _, body := range []string{``, `null`, `[]`, `1`, `"x"`, `{}`, `{"candidates":1}`, `{"candidates":[1]}`, `{"candidates":[null]}`, `{"candidates":{"a":1}}`,
		`{"candidates":[{"content":[]}]}`, `{"candidates":[{"content":{"parts":"x"},"finishReason":"STOP"}]}`, `{"candidates":[{"finishReason":7}]}`,
		`{"promptFeedback":3}`, `{"usageMetadata":[],"candidates":[{"content":{"parts":[null]},"finishReason":"STOP"}]}`, `{"candidates":[],"candidates":[]}`,
		`{"type":"message","content":{},"stop_reason":[]}`, `{"type":"message","content":[1],"stop_reason":"end_turn"}`, `{"type":"message","content":[null],"stop_reason":"end_turn"}`,
		`{"status":"completed","output":{}}`, `{"status":"completed","output":[null,1,{"type":"message","content":7}]}`, `{"status":"queued","output":[]}`, `{"status":"failed","output":[],"error":null}`,
		`{"choices":7}`, `{"choices":[]}`, `{"choices":[{},{}]}`, `{"choices":[{"message":null,"finish_reason":"stop"}]}`, `{"choices":[{"message":{"content":["x"]},"finish_reason":"stop"}]}`,
		`{"error":{"message":"it broke"}}`, `{"error":"it broke"}`, `{} {}`, `{"a":` + strings.Repeat("[", 20_000)} {
		each(t, func(t *testing.T, a adapter) {
			_, err := a.model(t, llm.Config{BaseURL: odd(t, 200, body), Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
			must.Hold(t, llm.KindOf(err) == llm.Malformed, "%.60s: %v", body, err)
		})
	}
}

// TestManyParts: the memory that an answer takes is in proportion to its parts.
func TestManyParts(t *testing.T) {
	for _, tt := range []struct {
		of         int
		part, body string
	}{
		{0, `{"type":"output_text","text":"x"}`, `{"status":"completed","output":[{"type":"message","content":[%s]}]}`},
		{0, `{"type":"refusal","refusal":"x"}`, `{"status":"completed","output":[{"type":"message","content":[%s]}]}`},
		{1, `{"type":"text","text":"x"}`, `{"type":"message","content":[%s],"stop_reason":"end_turn"}`},
		{2, `{"text":"x"}`, `{"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}`},
		{3, `{"text":"x"}`, `{"choices":[{"message":{"content":[%s]},"finish_reason":"stop"}]}`},
	} {
		const many = 30_000
		body := fmt.Sprintf(tt.body, strings.TrimSuffix(strings.Repeat(tt.part+",", many), ","))
		model := adapters[tt.of].model(t, llm.Config{BaseURL: odd(t, 200, body), Key: "some-long-key", Settings: some})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		answer, err := model.Ask(t.Context(), question)
		runtime.ReadMemStats(&after)
		must.Hold(t, len(answer.Text) == many || llm.KindOf(err) == llm.Refused, "%s: %d bytes of text, %v", tt.part, len(answer.Text), err)
		used := after.TotalAlloc - before.TotalAlloc
		must.Hold(t, used <= 100*uint64(len(body)), "%s: %d kB take %d MB", tt.part, len(body)/1000, used/1e6)
	}
}

// TestErrorsInOtherForms: errors of servers that implement a protocol only in part are recognised.
func TestErrorsInOtherForms(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		kind   llm.Kind
		detail string
	}{
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`, llm.TooLong, "4096"},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, llm.TooLong, "context size"},
		{400, `{"error":{"code":"content_filter","message":"policy","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, llm.Refused, "content_filter"},
		{403, `{"detail":"Forbidden here"}`, llm.Unauthorised, "Forbidden here"},
		{404, `{"error":{"message":"model 'x' not found","type":"api_error","code":null}}`, llm.NotFound, "'x' not found"},
		{404, `404 page not found`, llm.NotFound, "base_url"},
		{403, `{"error":{"code":"model_not_found","message":"Project p does not have access to model x"}}`, llm.NotFound, "access to model x"},
		{200, `{"error":{"code":404,"message":"No endpoints found for x"}}`, llm.NotFound, "No endpoints"},
		{502, `<html>Bad Gateway</html>`, llm.Unavailable, "Bad Gateway"},
		{200, `{"error":{"code":429,"message":"slow down"}}`, llm.RateLimited, "slow down"},
		{200, `{"error":{"code":502,"message":"no provider"}}`, llm.Unavailable, "no provider"},
	} {
		_, err := adapters[3].model(t, llm.Config{BaseURL: odd(t, tt.status, tt.body), Settings: some}).Ask(t.Context(), llm.Question{Messages: question.Messages})
		must.Hold(t, llm.KindOf(err) == tt.kind && strings.Contains(err.Error(), tt.detail), "%s: %v", tt.body, err)
	}
	each(t, func(t *testing.T, a adapter) {
		for status, want := range map[int]llm.Kind{500: llm.Unavailable, 418: llm.Malformed, 401: llm.Unauthorised, 429: llm.RateLimited} {
			_, err := a.model(t, llm.Config{BaseURL: odd(t, status, "<p>some page"), Key: "some-long-key", Settings: some}).Ask(t.Context(), llm.Question{Messages: question.Messages})
			must.Hold(t, llm.KindOf(err) == want && strings.Contains(err.Error(), "some page"), "%d: %v", status, err)
		}
	})
}

// TestResponseFailed: OpenAI also reports failures with status 200.
func TestResponseFailed(t *testing.T) {
	for code, want := range map[string]llm.Kind{"server_error": llm.Unavailable, "rate_limit_exceeded": llm.RateLimited, "invalid_prompt": llm.Refused, "invalid_image": llm.Malformed} {
		body := `{"id":"r","object":"response","status":"failed","output":[],"model":"m","error":{"code":"` + code + `","message":"so it is"}}`
		_, err := adapters[0].model(t, llm.Config{BaseURL: odd(t, 200, body), Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
		must.Hold(t, llm.KindOf(err) == want && strings.Contains(err.Error(), "so it is"), "%s: %v", code, err)
	}
}

// TestKeyInEscapes: if the key is in a body in a form that cannot be cut out, the answer is refused, also one that was cut off.
func TestKeyInEscapes(t *testing.T) {
	for reason, kind := range map[string]llm.Kind{"stop": llm.Malformed, "length": llm.TooLong, "content_filter": llm.Refused} {
		body := `{"model":"m","choices":[{"message":{"content":"it is \u0073ome-long-key"},"finish_reason":"` + reason + `"}],"usage":{"prompt_tokens":7}}`
		_, err := adapters[3].model(t, llm.Config{BaseURL: odd(t, 200, body), Key: "some-long-key", Settings: some}).Ask(t.Context(), question)
		var e *llm.Error
		must.Hold(t, errors.As(err, &e) && e.Kind == kind && e.Answer.Text == "", "%s: %v, %+v", reason, err, e)
	}
}

// TestNames: the model name that goes into a record is short and on one line, so the answer counts.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, a adapter) {
		for _, name := range []string{"m\nsigned: nobody", strings.Repeat("m", 400)} {
			answer, _, err := a.ask(t, Always(Reply{Text: "x", Model: name}))
			must.Hold(t, err == nil && answer.Model != "" && len(answer.Model) <= 310 && !strings.Contains(answer.Model, "\n"), "%+v, %v", answer, err)
		}
	})
}

// TestReasoningCountedApart: some servers do not include reasoning tokens in the output, but they cost the same.
func TestReasoningCountedApart(t *testing.T) {
	for total, want := range map[int]int64{30: 20, 37: 27} {
		body := fmt.Sprintf(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":%d,"completion_tokens_details":{"reasoning_tokens":7}}}`, total)
		answer, err := adapters[3].model(t, llm.Config{BaseURL: odd(t, 200, body), Settings: some}).Ask(t.Context(), question)
		must.Hold(t, err == nil && answer.Usage == (llm.Usage{Input: 10, Output: want, Reasoning: 7}), "total %d: %+v, %v", total, answer.Usage, err)
	}
}

// TestNewRefuses: New refuses settings that a vendor's protocol does not have. It does not leave them out silently.
func TestNewRefuses(t *testing.T) {
	seed, large, hot := int64(1), int64(1)<<40, 1.5
	for _, tt := range []struct {
		adapter
		settings llm.Settings
		want     string
	}{
		{adapters[0], llm.Settings{Model: "m", Seed: &seed}, "seed"},
		{adapters[1], llm.Settings{Model: "m", MaxTokens: 1, Seed: &seed}, "seed"},
		{adapters[1], llm.Settings{Model: "m"}, "max_tokens"},
		{adapters[1], llm.Settings{Model: "m", MaxTokens: 1, Temperature: &hot}, "temperature"},
		{adapters[2], llm.Settings{Model: "m", Seed: &large}, "seed"},
		{adapters[2], llm.Settings{Model: "../files"}, "not a valid model name"},
		{adapters[2], llm.Settings{Model: "m?key=1"}, "not a valid model name"},
	} {
		must.Refuse(t, tt.want, tt.Name, tt.settings)(tt.make(llm.Config{BaseURL: "http://127.0.0.1", Key: "some-long-key", Settings: tt.settings}))
	}
	must.Refuse(t, "", "New accepted a configuration without a URL")(adapters[3].make(llm.Config{Settings: some}))
}
