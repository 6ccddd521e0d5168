package gemini

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

const (
	typeRetryInfo = "type.googleapis.com/google.rpc.RetryInfo"
	typeErrorInfo = "type.googleapis.com/google.rpc.ErrorInfo"
)

// readError understands errors of Google's APIs: a status in words, and details of several types.
func readError(_ int, body []byte) wire.Reading {
	var envelope struct {
		Error struct {
			Status  string           `json:"status"`
			Message string           `json:"message"`
			Details []jsontext.Value `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error.Status == "" {
		return wire.Reading{Detail: string(body[:min(len(body), 300)])}
	}
	said := wire.Reading{Kind: kindOf(envelope.Error.Status, strings.ToLower(envelope.Error.Message)), Detail: envelope.Error.Status + ": " + envelope.Error.Message}
	for _, v := range envelope.Error.Details {
		var detail struct {
			Type       string `json:"@type"`
			Reason     string `json:"reason"`
			RetryDelay string `json:"retryDelay"`
		}
		if json.Unmarshal(v, &detail) != nil {
			continue // of a type that matters not here
		}
		switch {
		case detail.Type == typeErrorInfo && strings.HasPrefix(detail.Reason, "API_KEY_"):
			said.Kind = llm.Unauthorised // its status is that of any bad request
		case detail.Type == typeRetryInfo:
			if wait, err := time.ParseDuration(detail.RetryDelay); err == nil && wait > 0 {
				said.Wait = wait
			}
		}
	}
	return said
}

func kindOf(status, message string) llm.Kind {
	switch status {
	case "INVALID_ARGUMENT":
		switch {
		case strings.Contains(message, "token count") && strings.Contains(message, "exceeds"):
			return llm.TooLong
		case strings.Contains(message, "api key not valid"), strings.Contains(message, "api key expired"):
			return llm.Unauthorised
		}
	case "FAILED_PRECONDITION": // billing, or a country that is not served
		return llm.Unauthorised
	}
	return "" // the HTTP status says it
}
