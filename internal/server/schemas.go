package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/access"
	"jurat/internal/subject"
	"jurat/jury"
	"jurat/property"
	"jurat/reputation"
	"jurat/verify"
)

// A schemaObject is a JSON object.
type schemaObject = map[string]any

// schemaEnums lists, for types of strings, the values that they have.
type schemaEnums map[reflect.Type][]string

// schemasOfFiles returns the schemas of the files that docs/format.md describes. Types of strings that enums lists become
// enumerations.
func schemasOfFiles(enums schemaEnums) *schemas {
	s := &schemas{enums: enums, types: map[string]reflect.Type{},
		all: map[string]any{"Record": recordSchema, "Bundle": bundleSchema, "Trust": trustSchema}}
	s.all["Payload"] = s.payload()
	return s
}

// schemas holds JSON schemas by their names in the description.
type schemas struct {
	enums schemaEnums
	all   map[string]any
	types map[string]reflect.Type // whose schema a name is; files have none
}

// All returns the schemas by their names.
func (s *schemas) All() map[string]any { return s.all }

// Member describes a member of a named schema, such as Review and approval_status, anew. It panics if there is no such
// member.
func (s *schemas) Member(schema, member string, as schemaObject) {
	properties := s.all[schema].(schemaObject)["properties"].(schemaObject)
	if properties[member] == nil {
		panic(fmt.Sprintf("%s has no member %s", schema, member))
	}
	properties[member] = as
}

// Closed says of a named schema that it has no other members.
func (s *schemas) Closed(schema string) { s.all[schema].(schemaObject)["additionalProperties"] = false }

// schemaReference refers to a schema by its name.
func schemaReference(name string) schemaObject {
	return schemaObject{"$ref": "#/components/schemas/" + name}
}

// anyJSON are the types whose values are arbitrary JSON.
var anyJSON = []reflect.Type{reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]()}

// Of returns the schema of a type, by the JSON that the type is written as. It adds the named types to s. It panics
// on a type without a JSON schema.
func (s *schemas) Of(t reflect.Type) schemaObject {
	switch {
	case slices.Contains(anyJSON, t):
		return schemaObject{}
	case t == reflect.TypeFor[evidence.Digest]():
		return schemaObject{"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
	case t == reflect.TypeFor[[]byte]():
		return schemaObject{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.Of(t.Elem())
	case reflect.String:
		return s.text(t)
	case reflect.Bool:
		return schemaObject{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schemaObject{"type": "integer"}
	case reflect.Float64:
		return schemaObject{"type": "number"}
	case reflect.Slice:
		return schemaObject{"type": "array", "items": s.Of(t.Elem())}
	case reflect.Map:
		return schemaObject{"type": "object", "additionalProperties": s.Of(t.Elem())}
	case reflect.Struct:
		name, known := s.name(t)
		if !known {
			s.all[name] = schemaObject{} // ends the recursion for a type that contains itself
			s.all[name] = s.members(t)
		}
		return schemaReference(name)
	}
	panic(fmt.Sprintf("no schema is known for %v", t))
}

// text describes a type of strings.
func (s *schemas) text(t reflect.Type) schemaObject {
	values, listed := s.enums[t]
	if !listed {
		return schemaObject{"type": "string"}
	}
	name, known := s.name(t)
	if !known {
		s.all[name] = schemaObject{"type": "string", "enum": values}
	}
	return schemaReference(name)
}

// name returns the name of a type's schema, and whether there is a schema by it. The first type with a name has it;
// another of the same name, from another package, has its package's name before it.
func (s *schemas) name(t reflect.Type) (name string, known bool) {
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
func (s *schemas) members(t reflect.Type) schemaObject {
	properties, required := schemaObject{}, []string{}
	for field := range fieldsOf(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := s.Of(field.Type)
		if !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
			required = append(required, name)
			if field.Type.Kind() == reflect.Pointer { // a nil pointer is written, too
				schema = schemaObject{"anyOf": []schemaObject{schema, {"type": "null"}}}
			}
		}
		properties[name] = schema
	}
	schema := schemaObject{"type": "object", "properties": properties}
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
func (s *schemas) payload() schemaObject {
	schema := s.members(reflect.TypeFor[evidence.Payload]())
	schema["properties"].(schemaObject)["action_type"] = schemaObject{"type": "string", "enum": evidence.ActionTypes()}
	schema["additionalProperties"] = false
	schema["description"] = "An Agent Evidence Payload as actors send it. Members of your own go into metadata."
	return schema
}

var (
	timestampSchema = schemaObject{"type": "object", "required": []string{"kind", "token"}, "properties": schemaObject{
		"kind": schemaObject{"type": "string"}, "token": schemaObject{"type": "string", "contentEncoding": "base64"}}}
	recordSchema = schemaObject{"type": "object", "required": []string{"digest", "payload", "signatures", "timestamps"},
		"description": "A sealed record: a file of docs/format.md.",
		"properties": schemaObject{
			"certificates": schemaObject{"type": "array", "items": schemaObject{"type": "string", "contentEncoding": "base64"}},
			"digest":       schemaObject{"type": "string"},
			"disclosures":  schemaObject{"type": "array", "items": schemaObject{"type": "object"}},
			"log":          schemaObject{"type": "object"},
			"payload":      schemaReference("Payload"),
			"properties":   schemaObject{"type": "array", "items": schemaObject{"type": "object"}},
			"signatures":   schemaObject{"type": "array", "items": schemaObject{"type": "string", "contentEncoding": "base64"}},
			"timestamps":   schemaObject{"type": "array", "items": timestampSchema}}}
	bundleSchema = schemaObject{"type": "object", "required": []string{"format", "records"},
		"description": "Records in log order under one checkpoint: a file of docs/format.md.",
		"properties": schemaObject{"anchors": schemaObject{"type": "array", "items": schemaObject{"type": "object"}}, "checkpoint": schemaObject{"type": "string"},
			"format": schemaObject{"type": "string"}, "records": schemaObject{"type": "array", "items": schemaReference("Record")}}}
	trustSchema = schemaObject{"type": "object", "description": "A trust file of docs/format.md."}
)

// Enumerations returns the values of the types of strings that travel. A test compares them with the constants.
func Enumerations() schemaEnums {
	enums := schemaEnums{}
	enumerate(enums, api.Queued, api.UnderWay, api.Over, api.BrokenOff, api.Cancelled)
	enumerate(enums, api.GrantGood, api.GrantExpired, api.GrantRevoked)
	enumerate(enums, jury.SafePass, jury.NeedsReview, jury.UnsafeFail)
	enumerate(enums, jury.ByJury, jury.ByPerson)
	enumerate(enums, jury.MajorityVote, jury.WeightedAverage, jury.FinalJudge, jury.Median, jury.Calibrated)
	enumerate(enums, jury.Initial, jury.Repetition, jury.Discussion, jury.Judging)
	enumerate(enums, jury.RequestDone, jury.RequestPartly, jury.RequestNotDone, jury.RequestDeclined, jury.RequestOpen)
	enumerate(enums, jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)
	enumerate(enums, jury.Minor, jury.Major, jury.Critical)
	enumerate(enums, jury.TimedOut, jury.Blocked, jury.Invalid, jury.Failed, jury.Ceiling)
	enumerate(enums, jury.Unanimous, jury.Majority, jury.Split)
	enumerate(enums, jury.TurnedByTalk, jury.OneExtreme, jury.JudgeMilder)
	enumerate(enums, evidence.Approved, evidence.ApprovedWithModifications, evidence.Rejected)
	enumerate(enums, evidence.ActionTypes()...)
	enumerate(enums, evidence.Roles()...)
	enumerate(enums, evidence.Vantages()...)
	enumerate(enums, evidence.JudgedAgent)
	enumerate(enums, evidence.ByBytes, evidence.Parsed, evidence.ByAttributes)
	enumerate(enums, evidence.Complete, evidence.UpstreamError, evidence.UpstreamCut, evidence.ClientGone, evidence.RecorderCut, evidence.LostInCrash)
	enumerate(enums, evidence.Asked, evidence.Answered)
	enumerate(enums, observed.Start, observed.Stop, observed.Heartbeat, observed.ModeChanged, observed.Configuration, observed.Gap, observed.LostInCrash, observed.ToolDefinitionChanged)
	enumerate(enums, observed.Closed, observed.Passing)
	enumerate(enums, subject.System, subject.User, subject.Assistant, subject.Tool, subject.Reviewer, subject.Operator, subject.Recorder)
	enumerate(enums, verify.Proved, verify.NotProved, verify.Refuted)
	enumerate(enums, reputation.People, reputation.Models, reputation.Rules)
	enumerate(enums, reputation.Scored, reputation.TooFew, reputation.Uncounted, reputation.Incomplete, reputation.Unproved)
	enumerate(enums, reputation.TheRecord, reputation.TheTrial, reputation.TheVerdict, reputation.TheDecision, reputation.TheReview, reputation.TheRevocation)
	return enums
}

func enumerate[T ~string](enums schemaEnums, values ...T) {
	t := reflect.TypeFor[T]()
	for _, value := range values {
		enums[t] = append(enums[t], string(value))
	}
}

// refine describes what the types of package api leave open, because programs write it as plain strings. What the server
// reads has no other members.
func refine(s *schemas, routes []Route) {
	s.Member("Problem", "type", textOf(problems()))
	s.Member("Review", "approval_status", s.Of(reflect.TypeFor[evidence.ApprovalStatus]()))
	s.Member("Entry", "action_type", s.Of(reflect.TypeFor[evidence.ActionType]()))
	s.Member("Entry", "role", s.Of(reflect.TypeFor[evidence.Role]()))
	s.Member("Grant", "roles", schemaObject{"type": "array", "items": textOf(access.Roles())})
	s.Member("Property", "form", textOf([]property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}))
	for _, route := range routes {
		if t := reflect.TypeOf(route.Doc.In); t != nil && t.Kind() == reflect.Struct {
			s.Closed(strings.TrimPrefix(s.Of(t)["$ref"].(string), schemaReference("")["$ref"].(string)))
		}
	}
}

func textOf[T ~string](values []T) schemaObject {
	return schemaObject{"type": "string", "enum": values}
}

func problems() (types []string) {
	for _, p := range api.Problems() {
		types = append(types, p.Type)
	}
	return types
}
