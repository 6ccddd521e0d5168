package relay

import (
	"bytes"
	"strings"
	"sync"

	"jurat/internal/observe"
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

// A2A is the protocol of agents that answer messages, versions 0.3 and 1.0, by JSON-RPC and by HTTP with JSON. Its streams have
// an event for each change of a task, alone or as the result of a JSON-RPC response.
//
// An agent ends its answer with a message, with an error, with an event that is final (0.3), or with a task that has come to an end or waits for the caller
// (1.0). A task that waits for an authorisation goes on by itself when it has it, so that is no end. Nor is a task that is given as it stands and waits for its caller.
var A2A = &Protocol{Name: "a2a", Watched: watchedOfA2A(), Ends: func(*Body) func(Event) (string, bool) { return a2aEnd }}

// The places of an event, within a JSON-RPC response or alone.
const (
	a2aError   = "error"
	a2aKind    = "kind"         // 0.3: message, task, status-update or artifact-update
	a2aFinal   = "final"        // 0.3
	a2aState   = "status/state" // 0.3: of a task or a status-update
	a2aMessage = "message"      // 1.0
	a2aMsg     = "msg"          // 0.3 by HTTP with JSON
	a2aTask    = "task/status/state"
	a2aUpdate  = "statusUpdate/status/state"
	a2aFinalOf = "statusUpdate/final" // 0.3 by HTTP with JSON
)

const a2aResult = "result/"

func watchedOfA2A() []string {
	list := []string{a2aError}
	for _, path := range []string{a2aKind, a2aFinal, a2aState, a2aMessage, a2aMsg, a2aTask, a2aUpdate, a2aFinalOf} {
		list = append(list, path, a2aResult+path)
	}
	return list
}

func a2aEnd(e Event) (name string, last bool) {
	for _, m := range e.Members {
		switch path := strings.TrimPrefix(m.Path, a2aResult); {
		case path == a2aError && m.Kind == '{':
			return a2aError, true
		case (path == a2aFinal || path == a2aFinalOf) && m.Kind == 't':
			return a2aFinal, true
		case path == a2aKind && m.Value == "message", (path == a2aMessage || path == a2aMsg) && m.Kind == '{':
			return a2aMessage, true
		case path == a2aUpdate && observe.A2AOver(m.Value):
			return m.Value, true
		case (path == a2aTask || path == a2aState) && observe.A2AOver(m.Value) && !waits(m.Value):
			name = m.Value // other events may follow: an agent of 0.3 sends one that is final
		}
	}
	return name, false
}

// waits reports whether a task waits for its caller. Who subscribes to such a task is first told how it stands, and then, maybe much later, how it goes on.
func waits(state string) bool {
	return state == "TASK_STATE_INPUT_REQUIRED" || state == "input-required"
}
