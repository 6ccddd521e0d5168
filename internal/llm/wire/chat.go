package wire

import "github.com/go-json-experiment/json/jsontext"

// A ChatRequest is the body of POST /v1/chat/completions of OpenAI and of the servers that speak its protocol.
type ChatRequest struct {
	Model          string        `json:"model"`
	Messages       []ChatMessage `json:"messages"`
	ResponseFormat *ChatFormat   `json:"response_format,omitzero"`
	Temperature    *float64      `json:"temperature,omitzero"`
	TopP           *float64      `json:"top_p,omitzero"`
	Seed           *int64        `json:"seed,omitzero"`
	MaxTokens      int           `json:"max_tokens,omitzero"` // most other servers do not know OpenAI's newer name, max_completion_tokens
	Stream         bool          `json:"stream"`
}

// A ChatMessage is one turn.
type ChatMessage struct {
	Role    string  `json:"role"` // system, developer, user, assistant or tool
	Content Content `json:"content"`
}

// A ChatFormat is the form that the answer must have.
type ChatFormat struct {
	Type       string      `json:"type"` // json_object or json_schema
	JSONSchema *ChatSchema `json:"json_schema,omitzero"`
}

// A ChatSchema is a JSON Schema that an answer must keep to.
type ChatSchema struct {
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

// A ChatAnswer is the answer to a ChatRequest.
type ChatAnswer struct {
	Model             string         `json:"model"`
	SystemFingerprint string         `json:"system_fingerprint"`
	Choices           []ChatChoice   `json:"choices"`
	Usage             ChatUsage      `json:"usage"`
	Error             jsontext.Value `json:"error"` // gateways put an upstream error into a successful answer
}

// A ChatChoice is one of the answers.
type ChatChoice struct {
	FinishReason string `json:"finish_reason"` // stop, length, content_filter, tool_calls
	Message      struct {
		Content   Content        `json:"content"`
		Refusal   string         `json:"refusal"`
		ToolCalls []ChatToolCall `json:"tool_calls"`
	} `json:"message"`
}

// A ChatToolCall is the model's request to call a function.
type ChatToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // function
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON as the model wrote it; it may be invalid
	} `json:"function"`
}

// ChatUsage counts tokens.
type ChatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
