// Package openai asks OpenAI's models over its Responses API.
package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

const vendorURL = "https://api.openai.com/v1"

type model struct {
	service  responses.ResponseService
	line     *wire.Line
	settings llm.Settings
}

// New makes a model of OpenAI's. It does not read the environment.
func New(c llm.Config) (llm.Model, error) {
	c, err := c.Check(vendorURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("openai: %w", err)
	case c.Key == "":
		return nil, errors.New("openai: there is no key")
	case c.Settings.Seed != nil:
		return nil, errors.New("openai: seed: the Responses API takes none")
	}
	line := wire.Open(c)
	return &model{responses.NewResponseService(
		option.WithBaseURL(c.BaseURL),
		option.WithAPIKey(c.Key),
		option.WithHTTPClient(line.HTTP),
		option.WithMaxRetries(0), // llm.Patient asks again
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
	response, err := m.service.New(call, params)
	if err := exchange.Problem(ctx, err, wire.ReadOpenAI); err != nil {
		return llm.Answer{}, err
	}
	return read(response, exchange)
}

func (m *model) params(q llm.Question) (responses.ResponseNewParams, error) {
	params := responses.ResponseNewParams{
		Model: m.settings.Model,
		Store: param.NewOpt(false), // evidence is not left with the vendor
	}
	if q.System != "" {
		params.Instructions = param.NewOpt(q.System)
	}
	for _, message := range q.Messages {
		role := responses.EasyInputMessageRoleUser
		if message.ByModel {
			role = responses.EasyInputMessageRoleAssistant
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, responses.ResponseInputItemParamOfMessage(message.Text, role))
	}
	if m.settings.Temperature != nil {
		params.Temperature = param.NewOpt(*m.settings.Temperature)
	}
	if m.settings.TopP != nil {
		params.TopP = param.NewOpt(*m.settings.TopP)
	}
	if m.settings.MaxTokens != 0 {
		params.MaxOutputTokens = param.NewOpt(int64(m.settings.MaxTokens))
	}
	if q.Schema.JSON != nil {
		schema, err := wire.Ordered(q.Schema.JSON)
		if err != nil {
			return params, llm.Fail(llm.Malformed, 0, "schema: "+err.Error())
		}
		params.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{
			Name: q.Schema.Name, Schema: schema, Strict: param.NewOpt(true),
		}
	}
	return params, nil
}

func read(response *responses.Response, exchange *wire.Exchange) (llm.Answer, error) {
	if response == nil || !response.JSON.Status.Valid() || !response.JSON.Output.Valid() {
		return llm.Answer{}, exchange.Fail(llm.Malformed, "the response has no status or no output")
	}
	text, refusal := texts(response.Output)
	answer := llm.Answer{
		Text:         text,
		Model:        response.Model,
		FinishReason: string(response.Status),
		Usage: llm.Usage{
			Input:     response.Usage.InputTokens,
			Cached:    response.Usage.InputTokensDetails.CachedTokens,
			Output:    response.Usage.OutputTokens,
			Reasoning: response.Usage.OutputTokensDetails.ReasoningTokens,
		},
		Raw: exchange.Body,
	}
	if response.ServiceTier != "" {
		answer.Version = "service_tier=" + string(response.ServiceTier)
	}
	switch response.Status {
	case responses.ResponseStatusCompleted:
	case responses.ResponseStatusIncomplete:
		answer.FinishReason = response.IncompleteDetails.Reason
		if answer.FinishReason == "content_filter" {
			return llm.Answer{}, exchange.FailWith(answer, llm.Refused, answer.FinishReason)
		}
		return llm.Answer{}, exchange.FailWith(answer, llm.TooLong, "the answer was cut off: "+answer.FinishReason)
	case responses.ResponseStatusFailed:
		code, message := string(response.Error.Code), response.Error.Message
		kind := wire.KindOfOpenAI(0, code, "", message)
		if kind == "" {
			kind = llm.Malformed
		}
		return llm.Answer{}, exchange.FailWith(answer, kind, code+": "+message)
	default:
		return llm.Answer{}, exchange.FailWith(answer, llm.Malformed, "the response is "+string(response.Status))
	}
	if refusal != "" {
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, "refusal: "+refusal)
	}
	return exchange.Finish(answer)
}

// texts collects what the model said, and what it said in refusing. Its reasoning is not read.
func texts(output []responses.ResponseOutputItemUnion) (text, refusal string) {
	var said, refused strings.Builder
	for _, item := range output {
		if item.Type != "message" {
			continue
		}
		for _, part := range item.Content {
			switch part.Type {
			case "output_text":
				said.WriteString(part.Text)
			case "refusal":
				refused.WriteString(part.Refusal)
			}
		}
	}
	return said.String(), refused.String()
}
