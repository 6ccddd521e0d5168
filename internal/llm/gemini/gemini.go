// Package gemini asks Google's Gemini models over the Gemini API.
package gemini

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/genai"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

const vendorURL = "https://generativelanguage.googleapis.com"

// modelName is what may stand in a path.
var modelName = regexp.MustCompile(`^(?:(?:models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)

type model struct {
	client   *genai.Client
	line     *wire.Line
	settings llm.Settings
}

// New makes a Gemini model. It takes no key and no address from the environment.
func New(c llm.Config) (llm.Model, error) {
	c, err := c.Check(vendorURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("gemini: %w", err)
	case c.Key == "":
		return nil, errors.New("gemini: there is no key")
	case !modelName.MatchString(c.Settings.Model):
		return nil, fmt.Errorf("gemini: %q is no name of a model", c.Settings.Model)
	case c.Settings.Seed != nil && (*c.Settings.Seed < math.MinInt32 || *c.Settings.Seed > math.MaxInt32):
		return nil, fmt.Errorf("gemini: seed: %d does not fit 32 bits", *c.Settings.Seed)
	}
	line := wire.Open(c)
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey:      c.Key,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  line.HTTP,
		HTTPOptions: genai.HTTPOptions{BaseURL: c.BaseURL, APIVersion: "v1beta"}, // no retries: llm.Patient asks again
	})
	if err != nil {
		return nil, errors.New("gemini: " + llm.Clean(err.Error(), c.Key)) // the SDK prints its whole configuration
	}
	return &model{client, line, c.Settings}, nil
}

// Ask implements llm.Model.
func (m *model) Ask(ctx context.Context, q llm.Question) (llm.Answer, error) {
	if err := q.Check(); err != nil {
		return llm.Answer{}, err
	}
	call, exchange := m.line.Begin(ctx)
	response, err := m.generate(call, q)
	if err := exchange.Problem(ctx, err, readError); err != nil {
		return llm.Answer{}, err
	}
	return read(response, exchange)
}

// generate asks by the SDK, which converts between untyped trees and panics at a type that it does not expect.
func (m *model) generate(ctx context.Context, q llm.Question) (response *genai.GenerateContentResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = nil, fmt.Errorf("reading it: %v", p)
		}
	}()
	config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{
		// The SDK would cut numbers to 32 bits and sort the schema's members.
		ExtrasRequestProvider: func(body map[string]any) map[string]any {
			body["generationConfig"] = m.generationConfig(q)
			return body
		},
	}}
	if q.System != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: q.System}}}
	}
	var contents []*genai.Content
	for _, message := range q.Messages {
		role := genai.RoleUser
		if message.ByModel {
			role = genai.RoleModel
		}
		contents = append(contents, &genai.Content{Role: string(role), Parts: []*genai.Part{{Text: message.Text}}})
	}
	return m.client.Models.GenerateContent(ctx, m.settings.Model, contents, config)
}

func (m *model) generationConfig(q llm.Question) map[string]any {
	config := map[string]any{"candidateCount": 1}
	if m.settings.Temperature != nil {
		config["temperature"] = *m.settings.Temperature
	}
	if m.settings.TopP != nil {
		config["topP"] = *m.settings.TopP
	}
	if m.settings.Seed != nil {
		config["seed"] = *m.settings.Seed
	}
	if m.settings.MaxTokens != 0 {
		config["maxOutputTokens"] = m.settings.MaxTokens
	}
	if q.Schema.JSON != nil {
		config["responseMimeType"] = "application/json"
		config["responseJsonSchema"] = stdjson.RawMessage(q.Schema.JSON)
	}
	return config
}

// blocks are the finish reasons of content that a filter kept back.
var blocks = []genai.FinishReason{genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist,
	genai.FinishReasonProhibitedContent, genai.FinishReasonSPII, genai.FinishReasonImageSafety,
	genai.FinishReasonImageProhibitedContent, genai.FinishReasonImageRecitation}

func read(response *genai.GenerateContentResponse, exchange *wire.Exchange) (llm.Answer, error) {
	if response == nil {
		return llm.Answer{}, exchange.Fail(llm.Malformed, "the response is empty")
	}
	answer := llm.Answer{Model: response.ModelVersion, Usage: usage(response.UsageMetadata), Raw: exchange.Body}
	if f := response.PromptFeedback; f != nil && f.BlockReason != "" {
		answer.FinishReason = string(f.BlockReason)
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, kinds("prompt blocked: "+answer.FinishReason, f.SafetyRatings, f.BlockReasonMessage))
	}
	if len(response.Candidates) != 1 || response.Candidates[0] == nil {
		return llm.Answer{}, exchange.FailWith(answer, llm.Malformed, fmt.Sprintf("the response has %d candidates", len(response.Candidates)))
	}
	candidate := response.Candidates[0]
	answer.FinishReason = string(candidate.FinishReason)
	answer.Text = text(candidate.Content)
	switch {
	case candidate.FinishReason == genai.FinishReasonStop:
		return exchange.Finish(answer)
	case candidate.FinishReason == genai.FinishReasonMaxTokens:
		return llm.Answer{}, exchange.FailWith(answer, llm.TooLong, "the answer was cut off: "+answer.FinishReason)
	case slices.Contains(blocks, candidate.FinishReason):
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, kinds(answer.FinishReason, candidate.SafetyRatings, candidate.FinishMessage))
	}
	return llm.Answer{}, exchange.FailWith(answer, llm.Malformed, "the model stopped for a reason that is not its to have: "+answer.FinishReason)
}

func text(content *genai.Content) string {
	var said strings.Builder
	if content != nil {
		for _, part := range content.Parts {
			if part != nil && !part.Thought {
				said.WriteString(part.Text)
			}
		}
	}
	return said.String()
}

func usage(u *genai.GenerateContentResponseUsageMetadata) llm.Usage {
	if u == nil {
		return llm.Usage{}
	}
	return llm.Usage{
		Input:     int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
		Cached:    int64(u.CachedContentTokenCount),
		Output:    int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount), // counted apart here
		Reasoning: int64(u.ThoughtsTokenCount),
	}
}

// kinds says what a filter found: the ratings that blocked, and those that are high.
func kinds(reason string, ratings []*genai.SafetyRating, message string) string {
	for _, r := range ratings {
		if r != nil && (r.Blocked || r.Probability == genai.HarmProbabilityHigh) {
			reason += fmt.Sprintf(", %s %s", r.Category, r.Probability)
		}
	}
	if message != "" {
		reason += ": " + message
	}
	return reason
}
