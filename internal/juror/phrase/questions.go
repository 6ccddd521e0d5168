package phrase

import (
	"strings"

	"jurat/internal/pattern"
)

var Requesting = pattern.New(`(?i)\bplease\b|\b(can|could|would|will) you\b`)

var infoQuestion = pattern.New(`(?i)^\W*(?:and |but |so |ok,? |also,? )?(?:what|how|when|where|why|who|which|is|are|am|was|were|do|does|did|has|have|can (?:i|it|we|\d)|could (?:i|it|we)|would (?:i|it)|will)\b`)

// WithoutQuestions is what a text says besides questions for information: "what does it cost to cancel?" asks for no
// cancellation.
func WithoutQuestions(text string) string {
	var rest []string
	for _, s := range Sentences(text) {
		if !strings.HasSuffix(s, "?") || !infoQuestion.MatchString(s) || Requesting.MatchString(s) {
			rest = append(rest, s)
		}
	}
	return strings.Join(rest, " ")
}
