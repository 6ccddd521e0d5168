package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"jurat/internal/juror/phrase"
	"jurat/internal/subject"
)

// A leaf is a scalar somewhere in a JSON value.
type leaf struct {
	key    string // the nearest member name
	text   string
	number bool
}

// decode reads JSON that a tool printed; it need not be canonical. It returns nil for any other text.
func decode(text string) any {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || len(trimmed) > subject.MaxFile {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(trimmed)))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.InputOffset() != int64(len(trimmed)) {
		return nil
	}
	return v
}

// leaves lists the scalars of a value in an order that does not depend on map iteration.
func leaves(key string, v any) []leaf {
	var list []leaf
	switch v := v.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			list = append(list, leaves(name, v[name])...)
		}
	case []any:
		for _, item := range v {
			list = append(list, leaves(key, item)...)
		}
	default:
		if text := scalar(v); text != "" {
			_, number := v.(json.Number)
			list = append(list, leaf{key, text, number})
		}
	}
	return list
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func sortedKeys(fields map[string]any) []string { return slices.Sorted(maps.Keys(fields)) }

// A record is an object that a tool returned.
type record struct {
	msg    int
	fields map[string]any
}

func (r *record) text(name string) string { return scalar(r.fields[name]) }

// ids lists the names of the members that identify the record or what it belongs to.
func (r *record) ids() []string {
	return slices.DeleteFunc(sortedKeys(r.fields), func(name string) bool {
		text := r.text(name)
		return len(text) < 2 || !isID(name) && !(isCode(text) && strings.IndexFunc(text, unicode.IsLetter) >= 0 && len(text) <= 20)
	})
}

func isID(name string) bool {
	words := phrase.NameWords(name)
	return len(words) > 0 && slices.Contains([]string{"id", "number", "no"}, words[len(words)-1])
}

// recordsOf returns the objects of a result: the result itself or the elements of its array, and the objects one
// level inside.
func recordsOf(m *subject.Message) []*record {
	var list []*record
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth < 0 {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			list = append(list, &record{m.Number, v})
			for _, name := range sortedKeys(v) {
				walk(v[name], depth-1)
			}
		case []any:
			for _, item := range v {
				walk(item, depth-1)
			}
		}
	}
	walk(decode(m.Text), 2)
	return list
}

// A reference is an identifier and the name of its member.
type reference struct{ key, id string }

// records holds the latest record under each identifier.
type records map[reference]*record

// add stores the records of a result. If several share an identifier, the outermost counts.
func (k records) add(m *subject.Message) {
	list := recordsOf(m)
	slices.Reverse(list)
	for _, one := range list {
		for _, key := range one.ids() {
			k[reference{key, one.text(key)}] = one
		}
	}
}

// about returns the record that a call acts on, and the name of the identifier that shows it. That is the identifier
// that the call's name mentions, or the only one among the arguments. It returns nil if that is unclear.
func (k records) about(c *call) (*record, string) {
	found := map[string]*record{} // by the identifier's name
	for _, name := range sortedKeys(c.object) {
		id := scalar(c.object[name])
		for _, key := range []string{name, "id"} {
			if one := k[reference{key, id}]; one != nil {
				if slices.ContainsFunc(phrase.NameWords(name), func(w string) bool { return w != "id" && slices.Contains(c.words, w) }) {
					return one, key
				}
				found[key] = one
			}
		}
	}
	if len(found) != 1 {
		return nil, ""
	}
	for key, one := range found {
		return one, key
	}
	return nil, ""
}
