// Package scan reads JSON and server-sent events as their bytes come: what little of them a relay must know while they pass. [Document] and [Events] say up to where the bytes may pass before the
// terminal event. A [Lockstep] decodes a compressed body as far as it has come.
//
// # It accepts more than JSON
//
// What is no JSON is for others to refuse: a relay passes it on. So nothing here fails, and memory does not depend on what comes: of a text that is watched the beginning is kept, and of members a bounded number.
package scan

// An Event is what is known of an event of an answer. It is valid until the function that gets it returns.
type Event struct {
	Type    string // the field "event"
	Data    []byte // the beginning of its data, at most 40 bytes
	Members []Member
}

// Rules are how an answer ends.
type Rules struct {
	Watch *Watch                               // which members an Event has
	Ends  func(Event) (name string, last bool) // names a terminal event. Last says that nothing can follow it
}
