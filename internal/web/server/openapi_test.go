package server_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"mime"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/client/api"
	"jurat/internal/log/access"
	"jurat/internal/test/must"
	"jurat/internal/web/server"
)

func description(t *testing.T, r *running) (doc map[string]any, text string) {
	t.Helper()
	answer, text := send(t, http.DefaultClient, "GET", r.URL+"/openapi.json", "")
	err := json.Unmarshal([]byte(text), &doc)
	must.Need(t, err == nil && answer.StatusCode == 200, "%v %v", answer.Status, err)
	return doc, text
}

func TestEveryRouteIsDescribed(t *testing.T) {
	r := start(t, nil)
	doc, _ := description(t, r)
	paths := doc["paths"].(map[string]any)
	count, ids := 0, map[string]bool{}
	for _, item := range paths {
		for _, operation := range item.(map[string]any) {
			count++
			ids[operation.(map[string]any)["operationId"].(string)] = true
		}
	}
	routes := r.Routes()
	must.Hold(t, len(ids) == len(routes) && count == len(routes), "%d operations with %d ids, for %d routes", count, len(ids), len(routes))
	for _, route := range routes {
		path := regexp.MustCompile(`\.\.\.|\{\$\}`).ReplaceAllString(route.Pattern(), "")
		item, ok := paths[path].(map[string]any)
		must.Hold(t, ok && item[strings.ToLower(route.Method())] != nil, "%s is not described", route.Name)
		must.Hold(t, route.Kind != server.API || route.Summary != "", "%s: nothing says what it is", route.Name)
	}
}

// TestMediaAreAsDescribed reads every route as an operator and as an agent, and compares the media types with the
// description.
func TestMediaAreAsDescribed(t *testing.T) {
	h := furnish(t)
	doc, _ := description(t, h.running)
	client := browser(t)
	for _, route := range h.Routes() {
		if route.Method() != "GET" {
			continue
		}
		operation := doc["paths"].(map[string]any)[strings.ReplaceAll(strings.TrimSuffix(route.Pattern(), "{$}"), "...}", "}")].(map[string]any)["get"].(map[string]any)
		for _, role := range []access.Role{access.Operator, access.Agent} {
			answer := h.ask(t, client, route, bearer(h.tokens[role])...)
			got, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
			if err != nil {
				t.Errorf("%s: %s: %v", route.Name, answer.Status, err)
				continue
			}
			responses := operation["responses"].(map[string]any)
			response, there := responses[fmt.Sprint(answer.StatusCode)].(map[string]any)
			if !there {
				name := strings.TrimPrefix(responses["default"].(map[string]any)["$ref"].(string), "#/components/responses/")
				response = doc["components"].(map[string]any)["responses"].(map[string]any)[name].(map[string]any)
			}
			_, there = response["content"].(map[string]any)[got]
			must.Hold(t, there || route.Kind == server.Static, "%s: %s: %s is not described: %v", route.Name, answer.Status, got, response["content"])
		}
	}
}

// TestReferencesResolve follows every $ref.
func TestReferencesResolve(t *testing.T) {
	doc, text := description(t, start(t, nil))
	references := regexp.MustCompile(`"\$ref": ?"#/([^"]+)"`).FindAllStringSubmatch(text, -1)
	must.Need(t, len(references) >= 10, "%d references", len(references))
	for _, match := range references {
		var at any = doc
		for part := range strings.SplitSeq(match[1], "/") {
			at = at.(map[string]any)[part]
			if at == nil {
				t.Fatalf("%s leads nowhere", match[1])
			}
		}
	}
}

// filled returns a value with something in every field.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[jsontext.Value]():
		v.SetBytes([]byte(`"x"`))
	case t.Kind() == reflect.String:
		v.SetString("x")
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanFloat():
		v.SetFloat(1)
	case t.Kind() == reflect.Slice:
		v = reflect.Append(v, filled(t.Elem()))
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem()))
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() { // others do not travel
				v.Field(i).Set(filled(t.Field(i).Type))
			}
		}
	}
	return v
}

// TestSchemasAreWhatTravels compares the described members with those that the server writes.
func TestSchemasAreWhatTravels(t *testing.T) {
	r := start(t, nil)
	doc, _ := description(t, r)
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	values := []any{api.Problem{}}
	for _, route := range r.Routes() {
		for _, value := range []any{route.In, route.Out} {
			if value != nil && reflect.TypeOf(value).Kind() == reflect.Struct {
				values = append(values, value)
			}
		}
	}
	must.Need(t, len(values) >= 4, "%d types", len(values))
	for _, value := range values {
		written := must.Get(json.Marshal(filled(reflect.TypeOf(value)).Interface()))(t)
		name := reflect.TypeOf(value).Name()
		diff := cmp.Diff(membersIn(t, written), described(schemas, name))
		must.Hold(t, diff == "", "%s (-written +described):\n%s", name, diff)
	}
	token := r.token(t, "logistics-agent-v1", access.Agent)
	_, record := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", action, "Authorization", "Bearer "+token)
	for _, member := range membersIn(t, []byte(record)) {
		must.Hold(t, slices.Contains(described(schemas, "Record"), member), "a record has %s, which is not described", member)
	}
}

// TestWhatMayBeNull: a waiting submission has no verdict, and the description allows that.
func TestWhatMayBeNull(t *testing.T) {
	r := start(t, withJurors(t, time.Hour, 0))
	doc, _ := description(t, r)
	_, text := send(t, http.DefaultClient, "POST", r.URL+"/v1/submissions", parcelCase, bearer(r.token(t, "sam", access.Submitter))...)
	var submission map[string]any
	must.Do(t, json.Unmarshal([]byte(text), &submission))
	properties := doc["components"].(map[string]any)["schemas"].(map[string]any)["Submission"].(map[string]any)["properties"].(map[string]any)
	for name, value := range submission {
		if value != nil {
			continue
		}
		options, _ := properties[name].(map[string]any)["anyOf"].([]any)
		must.Hold(t, len(options) == 2 && options[1].(map[string]any)["type"] == "null", "%s is null, and described as %v", name, properties[name])
		delete(submission, name)
	}
	_, there := submission["verdict"]
	must.Hold(t, !there && len(submission) != 0, "%v", submission)
}

func membersIn(t *testing.T, doc []byte) []string {
	t.Helper()
	var members map[string]any
	must.Do(t, json.Unmarshal(doc, &members))
	return slices.Sorted(maps.Keys(members))
}

func described(schemas map[string]any, name string) []string {
	schema, _ := schemas[name].(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// judgeOf names a program of the OpenAPI world that judges the description. 'scripts/test' installs these.
func judgeOf(t *testing.T, program string) string {
	t.Helper()
	folder := os.Getenv("JURAT_TEST_OPENAPI")
	if folder == "" {
		must.Need(t, os.Getenv("CI") != "true",
			"JURAT_TEST_OPENAPI names no folder with @redocly/cli, openapi-typescript and typescript: scripts/test installs them")
		t.Skip("JURAT_TEST_OPENAPI names no folder with @redocly/cli, openapi-typescript and typescript: scripts/test installs them")
	}
	return filepath.Join(folder, "node_modules", ".bin", program)
}

// lint gives a description to Redocly, by its strictest rules.
func lint(t *testing.T, doc any) error {
	t.Helper()
	program, dir := judgeOf(t, "redocly"), t.TempDir()
	text := must.Get(json.Marshal(doc))(t)
	for name, content := range map[string][]byte{"openapi.json": text, "redocly.yaml": []byte("extends: [recommended-strict]\n")} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	c := exec.CommandContext(t.Context(), program, "lint", "openapi.json", "--max-problems", "20", "--format", "codeframe")
	c.Dir, c.Env = dir, append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// TestDescriptionPassesTheLinter also checks that the linter would see a wrong example.
func TestDescriptionPassesTheLinter(t *testing.T) {
	doc, _ := description(t, start(t, nil))
	must.Do(t, lint(t, doc))
	content := at(t, doc, "paths", "/v1/records/{id}/reviews", "post", "requestBody", "content", "application/json")
	content["example"].(map[string]any)["approval_status"] = "perhaps"
	must.Hold(t, lint(t, doc) != nil, "the linter takes an example that the schema refuses")
}

// at walks through objects.
func at(t *testing.T, doc map[string]any, path ...string) map[string]any {
	t.Helper()
	for i, name := range path {
		next, is := doc[name].(map[string]any)
		if !is {
			t.Fatalf("there is no %v", path[:i+1])
		}
		doc = next
	}
	return doc
}

// TestAnswersAreAsDescribed puts what a server answers into its description, as examples, and lets the linter compare
// them with the schemas.
func TestAnswersAreAsDescribed(t *testing.T) {
	judgeOf(t, "redocly")
	h := furnish(t)
	doc, _ := description(t, h.running)
	given, problems := 0, map[string]any{}
	for _, route := range h.Routes() {
		if route.Out == nil || route.Kind != server.API {
			continue
		}
		request, who := h.goodRequests()[route.Name], access.Operator
		if !slices.Contains(route.Who.Roles, who) {
			who = oneOf(route.Who.Roles)
		}
		if request[0] == "" {
			request[0] = route.Pattern()
		}
		answer, body := send(t, http.DefaultClient, route.Method(), h.URL+request[0], request[1], bearer(h.tokens[who])...)
		operation := at(t, doc, "paths", route.Pattern(), strings.ToLower(route.Method()))
		response, described := operation["responses"].(map[string]any)[strconv.Itoa(answer.StatusCode)].(map[string]any)
		var value any
		err := json.Unmarshal([]byte(body), &value)
		must.Need(t, err == nil, "%v %v", route.Name, err)
		if !described { // a trial that is over cannot go on, and this server has no CA
			problems[strconv.Itoa(len(problems))] = map[string]any{"summary": route.Name, "value": value}
			continue
		}
		at(t, response, "content", "application/json")["example"] = value
		given++
	}
	must.Need(t, given >= 12 && len(problems) != 0, "%d answers, and %d problems", given, len(problems))
	problem := at(t, doc, "components", "responses", "Problem", "content", api.ProblemMediaType)
	delete(problem, "example")
	problem["examples"] = problems
	must.Want(t, lint(t, doc), nil)
}

// TestExamplesAreTaken sends the examples of the description, and then each with a member that is not described.
func TestExamplesAreTaken(t *testing.T) {
	h := furnish(t)
	doc, _ := description(t, h.running)
	sent := 0
	for _, route := range h.Routes() {
		if route.In == nil {
			continue
		}
		sent++
		example := at(t, doc, "paths", route.Pattern(), strings.ToLower(route.Method()), "requestBody", "content", "application/json", "example")
		path := h.goodRequests()[route.Name][0]
		if path == "" {
			path = route.Pattern()
		}
		who := bearer(h.tokens[oneOf(route.Who.Roles)])
		switch route.Pattern() {
		case "/v1/records": // an agent's payload
			who = bearer(h.tokens[access.Agent])
		case "/v1/records/{id}/deliveries":
			example["review"] = h.review.Payload.RecordID
		}
		body := func() string {
			return string(must.Get(json.Marshal(example))(t))
		}
		answer, text := send(t, http.DefaultClient, route.Method(), h.URL+path, body(), who...)
		must.Hold(t, answer.StatusCode != http.StatusBadRequest && answer.StatusCode != http.StatusUnprocessableEntity && answer.StatusCode < 500,
			"%s: the example is refused: %s %s", route.Name, answer.Status, text)
		example["agent_idd"] = "x"
		if answer, text := send(t, http.DefaultClient, route.Method(), h.URL+path, body(), who...); answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "agent_idd") {
			t.Errorf("%s: a member that is not described gets %s %s", route.Name, answer.Status, text)
		}
	}
	must.Hold(t, sent >= 7, "%d routes take a body", sent)
}

// TestNothingElseIsDescribed: each described operation is a route, and each described parameter is one of the route.
func TestNothingElseIsDescribed(t *testing.T) {
	r := start(t, nil)
	doc, _ := description(t, r)
	routes := map[string]server.Route{}
	for _, route := range r.Routes() {
		routes[route.Method()+" "+strings.NewReplacer("{$}", "", "...", "").Replace(route.Pattern())] = route
	}
	for path, item := range doc["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			route, there := routes[strings.ToUpper(method)+" "+path]
			must.Hold(t, there, "%s %s is described, and no route", method, path)
			if responses := operation.(map[string]any)["responses"].(map[string]any); len(responses) < 3 {
				t.Errorf("%s: responses %v", route.Name, slices.Sorted(maps.Keys(responses)))
			}
		}
	}
}

// TestEnumerations compares the described values with the constants of each type. Types of strings that travel, and have
// constants, are enumerations.
func TestEnumerations(t *testing.T) {
	described := server.Enumerations()
	reached := map[reflect.Type]bool{reflect.TypeFor[api.Problem](): true}
	for _, route := range start(t, nil).Routes() {
		for _, value := range []any{route.In, route.Out} {
			if value != nil && reflect.TypeOf(value).Kind() == reflect.Struct {
				reach(reached, reflect.TypeOf(value))
			}
		}
	}
	must.Need(t, len(reached) >= 40, "%d types travel", len(reached))
	for is := range reached {
		if is.Kind() != reflect.String || !strings.HasPrefix(is.PkgPath(), "jurat/") {
			continue
		}
		want := constantsOf(t, is)
		if len(want) == 0 {
			continue
		}
		got := slices.Sorted(slices.Values(described[is]))
		must.Hold(t, slices.Equal(got, want), "%v: the description has %q, the constants are %q", is, got, want)
	}
}

// reach adds all types in a type.
func reach(seen map[reflect.Type]bool, t reflect.Type) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		reach(seen, t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() { // others do not travel
				reach(seen, t.Field(i).Type)
			}
		}
	}
}

// constantsOf reads the constants of a type from the source. An alias has those of the type.
func constantsOf(t *testing.T, is reflect.Type) (values []string) {
	t.Helper()
	files, err := filepath.Glob("../../.." + strings.TrimPrefix(is.PkgPath(), "jurat") + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(is.PkgPath(), err)
	}
	for _, name := range files {
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, declaration := range file.Decls {
			if group, is1 := declaration.(*ast.GenDecl); is1 && group.Tok == token.CONST {
				for _, spec := range group.Specs {
					values = append(values, valuesOf(t, spec.(*ast.ValueSpec), is.Name())...)
				}
			}
		}
	}
	slices.Sort(values)
	return values
}

func valuesOf(t *testing.T, spec *ast.ValueSpec, name string) (values []string) {
	t.Helper()
	if written, is := spec.Type.(*ast.Ident); !is || written.Name != name {
		return nil
	}
	for _, value := range spec.Values {
		if literal, is := value.(*ast.BasicLit); is {
			text := must.Get(strconv.Unquote(literal.Value))(t)
			values = append(values, text)
		}
	}
	return values
}

// TestGeneratedTypesCompile makes TypeScript types of the description, and compiles a program that uses them.
func TestGeneratedTypesCompile(t *testing.T) {
	generator, compiler := judgeOf(t, "openapi-typescript"), judgeOf(t, "tsc")
	_, text := description(t, start(t, nil))
	dir := t.TempDir()
	const program = `import type { components, operations } from "./jurat";
export const wanted: components["schemas"]["Position"] = "safe_pass";
export function read(s: components["schemas"]["Submission"]): components["schemas"]["Position"] | undefined {
	return s.outcome?.position;
}
export const review: components["schemas"]["Review"] = { approval_status: "approved" };
export type Listed = operations["get_v1_records"]["responses"][200]["content"]["application/json"];
// @ts-expect-error: there is no such position
export const unknown: components["schemas"]["Position"] = "perhaps";
`
	for name, content := range map[string]string{"openapi.json": text, "use.ts": program} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	for _, c := range []*exec.Cmd{exec.CommandContext(t.Context(), generator, "openapi.json", "-o", "jurat.d.ts"),
		exec.CommandContext(t.Context(), compiler, "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "use.ts", "jurat.d.ts")} {
		c.Dir = dir
		must.Do(t, c.Err)
		out, err := c.CombinedOutput()
		must.Need(t, err == nil, "%v: %v\n%s", c.Args, err, out)
	}
}
