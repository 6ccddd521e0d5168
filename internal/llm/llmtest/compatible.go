package llmtest

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// Compatible is OpenAI's older chat completions API, as many servers implement it.
var Compatible = Vendor{Name: "Compatible", base: "/v1", headers: bearer, decode: decodeCompletions, answer: answerCompletions, fail: failCompatible, wrong: wrongOpenAI}

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
	if err := strict(body, &r); err != nil {
		return Call{}, err
	}
	if path != "/chat/completions" || r.Stream {
		return Call{}, fmt.Errorf("path %s, stream %t", path, r.Stream)
	}
	call := Call{Settings: llm.Settings{Model: r.Model, Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed}}
	if err := call.limit(r.MaxTokens, 1); err != nil {
		return Call{}, err
	}
	for i, m := range r.Messages {
		if i == 0 && m.Role == "system" {
			call.System = m.Content
		} else if err := call.turn(m.Role, "assistant", m.Content); err != nil {
			return Call{}, err
		}
	}
	if f := r.ResponseFormat; f != nil {
		switch f.Type {
		case "json_object":
		case "json_schema":
			if f.JSONSchema.Name == "" || f.JSONSchema.Schema.Kind() != jsontext.KindBeginObject {
				return Call{}, errors.New("response_format: want a schema with a name")
			}
			call.Schema = llm.Schema{Name: f.JSONSchema.Name, JSON: f.JSONSchema.Schema}
		default:
			return Call{}, fmt.Errorf("response_format: %q", f.Type)
		}
	}
	return call, call.whole()
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

// failuresCompatible are where servers differ from OpenAI: vLLM has the status as the code, Ollama no code, LM Studio a text.
var failuresCompatible = map[Failure]failure{
	PromptTooLong: {400, object{"error": object{"message": "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens.", "type": "BadRequestError", "param": nil, "code": 400}}},
	PromptBlocked: {400, errorOpenAI("", "content_filter", "The prompt triggered the content management policy.")},
	NoSuchModel:   {404, object{"error": object{"message": "model not found, try pulling it first", "type": "api_error", "param": nil, "code": nil}}},
	ServerError:   {500, object{"error": "The model has crashed"}},
}

func failCompatible(r Reply) failure {
	if f, own := failuresCompatible[r.Failure]; own {
		return f
	}
	return failuresOpenAI[r.Failure]
}
