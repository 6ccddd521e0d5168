package llmtest

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Vendors lists all vendors.
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

// openAIErrors are errors as OpenAI words them.
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
