package convo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
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

// ErrDiffers is the error of a stream whose pieces say something else than the complete answer in its last event. The
// reader returns that complete answer with it.
var ErrDiffers = errors.New("the pieces of the stream differ from the complete answer at its end")

// ReadResponsesStream reads a stream of OpenAI's Responses API. The last event has the complete answer, or all of it but the items, which
// then are those of the events before. It returns ErrDiffers, ErrCut with what the pieces said so far, a *StreamError, or an error about an event that does not follow
// the protocol. The options are for each event's JSON.
func ReadResponsesStream(body []byte, options ...json.Options) (*ResponsesAnswer, error) {
	var sum responsesSum
	err := sum.read(body, json.JoinOptions(options...))
	switch {
	case sum.last == nil:
		return sum.answer(), err
	case len(sum.last.Output) == 0:
		sum.last.Output = sum.answer().Output
	case sum.differs():
		return sum.last, ErrDiffers
	}
	return sum.last, err
}

type responsesSum struct {
	begun ResponsesAnswer  // as the first events describe it
	last  *ResponsesAnswer // of the last event
	items numbered[itemSum]
}

type itemSum struct {
	item             ResponsesItem // as it was added
	parts            numbered[partSum]
	arguments, input []byte
}

type partSum struct{ text, refusal []byte }

type responsesEvent struct {
	Type     string           `json:"type"`
	Response *ResponsesAnswer `json:"response"`
	Output   int              `json:"output_index"`
	Content  int              `json:"content_index"`
	Item     *ResponsesItem   `json:"item"`
	Delta    jsontext.Value   `json:"delta"`
}

func (s *responsesSum) read(body []byte, options json.Options) error {
	for e := range answerEvents(body) {
		var event responsesEvent
		if string(e.Data) == done { // some servers add it
			break
		}
		if err := json.Unmarshal(e.Data, &event, options); err != nil {
			return notTheProtocol(err)
		}
		switch event.Type {
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
			if event.Response == nil {
				return fmt.Errorf("event %s has no response", event.Type)
			}
			s.last = event.Response
			return nil
		case "error":
			return &StreamError{e.Data}
		}
		if err := s.add(event, options); err != nil {
			return fmt.Errorf("event %s: %w", event.Type, err)
		}
	}
	return ErrCut
}

func (s *responsesSum) add(event responsesEvent, options json.Options) error {
	switch event.Type {
	case "response.created", "response.queued", "response.in_progress":
		if event.Response != nil {
			s.begun = *event.Response
		}
		return nil
	case "response.output_item.added", "response.output_item.done":
		item, err := s.items.at(event.Output)
		if err == nil && event.Item != nil {
			item.item = *event.Item
		}
		return err
	case "response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta", "response.mcp_call_arguments.delta",
		"response.custom_tool_call_input.delta":
	default:
		return nil
	}
	var delta string
	if err := json.Unmarshal(event.Delta, &delta, options); err != nil {
		return fmt.Errorf("delta: want a string, found %s", event.Delta.Kind())
	}
	item, err := s.items.at(event.Output)
	if err != nil {
		return err
	}
	switch event.Type {
	case "response.output_text.delta", "response.refusal.delta":
		part, err := item.parts.at(event.Content)
		if err != nil {
			return err
		}
		if event.Type == "response.refusal.delta" {
			part.refusal = append(part.refusal, delta...)
		} else {
			part.text = append(part.text, delta...)
		}
	case "response.custom_tool_call_input.delta":
		item.input = append(item.input, delta...)
	default:
		item.arguments = append(item.arguments, delta...)
	}
	return nil
}

func (s *responsesSum) answer() *ResponsesAnswer {
	answer := s.begun
	answer.Output = []ResponsesItem{}
	for _, i := range s.items.all() {
		item := i.item
		if len(i.parts) > 0 {
			if item.Type == "" {
				item.Type, item.Role = "message", "assistant"
			}
			item.Content = Content{Parts: i.said()}
		}
		if len(i.arguments) > 0 {
			item.Arguments = Arguments(i.arguments)
		}
		if len(i.input) > 0 {
			item.Input = string(i.input)
		}
		answer.Output = append(answer.Output, item)
	}
	return &answer
}

func (i *itemSum) said() (parts []Part) {
	for _, p := range i.parts.all() {
		if len(p.text) > 0 {
			parts = append(parts, Part{Type: "output_text", Text: string(p.text)})
		}
		if len(p.refusal) > 0 {
			parts = append(parts, Part{Type: "refusal", Refusal: string(p.refusal)})
		}
	}
	return parts
}

func textsOf(parts []Part) [2]string {
	var text, refusal strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
		refusal.WriteString(p.Refusal)
	}
	return [2]string{text.String(), refusal.String()}
}

// differs compares the pieces that arrived with the last event. A stream need not have pieces of everything.
func (s *responsesSum) differs() bool {
	for number, i := range s.items {
		if len(i.parts) == 0 && len(i.arguments) == 0 && len(i.input) == 0 && i.item.Type == "" {
			continue
		}
		if number >= len(s.last.Output) || i.differs(&s.last.Output[number]) {
			return true
		}
	}
	return false
}

func (i *itemSum) differs(whole *ResponsesItem) bool {
	if i.item.Type != "" && i.item.Type != whole.Type {
		return true
	}
	if len(i.parts) > 0 && textsOf(i.said()) != textsOf(whole.Content.Parts) { // servers count the parts in different ways
		return true
	}
	return len(i.arguments) > 0 && string(i.arguments) != string(whole.Arguments) || len(i.input) > 0 && string(i.input) != whole.Input
}
