package llmtest

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

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
