package server

import (
	"net/http"
	"slices"

	"jurat/api"
	"jurat/internal/acts"
)

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

func describeParameters(route *describedRoute) []schemaObject {
	var list []schemaObject
	for _, match := range wildcard.FindAllStringSubmatch(route.Pattern, -1) {
		list = append(list, schemaObject{"name": match[1], "in": "path", "required": true, "schema": schemaObject{"type": "string"}})
	}
	for _, p := range route.Query {
		list = append(list, schemaObject{"name": p.Name, "in": "query", "description": p.About, "schema": formOf(p.Name)})
	}
	headers := route.Header
	if route.Method == http.MethodPost && !route.Page {
		headers = append(slices.Clone(headers), Parameter{api.IdempotencyKey, "the same key and body get the same answer and make nothing twice"})
	}
	for _, p := range headers {
		list = append(list, schemaObject{"name": p.Name, "in": "header", "description": p.About, "schema": schemaObject{"type": "string", "maxLength": acts.MaxKey}})
	}
	return list
}
