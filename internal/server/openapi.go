package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/acts"
)

// object is a JSON object of the description.
type object = map[string]any

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	doc, err := OpenAPI(s.table)
	if err != nil {
		return err
	}
	return writeTagged(w, r, http.StatusOK, "application/json", doc)
}

// OpenAPI describes routes to programs: OpenAPI 3.1, made of the table and of the types that travel.
func OpenAPI(table []Route) ([]byte, error) {
	schemas := schemas{"Payload": payloadSchema(), "Record": recordSchema, "Bundle": bundleSchema, "Trust": trustSchema}
	problem := schemas.of(reflect.TypeFor[api.Problem]())
	paths := object{}
	for _, route := range table {
		path := openPath(route.Pattern)
		item, _ := paths[path].(object)
		if item == nil {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(route.Method)] = schemas.operation(&route)
	}
	return jsonv2.Marshal(object{
		"openapi": "3.1.0",
		"info": object{"title": "jurat", "version": "1",
			"description": "Sealed records of what agents said, and juries that judge it. Records, bundles and trust files are described in docs/format.md, " +
				"who may do what in docs/api.md. A server that adds members or values to answers keeps this version."},
		"security": []object{{"token": []string{}}, {"session": []string{}}, {}},
		"paths":    paths,
		"components": object{
			"schemas": map[string]any(schemas),
			"responses": object{"Problem": object{"description": "What stands against the request (RFC 9457).",
				"content": object{api.ProblemMediaType: object{"schema": problem}}},
				"Trouble": object{"description": "A page that says what stands against the request.", "content": object{"text/html": object{"schema": object{}}}}},
			"securitySchemes": object{
				"token":   object{"type": "http", "scheme": "bearer"},
				"session": object{"type": "apiKey", "in": "cookie", "name": cookieName}},
		},
	}, jsonv2.Deterministic(true), jsontext.WithIndent(" "))
}

var wildcard = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// openPath is a pattern of http.ServeMux as OpenAPI writes it.
func openPath(pattern string) string {
	return wildcard.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "{$1}")
}

func (s schemas) operation(route *Route) object {
	doc := &route.Doc
	status := doc.Status
	if status == 0 {
		status = http.StatusOK
	}
	media := doc.Media
	if media == "" {
		media = map[Kind]string{API: "application/json", Page: "text/html", Stream: "text/event-stream", Static: "application/octet-stream"}[route.Kind]
	}
	answer := object{"description": http.StatusText(status)}
	if route.Method != http.MethodHead {
		answer["content"] = object{media: object{"schema": s.body(doc.Out)}}
	}
	problem := "Problem"
	if route.Kind == Page {
		problem = "Trouble"
	}
	op := object{
		"operationId": operationID(route), "summary": doc.Summary, "x-roles": route.Who.Roles,
		"responses": object{fmt.Sprint(status): answer, "default": object{"$ref": "#/components/responses/" + problem}},
	}
	if route.Who.Strangers != Nothing {
		op["x-strangers"] = route.Who.Strangers
	}
	if parameters := parametersOf(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if doc.In != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s.body(doc.In)}}}
	}
	return op
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *Route) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Name()), "_"), "_")
}

func parametersOf(route *Route) []object {
	var list []object
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		list = append(list, object{"name": match[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range route.query() {
		list = append(list, object{"name": p.Name, "in": "query", "description": p.About, "schema": object{"type": "string"}})
	}
	headers := route.Doc.Header
	if route.Method == http.MethodPost && route.Kind == API {
		headers = append(slices.Clone(headers), Parameter{api.IdempotencyKey, "the same key and body get the same answer and make nothing twice"})
	}
	for _, p := range headers {
		list = append(list, object{"name": p.Name, "in": "header", "description": p.About, "schema": object{"type": "string", "maxLength": acts.MaxKey}})
	}
	return list
}

// schemas are JSON schemas by the names that they have in the description.
type schemas map[string]any

// body is the schema of a body: of what a Shape stands for, or of a value's type; anything where nothing is said.
func (s schemas) body(of any) object {
	switch of := of.(type) {
	case nil:
		return object{}
	case Shape:
		return reference(string(of))
	}
	return s.of(reflect.TypeOf(of))
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// anyJSON are types whose values are any JSON.
var anyJSON = []reflect.Type{reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]()}

// of is the schema of a type, by what JSON it is written as.
func (s schemas) of(t reflect.Type) object {
	switch {
	case slices.Contains(anyJSON, t):
		return object{}
	case t == reflect.TypeFor[evidence.Digest]():
		return object{"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if s[t.Name()] == nil {
			s[t.Name()] = object{} // so that a type that holds itself comes to an end
			s[t.Name()] = s.members(t)
		}
		return reference(t.Name())
	}
	panic(fmt.Sprintf("no schema is known for %v", t))
}

// members is the schema of a struct.
func (s schemas) members(t reflect.Type) object {
	properties, required := object{}, []string{}
	for field := range fieldsOf(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		schema := s.of(field.Type)
		if !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
			required = append(required, name)
			if field.Type.Kind() == reflect.Pointer { // which is written whatever it is
				schema = object{"anyOf": []object{schema, {"type": "null"}}}
			}
		}
		properties[name] = schema
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// fieldsOf iterates over the fields that are written, those of embedded structs among them.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, field := range reflect.VisibleFields(t) {
			if !field.Anonymous && field.IsExported() && field.Tag.Get("json") != "-" && !yield(field) {
				return
			}
		}
	}
}

// payloadSchema describes what can stand in a payload. Which member must, by action type, is in docs/format.md.
func payloadSchema() object {
	schema := schemas{"SignerInfo": nil}.members(reflect.TypeFor[evidence.Payload]())
	properties := schema["properties"].(object)
	properties["signers"] = object{"type": "array", "items": object{"type": "object", "required": []string{"alg", "key_id"},
		"properties": object{"alg": object{"type": "string"}, "key_id": object{"type": "string"}}}}
	properties["action_type"] = object{"type": "string", "enum": evidence.ActionTypes()}
	schema["additionalProperties"] = false
	schema["description"] = "An Agent Evidence Payload as actors send it. Members of your own go into metadata."
	return schema
}

var (
	timestampSchema = object{"type": "object", "required": []string{"kind", "token"}, "properties": object{
		"kind": object{"type": "string"}, "token": object{"type": "string", "contentEncoding": "base64"}}}
	recordSchema = object{"type": "object", "required": []string{"digest", "payload", "signatures", "timestamps"},
		"description": "A sealed record: a file of docs/format.md.",
		"properties": object{
			"certificates": object{"type": "array", "items": object{"type": "string", "contentEncoding": "base64"}},
			"digest":       object{"type": "string"},
			"disclosures":  object{"type": "array", "items": object{"type": "object"}},
			"log":          object{"type": "object"},
			"payload":      reference("Payload"),
			"signatures":   object{"type": "array", "items": object{"type": "string", "contentEncoding": "base64"}},
			"timestamps":   object{"type": "array", "items": timestampSchema}}}
	bundleSchema = object{"type": "object", "required": []string{"format", "records"},
		"description": "Records in log order under one checkpoint: a file of docs/format.md.",
		"properties": object{"checkpoint": object{"type": "string"}, "checkpoint_timestamps": object{"type": "array", "items": timestampSchema},
			"format": object{"type": "string"}, "records": object{"type": "array", "items": reference("Record")}}}
	trustSchema = object{"type": "object", "description": "A trust file of docs/format.md."}
)
