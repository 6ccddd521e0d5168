package convo

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
