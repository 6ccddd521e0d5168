package pages

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// text returns a JSON value in readable form: the content of a string, indented JSON for other values.
func text(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	shown := bytes.Clone(v)
	indented := jsontext.Value(shown)
	if err := indented.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(v) // shown unchanged, because text must never disappear only because it cannot be laid out
	}
	return string(indented)
}
