package llm

import (
	"errors"
	"sync"
	"testing"

	"jurat/internal/must"
)

func TestPurse(t *testing.T) {
	p := NewPurse(100, 30)
	first := must.Get(p.Reserve(40))(t)
	if _, err := p.Reserve(31); !errors.Is(err, ErrSpent) {
		t.Errorf("reserving 31 when 30 are left: %v", err)
	}
	second, err := p.Reserve(30)
	if err != nil {
		t.Fatalf("the last 30: %v", err)
	}
	if _, err := p.Reserve(1); !errors.Is(err, ErrSpent) {
		t.Errorf("one more: %v", err)
	}
	first(10)
	first(10) // a second settlement has no effect
	if p.Spent() != 40 {
		t.Errorf("%d spent, want 40", p.Spent())
	}
	if _, err := p.Reserve(31); !errors.Is(err, ErrSpent) {
		t.Errorf("reserving 31 with 40 spent and 30 reserved: %v", err)
	}
	second(80) // more than was reserved
	if _, err := p.Reserve(0); !errors.Is(err, ErrSpent) || p.Spent() != 120 {
		t.Errorf("beyond the ceiling: %v, %d spent", err, p.Spent())
	}
}

// TestPurseOfNegativeNumbers: a negative reservation or settlement does not increase the money.
func TestPurseOfNegativeNumbers(t *testing.T) {
	p := NewPurse(10, 0)
	settle := must.Get(p.Reserve(-50))(t)
	settle(-50)
	if _, err := p.Reserve(11); !errors.Is(err, ErrSpent) || p.Spent() != 0 {
		t.Errorf("%v, %d spent", err, p.Spent())
	}
}

func TestPurseWithoutCeiling(t *testing.T) {
	p := NewPurse(0, 0)
	settle := must.Get(p.Reserve(1 << 60))(t)
	settle(7)
	if p.Spent() != 7 {
		t.Errorf("%d spent", p.Spent())
	}
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
	if spent := p.Spent(); spent > 1000 || spent < 994 {
		t.Errorf("%d spent of 1000", spent)
	}
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
		if model, snapshot := Snapshot(reported); model != want[0] || snapshot != want[1] {
			t.Errorf("%q: %q, %q, want %q", reported, model, snapshot, want)
		}
	}
	for _, one := range []struct {
		reported, configured string
		want                 bool
	}{
		{"gpt-4o", "gpt-4o", true}, {"gpt-4o-2024-08-06", "gpt-4o", true}, {"gpt-4o-2024-08-06", "gpt-4o-2024-08-06", true},
		{"gpt-4o-mini", "gpt-4o", false}, {"gpt-4o-mini-2024-07-18", "gpt-4o", false}, {"gpt-4o", "gpt-4o-2024-08-06", false},
		{"gpt-4o-2024-05-13", "gpt-4o-2024-08-06", false}, {"", "", false}, {"gpt-4o", "", false},
	} {
		if got := Answers(one.reported, one.configured); got != one.want {
			t.Errorf("%+v: %t", one, got)
		}
	}
}
