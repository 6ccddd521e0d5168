package convo

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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
