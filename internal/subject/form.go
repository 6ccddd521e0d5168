package subject

import (
	"jurat/internal/subject/forms"
	"jurat/internal/subject/tree"
)

// readers are the readers of the forms that the evidence names in its member format. Chat and A2A are not named, so
// that the evidence of earlier trials and that of new ones is the same.
var readers = map[forms.Form]func(*Case, *tree.Node) error{
	forms.Anthropic: (*Case).readAnthropic, forms.Responses: (*Case).readResponses, forms.Gemini: (*Case).readGemini,
	forms.Inspect: (*Case).readInspect, forms.Promptfoo: (*Case).readPromptfoo,
}
