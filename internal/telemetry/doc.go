// Package telemetry reads what OpenTelemetry exporters send (OTLP, traces and logs), and finds the acts of agents in it: calls of models, uses
// of tools, and what agents were asked as a whole. It has no clock, network or file. Package telemetry/receiver listens, and seals.
//
// # What is told is not seen
//
// Everything in an [Act] is the sender's word: who spoke, what was said, and when. An act has what was told of it in one form, as package
// observe/otlp writes it, so that a verifier can read it again. What the sender left out, or may have cut off, is in Missing.
//
// # Hostile input
//
// A few bytes of protobuf or JSON can stand for much memory. [Decode] counts values before it reads them.
package telemetry
