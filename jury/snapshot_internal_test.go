package jury

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestIsModel: a dated snapshot of a model counts as that model; another name with the same beginning does not.
func TestIsModel(t *testing.T) {
	for _, pair := range [][2]string{{"gpt-4o", "gpt-4o"}, {"gpt-4o-2024-11-20", "gpt-4o"}, {"claude-haiku-4-5-20251001", "claude-haiku-4-5"},
		{"claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"}, {"gemini-2.0-flash-001", "gemini-2.0-flash"}, {"gpt-4-0613", "gpt-4"},
		{"claude-sonnet-4@20250514", "claude-sonnet-4"}, {"command-r-08-2024", "command-r"}, {"mistral-large-2407", "mistral-large-latest"},
		{"gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview"}, {"llama3:latest", "llama3"}, {"x-latest", "x-latest"},
		{"gpt-4o", "openai/gpt-4o"}, {"openai/gpt-4o", "openai/gpt-4o"}, {"openai/gpt-4o-2024-11-20", "openai/gpt-4o"}, {"gpt-4o-2024-11-20", "openrouter/openai/gpt-4o"},
		{"gpt-4o-2024-11-20", "openai/gpt-4o-2024-11-20"}, {"gpt-4o", "gpt-4o:free"}, {"openai/gpt-4o", "openai/gpt-4o:free"}, {"gpt-4o-2024-11-20", "openai/gpt-4o:nitro"},
		{"meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct:fireworks-ai"}, {"gemini-2.5-flash", "models/gemini-2.5-flash"},
		{"mistral-small-2503", "mistralai/mistral-small-latest"}, {"claude-haiku-4-5-20251001", "anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"claude-haiku-4-5-20251001", "us.anthropic.claude-haiku-4-5-20251001-v1:0"}, {"anthropic.claude-haiku-4-5-20251001-v1:0", "global.anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"claude-sonnet-4-5-20250929", "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"}, {"nova-lite", "us-gov.amazon.nova-lite-v1:0"},
		{"claude-3-haiku-20240307", "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0"},
		{"llama3.1:70b", "ollama/llama3.1:70b"}, {"ft:gpt-4o-mini-2024-07-18:acme::A1", "ft:gpt-4o-mini-2024-07-18:acme::A1"}} {
		if !IsModel(pair[0], pair[1]) {
			t.Errorf("%s is not %s", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"gpt-4o-mini", "gpt-4o"}, {"gpt-4o-mini-2024-07-18", "gpt-4o"}, {"gpt-4o-audio-preview", "gpt-4o"}, {"gpt-4o", ""}, {"", ""},
		{"-2024-11-20", "-latest"}, {"gemini-2.5-flash-lite", "gemini-2.5-flash"}, {"llama3:8b", "llama3"}, {"gpt-4o2024-11-20", "gpt-4o"}, {"m-2024-13-20", "m"},
		{"m-405", "m"}, {"m-2024-11-20x", "m"}, {"m-2024-11-20\n", "m"}, {"gpt-4", "gpt-4o"}, {"o1-pro", "o1"}, {"m-1350", "m"},
		{"gpt-4o-mini", "openai/gpt-4o"}, {"gpt-4o-mini:free", "gpt-4o:free"}, {"gpt-4o-2024-05-13", "openai/gpt-4o-2024-11-20"}, {"gpt-4o", "openai/gpt-4o-2024-11-20"},
		{"gpt-4o", "gpt-4o:2024-11-20"}, {"gpt-4o-2024-05-13", "gpt-4o:2024-11-20"}, {"azure/gpt-4o", "openai/gpt-4o"}, {"openai/gpt-4o", "gpt-4o"}, {"gpt-4o:free", "gpt-4o"},
		{"llama3.1", "llama3.1:70b"}, {"llama3.1:8b", "llama3.1:70b"}, {"llama3.1:8b", "ollama/llama3.1:70b"}, {"1", "gpt-4.1"}, {"4o", "openai/gpt-4.4o"},
		{"claude-haiku-4-5", "anthropic.claude-haiku-4-5-20251001-v1:0"}, {"claude-haiku-4-5-20250101", "us.anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"claude-opus-4-5-20251101", "anthropic.claude-haiku-4-5-20251001-v1:0"}, {"meta.claude-haiku-4-5-20251001-v1:0", "anthropic.claude-haiku-4-5-20251001-v1:0"},
		{"ft:gpt-4o-mini-2024-07-18", "ft:gpt-4o-mini-2024-07-18:acme::A1"}, {"ft:gpt-4o-mini-2024-07-18", "ft:gpt-4o-mini-2024-07-18:acme"}, {"", "openai/"}, {"-2024-11-20", "openai/"}, {"", "openai/:free"}, {"2024-11-20", "a."}} {
		if IsModel(pair[0], pair[1]) {
			t.Errorf("%s passes for %s", pair[0], pair[1])
		}
	}
}

// TestIsSnapshot compares the forms of versions with a regular expression: every text of up to four digits with
// separators, and dates at each border.
func TestIsSnapshot(t *testing.T) {
	want := regexp.MustCompile(`^(?:@[0-9A-Za-z._-]+|[-:](?:latest|20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])|20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])|(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[1-9]|1[0-2])-20[0-9]{2}|(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])|[2-9][0-9](?:0[1-9]|1[0-2])|0[0-9]{2}))?$`)
	var texts []string
	for n := range 100_000 {
		for _, width := range []int{1, 2, 3, 4, 5} {
			texts = append(texts, fmt.Sprintf("-%0*d", width, n))
		}
	}
	parts := []string{"", "00", "01", "09", "10", "12", "13", "19", "20", "29", "30", "31", "32", "99", "-", "1999", "2000", "2024", "2099", "2100", "0x", "+1", "é", "/0", "0:"}
	for _, separator := range []string{"-", ":", "@", "", "_", "--"} {
		for _, a := range parts {
			for _, b := range parts {
				for _, c := range parts {
					texts = append(texts, separator+a+b+c, separator+strings.Join([]string{a, b, c}, "-"))
				}
			}
		}
		texts = append(texts, separator+"latest", separator+"latest\n", separator+"mini", separator+"2024-11-20\n", separator+"preview-1.5_b", separator+"a b")
	}
	matched := 0
	for _, text := range texts {
		if got := isSnapshot(text); got != want.MatchString(text) {
			t.Errorf("isSnapshot(%q) = %v", text, got)
		} else if got {
			matched++
		}
	}
	if matched < 5_000 {
		t.Errorf("only %d of %d texts are versions", matched, len(texts))
	}
}
