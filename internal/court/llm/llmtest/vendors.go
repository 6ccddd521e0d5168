package llmtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/llm"
)

// A decoding makes a Call of a request, and keeps the first thing in it that is not the vendor's protocol.
type decoding struct {
	Call
	vendor     *Vendor
	seen       map[string]bool // places in the request
	role, text string          // of the turn that is being read
	err        error
}

// A take takes in what a request has at one place.
type take func(d *decoding, at string, v jsontext.Value)

// decode reads a request. It refuses unknown and repeated members, and a request without what the vendor requires.
func (v *Vendor) decode(path string, body []byte) (Call, error) {
	d := &decoding{vendor: v, seen: map[string]bool{}}
	before, after, named := strings.Cut(v.path, "%s")
	rest, from := strings.CutPrefix(path, before)
	name, to := strings.CutSuffix(rest, after)
	d.demand(from && to && (named || name == ""), "path %s", path)
	d.Settings.Model = name
	d.walk("", body)
	for _, at := range slices.Sorted(maps.Keys(v.needs)) {
		d.needed(at)
	}
	d.demand(d.Settings.Model != "", "there is no model")
	last := len(d.Messages) - 1
	d.demand(last >= 0 && !d.Messages[last].ByModel, "there is no last message by the user")
	if d.err != nil {
		return Call{}, d.err
	}
	return d.Call, nil
}

func (d *decoding) demand(so bool, format string, args ...any) {
	if !so && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// needed demands what is needed where a place is.
func (d *decoding) needed(at string) {
	for _, needed := range d.vendor.needs[at] {
		d.demand(!d.seen[at] || d.seen[needed], "there is no %s", needed)
	}
}

// walk takes in everything at a place. A member that is null is as if it were not there.
func (d *decoding) walk(at string, v jsontext.Value) {
	if v.Kind() == jsontext.KindNull {
		return
	}
	d.seen[at] = true
	if taken := d.vendor.members[at]; taken != nil {
		taken(d, at, v)
		return
	}
	d.demand(d.vendor.leadsOn(at), "unknown member %s", at)
	switch v.Kind() {
	case jsontext.KindBeginArray:
		for _, item := range value[[]jsontext.Value](d, at, v) { // each has what is needed
			d.demand(item.Kind() != jsontext.KindNull, "%s/* is null", at)
			for _, needed := range d.vendor.needs[at+"/*"] {
				delete(d.seen, needed)
			}
			d.walk(at+"/*", item)
			d.needed(at + "/*")
		}
	case jsontext.KindBeginObject:
		members := value[map[string]jsontext.Value](d, at, v)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			d.walk(at+"/"+name, members[name])
		}
	default:
		d.demand(false, "%s is %s", at, v)
	}
	if at == d.vendor.turns+"/*" {
		d.turn()
	}
}

// leadsOn reports whether the vendor has members below a place.
func (v *Vendor) leadsOn(at string) bool {
	for place := range v.members {
		if strings.HasPrefix(place, at+"/") {
			return true
		}
	}
	return false
}

// turn ends a turn. A system's is the first, where the vendor has such a role.
func (d *decoding) turn() {
	n := len(d.Messages)
	d.demand(d.text != "", "messages/%d: empty", n)
	if d.role == "system" {
		d.demand(n == 0 && d.System == "", "messages/%d: role %q", n, d.role)
		d.System = d.text
	} else {
		d.demand(d.role != "", "messages/%d: no role", n)
		d.Messages = append(d.Messages, llm.Message{ByModel: d.role != "user", Text: d.text})
	}
	d.role, d.text = "", ""
}

func value[T any](d *decoding, at string, v jsontext.Value) (to T) {
	if err := json.Unmarshal(v, &to); err != nil {
		d.demand(false, "%s: %w", at, err)
	}
	return to
}

func is(values ...string) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.demand(slices.Contains(values, string(v)), "%s is %s", at, v)
	}
}

func role(names ...string) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.role = value[string](d, at, v)
		d.demand(slices.Contains(names, d.role), "%s is %s", at, v)
	}
}

func limit(least int) take {
	return func(d *decoding, at string, v jsontext.Value) {
		d.Settings.MaxTokens = value[int](d, at, v)
		d.demand(d.Settings.MaxTokens >= least, "a limit of %s tokens", v)
	}
}

func setting[T int64 | float64](most T, of func(*llm.Settings) **T) take {
	return func(d *decoding, at string, v jsontext.Value) {
		n := value[T](d, at, v)
		d.demand(n <= most && n >= -most-1, "%s is %s, above %v or below its negative", at, v, most)
		*of(&d.Settings) = &n
	}
}

func temperatureOf(s *llm.Settings) **float64 { return &s.Temperature }
func topPOf(s *llm.Settings) **float64        { return &s.TopP }
func seedOf(s *llm.Settings) **int64          { return &s.Seed }

var (
	temperature = setting(math.MaxFloat64, temperatureOf)
	topP        = setting(math.MaxFloat64, topPOf)
)

func anything(*decoding, string, jsontext.Value) {}

func model(d *decoding, at string, v jsontext.Value) { d.Settings.Model = value[string](d, at, v) }

func system(d *decoding, at string, v jsontext.Value) { d.System += block(d, at, v) }

func said(d *decoding, at string, v jsontext.Value) { d.text += block(d, at, v) }

func block(d *decoding, at string, v jsontext.Value) string {
	one := value[string](d, at, v)
	d.demand(one != "", "%s is an empty block of text", at)
	return one
}

func schemaName(d *decoding, at string, v jsontext.Value) {
	d.Schema.Name = value[string](d, at, v)
	d.demand(d.Schema.Name != "", "%s is empty", at)
}

// schema takes a schema that the vendor's dialect has; nil: any.
func schema(of *dialect) take {
	return func(d *decoding, at string, v jsontext.Value) {
		root := value[object](d, at, v)
		if of != nil {
			d.err = cmp.Or(d.err, of.check(root))
		}
		d.Schema.JSON = v
	}
}

// A dialect is the part of JSON Schema that a vendor accepts.
type dialect struct {
	keywords    []string
	closed      bool // every object must forbid further members
	allRequired bool // every object must require all of its members
}

// A panel of several vendors can use only the keywords that every vendor accepts.
var everywhere = []string{"type", "title", "description", "enum", "items", "properties", "required", "additionalProperties", "anyOf", "$ref", "$defs"}

var (
	openAIDialect = &dialect{append([]string{"const", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems",
		"maxItems"}, everywhere...), true, true}
	anthropicDialect = &dialect{append([]string{"const", "default", "allOf", "pattern", "format", "definitions"}, everywhere...), true, false}
	geminiDialect    = &dialect{append([]string{"$id", "$anchor", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "oneOf",
		"propertyOrdering"}, everywhere...), false, false}
)

// check refuses a schema that the vendor would refuse or would not follow.
func (d *dialect) check(root object) error {
	if root["type"] != "object" {
		return errors.New("schema: the root is not of type object")
	}
	return d.walk(root, "schema")
}

// walk refuses what is wrong with a schema at a place, or with those inside it.
func (d *dialect) walk(schema any, at string) error {
	s, is := schema.(object)
	if !is {
		return fmt.Errorf("%s: not an object", at)
	}
	var err error
	if s["type"] == "object" {
		err = d.object(s, at)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(d.keywords, keyword) {
			err = cmp.Or(err, fmt.Errorf("%s: the vendor does not support %s", at, keyword))
		}
		switch inside := s[keyword].(type) {
		case object:
			if keyword == "items" {
				err = cmp.Or(err, d.walk(inside, at+"/items"))
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(inside)) {
				err = cmp.Or(err, d.walk(inside[name], at+"/"+keyword+"/"+name))
			}
		case []any:
			for i := range inside {
				if keyword == "anyOf" {
					err = cmp.Or(err, d.walk(inside[i], fmt.Sprintf("%s/anyOf/%d", at, i)))
				}
			}
		default:
			if slices.Contains([]string{"properties", "$defs", "anyOf", "items"}, keyword) {
				err = cmp.Or(err, fmt.Errorf("%s: %s is %v", at, keyword, inside))
			}
		}
	}
	return err
}

// object checks what an object requires and forbids.
func (d *dialect) object(s object, at string) error {
	if d.closed && s["additionalProperties"] != false {
		return fmt.Errorf("%s: additionalProperties is not false", at)
	}
	properties, _ := s["properties"].(object)
	list, is := s["required"].([]any)
	if s["required"] != nil && !is || d.allRequired && len(list) != len(properties) {
		return fmt.Errorf("%s: required: not every member is required", at)
	}
	seen := map[any]bool{}
	for _, name := range list {
		text, is := name.(string)
		if !is || properties[text] == nil || seen[name] {
			return fmt.Errorf("%s: required: there is no member %v, or it is required twice", at, name)
		}
		seen[name] = true
	}
	return nil
}

var Vendors = []Vendor{OpenAI, Anthropic, Gemini, Compatible}

// OpenAI is the Responses API.
var OpenAI = Vendor{Name: "OpenAI", base: "/v1", path: "/responses", header: "Authorization", turns: "/input", wrong: wrongOpenAI,
	members: map[string]take{"/model": model, "/instructions": system, "/store": is(`false`), "/temperature": temperature, "/top_p": topP,
		"/max_output_tokens": limit(16), "/input/*/type": is(`"message"`), "/input/*/role": role("user", "assistant"), "/input/*/content": said,
		"/text/format/type": is(`"json_schema"`), "/text/format/strict": is(`true`), "/text/format/name": schemaName, "/text/format/schema": schema(openAIDialect)},
	needs:  map[string][]string{"": {"/store"}, "/text/format": {"/text/format/type", "/text/format/strict", "/text/format/name", "/text/format/schema"}},
	answer: answerResponses, fail: func(Reply) map[Failure]failure { return openAIErrors }}

func answerResponses(c Call, r Reply) object {
	content := object{"type": "output_text", "text": r.Text, "annotations": []any{}, "logprobs": []any{}}
	status, incomplete := "completed", any(nil)
	switch {
	case r.Failure == Blocked && r.Block == "content_filter":
		status, incomplete = "incomplete", object{"reason": "content_filter"}
	case r.Failure == Blocked:
		content = object{"type": "refusal", "refusal": refusal}
	case r.Failure == CutOff:
		status, incomplete = "incomplete", object{"reason": "max_output_tokens"}
	}
	return object{"id": fmt.Sprintf("resp_%032d", c.Number), "object": "response", "created_at": created, "status": status, "error": nil,
		"incomplete_details": incomplete, "instructions": c.System, "metadata": object{}, "model": r.Model, "temperature": 1.0, "tools": []any{}, "store": false,
		"output": []any{object{"id": fmt.Sprintf("rs_%032d", c.Number), "type": "reasoning", "summary": []any{}},
			object{"id": fmt.Sprintf("msg_%032d", c.Number), "type": "message", "status": status, "role": "assistant", "content": []any{content}}},
		"usage": object{"input_tokens": r.Usage.Input, "input_tokens_details": object{"cached_tokens": r.Usage.Cached}, "output_tokens": r.Usage.Output,
			"output_tokens_details": object{"reasoning_tokens": r.Usage.Reasoning}, "total_tokens": r.Usage.Input + r.Usage.Output}}
}

const (
	created = 1767225600                                          // a moment of 2026, in the answers that name one
	refusal = "I'm sorry, but I cannot assist with that request." // of the model itself
)

func errorOpenAI(kind, code, message string) any {
	e := object{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return object{"error": e}
}

func wrongOpenAI(message string) any { return errorOpenAI("invalid_request_error", "", message) }

var openAIErrors = map[Failure]failure{
	RateLimited:   {429, errorOpenAI("tokens", "rate_limit_exceeded", "Rate limit reached for this model")},
	Unauthorised:  {401, errorOpenAI("invalid_request_error", "invalid_api_key", "Incorrect API key provided: key-of****d3")},
	NoSuchModel:   {404, errorOpenAI("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.")},
	NoMoney:       {429, errorOpenAI("insufficient_quota", "insufficient_quota", "You exceeded your current quota")},
	ServerError:   {500, errorOpenAI("server_error", "", "The server had an error while processing your request")},
	Overloaded:    {503, errorOpenAI("server_error", "", "The engine is currently overloaded")},
	PromptTooLong: {400, errorOpenAI("invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model.")},
	PromptBlocked: {400, errorOpenAI("invalid_request_error", "invalid_prompt", "The prompt was flagged as violating the usage policy.")},
}

// Compatible is OpenAI's older chat completions API, as many servers implement it.
var Compatible = Vendor{Name: "Compatible", base: "/v1", path: "/chat/completions", header: "Authorization", turns: "/messages", wrong: wrongOpenAI,
	members: map[string]take{"/model": model, "/stream": is(`false`), "/temperature": temperature, "/top_p": topP, "/seed": setting(math.MaxInt64, seedOf),
		"/max_tokens": limit(1), "/messages/*/role": role("system", "user", "assistant"), "/messages/*/content": said, "/response_format/type": chatFormat,
		"/response_format/json_schema/name": schemaName, "/response_format/json_schema/strict": anything,
		"/response_format/json_schema/schema": schema(nil)},
	needs: map[string][]string{"/response_format/json_schema": {"/response_format/json_schema/name", "/response_format/json_schema/schema"}},
	answer: func(c Call, r Reply) object {
		message, reason := object{"role": "assistant", "content": r.Text, "refusal": nil}, "stop"
		switch {
		case r.Failure == Blocked && r.Block == "content_filter":
			message["content"], reason = nil, "content_filter"
		case r.Failure == Blocked:
			message["content"], message["refusal"] = nil, refusal
		case r.Failure == CutOff:
			reason = "length"
		}
		return object{"id": fmt.Sprintf("chatcmpl-%d", c.Number), "object": "chat.completion", "created": created, "model": r.Model,
			"system_fingerprint": "fp_44709d6fcb", "choices": []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": reason}},
			"usage": object{"prompt_tokens": r.Usage.Input, "completion_tokens": r.Usage.Output, "total_tokens": r.Usage.Input + r.Usage.Output,
				"prompt_tokens_details": object{"cached_tokens": r.Usage.Cached}, "completion_tokens_details": object{"reasoning_tokens": r.Usage.Reasoning}}}
	},
	fail: func(Reply) map[Failure]failure {
		all := maps.Clone(openAIErrors)
		maps.Copy(all, compatibleErrors)
		return all
	}}

// chatFormat takes the type of an answer's format; a schema comes before it.
func chatFormat(d *decoding, at string, v jsontext.Value) {
	d.demand(string(v) == `"json_object"` || string(v) == `"json_schema"` && d.Schema.JSON != nil, "%s is %s", at, v)
}

// compatibleErrors are those that vLLM, Azure, Ollama and LM Studio word otherwise than OpenAI.
var compatibleErrors = map[Failure]failure{
	PromptTooLong: {400, object{"error": object{"message": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.",
		"type": "BadRequestError", "param": nil, "code": 400}}},
	PromptBlocked: {400, errorOpenAI("", "content_filter", "The prompt triggered the content management policy.")},
	NoSuchModel:   {404, errorOpenAI("api_error", "", "model not found, try pulling it first")},
	ServerError:   {500, object{"error": "The model has crashed"}},
}

// Anthropic is the Messages API.
var Anthropic = Vendor{Name: "Anthropic", path: "/v1/messages", header: "X-Api-Key", version: "2023-06-01", turns: "/messages",
	members: map[string]take{"/model": model, "/max_tokens": limit(1), "/temperature": setting(1, temperatureOf), "/top_p": topP,
		"/system/*/type": is(`"text"`), "/system/*/text": system, "/messages/*/role": role("user", "assistant"), "/messages/*/content/*/type": is(`"text"`),
		"/messages/*/content/*/text": said, "/output_config/format/type": is(`"json_schema"`), "/output_config/format/schema": schema(anthropicDialect)},
	needs: map[string][]string{"": {"/max_tokens"}, "/system/*": {"/system/*/type", "/system/*/text"},
		"/messages/*/content/*": {"/messages/*/content/*/type", "/messages/*/content/*/text"},
		"/output_config/format": {"/output_config/format/type", "/output_config/format/schema"}},
	answer: func(c Call, r Reply) object {
		content := []any{object{"type": "thinking", "thinking": "", "signature": "c2ln"}, object{"type": "text", "text": r.Text, "citations": nil}}
		reason, details := "end_turn", any(nil)
		switch r.Failure {
		case Blocked:
			content, reason = []any{}, "refusal"
			details = object{"type": "refusal", "category": cmp.Or(r.Block, "cyber"), "explanation": "This request was blocked by a safety classifier."}
		case CutOff:
			reason = "max_tokens"
		}
		return object{"id": fmt.Sprintf("msg_%024d", c.Number), "type": "message", "role": "assistant", "model": r.Model, "content": content,
			"stop_reason": reason, "stop_sequence": nil, "stop_details": details,
			"usage": object{"input_tokens": r.Usage.Input - r.Usage.Cached, "cache_read_input_tokens": r.Usage.Cached, "cache_creation_input_tokens": 0,
				"cache_creation": object{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}, "output_tokens": r.Usage.Output,
				"output_tokens_details": object{"thinking_tokens": r.Usage.Reasoning}, "service_tier": "standard"}}
	},
	wrong: func(message string) any { return errorAnthropic("invalid_request_error", message) },
	fail:  func(Reply) map[Failure]failure { return anthropicErrors }}

func errorAnthropic(kind, message string) any {
	return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
}

var anthropicErrors = map[Failure]failure{
	RateLimited:   {429, errorAnthropic("rate_limit_error", "This request would exceed your organization's rate limit")},
	Unauthorised:  {401, errorAnthropic("authentication_error", "invalid x-api-key")},
	NoSuchModel:   {404, errorAnthropic("not_found_error", "model: claude-none")},
	NoMoney:       {400, errorAnthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")},
	ServerError:   {500, errorAnthropic("api_error", "Internal server error")},
	Overloaded:    {529, errorAnthropic("overloaded_error", "Overloaded")},
	PromptTooLong: {400, errorAnthropic("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")},
	PromptBlocked: {400, errorAnthropic("invalid_request_error", "Output blocked by content filtering policy")},
}

// Gemini is the Gemini API's generateContent.
var Gemini = Vendor{Name: "Gemini", path: "/v1beta/models/%s:generateContent", header: "X-Goog-Api-Key", turns: "/contents", wrong: wrongGemini,
	members: map[string]take{"/contents/*/role": role("user", "model"), "/contents/*/parts/*/text": said, "/systemInstruction/role": anything,
		"/systemInstruction/parts/*/text": system, "/generationConfig/candidateCount": anything, "/generationConfig/temperature": temperature,
		"/generationConfig/topP": topP, "/generationConfig/seed": setting(math.MaxInt32, seedOf), "/generationConfig/maxOutputTokens": limit(1),
		"/generationConfig/responseMimeType": is(`"application/json"`), "/generationConfig/responseJsonSchema": schema(geminiDialect)},
	needs: map[string][]string{"/contents/*/parts/*": {"/contents/*/parts/*/text"}, "/systemInstruction/parts/*": {"/systemInstruction/parts/*/text"},
		"/generationConfig/responseJsonSchema": {"/generationConfig/responseMimeType"}},
	answer: func(c Call, r Reply) object {
		ratings := []any{object{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}}
		candidate := object{"index": 0, "finishReason": "STOP",
			"content": object{"role": "model", "parts": []any{object{"text": "Weighing the evidence.", "thought": true}, object{"text": r.Text}}}}
		switch r.Failure {
		case Blocked:
			delete(candidate, "content")
			candidate["finishReason"] = cmp.Or(r.Block, "SAFETY")
			ratings = append(ratings, object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true})
		case CutOff:
			candidate["finishReason"] = "MAX_TOKENS"
		}
		candidate["safetyRatings"] = ratings
		return object{"candidates": []any{candidate}, "modelVersion": r.Model, "responseId": fmt.Sprintf("response-%d", c.Number),
			"usageMetadata": object{"promptTokenCount": r.Usage.Input, "cachedContentTokenCount": r.Usage.Cached,
				"candidatesTokenCount": r.Usage.Output - r.Usage.Reasoning, "thoughtsTokenCount": r.Usage.Reasoning,
				"totalTokenCount": r.Usage.Input + r.Usage.Output, "promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": r.Usage.Input}}}}
	},
	fail: func(r Reply) map[Failure]failure {
		return map[Failure]failure{
			RateLimited: errorGemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota",
				object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{object{"quotaMetric": "requests"}}},
				object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%vs", r.RetryAfter.Seconds())}),
			Unauthorised: errorGemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
				object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}),
			NoSuchModel:   errorGemini(404, "NOT_FOUND", "the model is not found for API version v1beta"),
			NoMoney:       errorGemini(400, "FAILED_PRECONDITION", "Please enable billing on project"),
			ServerError:   errorGemini(500, "INTERNAL", "An internal error has occurred."),
			Overloaded:    errorGemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
			PromptTooLong: errorGemini(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
			PromptBlocked: {200, object{"promptFeedback": object{"blockReason": cmp.Or(r.Block, "PROHIBITED_CONTENT")}, "modelVersion": r.Model,
				"usageMetadata": object{"promptTokenCount": r.Usage.Input, "totalTokenCount": r.Usage.Input}}}, // with a success status
		}
	}}

func errorGemini(code int, status, message string, details ...any) failure {
	e := object{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return failure{code, object{"error": e}}
}

func wrongGemini(message string) any { return errorGemini(400, "INVALID_ARGUMENT", message).body }
