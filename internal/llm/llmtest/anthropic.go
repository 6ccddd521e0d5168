package llmtest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// Anthropic is the Messages API.
var Anthropic = Vendor{Name: "Anthropic", headers: anthropicHeaders, decode: decodeMessages, answer: answerMessages, fail: failAnthropic, wrong: wrongAnthropic}

func anthropicHeaders(h http.Header, key string) error {
	switch {
	case h.Get("X-Api-Key") != key:
		return errors.New("x-api-key is not the key")
	case h.Get("Anthropic-Version") != "2023-06-01":
		return fmt.Errorf("anthropic-version %q", h.Get("Anthropic-Version"))
	case h.Get("Authorization") != "":
		return errors.New("there is an authorization beside x-api-key")
	}
	return only(h, "X-Api-Key", key)
}

// textBlock holds the only members of a message's content that this server knows.
type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func decodeMessages(path string, body []byte) (Call, error) {
	var r struct {
		Model    string      `json:"model"`
		System   []textBlock `json:"system"`
		Messages []struct {
			Role    string      `json:"role"`
			Content []textBlock `json:"content"`
		} `json:"messages"`
		MaxTokens    *int     `json:"max_tokens"`
		Temperature  *float64 `json:"temperature"`
		TopP         *float64 `json:"top_p"`
		OutputConfig struct {
			Format *struct {
				Type   string         `json:"type"`
				Schema jsontext.Value `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := strict(body, &r); err != nil {
		return Call{}, err
	}
	if path != "/v1/messages" {
		return Call{}, fmt.Errorf("path %s", path)
	}
	if r.MaxTokens == nil {
		return Call{}, errors.New("max_tokens: Field required")
	}
	if r.Temperature != nil && *r.Temperature > 1 {
		return Call{}, errors.New("temperature: range: 0..1")
	}
	call := Call{Settings: llm.Settings{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP}}
	system, err := joined(r.System)
	call.System, err = system, cmp.Or(err, call.limit(r.MaxTokens, 1))
	for _, m := range r.Messages {
		text, wrong := joined(m.Content)
		err = cmp.Or(err, wrong, call.turn(m.Role, "assistant", text))
	}
	if err != nil {
		return Call{}, err
	}
	if f := r.OutputConfig.Format; f != nil {
		if f.Type != "json_schema" {
			return Call{}, fmt.Errorf("output_config: format: %q", f.Type)
		}
		if err := anthropicDialect.check(f.Schema); err != nil {
			return Call{}, err
		}
		call.Schema.JSON = f.Schema
	}
	return call, call.whole()
}

func joined(blocks []textBlock) (text string, err error) {
	for _, b := range blocks {
		if b.Type != "text" || b.Text == "" {
			return "", fmt.Errorf("a block of type %q with %d bytes", b.Type, len(b.Text))
		}
		text += b.Text
	}
	return text, nil
}

func answerMessages(c Call, r Reply) any {
	content := []any{object{"type": "thinking", "thinking": "", "signature": "c2ln"}, object{"type": "text", "text": r.Text, "citations": nil}}
	reason, details := "end_turn", any(nil)
	switch r.Failure {
	case Blocked:
		kind := cmp.Or(r.Block, "cyber")
		content, reason = []any{}, "refusal"
		details = object{"type": "refusal", "category": kind, "explanation": "This request was blocked by a safety classifier."}
	case CutOff:
		reason = "max_tokens"
	}
	return object{
		"id": fmt.Sprintf("msg_%024d", c.Number), "type": "message", "role": "assistant", "model": r.Model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "stop_details": details,
		"usage": object{
			"input_tokens": r.Usage.Input - r.Usage.Cached, "cache_read_input_tokens": r.Usage.Cached, "cache_creation_input_tokens": 0,
			"cache_creation": object{"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
			"output_tokens":  r.Usage.Output, "output_tokens_details": object{"thinking_tokens": r.Usage.Reasoning}, "service_tier": "standard",
		},
	}
}

func errorAnthropic(kind, message string) any {
	return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
}

func wrongAnthropic(message string) any { return errorAnthropic("invalid_request_error", message) }

var failuresAnthropic = map[Failure]failure{
	RateLimited:   {429, errorAnthropic("rate_limit_error", "This request would exceed your organization's rate limit")},
	Unauthorised:  {401, errorAnthropic("authentication_error", "invalid x-api-key")},
	NoSuchModel:   {404, errorAnthropic("not_found_error", "model: claude-none")},
	NoMoney:       {400, errorAnthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")},
	Overloaded:    {529, errorAnthropic("overloaded_error", "Overloaded")},
	PromptTooLong: {400, errorAnthropic("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")},
	PromptBlocked: {400, errorAnthropic("invalid_request_error", "Output blocked by content filtering policy")},
	ServerError:   {500, errorAnthropic("api_error", "Internal server error")},
}

func failAnthropic(r Reply) failure { return failuresAnthropic[r.Failure] }
