package compatible

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
	"jurat/internal/llm/wire"
)

// A completion is what of a response is read; servers add much of their own.
type completion struct {
	Model             string `json:"model"`
	SystemFingerprint string `json:"system_fingerprint"`
	Choices           []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
		TotalTokens      int64 `json:"total_tokens"`
		PromptDetails    struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			ReasoningTokens int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error jsontext.Value `json:"error"` // gateways put what went wrong behind them into a good response
}

func read(exchange *wire.Exchange) (llm.Answer, error) {
	var c completion
	if err := json.Unmarshal(exchange.Body, &c); err != nil {
		return llm.Answer{}, exchange.Fail(llm.Malformed, err.Error())
	}
	if len(c.Choices) == 0 && c.Error.Kind() == jsontext.KindBeginObject {
		return llm.Answer{}, behind(exchange, c.Error)
	}
	if len(c.Choices) != 1 {
		return llm.Answer{}, exchange.Fail(llm.Malformed, fmt.Sprintf("the response has %d choices", len(c.Choices)))
	}
	choice := c.Choices[0]
	answer := llm.Answer{
		Text:         choice.Message.Content,
		Model:        c.Model,
		Version:      c.SystemFingerprint,
		FinishReason: choice.FinishReason,
		Usage:        c.usage(),
		Raw:          exchange.Body,
	}
	switch {
	case choice.FinishReason == "content_filter":
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, choice.FinishReason)
	case choice.Message.Refusal != "":
		return llm.Answer{}, exchange.FailWith(answer, llm.Refused, "refusal: "+choice.Message.Refusal)
	case choice.FinishReason == "length":
		return llm.Answer{}, exchange.FailWith(answer, llm.TooLong, "the answer was cut off: length")
	case choice.FinishReason != "stop":
		return llm.Answer{}, exchange.FailWith(answer, llm.Malformed, fmt.Sprintf("the model stopped for a reason that is not its to have: %q", choice.FinishReason))
	}
	return exchange.Finish(answer)
}

// usage adds reasoning to the output where a server counts it apart, which shows in the total alone.
func (c completion) usage() llm.Usage {
	u := llm.Usage{Input: c.Usage.PromptTokens, Cached: c.Usage.PromptDetails.CachedTokens,
		Output: c.Usage.CompletionTokens, Reasoning: c.Usage.CompletionDetails.ReasoningTokens}
	if c.Usage.TotalTokens == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	return u
}

// behind is an error that a gateway passes on under a good status; its code is the status that it got.
func behind(exchange *wire.Exchange, value jsontext.Value) error {
	var inner struct {
		Code jsontext.Value `json:"code"`
	}
	status := 0
	if json.Unmarshal(value, &inner) == nil && inner.Code.Kind() == jsontext.KindNumber && json.Unmarshal(inner.Code, &status) != nil {
		status = 0
	}
	said := wire.ReadOpenAI(status, exchange.Body)
	if said.Kind == "" {
		said.Kind = llm.KindOfStatus(status)
	}
	return exchange.Fail(said.Kind, said.Detail)
}
