package server

// A Shape names the schema of a body that no type of package api describes.
type Shape string

const (
	Payload Shape = "Payload" // as actors send it: docs/format.md
	Record  Shape = "Record"  // a sealed record: docs/format.md
	Bundle  Shape = "Bundle"  // records of a chain with one checkpoint: docs/format.md
	Trust   Shape = "Trust"   // a trust file: docs/format.md
)
