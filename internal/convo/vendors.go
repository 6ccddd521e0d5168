package convo

import (
	"cmp"
	"slices"

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

// A ChatMessage is one turn of a request.
type ChatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A ChatFormat is the form that the answer must have.
type ChatFormat struct {
	Type       string        `json:"type"` // json_object or json_schema
	JSONSchema *SchemaFormat `json:"json_schema,omitzero"`
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

// A ResponsesRequest is the body of POST /v1/responses of OpenAI.
type ResponsesRequest struct {
	Model           string        `json:"model"`
	Instructions    string        `json:"instructions,omitzero"`
	Input           []ChatMessage `json:"input"`
	Store           *bool         `json:"store,omitzero"` // OpenAI's default is true
	Temperature     *float64      `json:"temperature,omitzero"`
	TopP            *float64      `json:"top_p,omitzero"`
	MaxOutputTokens int           `json:"max_output_tokens,omitzero"`
	Text            Formatted     `json:"text,omitzero"`
	Stream          bool          `json:"stream,omitzero"`
}

// Formatted is the form that the answer must have.
type Formatted struct {
	Format *SchemaFormat `json:"format,omitzero"`
}

// A SchemaFormat is a JSON Schema that an answer must keep to.
type SchemaFormat struct {
	Type   string         `json:"type,omitzero"` // json_schema
	Name   string         `json:"name,omitzero"`
	Strict bool           `json:"strict,omitzero"`
	Schema jsontext.Value `json:"schema"`
}

// ResponsesUsage counts tokens.
type ResponsesUsage struct {
	Input        int64 `json:"input_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
		OpenAIDetails
	} `json:"input_tokens_details"`
	Output        int64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int64          `json:"reasoning_tokens"`
		Audio     jsontext.Value `json:"audio_tokens"`
	} `json:"output_tokens_details"`
}

// AnthropicVersion is the version of the Messages API that these types describe, for the header anthropic-version.
const AnthropicVersion = "2023-06-01"

// A MessagesRequest is the body of POST /v1/messages of Anthropic.
type MessagesRequest struct {
	Model        string         `json:"model"`
	MaxTokens    int            `json:"max_tokens"`
	System       []TextBlock    `json:"system,omitzero"`
	Messages     []MessagesTurn `json:"messages"`
	Temperature  *float64       `json:"temperature,omitzero"`
	TopP         *float64       `json:"top_p,omitzero"`
	OutputConfig Formatted      `json:"output_config,omitzero"`
	Stream       bool           `json:"stream,omitzero"`
}

// A MessagesTurn is one turn.
type MessagesTurn struct {
	Role    string      `json:"role"` // user or assistant
	Content []TextBlock `json:"content"`
}

// A TextBlock is a text of a turn.
type TextBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

// MessagesUsage counts tokens: those read from a cache, those written to it, and the rest of the input, each apart.
type MessagesUsage struct {
	Input         int64 `json:"input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	Output        int64 `json:"output_tokens"`

	// Read only for the price: how long the cache keeps what was written, and the tier of the service.
	Creation jsontext.Value `json:"cache_creation"`
	Tier     jsontext.Value `json:"service_tier"`

	OutputDetails struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// An AnthropicError is Anthropic's description of an error.
type AnthropicError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// ReadAnthropicError reads an error's body. It reports false for any other body.
func ReadAnthropicError(body []byte) (AnthropicError, bool) {
	var envelope struct {
		Error AnthropicError `json:"error"`
	}
	err := json.Unmarshal(body, &envelope)
	return envelope.Error, err == nil && envelope.Error.Type != ""
}

// A GenerateRequest is the body of POST /v1beta/models/NAME:generateContent of Google's Gemini API.
type GenerateRequest struct {
	Contents          []GenerateContent `json:"contents"`
	SystemInstruction *GenerateContent  `json:"systemInstruction,omitzero"`
	GenerationConfig  GenerateConfig    `json:"generationConfig"`
}

// GenerateContent is one turn.
type GenerateContent struct {
	Role  string         `json:"role,omitzero"` // user or model
	Parts []GeneratePart `json:"parts"`
}

// A GeneratePart is a text of a turn.
type GeneratePart struct {
	Text string `json:"text,omitzero"`
}

// A GenerateConfig holds the parameters of a request.
type GenerateConfig struct {
	CandidateCount     int            `json:"candidateCount,omitzero"`
	Temperature        *float64       `json:"temperature,omitzero"`
	TopP               *float64       `json:"topP,omitzero"`
	Seed               *int64         `json:"seed,omitzero"` // of 32 bits
	MaxOutputTokens    int            `json:"maxOutputTokens,omitzero"`
	ResponseMIMEType   string         `json:"responseMimeType,omitzero"`
	ResponseJSONSchema jsontext.Value `json:"responseJsonSchema,omitzero"`
}

// GenerateUsage counts tokens: thoughts apart from the candidates, results of tools apart from the prompt.
type GenerateUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolUse    int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`

	// Read only for the price: how much is text.
	PromptDetails     jsontext.Value `json:"promptTokensDetails"`
	CandidatesDetails jsontext.Value `json:"candidatesTokensDetails"`
}

// A GoogleError is an error of one of Google's interfaces (google.rpc.Status).
type GoogleError struct {
	Status  string           `json:"status"` // such as RESOURCE_EXHAUSTED
	Message string           `json:"message"`
	Details []jsontext.Value `json:"details"` // of several types
}

// A GoogleDetail holds the known members of a detail of a GoogleError.
type GoogleDetail struct {
	Type       string `json:"@type"`
	Reason     string `json:"reason"`     // of an ErrorInfo
	RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as "3.5s"
}

// The types of details that tell something about a call.
const (
	TypeRetryInfo = "type.googleapis.com/google.rpc.RetryInfo"
	TypeErrorInfo = "type.googleapis.com/google.rpc.ErrorInfo"
)

// ReadGoogleError reads an error's body. It reports false for any other body.
func ReadGoogleError(body []byte) (GoogleError, bool) {
	var envelope struct {
		Error GoogleError `json:"error"`
	}
	err := json.Unmarshal(body, &envelope)
	return envelope.Error, err == nil && envelope.Error.Status != ""
}

// Known returns the details that fit a GoogleDetail. It leaves out the others.
func (e GoogleError) Known() (details []GoogleDetail) {
	for _, v := range e.Details {
		var d GoogleDetail
		if json.Unmarshal(v, &d) == nil {
			details = append(details, d)
		}
	}
	return details
}

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
		u, known = readAs[ChatUsage](reported)
	case has("promptTokenCount", "candidatesTokenCount"):
		u, known = readAs[GenerateUsage](reported)
	case has("cache_read_input_tokens", "cache_creation_input_tokens"):
		u, known = readAs[MessagesUsage](reported)
	case has("cached_input_tokens"), has("prompt", "completion") && !has("input_tokens", "output_tokens"):
		u, known = readAs[otherCounts](reported)
	case has("input_tokens", "output_tokens"): // Anthropic's without a cache reads the same
		u, known = readAs[ResponsesUsage](reported)
	}
	if !u.adds() {
		return Usage{}, false
	}
	return u, known
}

func (u Usage) adds() bool {
	return u.Input >= 0 && u.Cached >= 0 && u.Output >= 0 && u.Cached <= u.Input && u.Input <= mostTokens && u.Output <= mostTokens
}

// Plausible reports whether the counts can be those of a call, its reasoning included.
func (u Usage) Plausible() bool { return u.adds() && u.Reasoning >= 0 && u.Reasoning <= u.Output }

// mostTokens is more than any call has. What claims more would only make sums overflow.
const mostTokens = 1 << 36

func readAs[W interface{ Counts() Usage }](reported jsontext.Value) (Usage, bool) {
	var w W
	if json.Unmarshal(reported, &w) != nil {
		return Usage{}, false
	}
	return w.Counts(), true
}

// Counts returns them in the words of this program.
func (u MessagesUsage) Counts() Usage {
	var kept struct {
		Minutes int64 `json:"ephemeral_5m_input_tokens"`
		Hour    int64 `json:"ephemeral_1h_input_tokens"`
	}
	told := read(u.Creation, &kept) && kept.Minutes >= 0 && kept.Hour >= 0 && kept.Minutes+kept.Hour == u.CacheCreation
	tier := word(u.Tier)
	return Usage{
		Input:       u.Input + u.CacheRead + u.CacheCreation, // Anthropic counts these apart
		Cached:      u.CacheRead,
		Output:      u.Output,
		Reasoning:   u.OutputDetails.Thinking,
		Written:     kept.Minutes,
		WrittenHour: kept.Hour,
		OtherPrice:  !told || tier != "" && tier != "standard",
	}
}

// read reads a value that may be missing into a type, and reports whether nothing else is there.
func read(value jsontext.Value, into any) bool {
	return value == nil || json.Unmarshal(value, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil
}

// Counts returns them in the words of this program.
func (u ResponsesUsage) Counts() Usage {
	return u.InputDetails.OpenAIDetails.on(Usage{Input: u.Input, Cached: u.InputDetails.Cached, Output: u.Output, Reasoning: u.OutputDetails.Reasoning}, u.OutputDetails.Audio)
}

// OpenAIDetails are counts that are read only for the price. Another form of them hides nothing else.
type OpenAIDetails struct {
	CacheWrite jsontext.Value `json:"cache_write_tokens"`
	Audio      jsontext.Value `json:"audio_tokens"`
}

// on adds these counts, and audio that was written, to a usage.
func (d OpenAIDetails) on(u Usage, audioOut jsontext.Value) Usage {
	var in, out int64
	told := read(d.CacheWrite, &u.Written) && read(d.Audio, &in) && read(audioOut, &out) && u.Written >= 0 && u.Written <= u.Input-u.Cached
	u.OtherPrice = !told || in != 0 || out != 0
	return u
}

// otherCounts are the counts in session files of the Codex CLI, and in results of promptfoo.
type otherCounts struct {
	Input      int64 `json:"input_tokens"`
	Cached     int64 `json:"cached_input_tokens"`
	Output     int64 `json:"output_tokens"`
	Reasoning  int64 `json:"reasoning_output_tokens"`
	Prompt     int64 `json:"prompt"`
	Completion int64 `json:"completion"`
}

// Counts returns them in the words of this program.
func (u otherCounts) Counts() Usage {
	return Usage{Input: cmp.Or(u.Input, u.Prompt), Cached: u.Cached, Output: cmp.Or(u.Output, u.Completion), Reasoning: u.Reasoning}
}

// Usage is what a call consumed, by the provider's count.
type Usage struct {
	Input     int64 // tokens read, cached ones included
	Cached    int64 // of these, tokens read from the provider's cache
	Output    int64 // tokens written, reasoning included
	Reasoning int64 // of these, tokens that the provider does not show

	Written, WrittenHour int64 `json:",omitzero"` // of Input, tokens written to the provider's cache, for minutes or for an hour
	OtherPrice           bool  `json:",omitzero"` // some tokens have another price than the model's text at the standard tier, or it cannot be told
}

// Counts returns them in the words of this program. It adds reasoning tokens to the output if a server counts them apart. Only the total shows that it does.
func (c ChatUsage) Counts() Usage {
	u := Usage{Input: c.Prompt, Cached: c.PromptDetails.Cached, Output: c.Completion, Reasoning: c.CompletionDetails.Reasoning}
	if c.Total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	return c.PromptDetails.OpenAIDetails.on(u, c.CompletionDetails.Audio)
}

// Counts returns them in the words of this program.
func (u GenerateUsage) Counts() Usage {
	return Usage{
		Input:      u.Prompt + u.ToolUse,
		Cached:     u.Cached,
		Output:     u.Candidates + u.Thoughts, // Google counts these apart
		Reasoning:  u.Thoughts,
		OtherPrice: !onlyText(u.PromptDetails) || !onlyText(u.CandidatesDetails),
	}
}

// onlyText reports whether Google counts no tokens of sound or pictures, which can have prices of their own.
func onlyText(details jsontext.Value) bool {
	var list []struct {
		Modality string `json:"modality"`
	}
	return read(details, &list) && !slices.ContainsFunc(list, func(d struct {
		Modality string `json:"modality"`
	}) bool {
		return d.Modality != "TEXT"
	})
}
