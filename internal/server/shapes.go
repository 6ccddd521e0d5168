package server

import "jurat/internal/server/openapi"

// A Shape names the form of a body that no type of package api describes.
type Shape = openapi.Shape

const (
	Payload Shape = "Payload" // as actors send it: docs/format.md
	Record  Shape = "Record"  // a sealed record: docs/format.md
	Bundle  Shape = "Bundle"  // records of a chain with one checkpoint: docs/format.md
	Trust   Shape = "Trust"   // a trust file: docs/format.md
)
