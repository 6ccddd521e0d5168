package server

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/internal/acts"
	"jurat/internal/jsonschema"
	"jurat/internal/server/wire"
)

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	doc, err := OpenAPI(s.table)
	if err != nil {
		return err
	}
	return wire.WriteTagged(w, r, http.StatusOK, "application/json", doc)
}

// OpenAPI describes the routes in OpenAPI 3.1, from the table and the types of the bodies. Its only errors are those
// of encoding the types of the table.
func OpenAPI(table []Route) ([]byte, error) {
	known := jsonschema.OfFiles()
	problem := known.Of(reflect.TypeFor[api.Problem]())
	paths := jsonschema.Object{}
	for _, route := range table {
		path := openPath(route.Pattern)
		item, _ := paths[path].(jsonschema.Object)
		if item == nil {
			item = jsonschema.Object{}
			paths[path] = item
		}
		item[strings.ToLower(route.Method)] = operation(known, &route)
	}
	return jsonv2.Marshal(jsonschema.Object{
		"openapi": "3.1.0",
		"info": jsonschema.Object{"title": "jurat", "version": "1",
			"description": "Sealed records of what agents said, and juries that judge it. Records, bundles and trust files are described in docs/format.md, " +
				"who may do what in docs/api.md. A server that adds members or values to answers keeps this version."},
		"security": []jsonschema.Object{{"token": []string{}}, {"session": []string{}}, {}},
		"paths":    paths,
		"components": jsonschema.Object{
			"schemas": map[string]any(known),
			"responses": jsonschema.Object{"Problem": jsonschema.Object{"description": "What stands against the request (RFC 9457).",
				"content": jsonschema.Object{api.ProblemMediaType: jsonschema.Object{"schema": problem}}},
				"Trouble": jsonschema.Object{"description": "A page that says what stands against the request.", "content": jsonschema.Object{"text/html": jsonschema.Object{"schema": jsonschema.Object{}}}}},
			"securitySchemes": jsonschema.Object{
				"token":   jsonschema.Object{"type": "http", "scheme": "bearer"},
				"session": jsonschema.Object{"type": "apiKey", "in": "cookie", "name": cookieName}},
		},
	}, jsonv2.Deterministic(true), jsontext.WithIndent(" "))
}

var wildcard = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// openPath writes a pattern of http.ServeMux in OpenAPI's form.
func openPath(pattern string) string {
	return wildcard.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "{$1}")
}

func operation(s jsonschema.Schemas, route *Route) jsonschema.Object {
	doc := &route.Doc
	status := doc.Status
	if status == 0 {
		status = http.StatusOK
	}
	media := doc.Media
	if media == "" {
		media = map[Kind]string{API: "application/json", Page: "text/html", Stream: "text/event-stream", Static: "application/octet-stream"}[route.Kind]
	}
	answer := jsonschema.Object{"description": http.StatusText(status)}
	if route.Method != http.MethodHead {
		answer["content"] = jsonschema.Object{media: jsonschema.Object{"schema": body(s, doc.Out)}}
	}
	problem := "Problem"
	if route.Kind == Page {
		problem = "Trouble"
	}
	op := jsonschema.Object{
		"operationId": operationID(route), "summary": doc.Summary, "x-roles": route.Who.Roles,
		"responses": jsonschema.Object{fmt.Sprint(status): answer, "default": jsonschema.Object{"$ref": "#/components/responses/" + problem}},
	}
	if route.Who.Strangers != Nothing {
		op["x-strangers"] = route.Who.Strangers
	}
	if parameters := parametersOf(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if doc.In != nil {
		op["requestBody"] = jsonschema.Object{"required": true, "content": jsonschema.Object{"application/json": jsonschema.Object{"schema": body(s, doc.In)}}}
	}
	return op
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *Route) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Name()), "_"), "_")
}

func parametersOf(route *Route) []jsonschema.Object {
	var list []jsonschema.Object
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		list = append(list, jsonschema.Object{"name": match[1], "in": "path", "required": true, "schema": jsonschema.Object{"type": "string"}})
	}
	for _, p := range route.query() {
		list = append(list, jsonschema.Object{"name": p.Name, "in": "query", "description": p.About, "schema": jsonschema.Object{"type": "string"}})
	}
	headers := route.Doc.Header
	if route.Method == http.MethodPost && route.Kind == API {
		headers = append(slices.Clone(headers), Parameter{api.IdempotencyKey, "the same key and body get the same answer and make nothing twice"})
	}
	for _, p := range headers {
		list = append(list, jsonschema.Object{"name": p.Name, "in": "header", "description": p.About, "schema": jsonschema.Object{"type": "string", "maxLength": acts.MaxKey}})
	}
	return list
}

// body returns the schema of a body, from a Shape or a value's type. nil gives a schema for anything.
func body(s jsonschema.Schemas, of any) jsonschema.Object {
	switch of := of.(type) {
	case nil:
		return jsonschema.Object{}
	case Shape:
		return jsonschema.Reference(string(of))
	}
	return s.Of(reflect.TypeOf(of))
}
