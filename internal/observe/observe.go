// Package observe reads the bytes of one call to a model or an agent, as a recorder saw them, and says what was asked and what was
// answered. It has no clock, network or file, and compiles to WebAssembly.
//
// # A reading is a view
//
// The bytes are the evidence. Which model was asked and what it counted are facts, which package evidence/observed finds and verifiers compare. A [Projection] is a reading
// of what was said, for whoever looks, by the newest reader: no record states it. Messages of all vendors become chat messages, so that a jury and a reader of records need to know one form.
// A projection leaves out what no juror reads: inner reasoning, signatures, definitions of tools, and the content of
// pictures and files, in whose place stands a digest.
//
// # What cannot be read is named
//
// Traffic may be hostile, cut or of another protocol. Project reads what it can, and its Problem says what was wrong.
// It never guesses: a member that could not be read is absent. Texts that have no place in canonical JSON (the
// arguments of a call with a number like 1e400, or with one member twice) are kept as strings. Where JSON itself is
// ambiguous, because a member stands there twice or a character is broken, it is read as most libraries do (the last
// member counts, U+FFFD stands for the character), and Problem says so.
//
// # The first of several answers is the response
//
// A request may ask for several answers. The one with the lowest number is the response. The others are alternatives,
// which the agent may have used instead.
package observe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/convo"
	"jurat/internal/fault"
)

// The protocols that Project reads.
const (
	OpenAIChat        = observed.OpenAIChat
	OpenAIResponses   = observed.OpenAIResponses
	AnthropicMessages = observed.AnthropicMessages
	GeminiGenerate    = observed.GeminiGenerate
)

// isModels reports whether a protocol is one of models.
func isModels(protocol string) bool {
	return slices.Contains([]string{OpenAIChat, OpenAIResponses, AnthropicMessages, GeminiGenerate}, protocol)
}

// A Call is one exchange with a model's provider, or with an agent.
type Call struct {
	Protocol     string // see Protocol
	Path         string // of the request's URL; Gemini's has the model
	Status       int    // of the response; 0: there was none
	Request      []byte // the body, decoded
	Response     []byte // the body, decoded, as far as it came
	RequestType  string // media types, as the headers give them
	ResponseType string
}

// A Projection is what a call says. A member that is absent was not said, or could not be read: then Problem says why.
// All values are in canonical form.
type Projection struct {
	Asked, Answered []convo.Message `json:"-"`

	Prompt       jsontext.Value `json:"prompt,omitzero"`       // Asked, as an array of chat messages
	Output       jsontext.Value `json:"response,omitzero"`     // Answered: a string; with calls of tools a chat message, with several turns an array of them
	Alternatives int            `json:"alternatives,omitzero"` // further answers
	Finish       string         `json:"finish,omitzero"`       // why the model stopped, in the provider's word
	ProviderID   string         `json:"provider_id,omitzero"`  // the provider's id of the response

	// Items are the ids of what the answer says, by which later requests may refer to it instead of sending it again.
	Items []string `json:"items,omitzero"`

	// Conversation names the context and the task that an agent of A2A keeps, as "context:c1" and "task:t1".
	Conversation []string `json:"conversation,omitzero"`

	Complete bool   `json:"complete"`            // the answer has its end: a terminal event, why each answer stopped, or the end of its JSON
	Error    string `json:"error,omitzero"`      // the provider's error, with a status of failure or inside a stream
	State    string `json:"projection,omitzero"` // Failed: the request or the answer could not be read
	Problem  string `json:"problem,omitzero"`    // what could not be read as the protocol has it, and why

	Problems []string `json:"-"` // those in Problem
}

// Failed is the State of a projection that lacks the request or the answer, because it could not be read.
const Failed = "failed"

// readers has a reader for each protocol.
var readers = map[string]func(*reading){
	OpenAIChat: readChat, OpenAIResponses: readResponses, AnthropicMessages: readMessages, GeminiGenerate: readGenerate,
	A2A03: readA2A, A2A10: readA2A, OTLP: readTelemetry,
}

// Project reads a call. It returns an error only if the protocol is unknown.
func Project(c Call) (Projection, error) {
	read, known := readers[c.Protocol]
	if strings.HasPrefix(c.Protocol, MCP) {
		read, known = readMCP, true
	}
	if !known {
		return Projection{}, fmt.Errorf("unknown protocol %q: no projection", c.Protocol)
	}
	r := &reading{call: &c}
	for i, body := range [][]byte{c.Request, c.Response} {
		if most := observed.MostValues(body); len(body) > most && evidence.Values(body) > most {
			return unreadable(fmt.Sprintf("%s: more than %d values", []string{"request", "answer"}[i], most)), nil
		}
	}
	if err := fault.Guard(func() error { read(r); return nil }); err != nil {
		return unreadable("the program failed while reading it"), nil
	}
	return r.result(), nil
}

func unreadable(why string) Projection {
	return Projection{State: Failed, Problem: why, Problems: []string{why}}
}

// Protocol returns the protocol of a request: OpenAIChat, OpenAIResponses, AnthropicMessages or GeminiGenerate. It
// returns "" for any other request, such as one for embeddings, models or files. The path may have a query.
func Protocol(method, path string) string {
	path = pathOf(path)
	if method == "GET" {
		if before, id, _ := cutLast(path); strings.HasSuffix(before, "/responses") && id != "" {
			return OpenAIResponses
		}
		return ""
	}
	if method != "POST" {
		return ""
	}
	switch before, last, _ := cutLast(path); {
	case strings.HasSuffix(path, "/chat/completions"):
		return OpenAIChat
	case last == "responses":
		return OpenAIResponses
	case path == "/messages", strings.HasSuffix(path, "/v1/messages"):
		return AnthropicMessages
	case strings.HasSuffix(before, "/publishers/anthropic/models") && !strings.HasPrefix(last, "count-tokens") && rawPredict(last): // Vertex AI
		return AnthropicMessages
	case last == "invoke" && strings.Contains(before, "/model/") && strings.Contains(before, "anthropic.claude"): // Bedrock
		return AnthropicMessages
	case strings.HasSuffix(last, ":generateContent"), strings.HasSuffix(last, ":streamGenerateContent"):
		return GeminiGenerate
	}
	return ""
}

func rawPredict(last string) bool {
	_, verb, _ := strings.Cut(last, ":")
	return verb == "rawPredict" || verb == "streamRawPredict"
}

// cutLast returns the last segment of a path, and what is before its slash.
func cutLast(path string) (before, last string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// CallOf is what a record states of a call, with the bytes that it seals. Bytes that are sealed encoded say nothing.
func CallOf(o *evidence.Observed, request, response []byte) Call {
	c := Call{Protocol: o.Protocol, Path: o.Path, Status: int(o.Status)}
	if b := o.Request; b != nil && b.Decoded == "" {
		c.Request, c.RequestType = request, b.Type
	}
	if b := o.Response; b != nil && b.Decoded == "" {
		c.Response, c.ResponseType = response, b.Type
	}
	return c
}
