package wire

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ReadChatStream reads a stream of Chat Completions, which [DONE] ends. It returns ErrCut with the answer so far, a
// *StreamError, or an error about a chunk that does not follow the protocol. The options are for each chunk's JSON.
func ReadChatStream(body []byte, options ...json.Options) (*ChatAnswer, error) {
	var sum chatSum
	err := sum.read(body, json.JoinOptions(options...))
	return sum.answer(), err
}

// A chatSum puts chunks together. It appends to buffers, so that its time is in proportion to what arrived.
type chatSum struct {
	whole   ChatAnswer
	choices numbered[choiceSum]
}

type choiceSum struct {
	said                        ChatMessage // without what is in the buffers
	finish                      string
	content, refusal, reasoning []byte
	calls                       numbered[callSum]
	function                    *callSum
}

type callSum struct {
	call             ChatToolCall // without what is in the buffers
	arguments, input []byte
}

type chatChunk struct {
	ID                string         `json:"id"`
	Model             string         `json:"model"`
	SystemFingerprint string         `json:"system_fingerprint"`
	Choices           []chatDelta    `json:"choices"`
	Usage             jsontext.Value `json:"usage"`
	Error             jsontext.Value `json:"error"`
}

type chatDelta struct {
	Index        int    `json:"index"`
	FinishReason string `json:"finish_reason"`
	Delta        struct {
		Role             string  `json:"role"`
		Content          Content `json:"content"`
		Refusal          string  `json:"refusal"`
		ReasoningContent string  `json:"reasoning_content"`
		ToolCalls        []struct {
			Index int `json:"index"`
			ChatToolCall
		} `json:"tool_calls"`
		FunctionCall *ChatFunction `json:"function_call"`
	} `json:"delta"`
}

func (s *chatSum) read(body []byte, options json.Options) error {
	for e := range Events(body) {
		if string(e.Data) == "[DONE]" {
			return nil
		}
		var chunk chatChunk
		if err := json.Unmarshal(e.Data, &chunk, options); err != nil {
			return notTheProtocol(err)
		}
		if present(chunk.Error) {
			return &StreamError{e.Data}
		}
		if err := s.add(chunk); err != nil {
			return err
		}
	}
	return ErrCut
}

// present reports whether a member has a value other than null.
func present(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != jsontext.KindNull }

func (s *chatSum) add(chunk chatChunk) error {
	s.whole.ID = cmp.Or(chunk.ID, s.whole.ID)
	s.whole.Model = cmp.Or(chunk.Model, s.whole.Model)
	s.whole.SystemFingerprint = cmp.Or(chunk.SystemFingerprint, s.whole.SystemFingerprint)
	if present(chunk.Usage) {
		s.whole.Usage = chunk.Usage
	}
	for _, delta := range chunk.Choices {
		choice, err := s.choices.at(delta.Index)
		if err == nil {
			err = choice.add(delta)
		}
		if err != nil {
			return fmt.Errorf("choices: %w", err)
		}
	}
	return nil
}

func (c *choiceSum) add(chunk chatDelta) error {
	d := &chunk.Delta
	c.finish = cmp.Or(chunk.FinishReason, c.finish)
	c.said.Role = cmp.Or(d.Role, c.said.Role)
	c.content = append(c.content, d.Content.All()...)
	c.refusal = append(c.refusal, d.Refusal...)
	c.reasoning = append(c.reasoning, d.ReasoningContent...)
	if d.FunctionCall != nil {
		if c.function == nil {
			c.function = new(callSum)
		}
		c.function.add(ChatToolCall{Function: *d.FunctionCall})
	}
	for _, t := range d.ToolCalls {
		call, err := c.calls.at(t.Index)
		if err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		call.add(t.ChatToolCall)
	}
	return nil
}

// add takes a fragment of a call. Only the first fragment has id, type and name.
func (c *callSum) add(t ChatToolCall) {
	c.call.ID, c.call.Type = cmp.Or(t.ID, c.call.ID), cmp.Or(t.Type, c.call.Type)
	c.call.Function.Name = cmp.Or(t.Function.Name, c.call.Function.Name)
	c.call.Custom.Name = cmp.Or(t.Custom.Name, c.call.Custom.Name)
	c.arguments = append(c.arguments, t.Function.Arguments...)
	c.input = append(c.input, t.Custom.Input...)
}

func (c *callSum) whole() ChatToolCall {
	c.call.Function.Arguments, c.call.Custom.Input = Arguments(c.arguments), string(c.input)
	return c.call
}

func (s *chatSum) answer() *ChatAnswer {
	for number, c := range s.choices.all() {
		c.said.Content.Text, c.said.Refusal, c.said.ReasoningContent = string(c.content), string(c.refusal), string(c.reasoning)
		if c.function != nil {
			c.said.FunctionCall = new(c.function.whole().Function)
		}
		for _, call := range c.calls.all() {
			c.said.ToolCalls = append(c.said.ToolCalls, call.whole())
		}
		s.whole.Choices = append(s.whole.Choices, ChatChoice{Index: number, FinishReason: c.finish, Message: c.said})
	}
	return &s.whole
}
