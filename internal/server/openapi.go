package server

import (
	"cmp"
	"embed"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/internal/acts"
)

// describeRoutes describes the routes. cookie is the name of a session's cookie. The only errors are those of encoding the
// types of the bodies.
func describeRoutes(routes []Route, cookie string) ([]byte, error) {
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

func operation(s *schemas, route *Route) schemaObject {
	status := cmp.Or(route.Doc.Status, http.StatusOK)
	answer := schemaObject{"description": http.StatusText(status)}
	if status != http.StatusSwitchingProtocols {
		answer["content"] = schemaObject{cmp.Or(route.Doc.Media, mediaOf[route.Kind]): schemaObject{"schema": describeBody(s, route.Doc.Out)}}
	}
	trouble, tag := schemaObject{"$ref": "#/components/responses/Problem"}, "api"
	if route.forPeople() {
		trouble, tag = schemaObject{"$ref": "#/components/responses/Trouble"}, "pages"
	}
	op := schemaObject{
		"operationId": operationID(route), "summary": route.Doc.Summary, "tags": []string{tag}, "x-roles": route.Who.Roles, "security": security(route),
		"responses": schemaObject{fmt.Sprint(status): answer, "4XX": trouble, "default": trouble},
	}
	if route.Who.Strangers != Nothing {
		op["x-strangers"] = route.Who.Strangers
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
func security(route *Route) []schemaObject {
	list := []schemaObject{{"token": []string{}}, {"session": []string{}}}
	if route.Who.Strangers != Nothing {
		list = append(list, schemaObject{})
	}
	return list
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *Route) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Method+" "+route.Pattern), "_"), "_")
}

// sent describes what a route takes as the request's body.
func sent(s *schemas, route *Route) schemaObject {
	switch {
	case route.Doc.In != nil:
		content := schemaObject{"schema": describeBody(s, route.Doc.In)}
		if example := exampleOf(operationID(route)); example != nil {
			content["example"] = example
		}
		return schemaObject{"required": true, "content": schemaObject{"application/json": content}}
	case route.forPeople() && route.Method == http.MethodPost:
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

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	doc, err := describeRoutes(s.table, cookieName)
	if err != nil {
		return err
	}
	return writeTagged(w, r, http.StatusOK, "application/json", doc)
}

// forPeople reports whether people read a route's answers: refusals are pages, and what is sent is a form.
func (r *Route) forPeople() bool { return r.Kind == Page || r.Kind == Static }

var mediaOf = map[Kind]string{API: "application/json", Page: "text/html", Stream: "text/event-stream", Static: "application/octet-stream"}

// forms are what values parameters may have. All others are texts.
var forms = map[string]schemaObject{
	"lang":  {"type": "string", "enum": []string{"en", "ja", "ru"}},
	"limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
	"page":  {"type": "integer", "minimum": 1},
	"size":  {"type": "integer", "minimum": 0},
}

func formOf(name string) schemaObject {
	if form, known := forms[name]; known {
		return form
	}
	return schemaObject{"type": "string"}
}

func describeParameters(route *Route) []schemaObject {
	var list []schemaObject
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		list = append(list, schemaObject{"name": match[1], "in": "path", "required": true, "schema": schemaObject{"type": "string"}})
	}
	for _, p := range route.query() {
		list = append(list, schemaObject{"name": p.Name, "in": "query", "description": p.About, "schema": formOf(p.Name)})
	}
	headers := route.Doc.Header
	if route.Method == http.MethodPost && !route.forPeople() {
		headers = append(slices.Clone(headers), Parameter{api.IdempotencyKey, "the same key and body get the same answer and make nothing twice"})
	}
	for _, p := range headers {
		list = append(list, schemaObject{"name": p.Name, "in": "header", "description": p.About, "schema": schemaObject{"type": "string", "maxLength": acts.MaxKey}})
	}
	return list
}

// A Shape names the schema of a body that no type of package api describes.
type Shape string

const (
	Payload Shape = "Payload" // as actors send it: docs/format.md
	Record  Shape = "Record"  // a sealed record: docs/format.md
	Bundle  Shape = "Bundle"  // records of a chain with one checkpoint: docs/format.md
	Trust   Shape = "Trust"   // a trust file: docs/format.md
)

// exampleFiles are bodies of requests, by the id of the operation.
//
//go:embed examples/*.json
var exampleFiles embed.FS

// exampleOf returns the example of what an operation takes; nil: it has none.
func exampleOf(operation string) jsontext.Value {
	doc, err := exampleFiles.ReadFile("examples/" + operation + ".json")
	if err != nil {
		return nil
	}
	return doc
}
