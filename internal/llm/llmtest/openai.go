package llmtest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// OpenAI is the Responses API.
var OpenAI = Vendor{Name: "OpenAI", base: "/v1", header: "Authorization", decode: decodeResponses, answer: answerResponses, fail: failOpenAI, wrong: wrongOpenAI}

func decodeResponses(path string, body []byte) (Call, error) {
	var r struct {
		Model        string `json:"model"`
		Instructions string `json:"instructions"`
		Input        []struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"input"`
		Store           *bool    `json:"store"`
		Temperature     *float64 `json:"temperature"`
		TopP            *float64 `json:"top_p"`
		MaxOutputTokens *int     `json:"max_output_tokens"`
		Text            struct {
			Format *struct {
				Type   string         `json:"type"`
				Name   string         `json:"name"`
				Strict bool           `json:"strict"`
				Schema jsontext.Value `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	d := decode(body, &r)
	d.demand(path == "/responses", "path %s", path)
	d.demand(r.Store != nil && !*r.Store, "the vendor may keep the request")
	d.System, d.Settings = r.Instructions, llm.Settings{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP}
	d.limit(r.MaxOutputTokens, 16)
	for _, m := range r.Input {
		d.demand(m.Type == "" || m.Type == "message", "input of type %q", m.Type)
		d.turn(m.Role, "assistant", m.Content)
	}
	if f := r.Text.Format; f != nil {
		d.demand(f.Type == "json_schema" && f.Strict && f.Name != "", "format: want a strict json_schema with a name")
		d.schema(f.Name, f.Schema, openAIDialect)
	}
	return d.call()
}

func answerResponses(c Call, r Reply) any {
	content := []any{object{"type": "output_text", "text": r.Text, "annotations": []any{}, "logprobs": []any{}}}
	status, incomplete := "completed", any(nil)
	switch {
	case r.Failure == Blocked && r.Block == "content_filter":
		status, incomplete = "incomplete", object{"reason": "content_filter"}
	case r.Failure == Blocked: // the model itself refuses
		content = []any{object{"type": "refusal", "refusal": "I'm sorry, but I cannot assist with that request."}}
	case r.Failure == CutOff:
		status, incomplete = "incomplete", object{"reason": "max_output_tokens"}
	}
	return object{
		"id": fmt.Sprintf("resp_%032d", c.Number), "object": "response", "created_at": 1767225600, "status": status, "background": false,
		"error": nil, "incomplete_details": incomplete, "instructions": c.System, "metadata": object{}, "model": r.Model,
		"output": []any{
			object{"id": fmt.Sprintf("rs_%032d", c.Number), "type": "reasoning", "summary": []any{}},
			object{"id": fmt.Sprintf("msg_%032d", c.Number), "type": "message", "status": status, "role": "assistant", "content": content},
		},
		"parallel_tool_calls": true, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": []any{}, "service_tier": "default", "store": false,
		"text": object{"format": object{"type": "text"}},
		"usage": object{
			"input_tokens": r.Usage.Input, "input_tokens_details": object{"cached_tokens": r.Usage.Cached},
			"output_tokens": r.Usage.Output, "output_tokens_details": object{"reasoning_tokens": r.Usage.Reasoning},
			"total_tokens": r.Usage.Input + r.Usage.Output,
		},
	}
}

func errorOpenAI(kind, code, message string) any {
	e := object{"message": message, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return object{"error": e}
}

func wrongOpenAI(message string) any { return errorOpenAI("invalid_request_error", "", message) }

// openAIErrors are errors as OpenAI words them.
var openAIErrors = map[Failure]failure{
	RateLimited:   {429, errorOpenAI("tokens", "rate_limit_exceeded", "Rate limit reached for this model")},
	Unauthorised:  {401, errorOpenAI("invalid_request_error", "invalid_api_key", "Incorrect API key provided: key-of****d3")},
	NoSuchModel:   {404, errorOpenAI("invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it.")},
	NoMoney:       {429, errorOpenAI("insufficient_quota", "insufficient_quota", "You exceeded your current quota")},
	ServerError:   {500, errorOpenAI("server_error", "", "The server had an error while processing your request")},
	Overloaded:    {503, errorOpenAI("server_error", "", "The engine is currently overloaded")},
	PromptTooLong: {400, errorOpenAI("invalid_request_error", "context_length_exceeded", "Your input exceeds the context window of this model.")},
	PromptBlocked: {400, errorOpenAI("invalid_request_error", "invalid_prompt", "The prompt was flagged as violating the usage policy.")},
}

func failOpenAI(r Reply) failure { return openAIErrors[r.Failure] }
