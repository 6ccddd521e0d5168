package convo

import (
	"cmp"
	"encoding/base64"
	"fmt"
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

// ReadChatStream reads a stream of Chat Completions, which [DONE] ends. It returns ErrUnended or ErrCut with the answer so far, a
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
	failed                      jsontext.Value
	content, refusal, reasoning []byte
	calls                       callsSum
	function                    *callSum
	heard                       ChatAudio // without what is in the buffers
	transcript, sound           []byte
	images                      []jsontext.Value
	executed                    numbered[ChatExecuted]
}

type chatChunk struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	Model             string         `json:"model"`
	SystemFingerprint string         `json:"system_fingerprint"`
	Choices           []chatDelta    `json:"choices"`
	Usage             jsontext.Value `json:"usage"`
	Groq              struct {
		Usage jsontext.Value `json:"usage"`
	} `json:"x_groq"`
	Error jsontext.Value `json:"error"`
}

type chatDelta struct {
	Index        int            `json:"index"`
	FinishReason string         `json:"finish_reason"`
	Usage        jsontext.Value `json:"usage"` // of Moonshot
	Error        jsontext.Value `json:"error"`
	Delta        struct {
		ChatMessage
		ToolCalls OneOrMore[chatFragment] `json:"tool_calls"`
	} `json:"delta"`
}

func (s *chatSum) read(body []byte, options json.Options) error {
	for e := range answerEvents(body) {
		if string(e.Data) == done {
			return nil
		}
		if e.Name == "error" {
			return &StreamError{e.Data}
		}
		var chunk chatChunk
		if err := json.Unmarshal(e.Data, &chunk, options); err != nil {
			return notTheProtocol(err)
		}
		if err := s.add(chunk, options); err != nil {
			return err
		}
		if present(chunk.Error) || chunk.Object == "error" {
			return &StreamError{e.Data}
		}
	}
	if s.stopped() {
		return ErrUnended
	}
	return ErrCut
}

func (s *chatSum) stopped() bool {
	for _, c := range s.choices {
		if c.finish == "" {
			return false
		}
	}
	return len(s.choices) > 0
}

// present reports whether a member has a value other than null.
func present(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != jsontext.KindNull }

func (s *chatSum) add(chunk chatChunk, options json.Options) error {
	s.whole.ID = cmp.Or(chunk.ID, s.whole.ID)
	s.whole.Model = cmp.Or(chunk.Model, s.whole.Model)
	s.whole.SystemFingerprint = cmp.Or(chunk.SystemFingerprint, s.whole.SystemFingerprint)
	for _, delta := range chunk.Choices {
		choice, err := s.choices.at(delta.Index)
		if err == nil {
			err = choice.add(delta, options)
		}
		if err != nil {
			return fmt.Errorf("choices: %w", err)
		}
		replace(&s.whole.Usage, delta.Usage)
	}
	replace(&s.whole.Usage, chunk.Groq.Usage)
	replace(&s.whole.Usage, chunk.Usage)
	return nil
}

func replace(v *jsontext.Value, again jsontext.Value) {
	if present(again) {
		*v = again
	}
}

func (c *choiceSum) add(chunk chatDelta, options json.Options) error {
	d := &chunk.Delta
	c.finish = cmp.Or(chunk.FinishReason, c.finish)
	replace(&c.failed, chunk.Error)
	c.said.Role = cmp.Or(d.Role, c.said.Role)
	c.content = append(c.content, d.Content.All()...)
	c.refusal = append(c.refusal, d.Refusal...)
	c.reasoning = append(c.reasoning, cmp.Or(d.ReasoningContent, d.Reasoning, d.Content.Thought())...)
	if d.FunctionCall != nil {
		if c.function == nil {
			c.function = new(callSum)
		}
		c.function.add(ChatToolCall{Function: *d.FunctionCall})
	}
	for _, t := range d.ToolCalls {
		if err := c.calls.add(t); err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
	}
	c.images = append(c.images, valuesIn(d.Images, options)...)
	c.hear(d.Audio, options)
	for _, v := range valuesIn(d.Executed, options) {
		if err := c.execute(v, options); err != nil {
			return fmt.Errorf("executed_tools: %w", err)
		}
	}
	return nil
}

func valuesIn(v jsontext.Value, options json.Options) (list []jsontext.Value) {
	if v.Kind() != jsontext.KindBeginArray || json.Unmarshal(v, &list, options) != nil {
		return nil
	}
	return list
}

func (c *choiceSum) hear(v jsontext.Value, options json.Options) {
	var piece ChatAudio
	if !present(v) || json.Unmarshal(v, &piece, options) != nil {
		return
	}
	c.heard.ID = cmp.Or(piece.ID, c.heard.ID)
	c.transcript = append(c.transcript, piece.Transcript...)
	if sound, err := base64.StdEncoding.DecodeString(piece.Data); err == nil { // each piece is encoded by itself
		c.sound = append(c.sound, sound...)
	}
}

// execute takes what is said of a tool that the server ran: first what it was called with, later also what it returned.
func (c *choiceSum) execute(v jsontext.Value, options json.Options) error {
	var tool ChatExecuted
	if json.Unmarshal(v, &tool, options) != nil {
		return nil
	}
	known, err := c.executed.at(tool.Index)
	if err != nil {
		return err
	}
	tool.Type, tool.Arguments = cmp.Or(tool.Type, known.Type), cmp.Or(tool.Arguments, known.Arguments)
	if !present(tool.Output) {
		tool.Output = known.Output
	}
	if len(tool.Raw) < len(known.Raw) {
		tool.Raw = known.Raw
	}
	*known = tool
	return nil
}

func (s *chatSum) answer() *ChatAnswer {
	for number, c := range s.choices.all() {
		c.said.Content.Text, c.said.Refusal, c.said.ReasoningContent = string(c.content), string(c.refusal), string(c.reasoning)
		if c.function != nil {
			c.said.FunctionCall = new(c.function.whole().Function)
		}
		c.said.ToolCalls = c.calls.whole()
		if c.heard.Transcript = string(c.transcript); len(c.sound) > 0 {
			c.heard.Data = base64.StdEncoding.EncodeToString(c.sound)
		}
		if c.heard != (ChatAudio{}) {
			c.said.Audio = valueOf(c.heard)
		}
		if len(c.images) > 0 {
			c.said.Images = valueOf(c.images)
		}
		var executed []ChatExecuted
		for _, tool := range c.executed.all() {
			executed = append(executed, *tool)
		}
		if executed != nil {
			c.said.Executed = valueOf(executed)
		}
		s.whole.Choices = append(s.whole.Choices, ChatChoice{Index: number, FinishReason: c.finish, Message: c.said, Error: c.failed})
	}
	return &s.whole
}

func valueOf(v any) jsontext.Value {
	doc, err := json.Marshal(v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
	if err != nil {
		return nil
	}
	return doc
}

type chatFragment struct {
	Index *int `json:"index"`
	ChatToolCall
}

// callsSum are the calls of an answer. By the protocol, each has a number, and only its first fragment has id, type and name. Some servers
// number all calls alike, or none, and some repeat the id and the name in every fragment.
type callsSum struct {
	calls []*callSum
	at    map[int]*callSum    // the call to which a number belongs
	named map[string]*callSum // by id
}

func (s *callsSum) add(t chatFragment) error {
	call := s.of(t)
	if call == nil {
		if len(s.calls) > maxIndex {
			return fmt.Errorf("more than %d", maxIndex)
		}
		call = &callSum{entire: isEntire(t.ChatToolCall)}
		if s.calls = append(s.calls, call); t.Index != nil {
			if call.number = *t.Index; call.number < 0 || call.number > maxIndex {
				return fmt.Errorf("number %d is out of range", call.number)
			}
		} else if n := len(s.calls); n > 1 {
			call.number = s.calls[n-2].number
		}
		if s.at == nil {
			s.at, s.named = map[int]*callSum{}, map[string]*callSum{}
		}
		s.at[call.number] = call
	} else {
		call.entire = false
	}
	if call.add(t.ChatToolCall); t.ID != "" && s.named[t.ID] == nil {
		s.named[t.ID] = call
	}
	return nil
}

// of returns the call to which a fragment belongs; nil: it begins one.
func (s *callsSum) of(t chatFragment) *callSum {
	if len(s.calls) == 0 {
		return nil
	}
	names := t.Function.Name != "" || t.Custom.Name != ""
	if t.Index == nil {
		if known := s.named[t.ID]; known != nil && t.ID != "" || !names {
			return cmp.Or(known, s.calls[len(s.calls)-1])
		}
		return nil
	}
	call := s.at[*t.Index]
	if known := s.named[t.ID]; known != nil && known.number == *t.Index {
		return known
	}
	if call == nil || !names || call.call.Function.Name == "" && call.call.Custom.Name == "" {
		return call
	}
	another := t.ID != "" && call.call.ID != "" && t.ID != call.call.ID
	if another || t.ID == "" && call.call.ID == "" && call.entire && isEntire(t.ChatToolCall) {
		return nil
	}
	return call
}

// isEntire reports whether a fragment is a call in one piece: with a name, and with arguments that are an object.
func isEntire(t ChatToolCall) bool {
	return t.Function.Name != "" && isObject([]byte(t.Function.Arguments))
}

func (s *callsSum) whole() (calls []ChatToolCall) {
	slices.SortStableFunc(s.calls, func(a, b *callSum) int { return a.number - b.number })
	for _, call := range s.calls {
		calls = append(calls, call.whole())
	}
	return calls
}

type callSum struct {
	number           int
	entire           bool         // it came in one piece
	call             ChatToolCall // without what is in the buffers
	arguments, input []byte
}

func (c *callSum) add(t ChatToolCall) {
	c.call.ID, c.call.Type = cmp.Or(c.call.ID, t.ID), cmp.Or(t.Type, c.call.Type)
	c.call.Function.Name = cmp.Or(t.Function.Name, c.call.Function.Name)
	c.call.Custom.Name = cmp.Or(t.Custom.Name, c.call.Custom.Name)
	if again := string(t.Function.Arguments); again != string(c.arguments) || !isObject(c.arguments) { // some servers send them again when they are whole
		c.arguments = append(c.arguments, again...)
	}
	c.input = append(c.input, t.Custom.Input...)
}

func (c *callSum) whole() ChatToolCall {
	c.call.Function.Arguments, c.call.Custom.Input = Arguments(c.arguments), string(c.input)
	return c.call
}
