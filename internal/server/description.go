package server

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
)

// A describedRoute is what the table says of a route.
type describedRoute struct {
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

// describeRoutes describes the routes. cookie is the name of a session's cookie. The only errors are those of encoding the
// types of the bodies.
func describeRoutes(routes []describedRoute, cookie string) ([]byte, error) {
	known := schemasOfFiles(Enumerations())
	known.Of(reflect.TypeFor[api.Verdict]()) // the types of package api have their plain names
	paths := schemaObject{}
	for i := range routes {
		route := &routes[i]
		path := pathOf(route.Pattern)
		item, _ := paths[path].(schemaObject)
		if item == nil {
			item = schemaObject{}
			paths[path] = item
		}
		item[strings.ToLower(route.Method)] = operation(known, route)
	}
	problem := known.Of(reflect.TypeFor[api.Problem]())
	refine(known, routes)
	return json.Marshal(schemaObject{
		"openapi": "3.1.0",
		"info":    info,
		"servers": []schemaObject{{"url": "/", "description": "The server that has this description."}},
		"tags": []schemaObject{{"name": "api", "description": "For programs: JSON, and problem details."},
			{"name": "pages", "description": "For people: HTML and its files."}},
		"paths": paths,
		"components": schemaObject{
			"schemas": known.All(),
			"responses": schemaObject{
				"Problem": schemaObject{"description": "What stands against the request (RFC 9457).",
					"content": schemaObject{api.ProblemMediaType: schemaObject{"schema": problem, "example": exampleProblem()}}},
				"Trouble": schemaObject{"description": "A page that says what stands against the request.",
					"content": schemaObject{"text/html": schemaObject{"schema": schemaObject{"type": "string"}}}}},
			"securitySchemes": schemaObject{
				"token":   schemaObject{"type": "http", "scheme": "bearer", "description": "A token of jurat access grant."},
				"session": schemaObject{"type": "apiKey", "in": "cookie", "name": cookie, "description": "A person who signed in with a browser."}},
		},
	}, json.Deterministic(true), jsontext.WithIndent(" "))
}

var info = schemaObject{"title": "jurat", "version": "1",
	"license": schemaObject{"name": "Apache 2.0", "identifier": "Apache-2.0"},
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

func operation(s *schemas, route *describedRoute) schemaObject {
	answer := schemaObject{"description": http.StatusText(route.Status)}
	if route.Status != http.StatusSwitchingProtocols {
		answer["content"] = schemaObject{route.Media: schemaObject{"schema": describeBody(s, route.Out)}}
	}
	trouble, tag := schemaObject{"$ref": "#/components/responses/Problem"}, "api"
	if route.Page {
		trouble, tag = schemaObject{"$ref": "#/components/responses/Trouble"}, "pages"
	}
	op := schemaObject{
		"operationId": operationID(route), "summary": route.Summary, "tags": []string{tag}, "x-roles": route.Roles, "security": security(route),
		"responses": schemaObject{fmt.Sprint(route.Status): answer, "4XX": trouble, "default": trouble},
	}
	if route.Public != "" {
		op["x-strangers"] = route.Public
	}
	if parameters := describeParameters(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if in := sent(s, route); in != nil {
		op["requestBody"] = in
	}
	return op
}

// security says how callers show who they are. An empty requirement stands for those who do not.
func security(route *describedRoute) []schemaObject {
	list := []schemaObject{{"token": []string{}}, {"session": []string{}}}
	if route.Public != "" {
		list = append(list, schemaObject{})
	}
	return list
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *describedRoute) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Method+" "+route.Pattern), "_"), "_")
}

// sent describes what a route takes as the request's body.
func sent(s *schemas, route *describedRoute) schemaObject {
	switch {
	case route.In != nil:
		content := schemaObject{"schema": describeBody(s, route.In)}
		if example := exampleOf(operationID(route)); example != nil {
			content["example"] = example
		}
		return schemaObject{"required": true, "content": schemaObject{"application/json": content}}
	case route.Page && route.Method == http.MethodPost:
		form := schemaObject{"type": "object", "additionalProperties": schemaObject{"type": "string"}}
		return schemaObject{"description": "The form of the page.", "content": schemaObject{"application/x-www-form-urlencoded": schemaObject{"schema": form}}}
	}
	return nil
}

// describeBody returns the schema of a body, from a Shape or a value's type. nil gives a schema for anything.
func describeBody(s *schemas, of any) schemaObject {
	switch of := of.(type) {
	case nil:
		return schemaObject{}
	case Shape:
		return schemaReference(string(of))
	}
	return s.Of(reflect.TypeOf(of))
}
