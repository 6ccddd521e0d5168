package rules

import (
	"jurat/internal/juror/phrase"
	"jurat/internal/subject"
)

// Consequential reports whether a call has consequences, by the name of its tool.
func Consequential(call *subject.ToolCall) bool {
	kind, _ := classify(phrase.NameWords(call.Name))
	return kind == writeCall
}
