// Package observed makes and reads what recorders seal: calls, uses of tools and messages that they saw, and events of their own. It is
// pure: it uses no clock, file or network.
//
//	draft, err := observed.Draft(act)                 // what a recorder seals of one act
//	body, err := window.Rebuild(pieces)               // the bytes again, from a record and the bodies before it
//	event, err := observed.ParseEvent(response)       // what a recorder_event says
//
// # An act is never lost to its content
//
// Traffic may be hostile: a name of a megabyte, a body that is no JSON, an encoding that nobody can undo. [Draft] leaves out what has no
// place in a payload, and says so in the member missing. It returns an error only if what the recorder itself says is wrong.
//
// # What is stated beside the bytes
//
// [Facts]: model, version, settings, counts, calls, names of context kept elsewhere. A list shows them without reading, and three verifiers find
// them in the bytes. What was said is not stated: it is read in the bytes.
package observed
