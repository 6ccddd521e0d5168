package convo

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A ChatRequest is the body of POST /v1/chat/completions of OpenAI and of the servers that speak its protocol.
type ChatRequest struct {
	Model          string        `json:"model"`
	Messages       []ChatMessage `json:"messages"`
	ResponseFormat *ChatFormat   `json:"response_format,omitzero"`
	Temperature    *float64      `json:"temperature,omitzero"`
	TopP           *float64      `json:"top_p,omitzero"`
	Seed           *int64        `json:"seed,omitzero"`
	MaxTokens      int           `json:"max_tokens,omitzero"`
	Stream         bool          `json:"stream"`

	MaxCompletionTokens int `json:"max_completion_tokens,omitzero"` // OpenAI's newer name of MaxTokens, which most other servers do not know
}

// A ChatMessage is one turn, or the message of an answer.
type ChatMessage struct {
	Role         string         `json:"role"` // system, developer, user, assistant, tool or the older function
	Content      Content        `json:"content"`
	Name         string         `json:"name,omitzero"`
	Refusal      string         `json:"refusal,omitzero"`
	ToolCalls    []ChatToolCall `json:"tool_calls,omitzero"`
	FunctionCall *ChatFunction  `json:"function_call,omitzero"` // the older form of one tool call
	ToolCallID   string         `json:"tool_call_id,omitzero"`  // of a tool's result

	// The model's thinking, as servers beside OpenAI report it, under one name or both.
	ReasoningContent string `json:"reasoning_content,omitzero"`
	Reasoning        string `json:"reasoning,omitzero"`

	// What only some answers have. It is not read here, so that another form of it hides nothing else.
	Audio    jsontext.Value `json:"audio,omitzero"`          // what the model speaks: ChatAudio; in a request, its id
	Images   jsontext.Value `json:"images,omitzero"`         // that the model made: an array of parts; of OpenRouter
	Executed jsontext.Value `json:"executed_tools,omitzero"` // an array of ChatExecuted; of Groq
}

// ChatAudio is what the model speaks.
type ChatAudio struct {
	ID         string `json:"id,omitzero"`
	Data       string `json:"data,omitzero"` // in base64
	Transcript string `json:"transcript,omitzero"`
}

// ChatExecuted is a tool that the server ran, and what that returned.
type ChatExecuted struct {
	Index     int            `json:"index"`
	Type      string         `json:"type"`
	Arguments Arguments      `json:"arguments,omitzero"`
	Output    jsontext.Value `json:"output,omitzero"`
	Raw       jsontext.Value `json:",embed"` // all other members: results of a search and more
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
	ID                string         `json:"id"`
	Model             string         `json:"model"`
	SystemFingerprint string         `json:"system_fingerprint"`
	Choices           []ChatChoice   `json:"choices"`
	Usage             jsontext.Value `json:"usage"` // as reported; ChatUsage has the counts
	Error             jsontext.Value `json:"error"` // gateways put an upstream error into a successful answer
}

// A ChatChoice is one of the answers.
type ChatChoice struct {
	Index        int            `json:"index"`
	FinishReason string         `json:"finish_reason"` // stop, length, content_filter, tool_calls
	Message      ChatMessage    `json:"message"`
	Error        jsontext.Value `json:"error"` // of OpenRouter: why this answer failed
}

// A ChatToolCall is the model's request to call a function, or a tool that takes a free text.
type ChatToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function or custom
	Function ChatFunction `json:"function,omitzero"`
	Custom   ChatCustom   `json:"custom,omitzero"`
}

// A ChatFunction is a function and what it is called with.
type ChatFunction struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// A ChatCustom is a tool that takes a free text, and that text.
type ChatCustom struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// Arguments is JSON as the model wrote it; it may be invalid. It travels inside a string. Some servers write the value itself.
type Arguments string

// UnmarshalJSONFrom reads a string, or the text of any other value. A null means no arguments.
func (a *Arguments) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case jsontext.KindString:
		return json.UnmarshalDecode(d, (*string)(a))
	case jsontext.KindNull:
		*a = ""
		return d.SkipValue()
	}
	v, err := d.ReadValue()
	*a = Arguments(v)
	return err
}

// ChatUsage counts tokens.
type ChatUsage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	Total         int64 `json:"total_tokens"`
	PromptDetails struct {
		Cached int64 `json:"cached_tokens"`
		OpenAIDetails
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64          `json:"reasoning_tokens"`
		Audio     jsontext.Value `json:"audio_tokens"`
	} `json:"completion_tokens_details"`
}

// An OpenAIError is an error of OpenAI, or of a server that speaks its protocol.
type OpenAIError struct {
	Code    string // such as rate_limit_exceeded; "" if a server repeats the HTTP status here
	Type    string
	Message string
}

// openAIError has every member that one of these servers uses. Some have an envelope, and a code is a word or a
// number.
type openAIError struct {
	Error   jsontext.Value `json:"error"` // an object, or only the message
	Code    jsontext.Value `json:"code"`
	Type    jsontext.Value `json:"type"`
	Message jsontext.Value `json:"message"`
	Detail  jsontext.Value `json:"detail"`
}

// ReadOpenAIError reads an error's body. It reports false for a body that is not a JSON object, or an array of one, as Google's server sends it.
func ReadOpenAIError(body []byte) (OpenAIError, bool) {
	var outer openAIError
	if json.Unmarshal(body, &outer) != nil {
		var list []openAIError
		if json.Unmarshal(body, &list) != nil || len(list) != 1 {
			return OpenAIError{}, false
		}
		outer = list[0]
	}
	inner := outer
	if outer.Error.Kind() == jsontext.KindBeginObject {
		inner = openAIError{}
		if json.Unmarshal(outer.Error, &inner) != nil {
			return OpenAIError{}, false
		}
	}
	said := OpenAIError{Code: word(inner.Code), Type: word(inner.Type), Message: word(inner.Message)}
	for _, other := range []jsontext.Value{inner.Error, inner.Detail} {
		if said.Message == "" {
			said.Message = word(other)
		}
	}
	return said, true
}

// word returns the text of a JSON string; "" for other values.
func word(v jsontext.Value) string {
	var s string
	if v.Kind() != jsontext.KindString || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
