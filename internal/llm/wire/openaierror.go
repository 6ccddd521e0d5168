package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An OpenAIError is what OpenAI, or a server that speaks its protocol, says went wrong.
type OpenAIError struct {
	Code    string // such as rate_limit_exceeded; "" where a server repeats the HTTP status there
	Type    string
	Message string
}

// openAIError has every member that one of these servers uses. They differ in whether there is an envelope, and in whether a
// code is a word or a number.
type openAIError struct {
	Error   jsontext.Value `json:"error"` // an object, or the message alone
	Code    jsontext.Value `json:"code"`
	Type    jsontext.Value `json:"type"`
	Message jsontext.Value `json:"message"`
	Detail  jsontext.Value `json:"detail"`
}

// ReadOpenAIError reads an error's body. It reports false for what is no JSON object.
func ReadOpenAIError(body []byte) (OpenAIError, bool) {
	var outer openAIError
	if json.Unmarshal(body, &outer) != nil {
		return OpenAIError{}, false
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

// word is a JSON string's text; "" for anything else.
func word(v jsontext.Value) string {
	var s string
	if v.Kind() != jsontext.KindString || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
