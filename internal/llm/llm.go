// Package llm asks language models, one call at a time, whoever their vendor is. It knows nothing of what is asked, and no
// vendor's type leaves the adapter below it that speaks to that vendor.
//
// # Vendors
//
// The adapters ask language models of OpenAI (Responses), Anthropic (Messages), Google (Gemini generateContent), and of any
// server that speaks OpenAI's Chat Completions: Ollama, vLLM, LM Studio, gateways. The bodies that travel are package wire's.
// A vendor is one file with a protocol in it.
//
// # The vendors' wire formats stand once, and no vendor's library is linked
//
// Package `llm/wire` has the bodies of requests, answers, errors and streams as types; package llm sends them over `net/http`, one
// file for each vendor. Refused: the vendors' SDKs, which stood here first. Of each, one call was used; together they took a third
// of a first build's processor time, linked gRPC and OpenTelemetry, and doubled the binary. What they sent, and how they read 536
// answers and errors, was recorded before they went (`llmtest/testdata/recorded.jsonl`), and a test holds the adapters to it. An
// exchange is read whole: status, headers and the body, bounded, with the key cut out. A body that is cut off is so told apart from
// one that is malformed, and redirects are not followed.
//
// # A setting that a vendor cannot take is refused
//
// A setting that a vendor cannot take is refused , before anything is asked. Leaving it out would make the record's parameters
// untrue. OpenAI's Responses API and Anthropic take no seed; Anthropic must have `max_tokens`.
//
// # A schema is sent as it is given
//
// A schema is sent as it is given , its members in their order, since models write in that order. What every vendor takes is `type`,
// `title`, `description`, `enum`, `items`, `properties`, `required`, `additionalProperties`, `anyOf`, `$ref` and `$defs`, with all
// members required and no further ones; numbers' ranges are checked on the answer. The test servers hold schemas to that.
package llm

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
)

// A Model answers one question at a time. It is safe for concurrent use. Its errors are *Error, or the context's.
type Model interface {
	Ask(context.Context, Question) (Answer, error)
}

// A Question is a conversation that the model is to go on with, and the form that its answer must have.
type Question struct {
	System   string    // what the model is told about itself and its task
	Messages []Message // the user's first, then in turns
	Schema   Schema
}

// A Message is one turn of a conversation.
type Message struct {
	ByModel bool // an answer that the model gave before; false: the user's
	Text    string
}

// A Schema is the form of an answer: a JSON Schema of an object all of whose members are required.
type Schema struct {
	Name string // letters, digits, hyphens and underscores
	JSON jsontext.Value
}

// An Answer is what came back, whether it keeps to the schema or not.
type Answer struct {
	Text         string
	JSON         jsontext.Value // the text, if it is one JSON value; nil otherwise
	Model        string         // as the provider reported it; "": it reported none
	Version      string         // what else it reported of what answered, such as a fingerprint; "": nothing
	FinishReason string         // in the provider's words
	Usage        Usage
	Raw          []byte // the body of the response as it came
	Retries      int    // how often the provider was asked in vain before, because it limits rates or was down
}

// Usage is what a call consumed, as the provider counted it.
type Usage struct {
	Input     int64 // tokens that were read, cached ones included
	Cached    int64 // of these, tokens that were read from the provider's cache
	Output    int64 // tokens that were written, reasoning included
	Reasoning int64 // of these, tokens that were not shown
}

// Settings are what a model is asked with. What is nil or 0 is left to the provider.
type Settings struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"` // of the answer
}

// answerJSON returns the text of an answer as JSON, if it is one value and nothing else.
func answerJSON(text string) jsontext.Value {
	v := jsontext.Value(text)
	if !v.IsValid() {
		return nil
	}
	return v
}

// WithJSON fills in what the text is as JSON. Adapters call it last.
func (a Answer) WithJSON() Answer {
	a.JSON = answerJSON(a.Text)
	return a
}
