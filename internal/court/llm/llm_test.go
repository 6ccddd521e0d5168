package llm

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"jurat/internal/test/must"
)

// asked is a function that serves as a model.
type asked func(context.Context, Question) (Answer, error)

func (a asked) Ask(ctx context.Context, q Question) (Answer, error) { return a(ctx, q) }

// TestPatience: a temporary error is retried after the time that the provider asks for. A permanent error is returned at
// once.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		kind  Kind
		calls int
	}{{RateLimited, 3}, {Unavailable, 3}, {Refused, 1}, {Unauthorised, 1}, {Malformed, 1}, {TooLong, 1}, {TimedOut, 1}} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			m := Patient(asked(func(context.Context, Question) (Answer, error) {
				calls++
				return Answer{}, &Error{Kind: tt.kind, RetryAfter: 7 * time.Second}
			}), Patience{})
			_, err := m.Ask(t.Context(), Question{})
			must.Hold(t, KindOf(err) == tt.kind && calls == tt.calls, "%s: %v after %d calls", tt.kind, err, calls)
			waited := time.Since(began)
			must.Hold(t, tt.calls <= 1 || waited >= 14*time.Second, "%s: asked again after %v", tt.kind, waited)
		})
	}
}

func TestPatienceSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		m := Patient(asked(func(context.Context, Question) (Answer, error) {
			if calls++; calls < 3 {
				return Answer{}, &Error{Kind: Unavailable}
			}
			return Answer{Text: "at last"}, nil
		}), Patience{})
		answer, err := m.Ask(t.Context(), Question{})
		must.Hold(t, err == nil && answer.Text == "at last", "%+v, %v", answer, err)
	})
}

// TestTimeout: a call that takes too long returns TimedOut, which also matches context.DeadlineExceeded.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Patient(asked(func(ctx context.Context, _ Question) (Answer, error) {
			<-ctx.Done()
			return Answer{}, errors.New("connection closed")
		}), Patience{Timeout: time.Second})
		_, err := m.Ask(t.Context(), Question{})
		must.Hold(t, KindOf(err) == TimedOut && errors.Is(err, context.DeadlineExceeded), "%v", err)
	})
}

// TestCancelled: a cancellation by the caller does not count as an error of the provider.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := Patient(asked(func(ctx context.Context, _ Question) (Answer, error) {
		cancel()
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}), Patience{})
	_, err := m.Ask(ctx, Question{})
	must.Hold(t, errors.Is(err, context.Canceled) && KindOf(err) == "", "%v", err)
}

// TestWaitingEndsAtTheDeadline: if the provider asks for a wait beyond the deadline, Ask returns the provider's error at
// once.
func TestWaitingEndsAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		m := Patient(asked(func(context.Context, Question) (Answer, error) {
			return Answer{}, &Error{Kind: RateLimited, RetryAfter: time.Minute, Detail: "quota"}
		}), Patience{})
		_, err := m.Ask(ctx, Question{})
		must.Hold(t, KindOf(err) == RateLimited && time.Since(began) <= 0, "%v after %v", err, time.Since(began))
	})
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Patient(asked(func(context.Context, Question) (Answer, error) { return Answer{}, nil }),
			Patience{Limit: rate.NewLimiter(rate.Every(time.Second), 1)})
		began := time.Now()
		for range 4 {
			must.Get(m.Ask(t.Context(), Question{}))(t)
		}
		passed := time.Since(began)
		must.Hold(t, passed == 3*time.Second, "four calls at one call a second took %v", passed)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := m.Ask(ctx, Question{})
		must.Hold(t, KindOf(err) == RateLimited, "%v", err)
	})
}

func TestDetailHoldsNoSecretsAndStaysOnOneLine(t *testing.T) {
	err := Fail(Unauthorised, 401, "bad key\x1b[31m sk-12345 \n given: sk-12345 "+strings.Repeat("x", 500), "sk-12345")
	text := err.Error()
	must.Hold(t, !strings.Contains(text, "sk-12345") && !strings.ContainsAny(text, "\n\x1b") && len(text) <= 400, "%q", text)
	must.Hold(t, strings.HasPrefix(text, "unauthorised (HTTP status 401): bad key [31m [key] given: [key] xxx"), "%q", text)
}

func TestKindOfStatus(t *testing.T) {
	for status, want := range map[int]Kind{429: RateLimited, 401: Unauthorised, 403: Unauthorised, 404: NotFound, 413: TooLong,
		500: Unavailable, 502: Unavailable, 503: Unavailable, 529: Unavailable, 408: Unavailable, 400: Malformed, 422: Malformed} {
		got := KindOfStatus(status)
		must.Hold(t, got == want, "%d: %s, want %s", status, got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		want        time.Duration
	}{{"Retry-After", "3", 3 * time.Second}, {"Retry-After", "0.5", 500 * time.Millisecond}, {"Retry-After", "-1", 0},
		{"Retry-After", "Thu, 01 Jan 2026 00:00:09 GMT", 9 * time.Second}, {"Retry-After", "Wed, 31 Dec 2025 00:00:00 GMT", 0},
		{"Retry-After", "soon", 0}, {"Retry-After", "1e300", LongestWait}, {"Retry-After", "NaN", 0}, {"Retry-After-Ms", "250", 250 * time.Millisecond}} {
		got := RetryAfter(http.Header{tt.name: {tt.value}}, now)
		must.Hold(t, got == tt.want, "%s: %s: %v, want %v", tt.name, tt.value, got, tt.want)
	}
}

// TestPrices: a call costs what the model that answered costs, by the kinds of its tokens. What cannot be told is unknown.
func TestPrices(t *testing.T) {
	prices := Prices{{Model: "gpt-4o", Rates: Rates{Input: 2.5, Cached: 1.25, Output: 10}}, {Model: "gpt-4o-mini", Rates: Rates{Input: 0.15, Output: 0.6}}, {Model: "gpt-4o-2024-05-13", Rates: Rates{Input: 5, Output: 15}},
		{Model: "haiku", Rates: Rates{Input: 1, Cached: 0.1, Write: 1.25, WriteHour: 2, Output: 5}, Over: 1000, Long: &Rates{Input: 10, Output: 50}}, {Model: "sonnet", Rates: Rates{Input: 3, Output: 15}, Over: 1000}}
	must.Do(t, prices.Check())
	const unknown = -1
	for _, tt := range []struct {
		asked, answered string
		usage           Usage
		want            int64
	}{
		{"gpt-4o", "gpt-4o-2024-08-06", Usage{Input: 1000, Cached: 400, Output: 100}, 600*5/2 + 500 + 1000},
		{"gpt-4o-mini", "gpt-4o-mini-2024-07-18", Usage{Input: 1_000_000, Cached: 500_000}, 150_000},
		{"gpt-4o-mini", "gpt-4o-mini", Usage{Input: 1}, 1},
		{"gpt-4o-mini", "", Usage{Input: 20}, 3},
		{"gpt-4o", "gpt-4o-2024-05-13", Usage{Input: 100, Output: 1}, 515},
		{"gpt-4o", "gpt-4o-mini", Usage{Input: 20}, 3},
		{"gpt-4o", "kimi-k2", Usage{Input: 20}, unknown},
		{"gpt-4o", "gpt-4o-audio-preview", Usage{Input: 20}, unknown},
		{"gpt-4o-realtime-preview", "", Usage{Input: 20}, unknown},
		{"gpt-4o-2024-11-20", "gpt-4o-2024-11-20", Usage{Input: 20}, unknown},
		{"claude", "claude", Usage{Input: 20}, unknown},
		{"haiku", "haiku", Usage{Input: 10 + 600 + 400, Written: 600, WrittenHour: 400, Output: 50}, unknown}, // its long price has no writes
		{"haiku", "haiku", Usage{Input: 10 + 500 + 300 + 100, Written: 500, WrittenHour: 300, Cached: 100, Output: 50}, 10 + 625 + 600 + 10 + 250},
		{"haiku", "haiku", Usage{Input: 1000, Output: 1}, 1005},
		{"haiku", "haiku", Usage{Input: 1001, Output: 1}, 10_060},
		{"haiku", "haiku", Usage{Input: 10, Output: 1, OtherPrice: true}, unknown},
		{"gpt-4o", "gpt-4o", Usage{Input: 10, Written: 5, Output: 1}, unknown},
		{"sonnet", "sonnet", Usage{Input: 1000, Output: 1}, 3015},
		{"sonnet", "sonnet", Usage{Input: 1001, Output: 1}, unknown},
	} {
		got := int64(unknown)
		if price, ok := prices.For(tt.asked, tt.answered); ok {
			if cost, known := price.Cost(tt.usage); known {
				got = cost
			}
		}
		must.Hold(t, got == tt.want, "%s, answered by %s, %+v: %d, want %d", tt.asked, tt.answered, tt.usage, got, tt.want)
	}
	for _, bad := range []Price{{Rates: Rates{Input: 1}}, {Model: "m", Rates: Rates{Input: -1}}, {Model: "m", Rates: Rates{Output: math.NaN()}}, {Model: "m", Rates: Rates{Cached: math.Inf(1)}}} {
		must.Hold(t, (Prices{bad}).Check() != nil, "%+v is accepted", bad)
	}
}

// TestEstimate: the estimate counts every part of a question, and an empty question has at least one token.
func TestEstimate(t *testing.T) {
	q := Question{System: "123", Messages: []Message{{Text: "456"}, {ByModel: true, Text: "789"}}, Schema: Schema{JSON: []byte("{}")}}
	must.Equal(t, q.Estimate(7), (Usage{Input: 4, Output: 7}))
	must.Equal(t, (Question{}).Estimate(0), (Usage{Input: 1}))
}

// TestWithoutKey: withoutKey finds the key in every form in which JSON may contain it. It leaves names alone that
// contain a placeholder key.
func TestWithoutKey(t *testing.T) {
	const key = `sk/a+b<c>&"d\e`
	for _, form := range []string{key, `sk/a+b<c>&\"d\\e`, `sk\/a+b<c>&\"d\\e`, `sk/a\u002bb\u003cc\u003e\u0026\"d\\e`, `sk/a+b\u003cc\u003e\u0026\"d\\e`} {
		must.Equal(t, string(withoutKey([]byte(`{"x":"is `+form+`."}`), key)), `{"x":"is [key]."}`, form)
	}
	must.Equal(t, string(withoutKey([]byte(`{"model":"ollama/x"}`), "ollama")), `{"model":"ollama/x"}`)
	must.Equal(t, string(withoutKey([]byte(`{}`), "")), `{}`)
}

func TestConfigCheck(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Key = "" }, ""},
		{func(c *Config) { c.BaseURL = "http://localhost:11434/v1" }, ""},
		{func(c *Config) { c.BaseURL = "ftp://host" }, "base URL"},
		{func(c *Config) { c.BaseURL = "host/v1" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://user:pass@host" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://host?key=1" }, "base URL"},
		{func(c *Config) { c.BaseURL = "https://host#x" }, "base URL"},
		{func(c *Config) { c.Key = "secret\n" }, "key"},
		{func(c *Config) { c.Key = "secret key" }, "key"},
		{func(c *Config) { c.Key = "secr\u00e9t" }, "key"},
	} {
		c := Config{Key: "secret", Settings: Settings{Model: "m"}}
		tt.change(&c)
		got, err := c.check("https://vendor")
		must.Hold(t, (err == nil) == (tt.want == "") && (err == nil || strings.HasPrefix(err.Error(), tt.want)), "%+v: %v, want %q", c, err, tt.want)
		must.Hold(t, err == nil || !strings.Contains(err.Error(), "secr") && !strings.Contains(err.Error(), "pass@"), "a secret is in %v", err)
		must.Hold(t, c.BaseURL != "" || got.BaseURL == "https://vendor", "base URL %q", got.BaseURL)
	}
}

func TestQuestionCheck(t *testing.T) {
	user, byModel := Message{Text: "x"}, Message{ByModel: true, Text: "y"}
	for _, tt := range []struct {
		q    Question
		want string
	}{
		{Question{Messages: []Message{user}}, ""},
		{Question{Messages: []Message{user, byModel, user}, Schema: Schema{"a_B-9", []byte(`{"type":"object"}`)}}, ""},
		{Question{}, "no message"},
		{Question{Messages: []Message{byModel}}, "must alternate"},
		{Question{Messages: []Message{user, user}}, "messages/1"},
		{Question{Messages: []Message{user, byModel}}, "model's own"},
		{Question{Messages: []Message{{Text: " "}}}, "empty"},
		{Question{Messages: []Message{user}, Schema: Schema{"", []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a b", []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{strings.Repeat("a", 65), []byte(`{}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", []byte(`[]`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", []byte(`{"a":1,"a":2}`)}}, "schema"},
		{Question{Messages: []Message{user}, Schema: Schema{"a", nil}}, "schema"},
	} {
		err := tt.q.Check()
		must.Hold(t, (err == nil) == (tt.want == "") && (err == nil || KindOf(err) == Malformed && strings.Contains(err.Error(), tt.want)),
			"%+v: %v, want %q", tt.q, err, tt.want)
	}
}

func TestPurse(t *testing.T) {
	p := NewPurse(100, 30)
	first := must.Get(p.Reserve(40))(t)
	must.Fail(t, ErrSpent)(p.Reserve(31))
	second := must.Get(p.Reserve(30))(t)
	must.Fail(t, ErrSpent)(p.Reserve(1))
	first(10)
	first(10) // a second settlement has no effect
	must.Equal(t, p.spent, 40)
	must.Fail(t, ErrSpent)(p.Reserve(31))
	second(80) // more than was reserved
	_, err := p.Reserve(0)
	must.Hold(t, errors.Is(err, ErrSpent) && p.spent == 120, "beyond the ceiling: %v, %d spent", err, p.spent)
}

// TestPurseOfNegativeNumbers: a negative reservation or settlement does not increase the money.
func TestPurseOfNegativeNumbers(t *testing.T) {
	p := NewPurse(10, 0)
	settle := must.Get(p.Reserve(-50))(t)
	settle(-50)
	_, err := p.Reserve(11)
	must.Hold(t, errors.Is(err, ErrSpent) && p.spent == 0, "%v, %d spent", err, p.spent)
}

// TestPurseOfMany: many concurrent reservations together stay below the ceiling.
func TestPurseOfMany(t *testing.T) {
	p := NewPurse(1000, 0)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				if settle, err := p.Reserve(7); err == nil {
					settle(7)
				}
			}
		})
	}
	all.Wait()
	spent := p.spent
	must.Hold(t, spent <= 1000 && spent >= 994, "%d spent of 1000", spent)
}

// TestSnapshot splits names that vendors have reported. It leaves names alone that only look as if they end in a date.
func TestSnapshot(t *testing.T) {
	for reported, want := range map[string][2]string{
		"gpt-4o":                           {"gpt-4o", ""},
		"gpt-4o-2024-08-06":                {"gpt-4o", "gpt-4o-2024-08-06"},
		"gpt-4o-mini":                      {"gpt-4o-mini", ""},
		"gpt-4o-mini-2024-07-18":           {"gpt-4o-mini", "gpt-4o-mini-2024-07-18"},
		"o3-mini-2025-01-31":               {"o3-mini", "o3-mini-2025-01-31"},
		"gpt-4-0613":                       {"gpt-4", "gpt-4-0613"},
		"gpt-3.5-turbo-1106":               {"gpt-3.5-turbo", "gpt-3.5-turbo-1106"},
		"claude-haiku-4-5":                 {"claude-haiku-4-5", ""},
		"claude-haiku-4-5-20251001":        {"claude-haiku-4-5", "claude-haiku-4-5-20251001"},
		"claude-opus-4-1@20250805":         {"claude-opus-4-1", "claude-opus-4-1@20250805"},
		"gemini-2.5-flash":                 {"gemini-2.5-flash", ""},
		"gemini-2.5-flash-lite":            {"gemini-2.5-flash-lite", ""},
		"gemini-2.0-flash-001":             {"gemini-2.0-flash", "gemini-2.0-flash-001"},
		"gemini-2.5-pro-preview-06-05":     {"gemini-2.5-pro-preview", "gemini-2.5-pro-preview-06-05"},
		"gemini-2.5-flash-preview-09-2025": {"gemini-2.5-flash-preview", "gemini-2.5-flash-preview-09-2025"},
		"mistral-large-2411":               {"mistral-large", "mistral-large-2411"},
		"command-r-08-2024":                {"command-r", "command-r-08-2024"},
		"llama3.1:70b":                     {"llama3.1:70b", ""},
		"model-9999":                       {"model-9999", ""},
		"model-2024-13-40":                 {"model-2024-13-40", ""},
		"model-20241340":                   {"model-20241340", ""},
		"model-1":                          {"model-1", ""},
		"qwen2.5-72b":                      {"qwen2.5-72b", ""},
		"-2024-08-06":                      {"-2024-08-06", ""},
		"2024-08-06":                       {"2024-08-06", ""},
		"":                                 {"", ""},
	} {
		model, snapshot := Snapshot(reported)
		must.Hold(t, model == want[0] && snapshot == want[1], "%q: %q, %q, want %q", reported, model, snapshot, want)
	}
	for _, one := range []struct {
		reported, configured string
		want                 bool
	}{
		{"gpt-4o", "gpt-4o", true}, {"gpt-4o-2024-08-06", "gpt-4o", true}, {"gpt-4o-2024-08-06", "gpt-4o-2024-08-06", true},
		{"gpt-4o-mini", "gpt-4o", false}, {"gpt-4o-mini-2024-07-18", "gpt-4o", false}, {"gpt-4o", "gpt-4o-2024-08-06", false},
		{"gpt-4o-2024-05-13", "gpt-4o-2024-08-06", false}, {"", "", false}, {"gpt-4o", "", false},
	} {
		got := Answers(one.reported, one.configured)
		must.Hold(t, got == one.want, "%+v: %t", one, got)
	}
}
