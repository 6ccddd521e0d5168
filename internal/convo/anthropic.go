package convo

import (
	"cmp"
	"errors"
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

// ReadMessagesStream reads a stream of Anthropic's Messages API, which message_stop ends. It returns ErrUnended or ErrCut with the
// answer so far, a *StreamError, or an error about an event that does not follow the protocol. The options are for
// each event's JSON.
func ReadMessagesStream(body []byte, options ...json.Options) (*MessagesAnswer, error) {
	var sum messagesSum
	err := sum.read(body, json.JoinOptions(options...))
	return sum.answer(), err
}

type messagesSum struct {
	whole   MessagesAnswer
	blocks  numbered[blockSum]
	counts  map[string]jsontext.Value // of the usage; nil: it was reported once
	stopped bool                      // the event after the last block said why
}

type blockSum struct {
	block                            MessagesBlock // as it started
	text, thinking, signature, input []byte
}

type messagesEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *MessagesAnswer `json:"message"`
	Block   *MessagesBlock  `json:"content_block"`
	Delta   struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage jsontext.Value `json:"usage"`
}

func (s *messagesSum) read(body []byte, options json.Options) error {
	for e := range answerEvents(body) {
		var event messagesEvent
		if e.Name == "error" {
			return &StreamError{e.Data}
		}
		if err := json.Unmarshal(e.Data, &event, options); err != nil {
			return notTheProtocol(err)
		}
		switch event.Type {
		case "message_stop":
			return nil
		case "error":
			return &StreamError{e.Data}
		}
		if err := s.add(event, options); err != nil {
			return fmt.Errorf("event %s: %w", event.Type, err)
		}
	}
	if s.stopped {
		return ErrUnended
	}
	return ErrCut
}

func (s *messagesSum) add(event messagesEvent, options json.Options) error {
	switch event.Type {
	case "message_start":
		if event.Message == nil {
			return errors.New("there is no message")
		}
		*s = messagesSum{whole: *event.Message}
	case "content_block_start":
		block, err := s.blocks.at(event.Index)
		if err != nil {
			return err
		}
		if event.Block == nil {
			return errors.New("there is no content_block")
		}
		*block = blockSum{block: *event.Block}
	case "content_block_delta":
		block := s.blocks[event.Index]
		if block == nil {
			return fmt.Errorf("block %d was not started", event.Index)
		}
		block.text = append(block.text, event.Delta.Text...)
		block.thinking = append(block.thinking, event.Delta.Thinking...)
		block.signature = append(block.signature, event.Delta.Signature...)
		block.input = append(block.input, event.Delta.PartialJSON...)
	case "message_delta":
		s.whole.StopReason = cmp.Or(event.Delta.StopReason, s.whole.StopReason)
		s.stopped = s.stopped || event.Delta.StopReason != ""
		return s.count(event.Usage, options)
	}
	return nil
}

// count replaces the counts that a later event reports again, and keeps the others.
func (s *messagesSum) count(later jsontext.Value, options json.Options) error {
	if !present(later) {
		return nil
	}
	if !present(s.whole.Usage) {
		s.whole.Usage = later
		return nil
	}
	var known, again map[string]jsontext.Value
	if s.counts == nil && json.Unmarshal(s.whole.Usage, &known, options) != nil || json.Unmarshal(later, &again, options) != nil {
		return errors.New("usage is not an object")
	}
	if s.counts == nil {
		s.counts = known
	}
	for name, count := range again {
		if present(count) {
			s.counts[name] = count
		}
	}
	return nil
}

func (s *messagesSum) answer() *MessagesAnswer {
	if s.counts != nil {
		s.whole.Usage = valueOf(s.counts)
	}
	for _, b := range s.blocks.all() {
		block := b.block
		block.Text += string(b.text)
		block.Thinking += string(b.thinking)
		block.Signature += string(b.signature)
		if len(b.input) > 0 { // before its deltas, a block has an empty object
			block.Input = b.input
			if !block.Input.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
				block.Input = valueOf(strings.ToValidUTF8(string(b.input), "\ufffd"))
			}
		}
		s.whole.Content = append(s.whole.Content, block)
	}
	return &s.whole
}
