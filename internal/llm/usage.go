package llm

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// ReadUsage reads the counts that a provider reported, in the words of any of them. It reports false if it knows none of the words.
func ReadUsage(reported jsontext.Value) (u Usage, known bool) {
	var there map[string]jsontext.Value
	if json.Unmarshal(reported, &there) != nil {
		return Usage{}, false
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if v, is := there[name]; is && v.Kind() == '0' {
				return true
			}
		}
		return false
	}
	switch {
	case has("prompt_tokens", "completion_tokens"):
		u, known = readAs(reported, chatUsage)
	case has("promptTokenCount", "candidatesTokenCount"):
		u, known = readAs(reported, generateUsage)
	case has("cache_read_input_tokens", "cache_creation_input_tokens"):
		u, known = readAs(reported, messagesUsage)
	case has("cached_input_tokens"): // as the Codex CLI counts
		u, known = readAs(reported, codexUsage)
	case has("prompt", "completion"): // as promptfoo counts
		u, known = readAs(reported, promptfooUsage)
	case has("input_tokens", "output_tokens"): // Anthropic's without a cache reads the same
		u, known = readAs(reported, responsesUsage)
	}
	if u.Input < 0 || u.Cached < 0 || u.Output < 0 || u.Cached > u.Input || u.Input > mostTokens || u.Output > mostTokens {
		return Usage{}, false
	}
	return u, known
}

// mostTokens is more than any call has. What claims more would only make sums overflow.
const mostTokens = 1 << 36

func readAs[W any](reported jsontext.Value, read func(W) Usage) (Usage, bool) {
	var w W
	if json.Unmarshal(reported, &w) != nil {
		return Usage{}, false
	}
	return read(w), true
}

func messagesUsage(u wire.MessagesUsage) Usage {
	return Usage{
		Input:     u.Input + u.CacheRead + u.CacheCreation, // Anthropic counts these apart
		Cached:    u.CacheRead,
		Output:    u.Output,
		Reasoning: u.OutputDetails.Thinking,
	}
}

func responsesUsage(u wire.ResponsesUsage) Usage {
	return Usage{Input: u.Input, Cached: u.InputDetails.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning}
}

// codexCounts are the counts in the session files of the Codex CLI.
type codexCounts struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func codexUsage(u codexCounts) Usage {
	return Usage(u)
}

// promptfooCounts are the counts in results of promptfoo.
type promptfooCounts struct {
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
}

func promptfooUsage(u promptfooCounts) Usage { return Usage{Input: u.Prompt, Output: u.Completion} }
