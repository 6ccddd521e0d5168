package relay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"jurat/internal/tap/traffic"
)

// A Protocol is what the callers of an upstream speak: a family of protocols with one way of ending an answer. Everything else that a
// recorder must know of a protocol it finds in the bytes.
type Protocol struct {
	Name string
	// Watch has the places of an Event's Members in its data, and in the elements of an array that an answer streams.
	Watch map[string]bool
	// Ends returns what names the terminal events of the answer to a request.
	Ends func(request *Body) ends
}

// ends names a terminal event. Last says that nothing can follow it. It is called for one event after the other.
type ends = func(Event) (name string, last bool)

// An Event is what is known of an event of an answer. It is valid until the function that gets it returns.
type Event struct {
	Type    string // the field "event"
	Data    []byte // the beginning of its data, at most 40 bytes
	Members []Member
}

// Models are the protocols of model providers. All of them share one way, as their events differ.
var Models = &Protocol{Name: "models", Watch: watching([]string{"type", finishReason}),
	Ends: func(*Body) ends { return modelEnd }}

// finishReason is the member of Gemini's chunks that tells that a candidate is finished. Other candidates may follow.
const finishReason = "candidates/*/finishReason"

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

// A2A is the protocol of agents that answer messages, versions 0.3 and 1.0, by JSON-RPC and by HTTP with JSON. Its streams have
// an event for each change of a task, alone or as the result of a JSON-RPC response.
//
// An agent ends its answer with a message, with an error, with an event that is final (0.3), or with a task that has come to an end or waits for the caller
// (1.0). A task that waits for an authorisation goes on by itself when it has it, so that is no end. Nor is a task that is given as it stands and waits for
// its caller.
var A2A = &Protocol{Name: "a2a", Watch: watching(watchedOfA2A()), Ends: func(*Body) ends { return a2aEnd }}

// watchedOfA2A are the places of an event, within a JSON-RPC response or alone. Version 0.3 has kind (message, task, status-update or artifact-update), final
// and status/state, and by HTTP with JSON msg and statusUpdate/final.
func watchedOfA2A() []string {
	list := []string{"error"}
	for path := range strings.FieldsSeq("kind final status/state message msg task/status/state statusUpdate/status/state statusUpdate/final") {
		list = append(list, path, "result/"+path)
	}
	return list
}

func a2aEnd(e Event) (name string, last bool) {
	for _, m := range e.Members {
		switch path := strings.TrimPrefix(m.Path, "result/"); {
		case path == "error" && m.Kind == '{':
			return "error", true
		case (path == "final" || path == "statusUpdate/final") && m.Kind == 't':
			return "final", true
		case path == "kind" && m.Value == "message", (path == "message" || path == "msg") && m.Kind == '{':
			return "message", true
		case path == "statusUpdate/status/state" && traffic.A2AOver(m.Value):
			return m.Value, true
		case (path == "task/status/state" || path == "status/state") && traffic.A2AOver(m.Value) && !waits(m.Value):
			name = m.Value // other events may follow: an agent of 0.3 sends one that is final
		}
	}
	return name, false
}

// waits reports whether a task waits for its caller. Who subscribes to such a task is first told how it stands, and then, maybe much later, how it goes on.
func waits(state string) bool {
	return state == "TASK_STATE_INPUT_REQUIRED" || state == "input-required"
}

// MCP is the Model Context Protocol in all its versions, on HTTP with JSON or events, and on a [Pipe]. An answer ends with the message that has
// the id of the request.
//
// A GET waits for messages of the server and asks nothing. If an answer comes there, to a call whose own connection was lost, the stream ends with it, so that
// this answer too is recorded before the client has it. Clients connect again.
//
// The transport of 2024-11-05 over HTTP is none of these: a stream whose event names an endpoint, where clients post, and on which all answers come. Closed
// mode ends it before the client has the endpoint. Open mode passes it on.
var MCP = &Protocol{Name: "mcp", Watch: watching(append(slices.Clone(watchedOfMCP), manyIDs, manyResults, manyErrors)), Ends: endsOfMCP}

var (
	watchedOfMCP = []string{"id", "method", "result", "error", "params/protocolVersion", "result/protocolVersion", metaVersion, "params/_meta/progressToken", "params/progressToken"}
	watchOfMCP   = watching(watchedOfMCP)
)

// metaVersion is where each request since 2026-07-28 says the version.
const metaVersion = "params/_meta/io.modelcontextprotocol~1protocolVersion"

// The members of an event that has several answers, as servers of 2025-03-26 may send them.
const (
	manyIDs     = "*/id"
	manyResults = "*/result"
	manyErrors  = "*/error"
)

// response names the event that ends an answer, and endpoint the one that names where clients of 2024-11-05 post.
const (
	response = "response"
	endpoint = "endpoint"
)

func endsOfMCP(request *Body) ends {
	waiting := map[string]bool{}
	if asked, err := request.messages(); err == nil {
		for _, m := range asked {
			if m.asks() {
				waiting[m.id] = true
			}
		}
	}
	return func(e Event) (string, bool) {
		if answers, ids := severalOf(e.Members); answers {
			for _, id := range ids {
				delete(waiting, id)
			}
			return response, len(waiting) == 0
		}
		m := messageOf(e.Members)
		if !m.result {
			return "", false
		}
		delete(waiting, m.id)
		return response, len(waiting) == 0
	}
}

func severalOf(found []Member) (answers bool, ids []string) {
	for _, f := range found {
		switch f.Path {
		case manyIDs:
			ids = append(ids, keyOf(f))
		case manyResults, manyErrors:
			answers = true
		}
	}
	return answers, ids
}

// A message is what is known of a message of JSON-RPC without its content.
type message struct {
	id       string // with its kind before it, since 1 and "1" are two ids; "": it has none
	method   string
	result   bool // it has a result or an error
	version  string
	wants    string // the token by which the request wants to hear of progress
	progress string // the token of which a notification tells
	odd      bool   // it can be read in more than one way, or not at all
}

func (m *message) asks() bool    { return m.method != "" && m.id != "" && !m.odd }
func (m *message) answers() bool { return m.method == "" && m.result && m.id != "" && !m.odd }

var versionOfMCP = regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}$`)

func messageOf(found []Member) (m message) {
	seen := map[string]bool{}
	for _, f := range found {
		m.odd = m.odd || seen[f.Path] || f.Long && f.Path != "params/protocolVersion"
		if f.Path == "error" && f.Kind == 'n' { // as some servers write beside a result
			continue
		}
		seen[f.Path] = true
		switch text := f.Kind == '"'; f.Path {
		case "id":
			m.id = keyOf(f)
			m.odd = m.odd || m.id == ""
		case "method":
			m.method = f.Value
			m.odd = m.odd || !text || f.Value == ""
		case "result", "error":
			m.result = true
		case "params/protocolVersion", "result/protocolVersion", metaVersion:
			if text && versionOfMCP.MatchString(f.Value) {
				m.version = f.Value
			}
		case "params/_meta/progressToken":
			m.wants = keyOf(f)
		case "params/progressToken":
			m.progress = keyOf(f)
		}
	}
	both := m.method != "" && m.result || seen["result"] && seen["error"]
	m.odd = m.odd || both || m.method == "" && !m.result || len(found) == mostFound
	return m
}

// keyOf returns an id in one spelling; "": it is no text and no number.
func keyOf(m Member) string {
	switch m.Kind {
	case '"':
		return `"` + m.Value
	case '0':
		if f, err := strconv.ParseFloat(m.Value, 64); err == nil && strings.ContainsAny(m.Value, ".eE") {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return m.Value
	}
	return ""
}

// messages are a line or a body of JSON-RPC, as it is being read.
type messages struct {
	document *document
	list     []message
	many     bool
	first    byte // that is no white space; 0: none was written
}

const mostMessages = 1000

func newMessages() *messages {
	m := &messages{}
	m.document = newDocument(watchOfMCP, m.element)
	return m
}

func (m *messages) element(e Event) (string, bool) {
	if m.many = len(m.list) == mostMessages; !m.many {
		m.list = append(m.list, messageOf(e.Members))
	}
	return "", false
}

func (m *messages) Write(p []byte) (int, error) {
	for i := 0; i < len(p) && m.first == 0; i++ {
		if strings.IndexByte(" \t\r\n\ufeff", p[i]) < 0 {
			m.first = p[i]
		}
	}
	m.document.Write(p)
	return len(p), nil
}

// end returns the messages; nil: it is no message that can be read, or not all of it.
func (m *messages) end() []message {
	d := m.document
	if !d.Whole() || m.many {
		return nil
	}
	if len(m.list) == 0 && len(d.Members()) > 0 {
		m.list = []message{messageOf(d.Members())}
	}
	if slices.ContainsFunc(m.list, func(one message) bool { return one.odd }) {
		return nil
	}
	return m.list
}

// errOdd says that a body begins like messages, and cannot be read as such.
var errOdd = errors.New("it is no message that can be read in one way")

// messages reads the messages of a body; nil: it is some other text, or none.
func (b *Body) messages() ([]message, error) {
	if b == nil || b.Kept == 0 {
		return nil, nil
	}
	r := io.NopCloser(b.Open()) // of any length
	if b.Encoding != "" {
		var err error
		if r, err = b.Decoded(); err != nil {
			return nil, err
		}
	}
	defer r.Close() //nolint:errcheck // it was only read
	m := newMessages()
	if _, err := io.Copy(m, r); err != nil {
		return nil, err
	}
	list := m.end()
	if list == nil && (m.first == '{' || m.first == '[') {
		return nil, errOdd
	}
	return list, nil
}

// MCPVersion is the version of the protocol that a call or its connection says; "": none.
func (c *Call) MCPVersion() string {
	if c.Version != "" {
		return c.Version
	}
	if v := c.Header.Get("Mcp-Protocol-Version"); versionOfMCP.MatchString(v) {
		return v
	}
	list, err := c.Request.messages()
	if err != nil {
		return ""
	}
	for _, m := range list {
		if m.version != "" {
			return m.version
		}
	}
	return ""
}

// sessionIn returns a fingerprint of the session of MCP that a header names; "": none. Who knows a session's id can speak in it, so it is a secret.
func (r *Relay) sessionIn(speaks *Protocol, header http.Header) string {
	id := header.Get("Mcp-Session-Id")
	if speaks != MCP || id == "" {
		return ""
	}
	return r.fingerprint(id)
}

// oldTransport says of a stream with an endpoint what it is, and what to use instead.
const oldTransport = "the stream names an endpoint, as MCP's transport of 2024-11-05 over HTTP does, and what passes there is not recorded: use the server's streamable HTTP (often at /mcp), or start it on its standard streams"
