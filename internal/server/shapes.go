package server

// A Shape is what a body is that is described elsewhere than by a type of package api.
type Shape string

const (
	Payload Shape = "Payload" // as actors send it: docs/format.md
	Record  Shape = "Record"  // a sealed record: docs/format.md
	Bundle  Shape = "Bundle"  // records of a chain with one checkpoint: docs/format.md
	Trust   Shape = "Trust"   // a trust file: docs/format.md
)
