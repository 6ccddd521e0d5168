package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A GenerateRequest is the body of POST /v1beta/models/NAME:generateContent of Google's Gemini API.
type GenerateRequest struct {
	Contents          []GenerateContent `json:"contents"`
	SystemInstruction *GenerateContent  `json:"systemInstruction,omitzero"`
	GenerationConfig  GenerateConfig    `json:"generationConfig"`
}

// GenerateContent is one turn.
type GenerateContent struct {
	Role  string                  `json:"role,omitzero"` // user or model
	Parts OneOrMore[GeneratePart] `json:"parts"`
}

// OneOrMore is an array. Google's servers also read its one element alone, as Google's own documents write it, and other servers write it so.
type OneOrMore[T any] []T

// UnmarshalJSONFrom reads an array, an object alone, or null.
func (l *OneOrMore[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return json.UnmarshalDecode(d, (*[]T)(l))
	}
	var one T
	err := json.UnmarshalDecode(d, &one)
	*l = OneOrMore[T]{one}
	return err
}

// A GeneratePart is a piece of a turn. A part without text has another kind, such as a function call. Google's servers
// read names of members in either spelling, thoughtSignature and thought_signature.
type GeneratePart struct {
	Text         string                `json:"text,omitzero"`
	Thought      bool                  `json:"thought,omitzero"`
	FunctionCall *GenerateFunctionCall `json:"functionCall,omitzero,case:ignore"`

	Raw jsontext.Value `json:",embed"` // all other members
}

// A GenerateFunctionCall is the model's request to call a function.
type GenerateFunctionCall struct {
	ID   string         `json:"id,omitzero"` // older models give none
	Name string         `json:"name"`
	Args jsontext.Value `json:"args,omitzero"`

	// Of a stream in which the call comes in pieces, of which only the first has a name.
	PartialArgs  []GeneratePartialArg `json:"partialArgs,omitzero"`
	WillContinue bool                 `json:"willContinue,omitzero"`
}

// A GeneratePartialArg is a value within the arguments of a call, or the next piece of a text.
type GeneratePartialArg struct {
	Path   string         `json:"jsonPath"` // such as $.order.items[0].name
	String *string        `json:"stringValue,omitzero"`
	Number jsontext.Value `json:"numberValue,omitzero"`
	Bool   *bool          `json:"boolValue,omitzero"` // of the members with a value, one is there; of a null, none that is read
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

// A GenerateAnswer is the answer to a GenerateRequest.
type GenerateAnswer struct {
	Candidates     []*GenerateCandidate `json:"candidates"`
	ModelVersion   string               `json:"modelVersion"`
	ResponseID     string               `json:"responseId"`
	PromptFeedback struct {
		BlockReason        string           `json:"blockReason"` // "": the prompt was not blocked
		BlockReasonMessage string           `json:"blockReasonMessage"`
		SafetyRatings      []GenerateRating `json:"safetyRatings"`
	} `json:"promptFeedback"`
	Usage jsontext.Value `json:"usageMetadata"` // as reported; GenerateUsage has the counts
	Error jsontext.Value `json:"error"`         // of a chunk of a stream: why it ends

	Inside *GenerateAnswer `json:"response"` // of Google's Code Assist: the answer
}

// Opened returns the answer without the envelope of Google's Code Assist. An error on the envelope is the answer's, if that has none.
func (a *GenerateAnswer) Opened() *GenerateAnswer {
	if a.Inside == nil {
		return a
	}
	inside := *a.Inside
	if !present(inside.Error) {
		inside.Error = a.Error
	}
	return &inside
}

// A GenerateCandidate is one of the answers.
type GenerateCandidate struct {
	Index         int              `json:"index"`
	Content       GenerateContent  `json:"content"`
	FinishReason  string           `json:"finishReason"` // STOP, MAX_TOKENS, SAFETY and others
	FinishMessage string           `json:"finishMessage"`
	SafetyRatings []GenerateRating `json:"safetyRatings"`
}

// A GenerateRating is a filter's rating of a text.
type GenerateRating struct {
	Category    string `json:"category"`
	Probability string `json:"probability"` // NEGLIGIBLE, LOW, MEDIUM or HIGH
	Blocked     bool   `json:"blocked"`
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

// Text returns what the model said in a candidate, without its thoughts.
func (c *GenerateCandidate) Text() string {
	var text strings.Builder
	for _, part := range c.Content.Parts {
		if !part.Thought {
			text.WriteString(part.Text)
		}
	}
	return text.String()
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

// ReadGenerateStream reads a stream of Gemini's streamGenerateContent: server-sent events, or one JSON array. The
// last chunk has a finish reason or a blocked prompt. It returns ErrCut with the answer so far, a *StreamError, or an
// error about a chunk that does not follow the protocol. The options are for each chunk's JSON.
func ReadGenerateStream(body []byte, options ...json.Options) (*GenerateAnswer, error) {
	var sum generateSum
	err := sum.read(body, json.JoinOptions(options...))
	return sum.answer(), err
}

type generateSum struct {
	whole      GenerateAnswer
	candidates numbered[candidateSum]
	values     int // in arguments that come in pieces
}

type candidateSum struct {
	GenerateCandidate
	calls []*partialCall
}

func (s *generateSum) read(body []byte, options json.Options) error {
	for data, err := range generateChunks(body, options) {
		if err != nil {
			return err
		}
		var chunk GenerateAnswer
		if err := json.Unmarshal(data, &chunk, options); err != nil {
			return notTheProtocol(err)
		}
		opened := chunk.Opened()
		err := s.add(*opened)
		if present(opened.Error) { // what stands beside it is kept
			return &StreamError{valueOf(map[string]jsontext.Value{"error": opened.Error})}
		}
		if err != nil {
			return err
		}
	}
	if !s.over() {
		return ErrCut
	}
	return nil
}

// generateChunks returns the chunks of a stream in either form. The error ErrCut ends an array without an end.
func generateChunks(body []byte, options json.Options) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		body := bytes.TrimPrefix(body, []byte("\ufeff"))
		if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
			for e := range answerEvents(body) {
				if !yield(e.Data, nil) {
					return
				}
			}
			return
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(body), options) // a bytes.Buffer is read in place
		if _, err := d.ReadToken(); err != nil {
			yield(nil, ErrCut)
			return
		}
		for d.PeekKind() == jsontext.KindBeginObject {
			v, err := d.ReadValue()
			if err != nil {
				yield(nil, ErrCut)
				return
			}
			if !yield(v.Clone(), nil) {
				return
			}
		}
		if _, err := d.ReadToken(); err != nil {
			yield(nil, ErrCut)
		}
	}
}

func (s *generateSum) add(chunk GenerateAnswer) error {
	s.whole.ModelVersion = cmp.Or(chunk.ModelVersion, s.whole.ModelVersion)
	s.whole.ResponseID = cmp.Or(chunk.ResponseID, s.whole.ResponseID)
	if present(chunk.Usage) {
		s.whole.Usage = chunk.Usage
	}
	if chunk.PromptFeedback.BlockReason != "" {
		s.whole.PromptFeedback = chunk.PromptFeedback
	}
	for _, c := range chunk.Candidates {
		if c == nil {
			return errors.New("candidates: one is null")
		}
		sum, err := s.candidates.at(c.Index)
		if err != nil {
			return fmt.Errorf("candidates: %w", err)
		}
		sum.Index = c.Index
		sum.Content.Role = cmp.Or(c.Content.Role, sum.Content.Role)
		for _, part := range c.Content.Parts {
			if err := sum.take(part, &s.values); err != nil {
				return fmt.Errorf("partialArgs: %w", err)
			}
		}
		sum.FinishReason = cmp.Or(c.FinishReason, sum.FinishReason)
		sum.FinishMessage = cmp.Or(c.FinishMessage, sum.FinishMessage)
		if c.SafetyRatings != nil {
			sum.SafetyRatings = c.SafetyRatings
		}
	}
	return nil
}

// over reports that the stream is complete: the prompt is blocked, or every candidate has stopped.
func (s *generateSum) over() bool {
	if s.whole.PromptFeedback.BlockReason != "" {
		return true
	}
	for _, c := range s.candidates {
		if c.FinishReason == "" {
			return false
		}
	}
	return len(s.candidates) > 0
}

func (s *generateSum) answer() *GenerateAnswer {
	for _, c := range s.candidates.all() {
		for _, call := range c.calls {
			c.Content.Parts[call.part].FunctionCall.Args = valueOf(call.args)
		}
		s.whole.Candidates = append(s.whole.Candidates, &c.GenerateCandidate)
	}
	return &s.whole
}

type partialCall struct {
	part int // of the candidate's content
	open bool
	args any // what came so far: see put
}

// take takes a part. A function call without a name is the next piece of the one before. It counts the values in all that comes in pieces.
func (c *candidateSum) take(part GeneratePart, values *int) error {
	call := part.FunctionCall
	if call == nil {
		c.Content.Parts = append(c.Content.Parts, part)
		return nil
	}
	var known *partialCall
	if n := len(c.calls); n > 0 && c.calls[n-1].open && call.Name == "" {
		known = c.calls[n-1]
	} else if call.Name == "" && call.ID == "" && call.PartialArgs == nil && !present(call.Args) { // the end of a call that has ended
		return nil
	} else {
		c.Content.Parts = append(c.Content.Parts, part)
		if !call.WillContinue && call.PartialArgs == nil {
			return nil
		}
		known = &partialCall{part: len(c.Content.Parts) - 1, args: map[string]any{}}
		if len(call.Args) > len("{}") {
			known.args = call.Args
		}
		c.calls = append(c.calls, known)
	}
	known.open = call.WillContinue
	for _, piece := range call.PartialArgs {
		path, found := strings.CutPrefix(piece.Path, "$")
		if !found || len(path) > longestPath {
			return fmt.Errorf("a path does not begin with $, or is longer than %d bytes", longestPath)
		}
		var err error
		if known.args, err = put(known.args, path, &piece, 0, values); err != nil {
			return err
		}
	}
	return nil
}

const (
	mostSteps   = 64      // how deep a value can be
	longestPath = 4096    // in bytes
	mostEmpty   = 8       // elements of which no piece came before the next
	mostValues  = 1 << 16 // in the arguments of all calls of a stream: short paths can ask for many
)

// put returns a value with a piece put where a path says: an object (of which an empty one is also a value of which no piece came), an array, a
// text that grows, or another value. It counts the values that are new.
func put(in any, path string, piece *GeneratePartialArg, steps int, values *int) (any, error) {
	if path == "" {
		return piece.on(in), nil
	}
	name, number, rest, err := step(path)
	if err == nil && steps == mostSteps {
		err = fmt.Errorf("a path has more than %d steps", mostSteps)
	}
	if err != nil {
		return in, err
	}
	members, isObject := in.(map[string]any)
	list, isList := in.([]any)
	var next any = map[string]any{}
	added := 0
	switch {
	case number < 0 && isObject:
		if known, there := members[name]; there {
			next = known
		} else {
			added = 1
		}
	case number >= 0 && (isList || isObject && len(members) == 0):
		if number > len(list)+mostEmpty {
			return in, fmt.Errorf("element %d comes before element %d", number, len(list))
		}
		for ; number >= len(list); added++ {
			list = append(list, map[string]any{})
		}
		next = list[number]
	default:
		return in, errors.New("a path leads into a value of another kind")
	}
	if *values += added; *values > mostValues {
		return in, fmt.Errorf("more than %d values: the others are left out", mostValues)
	}
	if next, err = put(next, rest, piece, steps+1, values); number < 0 {
		members[name] = next
		return members, err
	}
	list[number] = next
	return list, err
}

// A grown text is a text that comes in pieces.
type grown []byte

// MarshalText returns the text.
func (g grown) MarshalText() ([]byte, error) { return g, nil }

func (p *GeneratePartialArg) on(in any) any {
	text, isText := in.(grown)
	switch {
	case p.String != nil:
		return append(text, *p.String...)
	case isText:
		return text
	case present(p.Number):
		return p.Number
	case p.Bool != nil:
		return *p.Bool
	}
	return jsontext.Value("null")
}

// aStep is the first step of a path: .name, ['name'], ["name"] or [0].
var aStep = regexp.MustCompile(`^(?s:\.([^.\[]*)|\['(.*?)'\]|\["(.*?)"\]|\[(\d+)\])`)

// step splits the first step off a path. number is -1 for a name.
func step(path string) (name string, number int, rest string, err error) {
	at := aStep.FindStringSubmatch(path)
	number = -1
	if at != nil && at[4] != "" {
		number, err = strconv.Atoi(at[4])
	}
	if at == nil || err != nil || number > maxIndex {
		return "", 0, "", errors.New("a path has a step that is neither a name nor a number in range")
	}
	return at[1] + at[2] + at[3], number, path[len(at[0]):], nil
}
