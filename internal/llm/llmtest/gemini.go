package llmtest

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// Gemini is the Gemini API's generateContent.
var Gemini = Vendor{Name: "Gemini", header: "X-Goog-Api-Key", decode: decodeGenerate, answer: answerGenerate, fail: failGemini, wrong: wrongGemini}

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
	d, g := decode(body, &r), r.GenerationConfig
	rest, prefixed := strings.CutPrefix(path, "/v1beta/models/")
	name, ok := strings.CutSuffix(rest, ":generateContent")
	d.demand(prefixed && ok, "path %s", path)
	d.demand(g.Seed == nil || *g.Seed <= math.MaxInt32 && *g.Seed >= math.MinInt32, "generationConfig.seed: it does not fit 32 bits")
	d.System, d.Settings = r.SystemInstruction.text(), llm.Settings{Model: name, Temperature: g.Temperature, TopP: g.TopP, Seed: g.Seed}
	d.limit(g.MaxOutputTokens, 1)
	for _, c := range r.Contents {
		d.turn(c.Role, "model", c.text())
	}
	if g.ResponseJSONSchema != nil {
		d.demand(g.ResponseMIMEType == "application/json", "responseJsonSchema: want responseMimeType application/json")
		d.schema("", g.ResponseJSONSchema, geminiDialect)
	}
	return d.call()
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

func errorGemini(code int, status, message string, details ...any) failure {
	e := object{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return failure{code, object{"error": e}}
}

func wrongGemini(message string) any { return errorGemini(400, "INVALID_ARGUMENT", message).body }

var geminiErrors = map[Failure]failure{
	Unauthorised: errorGemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
		object{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}),
	NoSuchModel:   errorGemini(404, "NOT_FOUND", "the model is not found for API version v1beta"),
	NoMoney:       errorGemini(400, "FAILED_PRECONDITION", "Please enable billing on project"),
	ServerError:   errorGemini(500, "INTERNAL", "An internal error has occurred."),
	Overloaded:    errorGemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
	PromptTooLong: errorGemini(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
}

func failGemini(r Reply) failure {
	switch r.Failure {
	case RateLimited:
		return errorGemini(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota",
			object{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{object{"quotaMetric": "requests"}}},
			object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%vs", r.RetryAfter.Seconds())})
	case PromptBlocked: // with a success status
		feedback := object{"blockReason": cmp.Or(r.Block, "PROHIBITED_CONTENT")}
		return failure{200, object{"promptFeedback": feedback, "modelVersion": r.Model, "usageMetadata": object{"promptTokenCount": r.Usage.Input, "totalTokenCount": r.Usage.Input}}}
	}
	return geminiErrors[r.Failure]
}
