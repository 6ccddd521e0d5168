package llm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/internal/tap/convo"
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

// turns are the messages of a question. Vendors use different names for the model.
func turns(q Question, model, member string, content func(text string) any) []object {
	list := []object{}
	for _, m := range q.Messages {
		role := "user"
		if m.ByModel {
			role = model
		}
		list = append(list, object{"role": role, member: content(m.Text)})
	}
	return list
}

func asItIs(text string) any { return text }

func readResponses(x *exchange, r *convo.Node) (Answer, error) {
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

func readChat(x *exchange, c *convo.Node) (Answer, error) {
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
	return x.fail(cmp.Or(said.kind, KindOfStatus(status)), said.detail)
}

// anthropic is Anthropic's Messages API.
var anthropic = protocol{
	baseURL: "https://api.anthropic.com",
	check: func(s Settings) error {
		switch {
		case s.Seed != nil:
			return errors.New("seed: the Messages API accepts no seed")
		case s.MaxTokens == 0:
			return errors.New("max_tokens: the Messages API requires it")
		case s.Temperature != nil && *s.Temperature > 1:
			return fmt.Errorf("temperature: %v is above 1", *s.Temperature)
		}
		return nil
	},
	path: func(Settings) string { return "/v1/messages" },
	sign: func(h http.Header, key string) {
		h.Set("X-Api-Key", key)
		h.Set("Anthropic-Version", "2023-06-01")
	},
	request: messagesRequest,
	read:    readMessages,
	explain: explainAnthropic,
}

func messagesRequest(s Settings, q Question, _ dialect) object {
	text := func(text string) any { return []object{{"type": "text", "text": text}} }
	r := object{"model": s.Model, "max_tokens": s.MaxTokens, "messages": turns(q, "assistant", "content", text)}
	put(r, "temperature", s.Temperature)
	put(r, "top_p", s.TopP)
	if q.System != "" {
		r["system"] = text(q.System)
	}
	if q.Schema.JSON != nil {
		r["output_config"] = object{"format": object{"type": "json_schema", "schema": q.Schema.JSON}}
	}
	return r
}

func readMessages(x *exchange, m *convo.Node) (Answer, error) {
	answer := Answer{Model: m.Word("model"), FinishReason: m.Word("stop_reason"), Usage: convo.Counted(m.Get("usage"), convo.MessagesCounts)}
	var text strings.Builder
	for _, block := range m.Get("content").List() {
		if block.Word("type") == "text" {
			text.WriteString(block.Word("text"))
		}
	}
	answer.Text = text.String()
	details := m.Get("stop_details")
	return x.conclude(answer, strings.Join(strings.Fields(answer.FinishReason+" "+details.Word("category")+" "+details.Word("explanation")), " "))
}

// explainAnthropic reads Anthropic's errors. Many important ones share a type, so it tells them apart by their texts.
func explainAnthropic(_ int, body []byte) reading {
	e := convo.ErrorBody(body).Get("error")
	kind, message := e.Word("type"), e.Word("message")
	if kind == "" {
		return reading{detail: excerpt(body)}
	}
	said := reading{kind: anthropicKinds[kind], detail: kind + ": " + message}
	has := func(words string) bool {
		return kind == "invalid_request_error" && strings.Contains(strings.ToLower(message), words)
	}
	switch {
	case has("prompt is too long"), has("exceed context limit"), has("context window"):
		said.kind = TooLong
	case has("content filtering policy"):
		said.kind = Refused
	case has("credit balance is too low"):
		said.kind = Unauthorised
	}
	return said
}

var anthropicKinds = map[string]Kind{"authentication_error": Unauthorised, "permission_error": Unauthorised, "billing_error": Unauthorised,
	"not_found_error": NotFound, "rate_limit_error": RateLimited, "overloaded_error": Unavailable, "api_error": Unavailable, "timeout_error": Unavailable,
	"request_too_large": TooLong}

// gemini is Google's Gemini API, method generateContent.
var gemini = protocol{
	baseURL: "https://generativelanguage.googleapis.com",
	check: func(s Settings) error {
		switch {
		case !modelName.MatchString(s.Model):
			return fmt.Errorf("%q is not a valid model name", s.Model)
		case s.Seed != nil && (*s.Seed < math.MinInt32 || *s.Seed > math.MaxInt32):
			return fmt.Errorf("seed: %d does not fit 32 bits", *s.Seed)
		}
		return nil
	},
	path: func(s Settings) string {
		name := s.Model
		if !strings.Contains(name, "/") {
			name = "models/" + name
		}
		return "/v1beta/" + name + ":generateContent"
	},
	sign:    func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) },
	request: generateRequest,
	read:    readGenerate,
	explain: explainGoogle,
}

// modelName matches the names that a URL path may hold.
var modelName = regexp.MustCompile(`^(?:(?:models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)

func generateRequest(s Settings, q Question, _ dialect) object {
	parts := func(text string) any { return []object{{"text": text}} }
	config := object{"candidateCount": 1}
	r := object{"contents": turns(q, "model", "parts", parts), "generationConfig": config}
	put(config, "temperature", s.Temperature)
	put(config, "topP", s.TopP)
	put(config, "seed", s.Seed) // of 32 bits
	put(config, "maxOutputTokens", s.MaxTokens)
	if q.System != "" {
		r["systemInstruction"] = object{"role": "user", "parts": parts(q.System)}
	}
	if q.Schema.JSON != nil {
		config["responseMimeType"], config["responseJsonSchema"] = "application/json", q.Schema.JSON
	}
	return r
}

func readGenerate(x *exchange, r *convo.Node) (Answer, error) {
	answer := Answer{Model: r.Word("modelVersion"), Usage: convo.Counted(r.Get("usageMetadata"), convo.GenerateCounts)}
	if f := r.Get("promptFeedback"); f.Word("blockReason") != "" {
		answer.FinishReason = f.Word("blockReason")
		return Answer{}, x.failWith(answer, Refused, kinds("prompt blocked: "+answer.FinishReason, f, f.Word("blockReasonMessage")))
	}
	candidates := r.Get("candidates").List()
	if len(candidates) != 1 || candidates[0].Absent() {
		return Answer{}, x.failWith(answer, Malformed, fmt.Sprintf("the response has %d candidates", len(candidates)))
	}
	candidate := candidates[0]
	answer.FinishReason = candidate.Word("finishReason")
	var text strings.Builder
	for _, part := range candidate.Get("content").Get("parts").OneOrMore() {
		if !part.Get("thought").IsTrue() {
			text.WriteString(part.Word("text"))
		}
	}
	answer.Text = text.String()
	return x.conclude(answer, kinds(answer.FinishReason, candidate, candidate.Word("finishMessage")))
}

// kinds tells what a filter found: the ratings that blocked, and those that are high.
func kinds(reason string, found *convo.Node, message string) string {
	for _, r := range found.Get("safetyRatings").List() {
		if r.Get("blocked").IsTrue() || r.Word("probability") == "HIGH" {
			reason += fmt.Sprintf(", %s %s", r.Word("category"), r.Word("probability"))
		}
	}
	if message != "" {
		reason += ": " + message
	}
	return reason
}

// explainGoogle reads errors of Google's interfaces: a status in words, and details of several types.
func explainGoogle(_ int, body []byte) reading {
	e := convo.ErrorBody(body).Get("error")
	status, message := e.Word("status"), e.Word("message")
	if status == "" {
		return reading{detail: excerpt(body)}
	}
	said := reading{kind: kindOfGoogle(status, strings.ToLower(message)), detail: status + ": " + message}
	for _, detail := range e.Get("details").List() {
		switch kind := detail.Word("@type"); {
		case kind == "type.googleapis.com/google.rpc.ErrorInfo" && strings.HasPrefix(detail.Word("reason"), "API_KEY_"):
			said.kind = Unauthorised // Google sends the status of any invalid request
		case kind == "type.googleapis.com/google.rpc.RetryInfo":
			if wait, err := time.ParseDuration(detail.Word("retryDelay")); err == nil && wait > 0 { // such as "3.5s"
				said.wait = wait
			}
		}
	}
	return said
}

func kindOfGoogle(status, message string) Kind {
	switch {
	case status == "FAILED_PRECONDITION": // billing, or a country without service
		return Unauthorised
	case status != "INVALID_ARGUMENT":
	case strings.Contains(message, "token count") && strings.Contains(message, "exceeds"):
		return TooLong
	case strings.Contains(message, "api key not valid"), strings.Contains(message, "api key expired"):
		return Unauthorised
	}
	return "" // the HTTP status tells
}
