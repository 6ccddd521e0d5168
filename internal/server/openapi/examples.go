package openapi

import (
	"embed"

	"github.com/go-json-experiment/json/jsontext"
)

// examples are bodies of requests, by the id of the operation.
//
//go:embed examples/*.json
var examples embed.FS

// exampleOf returns the example of what an operation takes; nil: it has none.
func exampleOf(operation string) jsontext.Value {
	doc, err := examples.ReadFile("examples/" + operation + ".json")
	if err != nil {
		return nil
	}
	return doc
}
