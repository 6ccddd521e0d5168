package importing

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// An object is the members of a JSON object, as they stand in the file. Of a member that is there twice the last counts, as most libraries read it; what
// is sealed is read strictly.
type object = convo.Object

// cut returns at most so many bytes of a text, which are valid UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// jsonOf writes a value of this program's own making.
func jsonOf(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // maps, lists and strings always have a JSON form
	}
	return doc
}
