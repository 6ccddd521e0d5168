package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/convo"
)

// openAI is OpenAI's Responses API.
var openAI = protocol{
	baseURL: "https://api.openai.com/v1",
	check: func(s Settings) error {
		if s.Seed != nil {
			return errors.New("seed: the Responses API accepts no seed")
		}
		return nil
	},
	path:    func(Settings) string { return "/responses" },
	sign:    bearer,
	request: responsesRequest,
	read:    readResponses,
	explain: explainOpenAI,
}

func responsesRequest(s Settings, q Question, _ dialect) object {
	r := object{"model": s.Model, "input": turns(q, "assistant", "content", asItIs), "store": false} // so that the vendor does not store evidence
	put(r, "instructions", q.System)
	put(r, "temperature", s.Temperature)
	put(r, "top_p", s.TopP)
	put(r, "max_output_tokens", s.MaxTokens)
	if q.Schema.JSON != nil {
		r["text"] = object{"format": object{"type": "json_schema", "name": q.Schema.Name, "strict": true, "schema": q.Schema.JSON}}
	}
	return r
}

// An object is the body of a request, or a value in it.
type object = map[string]any

// put sets a member. A zero value leaves it to the vendor.
func put[T comparable](r object, name string, value T) {
	var none T
	if value != none {
		r[name] = value
	}
}

// turns are the messages of a question, as vendors write them.
func turns(q Question, model, member string, content func(text string) any) []object {
	list := []object{}
	for _, m := range q.Messages {
		list = append(list, object{"role": role(m, model), member: content(m.Text)})
	}
	return list
}

func asItIs(text string) any { return text }

// role names the author of a message; vendors use different names for the model.
func role(m Message, model string) string {
	if m.ByModel {
		return model
	}
	return "user"
}

func readResponses(x *exchange) (Answer, error) {
	r, err := x.answer()
	if err != nil {
		return Answer{}, err
	}
	status, failure := r.Word("status"), r.Get("error")
	answer := Answer{Model: r.Word("model"), FinishReason: status, Usage: convo.Counted(r.Get("usage"), convo.ResponsesCounts)}
	var text, refusal strings.Builder
	for _, item := range r.Get("output").List() {
		for _, part := range item.Get("content").List() {
			switch item.Word("type") + " " + part.Word("type") {
			case "message output_text":
				text.WriteString(part.Word("text"))
			case "message refusal":
				refusal.WriteString(part.Word("refusal"))
			}
		}
	}
	answer.Text = text.String()
	switch status {
	case "incomplete":
		answer.FinishReason = cmp.Or(r.Get("incomplete_details").Word("reason"), status)
		if word(answer.FinishReason) != "content_filter" {
			return Answer{}, x.cutOff(answer)
		}
	case "failed":
		said := convo.OpenAIError{Code: failure.Word("code"), Message: failure.Word("message")}
		return Answer{}, x.failWith(answer, cmp.Or(kindOfOpenAI(0, said), Malformed), said.Code+": "+said.Message)
	case "queued", "in_progress", "cancelled":
		return Answer{}, x.failWith(answer, Malformed, "the response is "+status)
	}
	if refusal.Len() > 0 {
		return Answer{}, x.failWith(answer, Refused, "refusal: "+refusal.String())
	}
	return x.conclude(answer, answer.FinishReason)
}

// explainOpenAI reads errors of OpenAI, and of servers that speak its protocol.
func explainOpenAI(status int, body []byte) reading {
	said, ok := convo.ReadOpenAIError(body)
	if !ok {
		return reading{detail: excerpt(body)}
	}
	detail := said.Code + said.Message
	if said.Code != "" && said.Message != "" {
		detail = said.Code + ": " + said.Message
	}
	return reading{kind: kindOfOpenAI(status, said), detail: detail}
}

// kindOfOpenAI maps an error to a Kind; "": the error tells no more than the HTTP status.
func kindOfOpenAI(status int, said convo.OpenAIError) Kind {
	if kind := openAIKinds[said.Code]; kind != "" {
		return kind
	}
	if said.Type == "exceed_context_size_error" || status == http.StatusBadRequest && speaksOfLength(said.Message) {
		return TooLong
	}
	return ""
}

// openAIKinds are the kinds of errors with a code. Waiting does not help against a quota.
var openAIKinds = map[string]Kind{"context_length_exceeded": TooLong, "string_above_max_length": TooLong,
	"content_filter": Refused, "content_policy_violation": Refused, "invalid_prompt": Refused, "bio_policy": Refused, "misalignment_policy_violation": Refused,
	"insufficient_quota": Unauthorised, "billing_hard_limit_reached": Unauthorised, "invalid_api_key": Unauthorised,
	"model_not_found": NotFound, "rate_limit_exceeded": RateLimited, "server_error": Unavailable}

// speaksOfLength reports whether an error's text says that a prompt is too long. Some servers have no code for that.
func speaksOfLength(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{"maximum context length", "context length exceeded", "context window", "exceeds the context",
		"available context size", "greater than the context length"}, func(words string) bool { return strings.Contains(message, words) })
}

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

func chatRequest(s Settings, q Question, d dialect) object {
	r, limit := object{"model": s.Model, "stream": false}, "max_tokens"
	if d.newLimit {
		limit = "max_completion_tokens" // OpenAI's newer name, which most other servers do not know
	}
	put(r, limit, s.MaxTokens)
	put(r, "temperature", s.Temperature)
	put(r, "top_p", s.TopP)
	put(r, "seed", s.Seed)
	switch {
	case q.Schema.JSON == nil:
	case d.schema == schemaGiven:
		r["response_format"] = object{"type": "json_schema", "json_schema": object{"name": q.Schema.Name, "strict": true, "schema": q.Schema.JSON}}
	default:
		q.System = strings.TrimSpace(q.System + "\n\nAnswer with one JSON object, and nothing else, that keeps to this JSON Schema:\n" + string(q.Schema.JSON))
		if d.schema == schemaInWords {
			r["response_format"] = object{"type": "json_object"}
		}
	}
	messages := turns(q, "assistant", "content", asItIs)
	if q.System != "" {
		messages = slices.Insert(messages, 0, object{"role": "system", "content": q.System})
	}
	r["messages"] = messages
	return r
}

func readChat(x *exchange) (Answer, error) {
	c, err := x.answer()
	if err != nil {
		return Answer{}, err
	}
	choices := c.Get("choices").List()
	if len(choices) == 0 && c.Has("error", '{') {
		return Answer{}, behind(x, c.Get("error"))
	}
	if len(choices) != 1 {
		return Answer{}, x.fail(Malformed, fmt.Sprintf("the response has %d choices", len(choices)))
	}
	message, finish := choices[0].Get("message"), choices[0].Word("finish_reason")
	answer := Answer{Model: c.Word("model"), Version: c.Word("system_fingerprint"), FinishReason: finish, Usage: convo.Counted(c.Get("usage"), convo.ChatCounts)}
	var text strings.Builder
	text.WriteString(message.Word("content"))
	for _, part := range message.Get("content").List() {
		if part.Word("type") != "reasoning" {
			text.WriteString(part.Word("text"))
		}
	}
	answer.Text = text.String()
	if refusal := message.Word("refusal"); refusal != "" {
		return Answer{}, x.failWith(answer, Refused, "refusal: "+refusal)
	}
	return x.conclude(answer, finish)
}

// behind returns an error that a gateway passes on with a success status. The error's code is the status that the
// gateway got.
func behind(x *exchange, failure *convo.Node) error {
	status, err := strconv.Atoi(convo.Plain(failure.Get("code")))
	if err != nil || !failure.Has("code", '0') {
		status = 0
	}
	said := explainOpenAI(status, x.body)
	if said.kind == "" {
		said.kind = KindOfStatus(status)
	}
	return x.fail(said.kind, said.detail)
}
