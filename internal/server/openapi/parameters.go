package openapi

import (
	"net/http"
	"slices"

	"jurat/api"
	"jurat/internal/acts"
	"jurat/internal/jsonschema"
)

// forms are what values parameters may have. All others are texts.
var forms = map[string]jsonschema.Object{
	"lang":  {"type": "string", "enum": []string{"en", "ja", "ru"}},
	"limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
	"page":  {"type": "integer", "minimum": 1},
	"size":  {"type": "integer", "minimum": 0},
}

func formOf(name string) jsonschema.Object {
	if form, known := forms[name]; known {
		return form
	}
	return jsonschema.Object{"type": "string"}
}

func parametersOf(route *Route) []jsonschema.Object {
	var list []jsonschema.Object
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		list = append(list, jsonschema.Object{"name": match[1], "in": "path", "required": true, "schema": jsonschema.Object{"type": "string"}})
	}
	for _, p := range route.Query {
		list = append(list, jsonschema.Object{"name": p.Name, "in": "query", "description": p.About, "schema": formOf(p.Name)})
	}
	headers := route.Header
	if route.Method == http.MethodPost && !route.Page {
		headers = append(slices.Clone(headers), Parameter{api.IdempotencyKey, "the same key and body get the same answer and make nothing twice"})
	}
	for _, p := range headers {
		list = append(list, jsonschema.Object{"name": p.Name, "in": "header", "description": p.About, "schema": jsonschema.Object{"type": "string", "maxLength": acts.MaxKey}})
	}
	return list
}
