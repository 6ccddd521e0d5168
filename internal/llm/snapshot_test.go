package llm

import "testing"

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
