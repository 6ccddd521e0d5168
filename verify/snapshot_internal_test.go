package verify

import "testing"

// TestIsModel: a snapshot is the model that was configured; what only begins like it is another.
func TestIsModel(t *testing.T) {
	for _, pair := range [][2]string{{"gpt-4o", "gpt-4o"}, {"gpt-4o-2024-11-20", "gpt-4o"}, {"claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"}, {"gemini-2.0-flash-001", "gemini-2.0-flash"}, {"gpt-4-0613", "gpt-4"},
		{"claude-sonnet-4@20250514", "claude-sonnet-4"}, {"command-r-08-2024", "command-r"}, {"mistral-large-2407", "mistral-large-latest"},
		{"gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview"}, {"llama3:latest", "llama3"}, {"x-latest", "x-latest"}} {
		if !IsModel(pair[0], pair[1]) {
			t.Errorf("%s is not %s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"gpt-4o-mini", "gpt-4o"}, {"gpt-4o-mini-2024-07-18", "gpt-4o"}, {"gpt-4o-audio-preview", "gpt-4o"}, {"gpt-4o", ""}, {"", ""},
		{"-2024-11-20", "-latest"}, {"gemini-2.5-flash-lite", "gemini-2.5-flash"}, {"llama3:8b", "llama3"}, {"gpt-4o2024-11-20", "gpt-4o"}, {"m-2024-13-20", "m"},
		{"m-405", "m"}, {"m-2024-11-20x", "m"}, {"m-2024-11-20\n", "m"}, {"gpt-4", "gpt-4o"}, {"o1-pro", "o1"}, {"m-1350", "m"}} {
		if IsModel(pair[0], pair[1]) {
			t.Errorf("%s passes for %s", pair[0], pair[1])
		}
	}
}
