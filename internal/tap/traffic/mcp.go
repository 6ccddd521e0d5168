package traffic

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
)

// MCP begins the names of the protocols of the Model Context Protocol; the version follows, as in mcp/2025-06-18. One
// reader knows all versions: https://modelcontextprotocol.io/specification.
const MCP = observed.MCP

// FromServer is the Path of a call on a pipe whose first message the server sent. On HTTP the agent's side always
// begins, and the server's own messages come in the answer.
const FromServer = "/server"

const maxMessages = 1_000

type rpc struct {
	id     string // as canonical JSON, since 1 and "1" are two ids; "": it has none
	method string // "": it is an answer
	params *convo.Node
	rest   *convo.Node // all members
	use    string      // the id of the model's call of the tool, if the client states it
}

// readMCP reads what one side asked and the other answered. The caller of a tool speaks as the assistant, the server as the tool.
func readMCP(r *reading) {
	asked := r.rpcRequest()
	_, other := r.sides()
	if r.call.Status >= 300 {
		r.failed(explainRPC)
	}
	answered, came := map[string]bool{}, r.rpcAnswer()
	var all answer // an answer to a batch, and what a server says on its way, belong together
	for _, m := range came {
		at := asked.find(m.id)
		switch {
		case m.method != "":
			all.said = append(all.said, r.rpcSaid(m, other)...)
			continue
		case at == nil:
			r.problem("answer: it answers the id %s, which was not asked", convo.Short(cmp.Or(m.id, "(none)")))
		case answered[m.id]:
			r.problem("answer: the id %s is answered twice", convo.Short(m.id))
		}
		answered[m.id] = true
		all.said = append(all.said, r.rpcResult(at, m))
	}
	if all.said != nil {
		r.answers = []answer{all}
	}
	r.out.Complete = r.out.Complete || came != nil && len(answered) >= len(asked.waiting("")) && r.out.State != Failed
}

// sides are the roles of the side whose request it is, and of the one that answers.
func (r *reading) sides() (asking, other string) {
	if r.call.Path == FromServer {
		return convo.Tool, convo.Assistant
	}
	return convo.Assistant, convo.Tool
}

type rpcs []rpc

func (list rpcs) find(id string) *rpc {
	for i := range list {
		if list[i].method != "" && list[i].id == id && id != "" {
			return &list[i]
		}
	}
	return nil
}

// waiting are the ids of the requests by a method; "": by any.
func (list rpcs) waiting(method string) map[string]bool {
	ids := map[string]bool{}
	for _, m := range list {
		if m.id != "" && m.method != "" && (method == "" || m.method == method) {
			ids[m.id] = true
		}
	}
	return ids
}

// rpcRequest reads the request. A GET of HTTP has none: it waits for messages of the server.
func (r *reading) rpcRequest() rpcs {
	if len(bytes.TrimSpace(r.call.Request)) == 0 {
		return nil
	}
	list := r.rpcs("request", r.call.Request)
	asking, _ := r.sides()
	r.prompt = []convo.Message{}
	for _, m := range list {
		if m.id != "" && m.method != "" && list.find(m.id).method != m.method {
			r.problem("request: the id %s stands there twice", convo.Short(m.id))
		}
		if m.method == "" {
			r.prompt = append(r.prompt, r.rpcResult(nil, m))
		} else {
			r.prompt = append(r.prompt, r.rpcSaid(m, asking)...)
		}
	}
	return list
}

func (r *reading) rpcs(what string, body []byte) (list rpcs) {
	d := jsontext.NewDecoder(bytes.NewBuffer(bytes.TrimPrefix(body, []byte("\ufeff"))), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for d.PeekKind() != 0 {
		v, err := d.ReadValue()
		if err != nil {
			r.fail("%s: %s", what, reason(err))
			return list
		}
		for _, one := range r.batch(what, v.Clone()) {
			if len(list) == maxMessages {
				r.problem("%s: more than %d messages: the others are left out", what, maxMessages)
				return list
			}
			params := one.Within("params")
			list = append(list, rpc{convo.TextOf(one.Get("id").Raw()), one.Word("method"), params, one, params.Within("_meta").Word("claudecode/toolUseId")})
		}
	}
	if _, err := d.ReadToken(); err != nil && d.InputOffset() < int64(len(bytes.TrimRight(body, " \r\n\t"))) {
		r.fail("%s: %s", what, reason(err))
	}
	return list
}

func (r *reading) batch(what string, v jsontext.Value) []*convo.Node {
	switch v.Kind() {
	case jsontext.KindBeginObject:
		if o, ok := r.object(what, v); ok {
			return []*convo.Node{o}
		}
	case jsontext.KindBeginArray:
		if _, ok := decode[[]object](r, what, v); ok {
			list, _ := convo.ReadLenient(v) // it is valid
			return list.Members
		}
	default:
		r.problem("%s: it is no message", what)
	}
	r.out.State = Failed
	return nil
}

func (m *rpc) callID() string { return cmp.Or(convo.Short(m.use), "mcp:"+convo.Short(m.id)) }

// rpcSaid shows a request or a notification. A request of the agent's side is a call, of a tool or of another method.
func (r *reading) rpcSaid(m rpc, role string) []convo.Message {
	if m.id == "" || role != "assistant" {
		text := strings.TrimRight(m.method+" "+convo.TextOf(m.rest.Get("params").Raw()), " ")
		return []convo.Message{{Role: role, Name: convo.Short(m.method), Content: convo.Pieces{convo.Words(text)}}}
	}
	said, but := convo.Message{Role: role}, []string{"_meta"}
	tool := m.method == "tools/call"
	if tool { // what stands beside it, such as the answers to what the server asked before
		but = append(but, "name", "arguments")
	}
	shown := m.params.ByName(but...)
	name, arguments := m.method, convo.TextOf(written(shown))
	if tool {
		if len(shown) > 0 {
			said.Content = convo.Pieces{convo.Words(arguments)}
		}
		name, arguments = m.params.Word("name"), cmp.Or(convo.TextOf(m.params.Get("arguments").Raw()), "{}")
	}
	said.ToolCalls = []convo.ChatToolCall{convo.Function(m.callID(), name, arguments)}
	return []convo.Message{said}
}

// rpcResult shows an answer: to a request; nil: it is not known to which.
func (r *reading) rpcResult(to *rpc, m rpc) convo.Message {
	asking, other := r.sides()
	said := convo.Message{Role: other}
	if to == nil {
		said.Role = asking
	} else if said.Role == "tool" {
		said.ToolCallID = to.callID()
	}
	result := m.rest.Get("result")
	if failure := m.rest.Get("error"); !failure.Absent() || result == nil {
		said.IsError = true
		said.Content = convo.Pieces{convo.Words("error: " + cmp.Or(convo.TextOf(failure.Raw()), "(it has neither a result nor an error)"))}
		return said
	}
	o := m.rest.Within("result")
	switch {
	case to != nil && to.method == "tools/call" && (o.Get("content") != nil || o.Get("structuredContent") != nil):
		said.Content, said.IsError = r.toolContent(o), o.Get("isError").IsTrue()
	case to != nil && to.method == "tools/list":
		said.Content = convo.Pieces{convo.Words(listed(o))}
	default:
		said.Content = convo.Pieces{convo.Words(convo.TextOf(result.Raw()))}
	}
	return said
}

func (r *reading) toolContent(o *convo.Node) (list convo.Pieces) {
	structured := convo.TextOf(o.Get("structuredContent").Raw())
	for _, part := range elements[object](r, o, "answer", "content") {
		p := r.mcpPart(part)
		list = append(list, p)
		if structured != "" && p.Text != nil && structured == convo.TextOf(jsontext.Value(*p.Text)) {
			structured = "" // servers repeat it as a text
		}
	}
	if structured != "" {
		list = append(list, convo.Words("[structuredContent] "+structured))
	}
	rest := o.ByName("content", "structuredContent", "isError", "_meta")
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		list = append(list, convo.Words("["+name+"] "+convo.TextOf(rest[name].(jsontext.Value))))
	}
	return list
}

func (r *reading) mcpPart(o *convo.Node) convo.Piece {
	switch kind := o.Word("type"); kind {
	case "text":
		return convo.Words(o.Word("text"))
	case "image":
		return convo.Inline("image_url", "", o.Word("mimeType"), o.Word("data"))
	case "audio":
		return convo.Inline("input_audio", "", o.Word("mimeType"), o.Word("data"))
	case "resource":
		in := o.Within("resource")
		if in.Get("blob") != nil {
			return convo.Inline("file", convo.Short(observed.Address(in.Word("uri"))), in.Word("mimeType"), in.Word("blob"))
		}
		return convo.Words(fmt.Sprintf("[resource %s]\n%s", observed.Address(in.Word("uri")), in.Word("text")))
	default:
		return convo.Unknown(convo.Short(kind), written(o.ByName()))
	}
}

// A Definition is what a server says of one of its tools.
type Definition struct {
	Name   string          `json:"name"`
	Digest evidence.Digest `json:"digest"` // of its canonical form, or of its bytes if it has none
}

// Definitions returns the definitions of tools in the answer to a tools/list, in their order. An answer that comes on a connection of its own, without its
// request, is one if it has tools. unread says of which list the answer is not here, or cannot be read; "": of none.
func Definitions(c Call) (list []Definition, unread string) {
	if !strings.HasPrefix(c.Protocol, MCP) {
		return nil, ""
	}
	r := &reading{call: &c}
	asked := r.rpcs("request", c.Request)
	wanted := asked.waiting("tools/list")
	r.problems = nil
	for _, m := range r.rpcAnswer() {
		to, result := asked.find(m.id), m.rest.Within("result")
		switch {
		case m.method != "":
		case to == nil && len(asked) == 0, to != nil && to.method == "tools/list":
			list = append(list, definitions(result)...)
			delete(wanted, m.id)
		}
	}
	if len(wanted) > 0 {
		unread = "the answer to tools/list is not here"
		if len(r.problems) > 0 {
			unread = "the answer to tools/list cannot be read: " + r.problems[0]
		}
	}
	return list, unread
}

func definitions(result *convo.Node) (list []Definition) {
	for _, tool := range result.Get("tools").List() {
		form, err := evidence.Canonical(tool.Raw())
		if err != nil {
			form = tool.Raw()
		}
		list = append(list, Definition{tool.Word("name"), evidence.DigestOf(form)})
	}
	return list
}

// listed shows a list of tools: of each its name, what it says of itself, and the digest of its whole definition.
func listed(result *convo.Node) string {
	var lines []string
	tools := result.Get("tools").List() // once: Get passes over all members
	for i, d := range definitions(result) {
		o := map[string]any{"name": d.Name, "digest": d.Digest}
		if at := tools[i].Get("description"); at != nil {
			o["description"] = at.Raw()
		}
		lines = append(lines, convo.TextOf(written(o)))
	}
	if !result.Get("nextCursor").Absent() {
		lines = append(lines, "[more tools follow]")
	}
	return strings.Join(lines, "\n")
}

func (r *reading) rpcAnswer() (list rpcs) {
	if len(bytes.TrimSpace(r.call.Response)) == 0 {
		return nil
	}
	if r.body() != stream {
		return r.rpcs("answer", r.call.Response)
	}
	for e := range convo.Events(r.call.Response) {
		if len(bytes.TrimSpace(e.Data)) == 0 { // a 'ping', or an event that only has an id
			continue
		}
		if list = append(list, r.rpcs("answer", e.Data)...); len(list) > maxMessages {
			r.problem("answer: more than %d messages: the others are left out", maxMessages)
			return list[:maxMessages]
		}
	}
	return list
}

func explainRPC(body []byte) string {
	failure := convo.ObjectOf(bytes.TrimSpace(body)).Within("error")
	return colon(convo.TextOf(failure.Get("code").Raw()), failure.Word("message"))
}
