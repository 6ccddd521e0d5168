package convo

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// AnthropicVersion is the version of the Messages API that these types describe, for the header anthropic-version.
const AnthropicVersion = "2023-06-01"

// A MessagesRequest is the body of POST /v1/messages of Anthropic.
type MessagesRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int             `json:"max_tokens"`
	System       Blocks          `json:"system,omitzero"`
	Messages     []MessagesTurn  `json:"messages"`
	Temperature  *float64        `json:"temperature,omitzero"`
	TopP         *float64        `json:"top_p,omitzero"`
	OutputConfig MessagesOutputs `json:"output_config,omitzero"`
	Stream       bool            `json:"stream,omitzero"`
}

// A MessagesTurn is one turn.
type MessagesTurn struct {
	Role    string `json:"role"` // user or assistant
	Content Blocks `json:"content"`
}

// MessagesOutputs is the form that the answer must have.
type MessagesOutputs struct {
	Format *MessagesFormat `json:"format,omitzero"`
}

// A MessagesFormat is a JSON Schema that an answer must keep to.
type MessagesFormat struct {
	Type   string         `json:"type"` // json_schema
	Schema jsontext.Value `json:"schema"`
}

// Blocks are the content of a turn. A text alone is one block of type text.
type Blocks []MessagesBlock

// UnmarshalJSONFrom reads a string, an array of blocks, or null, which means no content. It refuses every other value.
func (b *Blocks) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*b = nil
	switch kind := d.PeekKind(); kind {
	case jsontext.KindString:
		block := MessagesBlock{Type: "text"}
		err := json.UnmarshalDecode(d, &block.Text)
		*b = Blocks{block}
		return err
	case jsontext.KindBeginArray:
		return json.UnmarshalDecode(d, (*[]MessagesBlock)(b))
	case jsontext.KindNull:
		return d.SkipValue()
	default:
		return fmt.Errorf("content: want a string or an array, not %v", kind)
	}
}

// A MessagesAnswer is the answer to a MessagesRequest.
type MessagesAnswer struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"` // message
	Model       string          `json:"model"`
	Content     []MessagesBlock `json:"content"` // nil: missing or null
	StopReason  string          `json:"stop_reason"`
	StopDetails struct {
		Category    string `json:"category"`
		Explanation string `json:"explanation"`
	} `json:"stop_details"` // of a refusal
	Usage jsontext.Value `json:"usage"` // as reported; MessagesUsage has the counts
}

// A MessagesBlock is a piece of a turn or of an answer.
type MessagesBlock struct {
	Type      string         `json:"type"` // text, thinking, tool_use, tool_result, image and others
	Text      string         `json:"text,omitzero"`
	Thinking  string         `json:"thinking,omitzero"`
	Signature string         `json:"signature,omitzero"` // of the thinking
	ID        string         `json:"id,omitzero"`        // of a tool_use
	Name      string         `json:"name,omitzero"`      // of the tool
	Input     jsontext.Value `json:"input,omitzero"`     // what the tool is called with; of a stream that broke off, a text with its beginning

	Raw jsontext.Value `json:",embed"` // all other members
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

// Text returns what the model said, without its thinking.
func (a *MessagesAnswer) Text() string {
	var text strings.Builder
	for _, block := range a.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	return text.String()
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
