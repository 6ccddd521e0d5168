package relay

import (
	"bytes"
	"sync"
)

// A Protocol is what the callers of an upstream speak: a family of protocols with one way of ending an answer. Everything else that a
// recorder must know of a protocol it finds in the bytes.
type Protocol struct {
	Name string
	// Watched are paths in the data of an event, and in the elements of an array that an answer streams, such as "candidates/*/finishReason";
	// "*" stands for each element of an array.
	Watched []string
	// Ends returns a function that names the terminal events of the answer to a request. Last says that nothing can follow such an event. The
	// function is called for one event after the other.
	Ends func(request *Body) func(Event) (name string, last bool)

	once  sync.Once
	watch *watch // of Watched
}

// An Event is what is known of an event of an answer. It is valid until the function that gets it returns.
type Event struct {
	Type    string // the field "event"
	Data    []byte // the beginning of its data, at most 40 bytes
	Members []Member
}

// rules are how an answer ends.
type rules struct {
	Watch *watch                               // which members an Event has
	Ends  func(Event) (name string, last bool) // names a terminal event. Last says that nothing can follow it
}

// Models are the protocols of model providers. All of them share one way, as their events differ.
var Models = &Protocol{Name: "models", Watched: []string{"type", finishReason},
	Ends: func(*Body) func(Event) (string, bool) { return modelEnd }}

// finishReason is the member of Gemini's chunks that tells that a candidate is finished. Other candidates may follow.
const finishReason = "candidates/*/finishReason"

// modelEnds are the types of events that end an answer.
var modelEnds = map[string]bool{
	"message_stop":        true, // Anthropic's Messages
	"response.completed":  true, // OpenAI's Responses
	"response.failed":     true,
	"response.incomplete": true,
}

func modelEnd(e Event) (string, bool) {
	if bytes.HasPrefix(bytes.TrimSpace(e.Data), []byte("[DONE]")) {
		return "[DONE]", true
	}
	if modelEnds[e.Type] {
		return e.Type, true
	}
	finished := ""
	for _, m := range e.Members {
		switch {
		case m.Kind != '"':
		case m.Path == "type" && modelEnds[m.Value]:
			return m.Value, true
		case m.Path == finishReason && m.Value != "FINISH_REASON_UNSPECIFIED":
			finished = "finishReason"
		}
	}
	return finished, false
}

// rulesOf returns the rules for the answer to a request.
func (p *Protocol) rulesOf(request *Body) rules {
	p.once.Do(func() { p.watch = watching(p.Watched) })
	return rules{Watch: p.watch, Ends: p.Ends(request)}
}
