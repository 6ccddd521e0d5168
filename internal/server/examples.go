package server

import (
	"embed"

	"github.com/go-json-experiment/json/jsontext"
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
