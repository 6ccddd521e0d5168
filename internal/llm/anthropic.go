package llm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"jurat/internal/convo"
)

// anthropic is Anthropic's Messages API.
var anthropic = protocol{
	baseURL: "https://api.anthropic.com",
	check: func(s Settings) error {
		switch {
		case s.Seed != nil:
			return errors.New("seed: the Messages API accepts no seed")
		case s.MaxTokens == 0:
			return errors.New("max_tokens: the Messages API requires it")
		case s.Temperature != nil && *s.Temperature > 1:
			return fmt.Errorf("temperature: %v is above 1", *s.Temperature)
		}
		return nil
	},
	path: func(Settings) string { return "/v1/messages" },
	sign: func(h http.Header, key string) {
		h.Set("X-Api-Key", key)
		h.Set("Anthropic-Version", "2023-06-01")
	},
	request: messagesRequest,
	read:    readMessages,
	explain: explainAnthropic,
}

func messagesRequest(s Settings, q Question, _ dialect) object {
	text := func(text string) any { return []object{{"type": "text", "text": text}} }
	r := object{"model": s.Model, "max_tokens": s.MaxTokens, "messages": turns(q, "assistant", "content", text)}
	put(r, "temperature", s.Temperature)
	put(r, "top_p", s.TopP)
	if q.System != "" {
		r["system"] = text(q.System)
	}
	if q.Schema.JSON != nil {
		r["output_config"] = object{"format": object{"type": "json_schema", "schema": q.Schema.JSON}}
	}
	return r
}

func readMessages(x *exchange) (Answer, error) {
	m, err := x.answer()
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Model: m.Word("model"), FinishReason: m.Word("stop_reason"), Usage: convo.Counted(m.Get("usage"), convo.MessagesCounts)}
	var text strings.Builder
	for _, block := range m.Get("content").List() {
		if block.Word("type") == "text" {
			text.WriteString(block.Word("text"))
		}
	}
	answer.Text = text.String()
	details := m.Get("stop_details")
	return x.conclude(answer, strings.Join(strings.Fields(answer.FinishReason+" "+details.Word("category")+" "+details.Word("explanation")), " "))
}

// explainAnthropic reads Anthropic's errors. Many important ones share a type, so it tells them apart by their texts.
func explainAnthropic(_ int, body []byte) reading {
	e := convo.ErrorBody(body).Get("error")
	kind, message := e.Word("type"), e.Word("message")
	if kind == "" {
		return reading{detail: excerpt(body)}
	}
	said := reading{kind: anthropicKinds[kind], detail: kind + ": " + message}
	has := func(words string) bool {
		return kind == "invalid_request_error" && strings.Contains(strings.ToLower(message), words)
	}
	switch {
	case has("prompt is too long"), has("exceed context limit"), has("context window"):
		said.kind = TooLong
	case has("content filtering policy"):
		said.kind = Refused
	case has("credit balance is too low"):
		said.kind = Unauthorised
	}
	return said
}

var anthropicKinds = map[string]Kind{"authentication_error": Unauthorised, "permission_error": Unauthorised, "billing_error": Unauthorised,
	"not_found_error": NotFound, "rate_limit_error": RateLimited, "overloaded_error": Unavailable, "api_error": Unavailable, "timeout_error": Unavailable,
	"request_too_large": TooLong}
