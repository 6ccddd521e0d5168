package llmtest

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// Anthropic is the Messages API.
var Anthropic = Vendor{Name: "Anthropic", header: "X-Api-Key", version: "2023-06-01", decode: decodeMessages, answer: answerMessages, fail: failAnthropic, wrong: wrongAnthropic}

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
	d := decode(body, &r)
	d.demand(path == "/v1/messages", "path %s", path)
	d.demand(r.MaxTokens != nil, "max_tokens: Field required")
	d.demand(r.Temperature == nil || *r.Temperature <= 1, "temperature: range: 0..1")
	d.Settings = llm.Settings{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP}
	d.limit(r.MaxTokens, 1)
	d.System = d.joined(r.System)
	for _, m := range r.Messages {
		d.turn(m.Role, "assistant", d.joined(m.Content))
	}
	if f := r.OutputConfig.Format; f != nil {
		d.demand(f.Type == "json_schema", "output_config: format: %q", f.Type)
		d.schema("", f.Schema, anthropicDialect)
	}
	return d.call()
}

func (d *decoding) joined(blocks []textBlock) (text string) {
	for _, b := range blocks {
		d.demand(b.Type == "text" && b.Text != "", "a block of type %q with %d bytes", b.Type, len(b.Text))
		text += b.Text
	}
	return text
}

func answerMessages(c Call, r Reply) any {
	content := []any{object{"type": "thinking", "thinking": "", "signature": "c2ln"}, object{"type": "text", "text": r.Text, "citations": nil}}
	reason, details := "end_turn", any(nil)
	switch r.Failure {
	case Blocked:
		content, reason = []any{}, "refusal"
		details = object{"type": "refusal", "category": cmp.Or(r.Block, "cyber"), "explanation": "This request was blocked by a safety classifier."}
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

var anthropicErrors = map[Failure]failure{
	RateLimited:   {429, errorAnthropic("rate_limit_error", "This request would exceed your organization's rate limit")},
	Unauthorised:  {401, errorAnthropic("authentication_error", "invalid x-api-key")},
	NoSuchModel:   {404, errorAnthropic("not_found_error", "model: claude-none")},
	NoMoney:       {400, errorAnthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")},
	ServerError:   {500, errorAnthropic("api_error", "Internal server error")},
	Overloaded:    {529, errorAnthropic("overloaded_error", "Overloaded")},
	PromptTooLong: {400, errorAnthropic("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")},
	PromptBlocked: {400, errorAnthropic("invalid_request_error", "Output blocked by content filtering policy")},
}

func failAnthropic(r Reply) failure { return anthropicErrors[r.Failure] }
