// Package otlp has the JSON form of OpenTelemetry's protocol (OTLP/JSON) for traces and logs, as far as recorders read it, and says which
// spans tell of an agent's acts. It is apart from package telemetry because verifiers read the same spans from records, and need neither
// protobuf nor a server in a browser.
//
// # One form for what came in any form
//
// [Data] reads OTLP/JSON of any sender, and is written in one form: members in the order of the protocol, empty ones left out, ids in lower-case
// hexadecimal. The same span has the same bytes then, whether it came as protobuf or as JSON. Members that this package does not know are not kept.
package otlp
