package rules

import "jurat/internal/subject"

// Consequential reports whether a call has consequences, by the name of its tool.
func Consequential(call *subject.ToolCall) bool {
	kind, _ := classify(nameWords(call.Name))
	return kind == writeCall
}
