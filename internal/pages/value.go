package pages

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// text is a JSON value for people: a string is what it says, everything else is indented JSON.
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
		return string(v) // as it is: nothing that was said is hidden because it cannot be laid out
	}
	return string(indented)
}
