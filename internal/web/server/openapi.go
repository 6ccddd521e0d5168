package server

import (
	"cmp"
	"embed"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/property"
	"jurat/internal/court/acts"
	"jurat/internal/court/subject"
	"jurat/internal/log/access"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// describeRoutes describes the routes. cookie is the session's. The only errors are those of encoding the types of the bodies.
func describeRoutes(routes []Route, cookie string) ([]byte, error) {
	files := map[string]any{"Record": recordSchema, "Bundle": bundleSchema, "Trust": trustSchema}
	known := &schemas{enums: Enumerations(), types: map[string]reflect.Type{}, all: files}
	known.all["Payload"] = known.payload()
	known.Of(reflect.TypeFor[api.Verdict]()) // the types of package api have their plain names
	paths := map[string]schemaObject{}
	for i := range routes {
		route := &routes[i]
		path := wildcard.ReplaceAllString(strings.TrimSuffix(route.Pattern(), "{$}"), "{$1}") // in OpenAPI's form
		if paths[path] == nil {
			paths[path] = schemaObject{}
		}
		paths[path][strings.ToLower(route.Method())] = operation(known, route)
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
			"schemas": known.all,
			"responses": schemaObject{
				"Problem": schemaObject{"description": "What stands against the request (RFC 9457).",
					"content": schemaObject{api.ProblemMediaType: schemaObject{"schema": problem,
						"example": api.NewProblem(fmt.Errorf("%w: query parameter %q: this path has only after, limit", api.ErrMalformed, "agent_id"))}}},
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

var wildcard = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

func operation(s *schemas, route *Route) schemaObject {
	status := cmp.Or(route.Status, http.StatusOK)
	answer := schemaObject{"description": http.StatusText(status)}
	if status != http.StatusSwitchingProtocols {
		answer["content"] = schemaObject{cmp.Or(route.Media, mediaOf[route.Kind]): schemaObject{"schema": describeBody(s, route.Out)}}
	}
	trouble, tag := schemaObject{"$ref": "#/components/responses/Problem"}, "api"
	if route.forPeople() {
		trouble, tag = schemaObject{"$ref": "#/components/responses/Trouble"}, "pages"
	}
	security := []schemaObject{{"token": []string{}}, {"session": []string{}}}
	op := schemaObject{
		"operationId": operationID(route), "summary": route.Summary, "tags": []string{tag}, "x-roles": route.Who.Roles,
		"responses": schemaObject{fmt.Sprint(status): answer, "4XX": trouble, "default": trouble},
	}
	if route.Who.Strangers != Nothing {
		op["x-strangers"], security = route.Who.Strangers, append(security, schemaObject{}) // an empty requirement is for those who do not show who they are
	}
	op["security"] = security
	if parameters := describeParameters(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if in := requestBody(s, route); in != nil {
		op["requestBody"] = in
	}
	return op
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

func operationID(route *Route) string {
	return strings.Trim(notInID.ReplaceAllString(strings.ToLower(route.Name), "_"), "_")
}

func requestBody(s *schemas, route *Route) schemaObject {
	switch {
	case route.In != nil:
		content := schemaObject{"schema": describeBody(s, route.In)}
		if example, err := exampleFiles.ReadFile("examples/" + operationID(route) + ".json"); err == nil { // not every operation has one
			content["example"] = jsontext.Value(example)
		}
		return schemaObject{"required": true, "content": schemaObject{"application/json": content}}
	case route.forPeople() && route.Method() == http.MethodPost:
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

func (s *Server) getOpenAPI(*http.Request, *Caller) (*file, error) {
	doc, err := describeRoutes(s.table, cookieName)
	return &file{media: "application/json", doc: doc}, err
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

func describeParameters(route *Route) []schemaObject {
	var list []schemaObject
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern(), -1) {
		list = append(list, schemaObject{"name": match[1], "in": "path", "required": true, "schema": schemaObject{"type": "string"}})
	}
	for _, p := range route.query() {
		form, known := forms[p.Name]
		if !known {
			form = schemaObject{"type": "string"}
		}
		list = append(list, schemaObject{"name": p.Name, "in": "query", "description": p.About, "schema": form})
	}
	headers := route.Header
	if route.Method() == http.MethodPost && !route.forPeople() {
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

type schemaObject = map[string]any

type schemaEnums map[reflect.Type][]string

// schemas holds JSON schemas by their names in the description.
type schemas struct {
	enums schemaEnums
	all   map[string]any
	types map[string]reflect.Type // whose schema a name is; files have none
}

// Member describes a member of a named schema, such as Review and approval_status, anew. It panics if there is none.
func (s *schemas) Member(schema, member string, as schemaObject) {
	properties := s.all[schema].(schemaObject)["properties"].(schemaObject)
	if properties[member] == nil {
		panic(fmt.Sprintf("%s has no member %s", schema, member))
	}
	properties[member] = as
}

func schemaReference(name string) schemaObject {
	return schemaObject{"$ref": "#/components/schemas/" + name}
}

// anyJSON are the types whose values are arbitrary JSON.
var anyJSON = []reflect.Type{reflect.TypeFor[stdjson.RawMessage](), reflect.TypeFor[jsontext.Value]()}

// Of returns the schema of a type as JSON, and adds the named types to s. It panics on a type without a JSON schema.
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

func (s *schemas) members(t reflect.Type) schemaObject {
	properties, required := schemaObject{}, []string{}
	for _, field := range reflect.VisibleFields(t) { // also those of embedded structs
		if field.Anonymous || !field.IsExported() || field.Tag.Get("json") == "-" {
			continue
		}
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

// payload describes the possible members of a payload. docs/format.md says which ones each action type requires.
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
	enumerate(enums, subject.Withheld, subject.Unsealed, subject.Cut, subject.Encoded, subject.Copied, subject.Wrong)
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

// refine describes what package api leaves open, because programs write plain strings. What the server reads has no other members.
func refine(s *schemas, routes []Route) {
	var problems []string
	for _, p := range api.Problems() {
		problems = append(problems, p.Type)
	}
	s.Member("Problem", "type", textOf(problems))
	s.Member("Review", "approval_status", s.Of(reflect.TypeFor[evidence.ApprovalStatus]()))
	s.Member("Entry", "action_type", s.Of(reflect.TypeFor[evidence.ActionType]()))
	s.Member("Entry", "role", s.Of(reflect.TypeFor[evidence.Role]()))
	s.Member("Grant", "roles", schemaObject{"type": "array", "items": textOf(access.Roles())})
	s.Member("Property", "form", textOf([]property.Form{property.Range, property.In, property.NotIn, property.AgeAtLeast}))
	for _, route := range routes {
		if t := reflect.TypeOf(route.In); t != nil && t.Kind() == reflect.Struct {
			name, _ := s.name(t)
			s.all[name].(schemaObject)["additionalProperties"] = false
		}
	}
}

func textOf[T ~string](values []T) schemaObject {
	return schemaObject{"type": "string", "enum": values}
}
