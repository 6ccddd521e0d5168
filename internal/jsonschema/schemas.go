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

// Enums lists, for types of strings, the values that they have.
type Enums map[reflect.Type][]string

// OfFiles returns the schemas of the files that docs/format.md describes. Types of strings that enums lists become
// enumerations.
func OfFiles(enums Enums) *Schemas {
	s := &Schemas{enums: enums, types: map[string]reflect.Type{},
		all: map[string]any{"Record": recordSchema, "Bundle": bundleSchema, "Trust": trustSchema}}
	s.all["Payload"] = s.payload()
	return s
}

// Schemas holds JSON schemas by their names in the description.
type Schemas struct {
	enums Enums
	all   map[string]any
	types map[string]reflect.Type // whose schema a name is; files have none
}

// All returns the schemas by their names.
func (s *Schemas) All() map[string]any { return s.all }

// Member describes a member of a named schema, such as Review and approval_status, anew. It panics if there is no such
// member.
func (s *Schemas) Member(schema, member string, as Object) {
	properties := s.all[schema].(Object)["properties"].(Object)
	if properties[member] == nil {
		panic(fmt.Sprintf("%s has no member %s", schema, member))
	}
	properties[member] = as
}

// Closed says of a named schema that it has no other members.
func (s *Schemas) Closed(schema string) { s.all[schema].(Object)["additionalProperties"] = false }

// Reference refers to a schema by its name.
func Reference(name string) Object { return Object{"$ref": "#/components/schemas/" + name} }

// anyJSON are the types whose values are arbitrary JSON.
var anyJSON = []reflect.Type{reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]()}

// Of returns the schema of a type, by the JSON that the type is written as. It adds the named types to s. It panics
// on a type without a JSON schema.
func (s *Schemas) Of(t reflect.Type) Object {
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
		return s.text(t)
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
		name, known := s.name(t)
		if !known {
			s.all[name] = Object{} // ends the recursion for a type that contains itself
			s.all[name] = s.members(t)
		}
		return Reference(name)
	}
	panic(fmt.Sprintf("no schema is known for %v", t))
}

// text describes a type of strings.
func (s *Schemas) text(t reflect.Type) Object {
	values, listed := s.enums[t]
	if !listed {
		return Object{"type": "string"}
	}
	name, known := s.name(t)
	if !known {
		s.all[name] = Object{"type": "string", "enum": values}
	}
	return Reference(name)
}

// name returns the name of a type's schema, and whether there is a schema by it. The first type with a name has it;
// another of the same name, from another package, has its package's name before it.
func (s *Schemas) name(t reflect.Type) (name string, known bool) {
	name = t.Name()
	if first := s.types[name]; first != nil && first != t || first == nil && s.all[name] != nil {
		at := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]
		name = strings.ToUpper(at[:1]) + at[1:] + name
	}
	known = s.types[name] == t
	s.types[name] = t
	return name, known
}

// members returns the schema of a struct.
func (s *Schemas) members(t reflect.Type) Object {
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
func (s *Schemas) payload() Object {
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
			"signatures":   Object{"type": "array", "items": Object{"type": "string", "contentEncoding": "base64"}},
			"timestamps":   Object{"type": "array", "items": timestampSchema}}}
	bundleSchema = Object{"type": "object", "required": []string{"format", "records"},
		"description": "Records in log order under one checkpoint: a file of docs/format.md.",
		"properties": Object{"anchors": Object{"type": "array", "items": Object{"type": "object"}}, "checkpoint": Object{"type": "string"},
			"format": Object{"type": "string"}, "records": Object{"type": "array", "items": Reference("Record")}}}
	trustSchema = Object{"type": "object", "description": "A trust file of docs/format.md."}
)
