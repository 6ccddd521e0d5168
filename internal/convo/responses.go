package convo

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A ResponsesRequest is the body of POST /v1/responses of OpenAI.
type ResponsesRequest struct {
	Model           string          `json:"model"`
	Instructions    string          `json:"instructions,omitzero"`
	Input           []ResponsesItem `json:"input"`
	Store           *bool           `json:"store,omitzero"` // OpenAI's default is true
	Temperature     *float64        `json:"temperature,omitzero"`
	TopP            *float64        `json:"top_p,omitzero"`
	MaxOutputTokens int             `json:"max_output_tokens,omitzero"`
	Text            ResponsesText   `json:"text,omitzero"`
	Stream          bool            `json:"stream,omitzero"`
}

// A ResponsesItem is one turn of the input, or one item of the output: a message, reasoning, a tool call, its output or
// more.
type ResponsesItem struct {
	Type    string  `json:"type,omitzero"` // "" in a request: message
	ID      string  `json:"id,omitzero"`
	Role    string  `json:"role,omitzero"` // of a message: user, assistant, system or developer
	Content Content `json:"content"`

	CallID    string    `json:"call_id,omitzero"` // of a call, and of its output
	Name      string    `json:"name,omitzero"`    // of a function
	Arguments Arguments `json:"arguments,omitzero"`
	Input     string    `json:"input,omitzero"`   // of a custom tool, in place of arguments
	Summary   []Part    `json:"summary,omitzero"` // of reasoning

	Raw jsontext.Value `json:",embed"` // all other members
}

// ResponsesText is the form that the answer must have.
type ResponsesText struct {
	Format *SchemaFormat `json:"format,omitzero"`
}

// A SchemaFormat is a JSON Schema that an answer must keep to.
type SchemaFormat struct {
	Type   string         `json:"type"` // json_schema
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

// A ResponsesAnswer is OpenAI's answer to a ResponsesRequest.
type ResponsesAnswer struct {
	ID                string          `json:"id"`
	Status            string          `json:"status"` // completed, incomplete or failed; during a stream: in_progress
	Model             string          `json:"model"`
	Output            []ResponsesItem `json:"output"` // nil: missing or null
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Usage jsontext.Value `json:"usage"` // as reported; ResponsesUsage has the counts
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

// Texts returns what the model said in messages, and what it said when it refused.
func (a *ResponsesAnswer) Texts() (text, refusal string) {
	var texts, refusals strings.Builder
	for _, item := range a.Output {
		if item.Type != "message" {
			continue
		}
		for _, part := range item.Content.Parts {
			switch part.Type {
			case "output_text":
				texts.WriteString(part.Text)
			case "refusal":
				refusals.WriteString(part.Refusal)
			}
		}
	}
	return texts.String(), refusals.String()
}
