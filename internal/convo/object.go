package convo

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient reads JSON as most libraries do: the last of two members counts, and U+FFFD stands for a broken character.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// An Object is the members of a JSON object, as most libraries read it.
type Object map[string]jsontext.Value

// ObjectOf reads an object; nil: it is none.
func ObjectOf(v jsontext.Value) Object {
	var o Object
	if v.Kind() != '{' || json.Unmarshal(v, &o, lenient) != nil {
		return nil
	}
	return o
}

// Values are the elements of an array; nil: it is none.
func Values(v jsontext.Value) (list []jsontext.Value) {
	if v.Kind() != '[' || json.Unmarshal(v, &list, lenient) != nil {
		return nil
	}
	return list
}

// Has reports whether a member is of a kind.
func (o Object) Has(name string, kind jsontext.Kind) bool {
	v, there := o[name]
	return there && v.Kind() == kind
}

// Within returns the members of a member that is an object; nil: it is none.
func (o Object) Within(name string) Object { return ObjectOf(o[name]) }

// Word returns a member that is a text; "" for any other.
func (o Object) Word(name string) (text string) {
	if v := o[name]; v.Kind() != '"' || json.Unmarshal(v, &text, lenient) != nil {
		return ""
	}
	return text
}

// Brief returns a member that is a text or a number, at most 200 bytes of it.
func (o Object) Brief(name string) string {
	const most = 200
	text := o.Word(name)
	if o.Has(name, '0') {
		text = string(o[name])
	}
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// IsConversation reports whether an object is a whole conversation, and not one of its messages.
func (o Object) IsConversation() bool {
	if o.Has("role", '"') || o.Has("parts", '[') {
		return false
	}
	return o.Has("messages", '[') || o.Has("history", '[') || o.Has("contents", '[') || o.Has("task", '{') || o.Has("input", '[') || o.Has("input", '"') && o.Has("output", '[')
}

// Names are the names of the members, sorted.
func (o Object) Names() []string { return slices.Sorted(maps.Keys(o)) }

// Value returns the object as a value.
func (o Object) Value() jsontext.Value {
	doc, err := json.Marshal(o, lenient, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return doc
}
