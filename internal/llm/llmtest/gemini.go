package llmtest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// Gemini is the Gemini API's generateContent.
var Gemini = Vendor{Name: "Gemini", headers: geminiHeaders, decode: decodeGenerate, answer: answerGenerate, fail: failGemini, wrong: wrongGemini}

func geminiHeaders(h http.Header, key string) error {
	switch {
	case h.Get("X-Goog-Api-Key") != key:
		return errors.New("x-goog-api-key is not the key")
	case h.Get("Authorization") != "":
		return errors.New("there is an authorization beside x-goog-api-key")
	}
	return only(h, "X-Goog-Api-Key", key)
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text string `json:"text"`
	} `json:"parts"`
}

func (c geminiContent) text() (text string) {
	for _, p := range c.Parts {
		text += p.Text
	}
	return text
}

func decodeGenerate(path string, body []byte) (Call, error) {
	var r struct {
		Contents          []geminiContent `json:"contents"`
		SystemInstruction geminiContent   `json:"systemInstruction"`
		GenerationConfig  struct {
			CandidateCount     int            `json:"candidateCount"`
			Temperature        *float64       `json:"temperature"`
			TopP               *float64       `json:"topP"`
			Seed               *int64         `json:"seed"`
			MaxOutputTokens    *int           `json:"maxOutputTokens"`
			ResponseMIMEType   string         `json:"responseMimeType"`
			ResponseJSONSchema jsontext.Value `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := strict(body, &r); err != nil {
		return Call{}, err
	}
	rest, prefixed := strings.CutPrefix(path, "/v1beta/models/")
	name, ok := strings.CutSuffix(rest, ":generateContent")
	if !prefixed || !ok {
		return Call{}, fmt.Errorf("path %s", path)
	}
	g := r.GenerationConfig
	if g.Seed != nil && (*g.Seed > math.MaxInt32 || *g.Seed < math.MinInt32) {
		return Call{}, errors.New("generationConfig.seed: it does not fit 32 bits")
	}
	call := Call{System: r.SystemInstruction.text(), Settings: llm.Settings{Model: name, Temperature: g.Temperature, TopP: g.TopP, Seed: g.Seed}}
	err := call.limit(g.MaxOutputTokens, 1)
	for _, c := range r.Contents {
		err = cmp.Or(err, call.turn(c.Role, "model", c.text()))
	}
	if err != nil {
		return Call{}, err
	}
	if g.ResponseJSONSchema != nil {
		if g.ResponseMIMEType != "application/json" {
			return Call{}, errors.New("responseJsonSchema: want responseMimeType application/json")
		}
		if err := geminiDialect.check(g.ResponseJSONSchema); err != nil {
			return Call{}, err
		}
		call.Schema.JSON = g.ResponseJSONSchema
	}
	return call, call.whole()
}

func answerGenerate(c Call, r Reply) any {
	ratings := []any{
		object{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"},
		object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "NEGLIGIBLE"},
	}
	candidate := object{"index": 0, "finishReason": "STOP", "safetyRatings": ratings,
		"content": object{"role": "model", "parts": []any{object{"text": "Weighing the evidence.", "thought": true}, object{"text": r.Text}}}}
	switch r.Failure {
	case Blocked:
		delete(candidate, "content")
		candidate["finishReason"] = cmp.Or(r.Block, "SAFETY")
		ratings[1] = object{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true}
	case CutOff:
		candidate["finishReason"] = "MAX_TOKENS"
	}
	return object{
		"candidates": []any{candidate}, "modelVersion": r.Model, "responseId": fmt.Sprintf("response-%d", c.Number),
		"usageMetadata": usageGemini(r.Usage),
	}
}

func usageGemini(u llm.Usage) object {
	return object{"promptTokenCount": u.Input, "cachedContentTokenCount": u.Cached, "candidatesTokenCount": u.Output - u.Reasoning,
		"thoughtsTokenCount": u.Reasoning, "totalTokenCount": u.Input + u.Output,
		"promptTokensDetails": []any{object{"modality": "TEXT", "tokenCount": u.Input}}}
}

func errorGemini(code int, status, message string, details ...any) any {
	e := object{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return object{"error": e}
}

func wrongGemini(message string) any { return errorGemini(400, "INVALID_ARGUMENT", message) }

var failuresGemini = map[Failure]failure{
	Unauthorised: {400, errorGemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
		object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"})},
	NoSuchModel:   {404, errorGemini(404, "NOT_FOUND", "the model is not found for API version v1beta")},
	NoMoney:       {400, errorGemini(400, "FAILED_PRECONDITION", "Please enable billing on project")},
	Overloaded:    {503, errorGemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")},
	PromptTooLong: {400, errorGemini(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")},
	ServerError:   {500, errorGemini(500, "INTERNAL", "An internal error has occurred.")},
}

func failGemini(r Reply) failure {
	switch r.Failure {
	case RateLimited: // the body has what others have in a header
		return failure{429, errorGemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota",
			object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{object{"quotaMetric": "requests"}}},
			object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%vs", r.RetryAfter.Seconds())})}
	case PromptBlocked: // with a success status
		return failure{200, object{"promptFeedback": object{"blockReason": cmp.Or(r.Block, "PROHIBITED_CONTENT")}, "modelVersion": r.Model,
			"usageMetadata": object{"promptTokenCount": r.Usage.Input, "totalTokenCount": r.Usage.Input}}}
	}
	return failuresGemini[r.Failure]
}
