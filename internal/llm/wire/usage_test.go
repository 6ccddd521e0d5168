package wire

import "testing"

func TestReadUsage(t *testing.T) {
	for _, test := range []struct {
		name, reported string
		want           Usage
		known          bool
	}{
		{"chat", `{"prompt_tokens":10,"completion_tokens":3,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":4}}`, Usage{Input: 10, Cached: 4, Output: 3}, true},
		{"chat, reasoning apart", `{"prompt_tokens":10,"completion_tokens":3,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":5}}`, Usage{Input: 10, Output: 8, Reasoning: 5}, true},
		{"responses", `{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}`, Usage{Input: 10, Cached: 4, Output: 3}, true},
		{"messages", `{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":3}`, Usage{Input: 16, Cached: 4, Output: 3}, true},
		{"gemini", `{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2}`, Usage{Input: 10, Output: 5, Reasoning: 2}, true},
		{"Codex CLI", `{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2,"reasoning_output_tokens":1,"total_tokens":12}`, Usage{Input: 10, Cached: 4, Output: 2, Reasoning: 1}, true},
		{"promptfoo", `{"total":12,"prompt":10,"completion":2}`, Usage{Input: 10, Output: 2}, true},
		{"unknown words", `{"words":10}`, Usage{}, false},
		{"no numbers", `{"prompt_tokens":"many"}`, Usage{}, false},
		{"fewer than none", `{"prompt_tokens":-1,"completion_tokens":3}`, Usage{}, false},
		{"more from the cache than there were", `{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}`, Usage{}, false},
		{"more than any call has", `{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807}`, Usage{}, false},
		{"no object", `[1]`, Usage{}, false},
		{"nothing", ``, Usage{}, false},
	} {
		if got, known := ReadUsage([]byte(test.reported)); got != test.want || known != test.known {
			t.Errorf("%s: %+v, %v; want %+v, %v", test.name, got, known, test.want, test.known)
		}
	}
}
