package observed

import (
	"bytes"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// A value of JSON is an object, []any, string, number, bool or nil here.
type (
	object = map[string]any
	number = jsontext.Value // as it stands
)

// documents reads the objects and arrays of JSON with which a body begins, one after the other, as most libraries do: of members with one name the last counts, and U+FFFD stands for what is broken in a
// text.
func documents(body []byte) (list []any) {
	d := jsontext.NewDecoder(bytes.NewBuffer(bytes.TrimPrefix(body, []byte("\ufeff"))), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for d.PeekKind() == jsontext.KindBeginObject || d.PeekKind() == jsontext.KindBeginArray {
		v, err := value(d)
		if err != nil {
			break
		}
		list = append(list, v)
	}
	return list
}

func value(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindBeginObject:
		o := object{}
		for d.PeekKind() != jsontext.KindEndObject {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			its := name.String()
			if o[its], err = value(d); err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return o, err
	case jsontext.KindBeginArray:
		list := []any{}
		for d.PeekKind() != jsontext.KindEndArray {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	case jsontext.KindString:
		return token.String(), nil
	case jsontext.KindNumber:
		return number(token.String()), nil
	case jsontext.KindNull:
		return nil, nil
	}
	return token.Bool(), nil
}

// objects returns the objects that a body has: its documents, and those in an array. A body with none may be a stream of events, each with such data.
func objects(body []byte) (list []object) {
	for _, v := range documents(body) {
		list = append(list, objectsIn(v)...)
	}
	if list != nil {
		return list
	}
	for data := range eventData(body) {
		if string(data) == "[DONE]" {
			break
		}
		for _, v := range documents(data) {
			list = append(list, objectsIn(v)...)
		}
	}
	return list
}

// objectsIn returns the object that a value is, or those in the array that it is.
func objectsIn(v any) (list []object) {
	if o, is := v.(object); is {
		return []object{o}
	}
	elements, _ := v.([]any)
	for _, element := range elements {
		if o, is := element.(object); is {
			list = append(list, o)
		}
	}
	return list
}

// eventData returns the data of server-sent events.
func eventData(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		body = bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		var lines [][]byte
		for line := range bytes.SplitSeq(append(body, '\n', '\n'), []byte("\n")) {
			field, value, _ := bytes.Cut(line, []byte(":"))
			if string(field) == "data" {
				lines = append(lines, bytes.TrimPrefix(value, []byte(" ")))
			}
			if len(line) == 0 && lines != nil {
				if !yield(bytes.Join(lines, []byte("\n"))) {
					return
				}
				lines = nil
			}
		}
	}
}

// at returns what stands at places in a value. A place is names with points between them; after a name, [] stands for each element of an array, and [KIND] for each whose type is KIND.
func at(v any, places string) (found []any) {
	for place := range strings.FieldsSeq(places) {
		found = append(found, reached(v, strings.Split(place, "."))...)
	}
	return found
}

func reached(v any, steps []string) []any {
	if len(steps) == 0 {
		return []any{v}
	}
	name, kind, each := strings.Cut(strings.TrimSuffix(steps[0], "]"), "[")
	o, _ := v.(object)
	next, there := o[name]
	switch {
	case !there:
		return nil
	case !each:
		return reached(next, steps[1:])
	}
	var found []any
	elements, _ := next.([]any)
	for _, element := range elements {
		if kind == "" || word(element, "type") == kind {
			found = append(found, reached(element, steps[1:])...)
		}
	}
	return found
}

// word returns the first text at places that is not empty; "": there is none.
func word(v any, places string) string {
	for _, one := range at(v, places) {
		if text, is := one.(string); is && text != "" {
			return text
		}
	}
	return ""
}

// lastWord is word for the last one.
func lastWord(v any, places string) (last string) {
	for _, one := range at(v, places) {
		if text, is := one.(string); is && text != "" {
			last = text
		}
	}
	return last
}

// canonical writes a value that was put together here; nil: it has no canonical form.
func canonical(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		doc, err = evidence.Canonical(doc)
	}
	if err != nil {
		return nil
	}
	return doc
}
