package juror

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/subject"
)

// A leaf is a scalar somewhere in a JSON value.
type leaf struct {
	key    string // the nearest member name
	text   string
	number bool
}

// decode reads JSON that need not be canonical: it is what a tool printed.
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
	switch v := v.(type) {
	case map[string]any:
		var list []leaf
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, leaves(name, v[name])...)
		}
		return list
	case []any:
		var list []leaf
		for _, item := range v {
			list = append(list, leaves(key, item)...)
		}
		return list
	case string:
		return []leaf{{key: key, text: v}}
	case json.Number:
		return []leaf{{key: key, text: v.String(), number: true}}
	case bool:
		return []leaf{{key: key, text: strconv.FormatBool(v)}}
	}
	return nil
}

// A record is an object that a tool returned.
type record struct {
	msg    int
	fields map[string]any
	key    string // of its identifier; see idKey
}

// recordsOf returns the object that a result is, or those in the array that it is; and the objects one level inside.
func recordsOf(m *subject.Message) []record {
	var list []record
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		switch v := v.(type) {
		case map[string]any:
			list = append(list, record{msg: m.Number, fields: v, key: record{fields: v}.idKey()})
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if depth > 0 {
					walk(v[name], depth-1)
				}
			}
		case []any:
			for _, item := range v {
				if depth > 0 {
					walk(item, depth-1)
				}
			}
		}
	}
	walk(decode(m.Text), 2)
	return list
}

// text returns a scalar member as text.
func (r record) text(name string) string {
	switch v := r.fields[name].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// id returns the record's own identifier.
func (r record) id() string { return r.text(r.idKey()) }

// idKey is "id", else the first member whose name ends so and is no one else's; "" if there is none.
func (r record) idKey() string {
	if r.key != "" {
		return r.key
	}
	if r.text("id") != "" {
		return "id"
	}
	names := sortedKeys(r.fields)
	for _, suffix := range []string{"_id", "_number", "Id", "Number"} {
		for _, name := range names {
			if strings.HasSuffix(name, suffix) && !isOwnerKey(name) && r.text(name) != "" {
				return name
			}
		}
	}
	return ""
}

// ownerKeys name the person that a record belongs to.
var ownerKeys = []string{"user", "customer", "patient", "member", "account_holder", "subscriber", "client", "employee", "owner"}

func isOwnerKey(name string) bool {
	name = strings.ToLower(name)
	for _, key := range ownerKeys {
		if name == key+"_id" || name == key+"id" || name == key {
			return true
		}
	}
	return false
}

func sortedKeys(fields map[string]any) []string { return slices.Sorted(maps.Keys(fields)) }
