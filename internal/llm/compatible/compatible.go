// Package compatible asks any server that speaks OpenAI's chat completions: Ollama, vLLM, LM Studio, gateways. It speaks
// the protocol itself: OpenAI's SDK for it is larger than the rest of jurat.
package compatible

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

type model struct {
	url       string
	key       string
	line      *wire.Line
	settings  llm.Settings
	noSchemas atomic.Bool // the server refuses schemas and takes the form without one
}

// New makes a model of a server that speaks OpenAI's chat completions. The base URL ends where /chat/completions begins.
// Such servers often want no key.
func New(c llm.Config) (llm.Model, error) {
	if c.BaseURL == "" {
		return nil, errors.New("compatible: there is no base URL")
	}
	c, err := c.Check("")
	if err != nil {
		return nil, fmt.Errorf("compatible: %w", err)
	}
	return &model{url: strings.TrimSuffix(c.BaseURL, "/") + "/chat/completions", key: c.Key, line: wire.Open(c), settings: c.Settings}, nil
}

// Ask implements llm.Model. A server that does not know schemas is asked for any JSON object, with the schema in words;
// that is remembered.
func (m *model) Ask(ctx context.Context, q llm.Question) (llm.Answer, error) {
	if err := q.Check(); err != nil {
		return llm.Answer{}, err
	}
	if q.Schema.JSON == nil {
		return m.ask(ctx, q, nil)
	}
	if m.noSchemas.Load() {
		return m.ask(ctx, inWords(q), anyObject)
	}
	answer, err := m.ask(ctx, q, bySchema(q.Schema))
	if !refusesForm(err) {
		return answer, err
	}
	again, second := m.ask(ctx, inWords(q), anyObject)
	if refusesForm(second) {
		return answer, err // the form was not what it refused
	}
	if second == nil {
		m.noSchemas.Store(true)
	}
	return again, second
}

// refusesForm tells a server that did not take the request as it was.
func refusesForm(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.Malformed && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity)
}

func inWords(q llm.Question) llm.Question {
	q.System = strings.TrimSpace(q.System + "\n\nAnswer with one JSON object, and nothing else, that keeps to this JSON Schema:\n" + string(q.Schema.JSON))
	return q
}

type request struct {
	Model          string          `json:"model"`
	Messages       []message       `json:"messages"`
	ResponseFormat *responseFormat `json:"response_format,omitzero"`
	Temperature    *float64        `json:"temperature,omitzero"`
	TopP           *float64        `json:"top_p,omitzero"`
	Seed           *int64          `json:"seed,omitzero"`
	MaxTokens      int             `json:"max_tokens,omitzero"` // the newer name is unknown to most of these servers
	Stream         bool            `json:"stream"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema,omitzero"`
}

type jsonSchema struct {
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema jsontext.Value `json:"schema"`
}

var anyObject = &responseFormat{Type: "json_object"}

func bySchema(s llm.Schema) *responseFormat {
	return &responseFormat{Type: "json_schema", JSONSchema: &jsonSchema{s.Name, true, s.JSON}}
}

func (m *model) ask(ctx context.Context, q llm.Question, format *responseFormat) (llm.Answer, error) {
	r := request{Model: m.settings.Model, ResponseFormat: format, Temperature: m.settings.Temperature, TopP: m.settings.TopP,
		Seed: m.settings.Seed, MaxTokens: m.settings.MaxTokens}
	if q.System != "" {
		r.Messages = append(r.Messages, message{"system", q.System})
	}
	for _, turn := range q.Messages {
		role := "user"
		if turn.ByModel {
			role = "assistant"
		}
		r.Messages = append(r.Messages, message{role, turn.Text})
	}
	body, err := json.Marshal(r)
	if err != nil {
		return llm.Answer{}, llm.Fail(llm.Malformed, 0, err.Error())
	}
	call, exchange := m.line.Begin(ctx)
	err = m.post(call, body)
	if err := exchange.Problem(ctx, err, wire.ReadOpenAI); err != nil {
		return llm.Answer{}, err
	}
	return read(exchange)
}

func (m *model) post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if m.key != "" {
		request.Header.Set("Authorization", "Bearer "+m.key)
	}
	response, err := m.line.HTTP.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close() // the exchange has it
}
