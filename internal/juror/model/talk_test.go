package model

import (
	"context"
	"errors"
	"strings"
	"testing"

	"jurat/internal/llm"
	"jurat/internal/must"
	"jurat/jury"
)

// TestErrorsOfModels: each kind of error leads to the right absence, after the right number of calls.
func TestErrorsOfModels(t *testing.T) {
	c := talked(t, plainWords)
	cutOff := llm.Answer{Text: `{"findings":[`, Model: "model-1", FinishReason: "length", Usage: llm.Usage{Input: 10, Output: 500}}
	for name, tt := range map[string]struct {
		err   error
		calls int
		is    error
		says  string
	}{
		"refused":           {llm.Fail(llm.Refused, 200, "SAFETY"), 1, jury.ErrBlocked, "refused (HTTP status 200): SAFETY"},
		"timed out":         {llm.Fail(llm.TimedOut, 0, "no answer within 1m"), 1, context.DeadlineExceeded, "timed out"},
		"rate limited":      {llm.Fail(llm.RateLimited, 429, "slow down"), 1, nil, "rate limited (HTTP status 429): slow down"},
		"unauthorised":      {llm.Fail(llm.Unauthorised, 401, "no key"), 1, nil, "unauthorised"},
		"unavailable":       {llm.Fail(llm.Unavailable, 503, ""), 1, nil, "unavailable"},
		"not taken":         {llm.Fail(llm.Malformed, 400, "no such parameter"), 1, nil, "no such parameter"},
		"malformed":         {llm.Fail(llm.Malformed, 200, "not the protocol"), 3, jury.ErrInvalid, "not the protocol"},
		"question too long": {llm.Fail(llm.TooLong, 400, "window"), 1, nil, "too long"},
		"answer too long":   {&llm.Error{Kind: llm.TooLong, Answer: cutOff}, 3, jury.ErrInvalid, "too long"},
		"something else":    {errDown, 1, errDown, "down"},
	} {
		m := &scripted{say: func(llm.Question, int) (llm.Answer, error) { return llm.Answer{}, tt.err }}
		_, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", c)))
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || len(m.asked) != tt.calls {
			t.Errorf("%s: %v after %d calls", name, err, len(m.asked))
		}
		for _, kind := range []error{jury.ErrBlocked, jury.ErrInvalid, context.DeadlineExceeded} {
			if errors.Is(err, kind) && !errors.Is(tt.is, kind) {
				t.Errorf("%s: %v is %v as well", name, err, kind)
			}
		}
		if effort := effortOf(t, origin); len(effort.Attempts) != tt.calls || effort.Attempts[0].Problem == "" {
			t.Errorf("%s: %+v", name, effort)
		}
	}
}

// TestCutOffAnswers: a juror whose answer was cut off is told so and sees its answer. After an empty answer, it gets the
// same question.
func TestCutOffAnswers(t *testing.T) {
	c := talked(t, plainWords)
	for said, messages := range map[string]int{`{"findings":[`: 3, "": 1} {
		m := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
			if n == 0 {
				return llm.Answer{}, &llm.Error{Kind: llm.TooLong, Answer: llm.Answer{Text: said, Usage: llm.Usage{Output: 500}}}
			}
			return answered(q, text(t, opinion(jury.SafePass, 80))), nil
		}}
		o, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", c)))
		if err != nil || o.TotalScore != 80 || len(m.asked[1].Messages) != messages {
			t.Errorf("%q: %v, %+v", said, err, m.asked[1].Messages[1:])
		}
		if a := effortOf(t, origin).Attempts[0]; a.Problem != "too long" || a.Answer != said || a.Cost != 5000 {
			t.Errorf("%q: %+v", said, a)
		}
	}
}

// TestCancelled: after a cancellation the juror returns that error, and makes no further call.
func TestCancelled(t *testing.T) {
	c := talked(t, plainWords)
	ctx, cancel := context.WithCancel(t.Context())
	m := &scripted{say: func(q llm.Question, n int) (llm.Answer, error) {
		if n == 0 {
			return answered(q, text(t, opinion(jury.UnsafeFail, 20))), nil // to be asked about
		}
		cancel()
		return llm.Answer{}, ctx.Err()
	}}
	_, err := seat(t, m).Answer(ctx, seated(t, "x", c))
	if !errors.Is(err, context.Canceled) || len(m.asked) != 2 {
		t.Errorf("%v after %d calls", err, len(m.asked))
	}
}

// TestBudget: money is reserved before each call and settled after it. Without enough money, no call is made.
func TestBudget(t *testing.T) {
	c := talked(t, plainWords)
	good, doubtful := text(t, opinion(jury.SafePass, 80)), text(t, opinion(jury.UnsafeFail, 20))
	b := seated(t, "x", c)
	q := must.Get(Prompt(b))(t)
	estimate := q.Estimate(500).Input + 5000 // at one dollar per million read and ten per million written
	for name, tt := range map[string]struct {
		left    int64
		say     func(q llm.Question, n int) (llm.Answer, error)
		calls   int
		settled int64 // by the first call
		is      error
	}{
		"enough":           {estimate, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, good), nil }, 1, 2000, nil},
		"none":             {estimate - 1, nil, 0, 0, jury.ErrCeiling},
		"not for a second": {estimate + 1999, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, "no"), nil }, 1, 2000, jury.ErrCeiling},
		"not to ask about": {estimate, func(q llm.Question, _ int) (llm.Answer, error) { return answered(q, doubtful), nil }, 1, 2000, nil},
		"cut on the way": {estimate, func(llm.Question, int) (llm.Answer, error) {
			return llm.Answer{}, llm.Fail(llm.Unavailable, 0, "reset")
		}, 1, estimate, nil},
		"refused by status": {estimate, func(llm.Question, int) (llm.Answer, error) { return llm.Answer{}, llm.Fail(llm.Unauthorised, 401, "") }, 1, 0, nil},
		"blocked, and read": {estimate, func(llm.Question, int) (llm.Answer, error) {
			return llm.Answer{}, &llm.Error{Kind: llm.Refused, Answer: llm.Answer{Usage: llm.Usage{Input: 9}}}
		}, 1, 9, jury.ErrBlocked},
		"a model that fails": {estimate, func(llm.Question, int) (llm.Answer, error) { panic("out of order") }, 1, estimate, nil},
	} {
		money, m := llm.NewPurse(tt.left, 0), &scripted{say: tt.say}
		j, err := New(Config{Model: m, Settings: llm.Settings{Model: "model-1", MaxTokens: 500}, Prices: llm.Prices{{Model: "model-1", Input: 1, Output: 10}}, Budget: money})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { _ = recover() }()
			_, err = j.Answer(t.Context(), b)
		}()
		if len(m.asked) != tt.calls || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v after %d calls", name, err, len(m.asked))
		}
		if money.Spent() != tt.settled {
			t.Errorf("%s: %d spent, want %d", name, money.Spent(), tt.settled)
		}
		if _, err := money.Reserve(tt.left - tt.settled); err != nil {
			t.Errorf("%s: what was set aside has not come back: %v", name, err)
		}
	}
}

func TestSeatsThatCannotBe(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("New accepted a juror without a model")
	}
	if _, err := New(Config{Model: says(""), Settings: llm.Settings{Model: "m"}, Budget: llm.NewPurse(1, 0)}); err == nil || !strings.Contains(err.Error(), `"m"`) {
		t.Errorf("a budget without a price: %v", err)
	}
}

// TestWhatProvidersReportIsBounded: values that a provider reports are limited, so that the act can always be sealed.
func TestWhatProvidersReportIsBounded(t *testing.T) {
	m := &scripted{say: func(llm.Question, int) (llm.Answer, error) {
		return llm.Answer{Text: strings.Repeat("é\xff", 20000), Model: "m\x00\xff", FinishReason: strings.Repeat("x", 9999),
			Usage: llm.Usage{Input: 1 << 62, Output: -5}}, nil
	}}
	_, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", talked(t, plainWords))))
	if !errors.Is(err, jury.ErrInvalid) {
		t.Fatal(err)
	}
	a := effortOf(t, origin).Attempts[0]
	if len(a.Answer) > maxRecorded || len(a.Answer) < maxRecorded-4 || a.InputTokens != largestCounted || a.OutputTokens != 0 || len(a.FinishReason) > 400 || a.Model != "m \uFFFD" {
		t.Errorf("%d bytes, %+v", len(a.Answer), a.Model)
	}
}

// TestModelAndVersion: the record has the model's name and the snapshot that the provider reports, apart. The same holds
// if the provider's filter blocked the answer.
func TestModelAndVersion(t *testing.T) {
	c := talked(t, plainWords)
	for _, tt := range []struct{ configured, reported, fingerprint, model, version string }{
		{"model-1", "model-1", "", "model-1", ""},
		{"model-1", "model-1", "fp", "model-1", "fp"},
		{"model-1", "model-1-2026-01-02", "", "model-1", "model-1-2026-01-02"},
		{"model-1", "model-1-20260102", "fp", "model-1", "model-1-20260102"},
		{"model-1-2026-01-02", "model-1-2026-01-02", "", "model-1-2026-01-02", "model-1-2026-01-02"},
		{"model-1-2026-01-02", "model-1-2025-01-01", "", "model-1", "model-1-2025-01-01"},
		{"model-1", "model-1-mini", "", "model-1-mini", ""},
		{"model-1", "model-1-mini-2026-01-02", "", "model-1-mini", "model-1-mini-2026-01-02"},
		{"model-1", "", "", "", ""},
	} {
		for _, blocked := range []bool{false, true} {
			m := &scripted{say: func(q llm.Question, _ int) (llm.Answer, error) {
				a := answered(q, text(t, opinion(jury.SafePass, 80)))
				a.Model, a.Version = tt.reported, tt.fingerprint
				if blocked {
					return llm.Answer{}, &llm.Error{Kind: llm.Refused, Detail: "SAFETY", Answer: a}
				}
				return a, nil
			}}
			j := must.Get(New(Config{Model: m, Settings: llm.Settings{Model: tt.configured}}))(t)
			_, origin, err := opinionOf(j.Answer(t.Context(), seated(t, "x", c)))
			if (err != nil) != blocked || blocked && !errors.Is(err, jury.ErrBlocked) || origin.Model != tt.model || origin.ModelVersion != tt.version {
				t.Errorf("%+v, blocked %t: %q, %q, %v", tt, blocked, origin.Model, origin.ModelVersion, err)
			}
			if a := effortOf(t, origin).Attempts[0]; a.Model != tt.reported || a.Version != tt.fingerprint {
				t.Errorf("%+v: %+v", tt, a)
			}
		}
	}
}
