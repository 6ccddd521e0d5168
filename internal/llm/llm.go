// Package llm asks language models of any vendor, one call at a time. It does not know the purpose of a question.
// Vendors' types stay inside the adapter for that vendor.
//
// # Vendors
//
// The adapters ask language models of OpenAI (Responses), Anthropic (Messages), Google (Gemini generateContent), and
// of any server that speaks OpenAI's Chat Completions: Ollama, vLLM, LM Studio, gateways. Each vendor has one
// file here, its bodies in package convo, its name and keys in package config, and a line in protocols.
//
// # The wire formats are written once, and no vendor's library is linked
//
// Package `convo` has the bodies of requests, answers, errors and streams as types. Package llm sends them over
// `net/http`. We refused the vendors' SDKs, which an earlier version used. It used one call of each, and together
// they took a third of a first build's processor time, linked gRPC and OpenTelemetry, and doubled the binary. We
// recorded what they sent, and how they read 536 answers and errors, before we removed them
// (`llmtest/testdata/recorded.jsonl`). A test compares the adapters with that recording. The adapters read a response
// completely: status, headers and the body, which is bounded and has the key removed. So they can tell a truncated
// body from a malformed one. They follow no redirects.
//
// # A setting that a vendor does not accept is refused
//
// The adapter refuses it before it sends anything, because the record's parameters would be untrue if it left the
// setting out. OpenAI's Responses API and Anthropic accept no seed; Anthropic requires `max_tokens`.
//
// # A schema is sent unchanged
//
// Its members keep their order, because models write in that order. Every vendor accepts `type`, `title`,
// `description`, `enum`, `items`, `properties`, `required`, `additionalProperties`, `anyOf`, `$ref` and `$defs`, with
// all members required and no others allowed. The caller checks the ranges of numbers in the answer. The test servers
// reject other schemas.
package llm

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// A Model answers one question at a time. It is safe for concurrent use. Its errors are *Error, or the context's.
type Model interface {
	Ask(context.Context, Question) (Answer, error)
}

// A Question is a conversation for the model to continue, and the form that its answer must have.
type Question struct {
	System   string    // the model's role and task
	Messages []Message // alternating, the user's first
	Schema   Schema
}

// A Message is one turn of a conversation.
type Message struct {
	ByModel bool // an earlier answer of the model; false: the user's text
	Text    string
}

// A Schema is the form of an answer: a JSON Schema for an object whose members are all required.
type Schema struct {
	Name string // letters, digits, hyphens and underscores
	JSON jsontext.Value
}

// An Answer is what the provider sent, even if it does not match the schema.
type Answer struct {
	Text         string
	JSON         jsontext.Value // the text, if it is one JSON value; nil otherwise
	Model        string         // as the provider reported it; "": it reported no model
	Version      string         // what else the provider reported about the version, such as a fingerprint; "": nothing
	FinishReason string         // in the provider's words
	Usage        Usage          // zero: unknown
	Raw          []byte         // the body of the response
	Retries      int            // how many earlier requests failed: the provider limits rates, was down, or refused the request's form
}

// Usage is what a call consumed, by the provider's count.
type Usage = convo.Usage

// Settings are the parameters of a question. The provider chooses those that are nil or 0.
type Settings struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"` // of the answer
}

// WithJSON sets JSON from the text. Adapters call it last.
func (a Answer) WithJSON() Answer {
	if a.JSON = jsontext.Value(a.Text); !a.JSON.IsValid() {
		a.JSON = nil
	}
	return a
}

// bytesPerToken is how many bytes of a question count as one token in an estimate. Most texts have more bytes per
// token, so the reserved amount suffices.
const bytesPerToken = 3

// Estimate returns what a question may consume if its answer has at most maxTokens tokens.
func (q Question) Estimate(maxTokens int) Usage {
	n := len(q.System) + len(q.Schema.JSON)
	for _, m := range q.Messages {
		n += len(m.Text)
	}
	return Usage{Input: int64(n/bytesPerToken + 1), Output: int64(maxTokens)}
}
