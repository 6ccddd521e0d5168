// Package observed makes and reads what recorders seal: calls, uses of tools and messages that they saw, and events of their own. It is
// pure: it uses no clock, file or network.
//
//	payload, err := observed.Payload(act, earlier…)   // what a recorder seals of one act
//	body, err := window.Rebuild(pieces)               // the bytes again, from a record and the bodies before it
//	event, err := observed.ParseEvent(response)       // what a recorder_event says
//
// # An act is never lost to its content
//
// Traffic may be hostile: a name of a megabyte, a body that is no JSON, an encoding that nobody can undo. [Payload] leaves out what has no
// place in a payload, and says so in the member missing. It returns an error only if what the recorder itself says is wrong.
//
// # What is stated beside the bytes
//
// Model, version, settings and answer are stated, so that a list can show them and a reader without the bytes can read them. The prompt is
// not: it is the whole conversation, and stands in the bytes of the request. A reader gets it with [Read].
package observed
