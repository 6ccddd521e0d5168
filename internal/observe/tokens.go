package observe

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm/wire"
)

// Tokens are what a call consumed, by the provider's count.
type Tokens struct {
	Input  int64 `json:"input"`           // tokens read, cached ones included
	Cached int64 `json:"cached,omitzero"` // of these, tokens read from the provider's cache
	Output int64 `json:"output"`          // tokens written, reasoning included
}

// Plus returns the sum.
func (t Tokens) Plus(o Tokens) Tokens {
	return Tokens{add(t.Input, o.Input), add(t.Cached, o.Cached), add(t.Output, o.Output)}
}

// mostTokens is more than any call consumes. What providers report may be anything.
const mostTokens = 1 << 40

func add(a, b int64) int64 { return min(a+b, 1<<53) }

// Count reads the usage that a provider reported. It reports false if the protocol is unknown, or if there are no counts that can be true.
func Count(protocol string, usage jsontext.Value) (t Tokens, ok bool) {
	if usage == nil {
		return t, false
	}
	switch protocol {
	case OpenAIChat:
		var u wire.ChatUsage
		ok = json.Unmarshal(usage, &u) == nil
		t = Tokens{u.Prompt, u.PromptDetails.Cached, u.Completion}
		if u.Total == u.Prompt+u.Completion+u.CompletionDetails.Reasoning { // a server that counts them apart
			t.Output += u.CompletionDetails.Reasoning
		}
	case OpenAIResponses, OTLP: // OpenTelemetry gives its counts the same names
		var u wire.ResponsesUsage
		ok = json.Unmarshal(usage, &u) == nil
		t = Tokens{u.Input, u.InputDetails.Cached, u.Output}
	case AnthropicMessages:
		var u wire.MessagesUsage
		ok = json.Unmarshal(usage, &u) == nil
		t = Tokens{u.Input + u.CacheRead + u.CacheCreation, u.CacheRead, u.Output}
	case GeminiGenerate:
		var u wire.GenerateUsage
		ok = json.Unmarshal(usage, &u) == nil
		t = Tokens{u.Prompt + u.ToolUse, u.Cached, u.Candidates + u.Thoughts}
	}
	for _, n := range []int64{t.Input, t.Cached, t.Output} {
		ok = ok && n >= 0 && n <= mostTokens
	}
	if ok = ok && t.Cached <= t.Input && t != (Tokens{}); !ok {
		return Tokens{}, false
	}
	return t, true
}
