package llm

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// compatible is OpenAI's Chat Completions API, as many servers implement it. Such servers often need no key.
var compatible = protocol{
	keyless: true,
	path:    func(Settings) string { return "/chat/completions" },
	sign:    bearer,
	request: chatRequest,
	next:    nextDialect,
	read:    readChat,
	explain: explainOpenAI,
}

// nextDialect takes the newer name of a limit that the server refuses by its older name, and otherwise the next weaker form of a
// schema.
func nextDialect(d dialect, refused *Error) (dialect, bool) {
	switch {
	case !d.newLimit && strings.Contains(refused.Detail, "max_completion_tokens"):
		d.newLimit = true
	case d.schema < schemaOnlyInWords:
		d.schema++
	default:
		return d, false
	}
	return d, true
}

func chatRequest(s Settings, q Question, d dialect) any {
	r := convo.ChatRequest{Model: s.Model, Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed, MaxTokens: s.MaxTokens}
	if d.newLimit {
		r.MaxTokens, r.MaxCompletionTokens = 0, s.MaxTokens
	}
	switch {
	case q.Schema.JSON == nil:
	case d.schema == schemaGiven:
		r.ResponseFormat = &convo.ChatFormat{Type: "json_schema", JSONSchema: &convo.ChatSchema{Name: q.Schema.Name, Strict: true, Schema: q.Schema.JSON}}
	default:
		q.System = strings.TrimSpace(q.System + "\n\nAnswer with one JSON object, and nothing else, that keeps to this JSON Schema:\n" + string(q.Schema.JSON))
		if d.schema == schemaInWords {
			r.ResponseFormat = &convo.ChatFormat{Type: "json_object"}
		}
	}
	if q.System != "" {
		r.Messages = append(r.Messages, convo.ChatMessage{Role: "system", Content: convo.Content{Text: q.System}})
	}
	for _, m := range q.Messages {
		r.Messages = append(r.Messages, convo.ChatMessage{Role: role(m, "assistant"), Content: convo.Content{Text: m.Text}})
	}
	return r
}

func readChat(x *exchange) (Answer, error) {
	var c convo.ChatAnswer
	if err := x.decode(&c); err != nil {
		return Answer{}, err
	}
	if len(c.Choices) == 0 && c.Error.Kind() == jsontext.KindBeginObject {
		return Answer{}, behind(x, c.Error)
	}
	if len(c.Choices) != 1 {
		return Answer{}, x.fail(Malformed, fmt.Sprintf("the response has %d choices", len(c.Choices)))
	}
	choice := c.Choices[0]
	answer := Answer{
		Text:         choice.Message.Content.All(),
		Model:        c.Model,
		Version:      c.SystemFingerprint,
		FinishReason: choice.FinishReason,
		Usage:        counted[convo.ChatUsage](c.Usage),
		Raw:          x.body,
	}
	if choice.Message.Refusal != "" {
		return Answer{}, x.failWith(answer, Refused, "refusal: "+choice.Message.Refusal)
	}
	return x.conclude(answer, choice.FinishReason)
}

// behind returns an error that a gateway passes on with a success status. The error's code is the status that the
// gateway got.
func behind(x *exchange, value jsontext.Value) error {
	var inner struct {
		Code jsontext.Value `json:"code"`
	}
	status := 0
	if json.Unmarshal(value, &inner) == nil && inner.Code.Kind() == jsontext.KindNumber && json.Unmarshal(inner.Code, &status) != nil {
		status = 0
	}
	said := explainOpenAI(status, x.body)
	if said.kind == "" {
		said.kind = KindOfStatus(status)
	}
	return x.fail(said.kind, said.detail)
}
