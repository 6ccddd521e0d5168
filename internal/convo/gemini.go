package convo

import (
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
