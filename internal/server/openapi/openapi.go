// Package openapi writes the OpenAPI 3.1 description of a server's routes. The server's table and the types of the
// bodies are its only sources, so what it says is what the server does.
package openapi

import (
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/jsonschema"
)

// A Shape names the schema of a body that no type of package api describes: Payload, Record, Bundle or Trust of
// docs/format.md.
type Shape string

// A Parameter is an optional parameter of a query, or a header.
type Parameter struct{ Name, About string }

// A Route is what the table says of a route.
type Route struct {
	Method  string
	Pattern string // of http.ServeMux
	Page    bool   // people read it: refusals are pages, and what is sent is a form
	Roles   []access.Role
	Public  string // what callers may do who have not signed in; "": nothing

	Summary       string
	In, Out       any // a Shape, a value of the body's type, or nil for none or for what has no schema
	Status        int // of a successful answer
	Media         string
	Query, Header []Parameter
}

// Document describes the routes. cookie is the name of a session's cookie. The only errors are those of encoding the
// types of the bodies.
func Document(routes []Route, cookie string) ([]byte, error) {
	known := jsonschema.OfFiles(Enumerations())
	known.Of(reflect.TypeFor[api.Verdict]()) // the types of package api have their plain names
	paths := jsonschema.Object{}
	for i := range routes {
		route := &routes[i]
		path := pathOf(route.Pattern)
		item, _ := paths[path].(jsonschema.Object)
		if item == nil {
			item = jsonschema.Object{}
			paths[path] = item
		}
		item[strings.ToLower(route.Method)] = operation(known, route)
	}
	problem := known.Of(reflect.TypeFor[api.Problem]())
	refine(known, routes)
	return json.Marshal(jsonschema.Object{
		"openapi": "3.1.0",
		"info":    info,
		"servers": []jsonschema.Object{{"url": "/", "description": "The server that has this description."}},
		"tags": []jsonschema.Object{{"name": "api", "description": "For programs: JSON, and problem details."},
			{"name": "pages", "description": "For people: HTML and its files."}},
		"paths": paths,
		"components": jsonschema.Object{
			"schemas": known.All(),
			"responses": jsonschema.Object{
				"Problem": jsonschema.Object{"description": "What stands against the request (RFC 9457).",
					"content": jsonschema.Object{api.ProblemMediaType: jsonschema.Object{"schema": problem, "example": exampleProblem()}}},
				"Trouble": jsonschema.Object{"description": "A page that says what stands against the request.",
					"content": jsonschema.Object{"text/html": jsonschema.Object{"schema": jsonschema.Object{"type": "string"}}}}},
			"securitySchemes": jsonschema.Object{
				"token":   jsonschema.Object{"type": "http", "scheme": "bearer", "description": "A token of jurat access grant."},
				"session": jsonschema.Object{"type": "apiKey", "in": "cookie", "name": cookie, "description": "A person who signed in with a browser."}},
		},
	}, json.Deterministic(true), jsontext.WithIndent(" "))
}

var info = jsonschema.Object{"title": "jurat", "version": "1",
	"license": jsonschema.Object{"name": "Apache 2.0", "identifier": "Apache-2.0"},
	"description": "Sealed records of what agents said, and juries that judge it. Records, bundles and trust files are described in docs/format.md, " +
		"who may do what in docs/api.md. A server that adds members or values to answers keeps this version. " +
		"It refuses parameters and members of requests that are not described here, and names them: 400 for a parameter, 422 for a member."}

// exampleProblem is the answer to a query with a parameter that the route does not have.
func exampleProblem() *api.Problem {
	return api.NewProblem(fmt.Errorf("%w: query parameter %q: this path has only after, limit", api.ErrMalformed, "agent_id"))
}

var wildcard = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// pathOf writes a pattern of http.ServeMux in OpenAPI's form.
func pathOf(pattern string) string {
	return wildcard.ReplaceAllString(strings.TrimSuffix(pattern, "{$}"), "{$1}")
}

func operation(s *jsonschema.Schemas, route *Route) jsonschema.Object {
	answer := jsonschema.Object{"description": http.StatusText(route.Status)}
	if route.Status != http.StatusSwitchingProtocols {
		answer["content"] = jsonschema.Object{route.Media: jsonschema.Object{"schema": body(s, route.Out)}}
	}
	trouble, tag := jsonschema.Object{"$ref": "#/components/responses/Problem"}, "api"
	if route.Page {
		trouble, tag = jsonschema.Object{"$ref": "#/components/responses/Trouble"}, "pages"
	}
	op := jsonschema.Object{
		"operationId": operationID(route), "summary": route.Summary, "tags": []string{tag}, "x-roles": route.Roles, "security": security(route),
		"responses": jsonschema.Object{fmt.Sprint(route.Status): answer, "4XX": trouble, "default": trouble},
	}
	if route.Public != "" {
		op["x-strangers"] = route.Public
	}
	if parameters := parametersOf(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if in := sent(s, route); in != nil {
		op["requestBody"] = in
	}
	return op
}

// security says how callers show who they are. An empty requirement stands for those who do not.
func security(route *Route) []jsonschema.Object {
	list := []jsonschema.Object{{"token": []string{}}, {"session": []string{}}}
	if route.Public != "" {
		list = append(list, jsonschema.Object{})
	}
	return list
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *Route) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Method+" "+route.Pattern), "_"), "_")
}

// sent describes what a route takes as the request's body.
func sent(s *jsonschema.Schemas, route *Route) jsonschema.Object {
	switch {
	case route.In != nil:
		content := jsonschema.Object{"schema": body(s, route.In)}
		if example := exampleOf(operationID(route)); example != nil {
			content["example"] = example
		}
		return jsonschema.Object{"required": true, "content": jsonschema.Object{"application/json": content}}
	case route.Page && route.Method == http.MethodPost:
		form := jsonschema.Object{"type": "object", "additionalProperties": jsonschema.Object{"type": "string"}}
		return jsonschema.Object{"description": "The form of the page.", "content": jsonschema.Object{"application/x-www-form-urlencoded": jsonschema.Object{"schema": form}}}
	}
	return nil
}

// body returns the schema of a body, from a Shape or a value's type. nil gives a schema for anything.
func body(s *jsonschema.Schemas, of any) jsonschema.Object {
	switch of := of.(type) {
	case nil:
		return jsonschema.Object{}
	case Shape:
		return jsonschema.Reference(string(of))
	}
	return s.Of(reflect.TypeOf(of))
}
