// Package anthropic asks Anthropic's models over its Messages API.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

const vendorURL = "https://api.anthropic.com"

// longest only keeps the SDK from refusing long answers and setting a time limit of its own: the context has one.
const longest = 24 * time.Hour

type model struct {
	service  sdk.MessageService
	line     *wire.Line
	settings llm.Settings
}

// New makes a model of Anthropic's. It does not read the environment.
func New(c llm.Config) (llm.Model, error) {
	c, err := c.Check(vendorURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("anthropic: %w", err)
	case c.Key == "":
		return nil, errors.New("anthropic: there is no key")
	case c.Settings.Seed != nil:
		return nil, errors.New("anthropic: seed: the Messages API takes none")
	case c.Settings.MaxTokens == 0:
		return nil, errors.New("anthropic: max_tokens: the Messages API cannot do without")
	case c.Settings.Temperature != nil && *c.Settings.Temperature > 1:
		return nil, fmt.Errorf("anthropic: temperature: %v is above 1", *c.Settings.Temperature)
	}
	line := wire.Open(c)
	return &model{sdk.NewMessageService(
		option.WithBaseURL(c.BaseURL),
		option.WithAPIKey(c.Key),
		option.WithHTTPClient(line.HTTP),
		option.WithMaxRetries(0), // llm.Patient asks again
		option.WithRequestTimeout(longest),
	), line, c.Settings}, nil
}

// Ask implements llm.Model.
func (m *model) Ask(ctx context.Context, q llm.Question) (llm.Answer, error) {
	if err := q.Check(); err != nil {
		return llm.Answer{}, err
	}
	params, err := m.params(q)
	if err != nil {
		return llm.Answer{}, err
	}
	call, exchange := m.line.Begin(ctx)
	message, err := m.service.New(call, params)
	if err := exchange.Problem(ctx, err, readError); err != nil {
		return llm.Answer{}, err
	}
	return read(message, exchange)
}

func (m *model) params(q llm.Question) (sdk.MessageNewParams, error) {
	params := sdk.MessageNewParams{Model: sdk.Model(m.settings.Model), MaxTokens: int64(m.settings.MaxTokens)}
	if q.System != "" {
		params.System = []sdk.TextBlockParam{{Text: q.System}}
	}
	for _, message := range q.Messages {
		block := sdk.NewTextBlock(message.Text)
		if message.ByModel {
			params.Messages = append(params.Messages, sdk.NewAssistantMessage(block))
		} else {
			params.Messages = append(params.Messages, sdk.NewUserMessage(block))
		}
	}
	if m.settings.Temperature != nil {
		params.Temperature = param.NewOpt(*m.settings.Temperature)
	}
	if m.settings.TopP != nil {
		params.TopP = param.NewOpt(*m.settings.TopP)
	}
	if q.Schema.JSON != nil {
		schema, err := wire.Ordered(q.Schema.JSON)
		if err != nil {
			return params, llm.Fail(llm.Malformed, 0, "schema: "+err.Error())
		}
		params.OutputConfig.Format.Schema = schema
	}
	return params, nil
}

func read(message *sdk.Message, exchange *wire.Exchange) (llm.Answer, error) {
	if message == nil || message.Type != "message" || !message.JSON.Content.Valid() || !message.JSON.StopReason.Valid() {
		return llm.Answer{}, exchange.Fail(llm.Malformed, "the response is no message with content and a stop reason")
	}
	var text strings.Builder
	for _, block := range message.Content {
		if block.Type == "text" { // its thinking is not read
			text.WriteString(block.Text)
		}
	}
	u := message.Usage
	answer := llm.Answer{
		Text:         text.String(),
		Model:        string(message.Model),
		FinishReason: string(message.StopReason),
		Usage: llm.Usage{
			Input:     u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, // counted apart here
			Cached:    u.CacheReadInputTokens,
			Output:    u.OutputTokens,
			Reasoning: u.OutputTokensDetails.ThinkingTokens,
		},
		Raw: exchange.Body,
	}
	switch message.StopReason {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return exchange.Finish(answer)
	case sdk.StopReasonRefusal:
		detail := strings.Join(strings.Fields(fmt.Sprintf("refusal %s %s", message.StopDetails.Category, message.StopDetails.Explanation)), " ")
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, detail)
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return llm.Answer{}, exchange.FailWith(answer, llm.TooLong, "the answer was cut off: "+answer.FinishReason)
	}
	return llm.Answer{}, exchange.FailWith(answer, llm.Malformed, "the model stopped for a reason that is not its to have: "+answer.FinishReason)
}

// readError understands Anthropic's errors. Much of what matters has the same type, and is told apart by its words.
func readError(status int, body []byte) wire.Reading {
	var envelope struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error.Type == "" {
		return wire.Reading{Detail: string(body[:min(len(body), 300)])}
	}
	said := wire.Reading{Detail: envelope.Error.Type + ": " + envelope.Error.Message}
	has := func(words string) bool { return strings.Contains(strings.ToLower(envelope.Error.Message), words) }
	switch envelope.Error.Type {
	case "authentication_error", "permission_error", "billing_error", "not_found_error":
		said.Kind = llm.Unauthorised
	case "rate_limit_error":
		said.Kind = llm.RateLimited
	case "overloaded_error", "api_error", "timeout_error":
		said.Kind = llm.Unavailable
	case "request_too_large":
		said.Kind = llm.TooLong
	case "invalid_request_error":
		switch {
		case has("prompt is too long"), has("exceed context limit"), has("context window"):
			said.Kind = llm.TooLong
		case has("content filtering policy"):
			said.Kind = llm.Refused
		case has("credit balance is too low"):
			said.Kind = llm.Unauthorised
		}
	}
	return said
}
