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

// Compatible is OpenAI's older chat completions API, as many servers implement it.
var Compatible = Vendor{Name: "Compatible", base: "/v1", header: "Authorization", decode: decodeCompletions, answer: answerCompletions, fail: failCompatible, wrong: wrongOpenAI}

func decodeCompletions(path string, body []byte) (Call, error) {
	var r struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		Stream         bool     `json:"stream"`
		Temperature    *float64 `json:"temperature"`
		TopP           *float64 `json:"top_p"`
		Seed           *int64   `json:"seed"`
		MaxTokens      *int     `json:"max_tokens"`
		ResponseFormat *struct {
			Type       string `json:"type"`
			JSONSchema struct {
				Name   string         `json:"name"`
				Strict bool           `json:"strict"`
				Schema jsontext.Value `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	d := decode(body, &r)
	d.demand(path == "/chat/completions" && !r.Stream, "path %s, stream %t", path, r.Stream)
	d.Settings = llm.Settings{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed}
	d.limit(r.MaxTokens, 1)
	for i, m := range r.Messages {
		if i == 0 && m.Role == "system" {
			d.System = m.Content
		} else {
			d.turn(m.Role, "assistant", m.Content)
		}
	}
	if f := r.ResponseFormat; f != nil && f.Type != "json_object" {
		d.demand(f.Type == "json_schema", "response_format: %q", f.Type)
		d.demand(f.JSONSchema.Name != "" && f.JSONSchema.Schema.Kind() == '{', "response_format: want a schema with a name")
		d.Schema = llm.Schema{Name: f.JSONSchema.Name, JSON: f.JSONSchema.Schema}
	}
	return d.call()
}

func answerCompletions(c Call, r Reply) any {
	message := object{"role": "assistant", "content": r.Text, "refusal": nil}
	reason := "stop"
	switch {
	case r.Failure == Blocked && r.Block == "content_filter":
		message["content"], reason = nil, "content_filter"
	case r.Failure == Blocked: // the model itself refuses
		message["content"], message["refusal"] = nil, "I'm sorry, but I cannot assist with that request."
	case r.Failure == CutOff:
		reason = "length"
	}
	return object{
		"id": fmt.Sprintf("chatcmpl-%d", c.Number), "object": "chat.completion", "created": 1767225600, "model": r.Model, "system_fingerprint": "fp_44709d6fcb",
		"choices": []any{object{"index": 0, "message": message, "logprobs": nil, "finish_reason": reason}},
		"usage": object{
			"prompt_tokens": r.Usage.Input, "completion_tokens": r.Usage.Output, "total_tokens": r.Usage.Input + r.Usage.Output,
			"prompt_tokens_details":     object{"cached_tokens": r.Usage.Cached},
			"completion_tokens_details": object{"reasoning_tokens": r.Usage.Reasoning},
		},
	}
}

// compatibleErrors are those that other servers word otherwise than OpenAI.
var compatibleErrors = map[Failure]failure{
	// vLLM's form, with the status as the code
	PromptTooLong: {400, object{"error": object{"message": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.", "type": "BadRequestError", "param": nil, "code": 400}}},
	PromptBlocked: {400, errorOpenAI("", "content_filter", "The prompt triggered the content management policy.")},
	// Ollama's form
	NoSuchModel: {404, object{"error": object{"message": "model not found, try pulling it first", "type": "api_error", "param": nil, "code": nil}}},
	// LM Studio's form
	ServerError: {500, object{"error": "The model has crashed"}},
}

func failCompatible(r Reply) failure {
	if f, own := compatibleErrors[r.Failure]; own {
		return f
	}
	return failOpenAI(r)
}
