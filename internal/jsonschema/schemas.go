// Package jsonschema describes Go types, and the files of docs/format.md, as JSON schemas.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// An Object is a JSON object.
type Object = map[string]any

// OfFiles returns the schemas of the files that docs/format.md describes.
func OfFiles() Schemas {
	s := Schemas{"Record": recordSchema, "Bundle": bundleSchema, "Trust": trustSchema}
	s["Payload"] = s.payload()
	return s
}

// Schemas holds JSON schemas by their names in the description.
type Schemas map[string]any

// Reference refers to a schema by its name.
func Reference(name string) Object { return Object{"$ref": "#/components/schemas/" + name} }

// anyJSON are the types whose values are arbitrary JSON.
var anyJSON = []reflect.Type{reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]()}

// Of returns the schema of a type, by the JSON that the type is written as. It adds the named types to s. It panics
// on a type without a JSON schema.
func (s Schemas) Of(t reflect.Type) Object {
	switch {
	case slices.Contains(anyJSON, t):
		return Object{}
	case t == reflect.TypeFor[evidence.Digest]():
		return Object{"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
	case t == reflect.TypeFor[[]byte]():
		return Object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.Of(t.Elem())
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return Object{"type": "integer"}
	case reflect.Float64:
		return Object{"type": "number"}
	case reflect.Slice:
		return Object{"type": "array", "items": s.Of(t.Elem())}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": s.Of(t.Elem())}
	case reflect.Struct:
		if s[t.Name()] == nil {
			s[t.Name()] = Object{} // ends the recursion for a type that contains itself
			s[t.Name()] = s.members(t)
		}
		return Reference(t.Name())
	}
	panic(fmt.Sprintf("no schema is known for %v", t))
}

// members returns the schema of a struct.
func (s Schemas) members(t reflect.Type) Object {
	properties, required := Object{}, []string{}
	for field := range fieldsOf(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := s.Of(field.Type)
		if !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
			required = append(required, name)
			if field.Type.Kind() == reflect.Pointer { // a nil pointer is written, too
				schema = Object{"anyOf": []Object{schema, {"type": "null"}}}
			}
		}
		properties[name] = schema
	}
	schema := Object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// fieldsOf iterates over the written fields, including those of embedded structs.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(t) {
			if !field.Anonymous && field.IsExported() && field.Tag.Get("json") != "-" && !yield(field) {
				return
			}
		}
	}
}

// payload describes the possible members of a payload. docs/format.md says which ones each action type
// requires.
func (s Schemas) payload() Object {
	schema := s.members(reflect.TypeFor[evidence.Payload]())
	schema["properties"].(Object)["action_type"] = Object{"type": "string", "enum": evidence.ActionTypes()}
	schema["additionalProperties"] = false
	schema["description"] = "An Agent Evidence Payload as actors send it. Members of your own go into metadata."
	return schema
}

var (
	timestampSchema = Object{"type": "object", "required": []string{"kind", "token"}, "properties": Object{
		"kind": Object{"type": "string"}, "token": Object{"type": "string", "contentEncoding": "base64"}}}
	recordSchema = Object{"type": "object", "required": []string{"digest", "payload", "signatures", "timestamps"},
		"description": "A sealed record: a file of docs/format.md.",
		"properties": Object{
			"certificates": Object{"type": "array", "items": Object{"type": "string", "contentEncoding": "base64"}},
			"digest":       Object{"type": "string"},
			"disclosures":  Object{"type": "array", "items": Object{"type": "object"}},
			"log":          Object{"type": "object"},
			"payload":      Reference("Payload"),
			"properties":   Object{"type": "array", "items": Object{"type": "object"}},
			"revocations":  Object{"type": "array", "items": Object{"type": "object"}},
			"signatures":   Object{"type": "array", "items": Object{"type": "string", "contentEncoding": "base64"}},
			"timestamps":   Object{"type": "array", "items": timestampSchema}}}
	bundleSchema = Object{"type": "object", "required": []string{"format", "records"},
		"description": "Records in log order under one checkpoint: a file of docs/format.md.",
		"properties": Object{"checkpoint": Object{"type": "string"}, "checkpoint_timestamps": Object{"type": "array", "items": timestampSchema},
			"format": Object{"type": "string"}, "records": Object{"type": "array", "items": Reference("Record")}}}
	trustSchema = Object{"type": "object", "description": "A trust file of docs/format.md."}
)
