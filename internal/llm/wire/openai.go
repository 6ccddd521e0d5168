package wire

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// An openAIError is the error of OpenAI and of whoever speaks its protocol. Servers differ in whether there is an envelope,
// and in whether a code is a word or the HTTP status again.
type openAIError struct {
	Error   jsontext.Value `json:"error"` // an object, or the message alone
	Code    jsontext.Value `json:"code"`
	Type    jsontext.Value `json:"type"`
	Message jsontext.Value `json:"message"`
	Detail  jsontext.Value `json:"detail"`
}

// ReadOpenAI understands errors in OpenAI's form.
func ReadOpenAI(status int, body []byte) Reading {
	var outer openAIError
	if json.Unmarshal(body, &outer) != nil {
		return Reading{Detail: string(body[:min(len(body), 300)])}
	}
	inner := outer
	if outer.Error.Kind() == jsontext.KindBeginObject {
		inner = openAIError{}
		if err := json.Unmarshal(outer.Error, &inner); err != nil {
			return Reading{Detail: err.Error()}
		}
	}
	code, message := word(inner.Code), word(inner.Message)
	for _, other := range []jsontext.Value{inner.Error, inner.Detail} {
		if message == "" {
			message = word(other)
		}
	}
	return Reading{Kind: KindOfOpenAI(status, code, word(inner.Type), message), Detail: join(code, message)}
}

// KindOfOpenAI is what a code of OpenAI's means; "": nothing beyond the HTTP status.
func KindOfOpenAI(status int, code, kind, message string) llm.Kind {
	switch code {
	case "context_length_exceeded", "string_above_max_length":
		return llm.TooLong
	case "content_filter", "content_policy_violation", "invalid_prompt", "bio_policy", "misalignment_policy_violation":
		return llm.Refused
	case "insufficient_quota", "billing_hard_limit_reached", "invalid_api_key":
		return llm.Unauthorised // waiting does not help
	case "rate_limit_exceeded":
		return llm.RateLimited
	case "server_error":
		return llm.Unavailable
	}
	if kind == "exceed_context_size_error" || status == http.StatusBadRequest && speaksOfLength(message) {
		return llm.TooLong
	}
	return ""
}

// speaksOfLength tells that a prompt does not fit, where a server has only words for it.
func speaksOfLength(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{"maximum context length", "context length exceeded", "context window", "exceeds the context",
		"available context size", "greater than the context length"}, func(words string) bool { return strings.Contains(message, words) })
}

// word is a JSON string's text; "" for anything else.
func word(v jsontext.Value) string {
	var s string
	if v.Kind() != jsontext.KindString || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

func join(code, message string) string {
	if code == "" || message == "" {
		return code + message
	}
	return code + ": " + message
}
