package relay

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MCP is the Model Context Protocol in all its versions, on HTTP with JSON or events, and on a [Pipe]. An answer ends with the message that has
// the id of the request.
//
// A GET waits for messages of the server and asks nothing. If an answer comes there, to a call whose own connection was lost, the stream ends with it, so that this
// answer too is recorded before the client has it. Clients connect again.
//
// The transport of 2024-11-05 over HTTP is none of these: a stream whose event names an endpoint, where clients post, and on which all answers come. Closed mode ends it before
// the client has the endpoint. Open mode passes it on.
var MCP = &Protocol{Name: "mcp", Watched: append(slices.Clone(watchedOfMCP), manyIDs, manyResults, manyErrors), Ends: endsOfMCP}

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

func endsOfMCP(request *Body) func(Event) (string, bool) {
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

// severalOf reports whether an array of messages has answers, and returns the ids in it.
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

// messageOf makes a message of what was found in it.
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

// mostMessages bounds how many messages of one batch are known.
const mostMessages = 1000

func newMessages() *messages {
	m := &messages{}
	m.document = newDocument(rules{Watch: watchOfMCP, Ends: m.element})
	return m
}

// element takes an element of a batch.
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
	for i := range m.list {
		if m.list[i].odd {
			return nil
		}
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
	if b.Encoding != "" && b.Encoding != "identity" {
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
func (r *relay) sessionIn(speaks *Protocol, header http.Header) string {
	id := header.Get("Mcp-Session-Id")
	if speaks != MCP || id == "" {
		return ""
	}
	return r.fingerprint(id)
}

// oldTransport says of a stream with an endpoint what it is, and what to use instead.
const oldTransport = "the stream names an endpoint, as MCP's transport of 2024-11-05 over HTTP does, and what passes there is not recorded: use the server's streamable HTTP (often at /mcp), or start it on its standard streams"
