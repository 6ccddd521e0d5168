package observe

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestCount: counts of every protocol, and what is none.
func TestCount(t *testing.T) {
	for _, c := range []struct {
		protocol, usage string
		want            Tokens
		ok              bool
	}{
		{OpenAIChat, `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":6}}`, Tokens{10, 6, 4}, true},
		{OpenAIChat, `{"prompt_tokens":10,"completion_tokens":4,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":3}}`, Tokens{10, 0, 7}, true},
		{OpenAIResponses, `{"input_tokens":10,"input_tokens_details":{"cached_tokens":2},"output_tokens":5}`, Tokens{10, 2, 5}, true},
		{AnthropicMessages, `{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5,"output_tokens":6}`, Tokens{12, 4, 6}, true},
		{GeminiGenerate, `{"promptTokenCount":3,"toolUsePromptTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":7}`, Tokens{4, 0, 9}, true},
		{OpenAIChat, ``, Tokens{}, false},
		{OpenAIChat, `{}`, Tokens{}, false},
		{OpenAIChat, `{"prompt_tokens":"10"}`, Tokens{}, false},
		{OpenAIChat, `{"prompt_tokens":-1,"completion_tokens":4}`, Tokens{}, false},
		{OpenAIChat, `{"prompt_tokens":9007199254740991,"completion_tokens":4}`, Tokens{}, false},
		{OpenAIChat, `{"prompt_tokens":1,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}`, Tokens{}, false},
		{"otlp", `{"input_tokens":2,"output_tokens":3}`, Tokens{2, 0, 3}, true},
		{"mcp/2026-07-28", `{"prompt_tokens":10,"completion_tokens":4}`, Tokens{}, false},
	} {
		var usage jsontext.Value
		if c.usage != "" {
			usage = jsontext.Value(c.usage)
		}
		if got, ok := Count(c.protocol, usage); got != c.want || ok != c.ok {
			t.Errorf("%s %s: %+v %v", c.protocol, c.usage, got, ok)
		}
	}
	if got := (Tokens{1 << 53, 0, 1}).Plus(Tokens{5, 2, 1}); got != (Tokens{1 << 53, 2, 2}) {
		t.Errorf("the sum is %+v", got)
	}
}
