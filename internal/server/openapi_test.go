package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/must"
	"jurat/internal/server"
)

func description(t *testing.T, r *running) (doc map[string]any, text string) {
	t.Helper()
	answer, text := send(t, http.DefaultClient, "GET", r.URL+"/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &doc); err != nil || answer.StatusCode != 200 {
		t.Fatal(answer.Status, err)
	}
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
	if len(ids) != len(routes) || count != len(routes) {
		t.Errorf("%d operations with %d ids, for %d routes", count, len(ids), len(routes))
	}
	for _, route := range routes {
		path := regexp.MustCompile(`\.\.\.|\{\$\}`).ReplaceAllString(route.Pattern, "")
		item, ok := paths[path].(map[string]any)
		if !ok || item[strings.ToLower(route.Method)] == nil {
			t.Errorf("%s is not described", route.Name())
		}
		if route.Kind == server.API && route.Doc.Summary == "" {
			t.Errorf("%s: nothing says what it is", route.Name())
		}
	}
}

// TestMediaAreAsDescribed reads every route as an operator and as an agent, and compares the media types with the
// description.
func TestMediaAreAsDescribed(t *testing.T) {
	h := furnish(t)
	doc, _ := description(t, h.running)
	client := browser(t)
	for _, route := range h.Routes() {
		if route.Method != "GET" {
			continue
		}
		operation := doc["paths"].(map[string]any)[strings.ReplaceAll(strings.TrimSuffix(route.Pattern, "{$}"), "...}", "}")].(map[string]any)["get"].(map[string]any)
		for _, role := range []access.Role{access.Operator, access.Agent} {
			answer := h.ask(t, client, route, bearer(h.tokens[role])...)
			got, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
			if err != nil {
				t.Errorf("%s: %s: %v", route.Name(), answer.Status, err)
				continue
			}
			responses := operation["responses"].(map[string]any)
			response, there := responses[fmt.Sprint(answer.StatusCode)].(map[string]any)
			if !there {
				name := strings.TrimPrefix(responses["default"].(map[string]any)["$ref"].(string), "#/components/responses/")
				response = doc["components"].(map[string]any)["responses"].(map[string]any)[name].(map[string]any)
			}
			if _, there := response["content"].(map[string]any)[got]; !there && route.Kind != server.Static {
				t.Errorf("%s: %s: %s is not described: %v", route.Name(), answer.Status, got, response["content"])
			}
		}
	}
}

// TestReferencesResolve follows every $ref.
func TestReferencesResolve(t *testing.T) {
	doc, text := description(t, start(t, nil))
	references := regexp.MustCompile(`"\$ref": ?"#/([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(references) < 10 {
		t.Fatalf("%d references", len(references))
	}
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
		for _, value := range []any{route.Doc.In, route.Doc.Out} {
			if value != nil && reflect.TypeOf(value).Kind() == reflect.Struct {
				values = append(values, value)
			}
		}
	}
	if len(values) < 4 {
		t.Fatalf("%d types", len(values))
	}
	for _, value := range values {
		written := must.Get(json.Marshal(filled(reflect.TypeOf(value)).Interface()))(t)
		name := reflect.TypeOf(value).Name()
		if diff := cmp.Diff(membersIn(t, written), described(schemas, name)); diff != "" {
			t.Errorf("%s (-written +described):\n%s", name, diff)
		}
	}
	token := r.token(t, "logistics-agent-v1", access.Agent)
	_, record := send(t, http.DefaultClient, "POST", r.URL+"/v1/records", action, "Authorization", "Bearer "+token)
	for _, member := range membersIn(t, []byte(record)) {
		if !slices.Contains(described(schemas, "Record"), member) {
			t.Errorf("a record has %s, which is not described", member)
		}
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
		if options, _ := properties[name].(map[string]any)["anyOf"].([]any); len(options) != 2 || options[1].(map[string]any)["type"] != "null" {
			t.Errorf("%s is null, and described as %v", name, properties[name])
		}
		delete(submission, name)
	}
	if _, there := submission["verdict"]; there || len(submission) == 0 {
		t.Errorf("%v", submission)
	}
}

func membersIn(t *testing.T, doc []byte) []string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(doc, &members); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return slices.Sorted(maps.Keys(members))
}

func described(schemas map[string]any, name string) []string {
	schema, _ := schemas[name].(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}
