// Package telemetry reads what OpenTelemetry exporters send (OTLP, traces and logs), and finds the acts of agents in it: calls of models, uses
// of tools, and what agents were asked as a whole. The handler that [New] makes takes it over HTTP (OTLP/HTTP 1.x: /v1/traces, /v1/logs,
// /v1/metrics, in protobuf or JSON), and has each act recorded.
//
// # What is told is not seen
//
// Everything in an [Act] is the sender's word: who spoke, what was said, and when. An act has what was told of it in one form, as package
// observe/otlp writes it, so that a verifier can read it again. What the sender left out, or may have cut off, is in Missing.
//
// # Hostile input
//
// A few bytes of protobuf or JSON can stand for much memory. [Decode] counts values before it reads them.
//
// # A yes means that it is in the log
//
// The answer is 200 when the records of all acts are durable. If the log does not seal, the answer is 503 with Retry-After: exporters keep the spans and
// send them again, and what was sealed before is not sealed twice. A design that answers at once and seals later was refused: if the program ended in
// between, spans would be lost of which the sender was told that they are there.
//
// # Who tells is not for the sender to choose
//
// The agent is that of the token, or the one that the operator named. A sender's service.name counts only where the operator has mapped it.
//
// # Requests are bounded
//
// A body is bounded in bytes, before and after decompression, and in values; 16 are in memory at a time, two are decoded, and the acts in one
// take three times as much at most. A request must have a content type that
// browsers do not send to other sites unasked, and name this machine or a name that the operator gave, so that pages cannot tell of acts.
package telemetry
