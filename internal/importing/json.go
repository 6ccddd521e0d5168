package importing

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An object is the members of a JSON object, as they stand in the file. Of a member that is there twice the last counts, as most libraries read it; what
// is sealed is read strictly.
type object map[string]jsontext.Value

// objectOf reads an object; nil: it is none.
func objectOf(v jsontext.Value) object {
	var o object
	if v.Kind() != '{' || json.Unmarshal(v, &o, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	return o
}

// has reports whether a member is of a kind.
func (o object) has(name string, kind jsontext.Kind) bool {
	v, there := o[name]
	return there && v.Kind() == kind
}

// within returns the members of a member that is an object; nil: it is none.
func (o object) within(name string) object { return objectOf(o[name]) }

// word returns a member that is a string or a number, at most 200 bytes of it.
func (o object) word(name string) string {
	v := o[name]
	switch v.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err == nil {
			return cut(string(text), 200)
		}
	case '0':
		return cut(string(v), 200)
	}
	return ""
}

// text returns a member that is a string.
func (o object) text(name string) string {
	if v := o[name]; v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return ""
}

func (o object) isTrue(name string) bool { return o.has(name, 't') }

// list returns the elements of a member that is an array.
func (o object) list(name string) []jsontext.Value {
	var list []jsontext.Value
	if !o.has(name, '[') || json.Unmarshal(o[name], &list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return nil
	}
	return list
}

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
