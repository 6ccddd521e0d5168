package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrCut is the error of a stream that ends before the vendor's last event. The readers return the part that came
// with it.
var ErrCut = errors.New("the stream ends before its last event")

// A StreamError is an error that a vendor reports within a stream, after a success status.
type StreamError struct{ Body jsontext.Value } // in the form of the vendor's errors

func (e *StreamError) Error() string { return "the vendor ends the stream with an error" }

// An Event is one server-sent event.
type Event struct {
	Name string // "": message
	Data []byte
}

// Events splits a body into server-sent events by the HTML standard (section 9.2.6): lines end with CR, LF or both,
// an empty line ends an event, and an event without an empty line at its end does not count.
func Events(body []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		var e Event
		for some := false; len(body) > 0; {
			end := bytes.IndexAny(body, "\r\n")
			if end < 0 {
				return
			}
			line := body[:end]
			if bytes.HasPrefix(body[end:], []byte("\r\n")) {
				end++
			}
			body = body[end+1:]
			if len(line) == 0 {
				if some && !yield(e) {
					return
				}
				e, some = Event{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.Name = string(value)
			case "data":
				if some {
					e.Data = append(e.Data, '\n')
				}
				e.Data, some = append(e.Data, value...), true
			}
		}
	}
}

// ReadResponsesStream reads a stream of OpenAI's Responses API. The last event has the complete answer. It returns
// ErrCut with the text so far, a *StreamError, or an error about an event that does not follow the protocol.
func ReadResponsesStream(body []byte) (*ResponsesAnswer, error) {
	answer := new(ResponsesAnswer)
	var text, refusal string
	for e := range Events(body) {
		var event struct {
			Type     string           `json:"type"`
			Response *ResponsesAnswer `json:"response"`
			Delta    jsontext.Value   `json:"delta"`
		}
		if err := json.Unmarshal(e.Data, &event); err != nil {
			return answer, notTheProtocol(err)
		}
		switch event.Type {
		case "response.completed", "response.incomplete", "response.failed":
			if event.Response == nil {
				return answer, fmt.Errorf("event %s has no response", event.Type)
			}
			return event.Response, nil
		case "response.created", "response.in_progress":
			if event.Response != nil {
				answer = event.Response
			}
		case "response.output_text.delta":
			text += word(event.Delta)
		case "response.refusal.delta":
			refusal += word(event.Delta)
		case "error":
			return answer, &StreamError{e.Data}
		}
	}
	message := ResponsesOutput{Type: "message"}
	if text != "" {
		message.Content = append(message.Content, ResponsesPart{Type: "output_text", Text: text})
	}
	if refusal != "" {
		message.Content = append(message.Content, ResponsesPart{Type: "refusal", Refusal: refusal})
	}
	answer.Output = []ResponsesOutput{message}
	return answer, ErrCut
}

// maxIndex limits the number of a choice, block, call or candidate in a stream. A larger one would only use memory.
const maxIndex = 1 << 10

// at returns the list element with a number, and adds the missing elements before it.
func at[T any](list *[]T, index int) (*T, error) {
	if index < 0 || index > maxIndex {
		return nil, fmt.Errorf("number %d is out of range", index)
	}
	for len(*list) <= index {
		*list = slices.Grow(*list, 1)[:len(*list)+1]
	}
	return &(*list)[index], nil
}

// ReadChatStream reads a stream of Chat Completions, which [DONE] ends. It returns ErrCut with the answer so far, a
// *StreamError, or an error about a chunk that does not follow the protocol.
func ReadChatStream(body []byte) (*ChatAnswer, error) {
	answer := new(ChatAnswer)
	for e := range Events(body) {
		if string(e.Data) == "[DONE]" {
			return answer, nil
		}
		var chunk struct {
			Model             string          `json:"model"`
			SystemFingerprint string          `json:"system_fingerprint"`
			Choices           []chatChunk     `json:"choices"`
			Usage             *ChatUsage      `json:"usage"`
			Error             *jsontext.Value `json:"error"`
		}
		if err := json.Unmarshal(e.Data, &chunk); err != nil {
			return answer, notTheProtocol(err)
		}
		if chunk.Error != nil {
			return answer, &StreamError{e.Data}
		}
		answer.Model = cmp.Or(chunk.Model, answer.Model)
		answer.SystemFingerprint = cmp.Or(chunk.SystemFingerprint, answer.SystemFingerprint)
		if chunk.Usage != nil {
			answer.Usage = *chunk.Usage
		}
		for _, c := range chunk.Choices {
			choice, err := at(&answer.Choices, c.Index)
			if err == nil {
				err = choice.add(c)
			}
			if err != nil {
				return answer, fmt.Errorf("choices: %w", err)
			}
		}
	}
	return answer, ErrCut
}

type chatChunk struct {
	Index        int    `json:"index"`
	FinishReason string `json:"finish_reason"`
	Delta        struct {
		Content   string `json:"content"`
		Refusal   string `json:"refusal"`
		ToolCalls []struct {
			Index int `json:"index"`
			ChatToolCall
		} `json:"tool_calls"`
	} `json:"delta"`
}

func (c *ChatChoice) add(chunk chatChunk) error {
	c.FinishReason = cmp.Or(chunk.FinishReason, c.FinishReason)
	c.Message.Content.Text += chunk.Delta.Content
	c.Message.Refusal += chunk.Delta.Refusal
	for _, t := range chunk.Delta.ToolCalls {
		call, err := at(&c.Message.ToolCalls, t.Index)
		if err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		call.ID, call.Type = cmp.Or(t.ID, call.ID), cmp.Or(t.Type, call.Type)
		call.Function.Name = cmp.Or(t.Function.Name, call.Function.Name) // only in the first fragment
		call.Function.Arguments += t.Function.Arguments
	}
	return nil
}

// ReadMessagesStream reads a stream of Anthropic's Messages API, which message_stop ends. It returns ErrCut with the
// answer so far, a *StreamError, or an error about an event that does not follow the protocol.
func ReadMessagesStream(body []byte) (*MessagesAnswer, error) {
	answer := new(MessagesAnswer)
	for e := range Events(body) {
		var event messagesEvent
		if err := json.Unmarshal(e.Data, &event); err != nil {
			return answer, notTheProtocol(err)
		}
		switch event.Type {
		case "message_stop":
			return answer, nil
		case "error":
			return answer, &StreamError{e.Data}
		}
		if err := answer.add(event); err != nil {
			return answer, fmt.Errorf("event %s: %w", event.Type, err)
		}
	}
	return answer, ErrCut
}

type messagesEvent struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *MessagesAnswer `json:"message"`
	Block   *MessagesBlock  `json:"content_block"`
	Delta   struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage jsontext.Value `json:"usage"` // these counts replace the earlier ones
}

func (a *MessagesAnswer) add(event messagesEvent) error {
	switch event.Type {
	case "message_start":
		if event.Message == nil {
			return errors.New("there is no message")
		}
		*a = *event.Message
	case "content_block_start":
		block, err := at(&a.Content, event.Index)
		if err != nil || event.Block == nil {
			return errors.Join(err, errors.New("there is no content_block"))
		}
		*block = *event.Block
		block.Input = nil // holds an empty object until its deltas arrive
	case "content_block_delta":
		block, err := at(&a.Content, event.Index)
		if err != nil {
			return err
		}
		block.Text += event.Delta.Text
		block.Input = append(block.Input, event.Delta.PartialJSON...)
	case "message_delta":
		a.StopReason = cmp.Or(event.Delta.StopReason, a.StopReason)
		if event.Usage != nil {
			return json.Unmarshal(event.Usage, &a.Usage)
		}
	}
	return nil
}

// ReadGenerateStream reads a stream of Gemini's streamGenerateContent: server-sent events, or one JSON array. The
// last chunk has a finish reason or a blocked prompt. It returns ErrCut with the answer so far, a *StreamError, or an
// error about a chunk that does not follow the protocol.
func ReadGenerateStream(body []byte) (*GenerateAnswer, error) {
	answer := new(GenerateAnswer)
	chunks, cut := generateChunks(body)
	for _, data := range chunks {
		var chunk struct {
			GenerateAnswer `json:",embed"`
			Error          *jsontext.Value `json:"error"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return answer, notTheProtocol(err)
		}
		if chunk.Error != nil {
			return answer, &StreamError{data}
		}
		if err := answer.add(chunk.GenerateAnswer); err != nil {
			return answer, err
		}
	}
	if cut || !answer.over() {
		return answer, ErrCut
	}
	return answer, nil
}

// generateChunks returns the chunks of a stream in either form. cut reports that an array has no end.
func generateChunks(body []byte) (chunks []jsontext.Value, cut bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		for e := range Events(body) {
			chunks = append(chunks, e.Data)
		}
		return chunks, false
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if _, err := d.ReadToken(); err != nil {
		return nil, true
	}
	for d.PeekKind() == jsontext.KindBeginObject {
		v, err := d.ReadValue()
		if err != nil {
			return chunks, true
		}
		chunks = append(chunks, v.Clone())
	}
	_, err := d.ReadToken()
	return chunks, err != nil
}

func (a *GenerateAnswer) add(chunk GenerateAnswer) error {
	a.ModelVersion = cmp.Or(chunk.ModelVersion, a.ModelVersion)
	if chunk.Usage != (GenerateUsage{}) {
		a.Usage = chunk.Usage
	}
	if chunk.PromptFeedback.BlockReason != "" {
		a.PromptFeedback = chunk.PromptFeedback
	}
	for _, c := range chunk.Candidates {
		if c == nil {
			return errors.New("candidates: one is null")
		}
		sum, err := at(&a.Candidates, c.Index)
		if err != nil {
			return fmt.Errorf("candidates: %w", err)
		}
		if *sum == nil {
			*sum = &GenerateCandidate{Index: c.Index}
		}
		(*sum).Content.Role = cmp.Or(c.Content.Role, (*sum).Content.Role)
		(*sum).Content.Parts = append((*sum).Content.Parts, c.Content.Parts...)
		(*sum).FinishReason = cmp.Or(c.FinishReason, (*sum).FinishReason)
		(*sum).FinishMessage = cmp.Or(c.FinishMessage, (*sum).FinishMessage)
		if c.SafetyRatings != nil {
			(*sum).SafetyRatings = c.SafetyRatings
		}
	}
	return nil
}

// over reports that the stream is complete: the prompt is blocked, or every candidate has stopped.
func (a *GenerateAnswer) over() bool {
	if a.PromptFeedback.BlockReason != "" {
		return true
	}
	going := func(c *GenerateCandidate) bool { return c == nil || c.FinishReason == "" }
	return len(a.Candidates) > 0 && !slices.ContainsFunc(a.Candidates, going)
}

// notTheProtocol names the member that has the wrong type. It leaves out the library's own text, which is not stable.
func notTheProtocol(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		return fmt.Errorf("an event does not follow the vendor's protocol: %s has the wrong type", semantic.JSONPointer)
	}
	return errors.New("an event does not follow the vendor's protocol")
}
