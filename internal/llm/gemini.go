package llm

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"time"

	"jurat/internal/convo"
)

// gemini is Google's Gemini API, method generateContent.
var gemini = protocol{
	baseURL: "https://generativelanguage.googleapis.com",
	check: func(s Settings) error {
		switch {
		case !modelName.MatchString(s.Model):
			return fmt.Errorf("%q is not a valid model name", s.Model)
		case s.Seed != nil && (*s.Seed < math.MinInt32 || *s.Seed > math.MaxInt32):
			return fmt.Errorf("seed: %d does not fit 32 bits", *s.Seed)
		}
		return nil
	},
	path: func(s Settings) string {
		name := s.Model
		if !strings.Contains(name, "/") {
			name = "models/" + name
		}
		return "/v1beta/" + name + ":generateContent"
	},
	sign:    func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) },
	request: generateRequest,
	read:    readGenerate,
	explain: explainGoogle,
}

// modelName matches the names that a URL path may hold.
var modelName = regexp.MustCompile(`^(?:(?:models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)

func generateRequest(s Settings, q Question, _ dialect) object {
	parts := func(text string) any { return []object{{"text": text}} }
	config := object{"candidateCount": 1}
	r := object{"contents": turns(q, "model", "parts", parts), "generationConfig": config}
	put(config, "temperature", s.Temperature)
	put(config, "topP", s.TopP)
	put(config, "seed", s.Seed) // of 32 bits
	put(config, "maxOutputTokens", s.MaxTokens)
	if q.System != "" {
		r["systemInstruction"] = object{"role": "user", "parts": parts(q.System)}
	}
	if q.Schema.JSON != nil {
		config["responseMimeType"], config["responseJsonSchema"] = "application/json", q.Schema.JSON
	}
	return r
}

func readGenerate(x *exchange) (Answer, error) {
	r, err := x.answer()
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Model: r.Word("modelVersion"), Usage: convo.Counted(r.Get("usageMetadata"), convo.GenerateCounts)}
	if f := r.Get("promptFeedback"); f.Word("blockReason") != "" {
		answer.FinishReason = f.Word("blockReason")
		return Answer{}, x.failWith(answer, Refused, kinds("prompt blocked: "+answer.FinishReason, f, f.Word("blockReasonMessage")))
	}
	candidates := r.Get("candidates").List()
	if len(candidates) != 1 || candidates[0].Absent() {
		return Answer{}, x.failWith(answer, Malformed, fmt.Sprintf("the response has %d candidates", len(candidates)))
	}
	candidate := candidates[0]
	answer.FinishReason = candidate.Word("finishReason")
	var text strings.Builder
	for _, part := range candidate.Get("content").Get("parts").OneOrMore() {
		if !part.Get("thought").IsTrue() {
			text.WriteString(part.Word("text"))
		}
	}
	answer.Text = text.String()
	return x.conclude(answer, kinds(answer.FinishReason, candidate, candidate.Word("finishMessage")))
}

// kinds tells what a filter found: the ratings that blocked, and those that are high.
func kinds(reason string, found *convo.Node, message string) string {
	for _, r := range found.Get("safetyRatings").List() {
		if r.Get("blocked").IsTrue() || r.Word("probability") == "HIGH" {
			reason += fmt.Sprintf(", %s %s", r.Word("category"), r.Word("probability"))
		}
	}
	if message != "" {
		reason += ": " + message
	}
	return reason
}

// explainGoogle reads errors of Google's interfaces: a status in words, and details of several types.
func explainGoogle(_ int, body []byte) reading {
	e := convo.ErrorBody(body).Get("error")
	status, message := e.Word("status"), e.Word("message")
	if status == "" {
		return reading{detail: excerpt(body)}
	}
	said := reading{kind: kindOfGoogle(status, strings.ToLower(message)), detail: status + ": " + message}
	for _, detail := range e.Get("details").List() {
		switch kind := detail.Word("@type"); {
		case kind == "type.googleapis.com/google.rpc.ErrorInfo" && strings.HasPrefix(detail.Word("reason"), "API_KEY_"):
			said.kind = Unauthorised // Google sends the status of any invalid request
		case kind == "type.googleapis.com/google.rpc.RetryInfo":
			if wait, err := time.ParseDuration(detail.Word("retryDelay")); err == nil && wait > 0 { // such as "3.5s"
				said.wait = wait
			}
		}
	}
	return said
}

func kindOfGoogle(status, message string) Kind {
	switch status {
	case "INVALID_ARGUMENT":
		switch {
		case strings.Contains(message, "token count") && strings.Contains(message, "exceeds"):
			return TooLong
		case strings.Contains(message, "api key not valid"), strings.Contains(message, "api key expired"):
			return Unauthorised
		}
	case "FAILED_PRECONDITION": // billing, or a country without service
		return Unauthorised
	}
	return "" // the HTTP status tells
}
