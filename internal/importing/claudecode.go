package importing

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// A claudeCode reads a session file of Claude Code, ~/.claude/projects/*/SESSION.jsonl: in each line an event, of which those of the types user and assistant
// have a message in the form of Anthropic's Messages. The vendor does not document the files. Their shape was learned from notes and tests of programs that read them, of
// the versions 1.0 to 2.1: sessionId, uuid, parentUuid, isSidechain, agentId, timestamp, requestId, version, message {id, model, role, content, usage}.
//
// Several lines may be of one answer, which has one message.id. A line with isSidechain is of a subagent, which has a conversation of its own: agentId names it, or
// in older files the line with which it began.
type claudeCode struct {
	*reader
	talks map[string]*gathering
	order []string
	began map[string]string // by uuid of a line of a subagent: what names the subagent
	calls map[string]bool   // answers whose counts were given
}

func newClaudeCode(r *reader) *claudeCode {
	return &claudeCode{reader: r, talks: map[string]*gathering{}, began: map[string]string{}, calls: map[string]bool{}}
}

// isClaudeCode recognises a line of a session file.
func isClaudeCode(o object) bool {
	return o.has("sessionId", '"') && o.has("uuid", '"') && o.has("message", '{') && (o.text("type") == "user" || o.text("type") == "assistant")
}

func (c *claudeCode) line(number int, o object, raw jsontext.Value) error {
	kind := o.text("type")
	if kind != "user" && kind != "assistant" || !o.has("message", '{') {
		return nil // what the program notes for itself
	}
	place := lineAt(number)
	session := o.word("sessionId")
	if session == "" || o.word("uuid") == "" {
		return c.bad(place, errors.New("a message without sessionId and uuid: expected those of Claude Code"))
	}
	m := o.within("message")
	if role := m.text("role"); role != kind {
		return c.bad(place, errors.New("the role of the message is not the type of the line"))
	}
	read, err := subject.ReadPart(c.Name+":"+place, subject.Anthropic, append(append([]byte{'['}, o["message"]...), ']'))
	if err != nil {
		return c.bad(place, err)
	}
	u := unit{raw: raw, place: place, id: o.word("uuid"), messages: read.Messages, left: leftIn(read), at: o.word("timestamp")}
	if kind == "assistant" {
		c.answered(&u, o, m)
	}
	return c.add(c.conversation(session, o), u)
}

// synthetic stands for the model of what the program itself wrote in the place of an answer, such as the error of a call.
const synthetic = "<synthetic>"

// answered adds what a line says of an answer.
func (c *claudeCode) answered(u *unit, o, m object) {
	if m.word("model") == synthetic || o.isTrue("isApiErrorMessage") {
		u.failed = "the program wrote it in the place of an answer"
		return
	}
	u.model, u.call = m.word("model"), or(o.word("requestId"), m.word("id"))
	if m.has("usage", '{') {
		u.usage = m["usage"]
	}
}

// add takes a message of a conversation. The counts of an answer that goes on after a result of a tool are given once.
func (c *claudeCode) add(name string, u unit) error {
	g := c.talks[name]
	if g == nil {
		g = &gathering{conversation: name}
		c.talks[name], c.order = g, append(c.order, name)
	}
	done := g.add(u)
	if done == nil {
		return c.ctx.Err()
	}
	return c.finish(done)
}

func (c *claudeCode) finish(e *Exchange) error {
	for i := range e.units {
		if u := &e.units[i]; u.call != "" && u.usage != nil && c.calls[u.call] {
			u.usage = nil
		}
	}
	for _, u := range e.units {
		if u.call != "" && u.usage != nil {
			c.calls[u.call] = true
		}
	}
	return c.give(e)
}

// conversation names the conversation of a line.
func (c *claudeCode) conversation(session string, o object) string {
	if !o.isTrue("isSidechain") {
		return session
	}
	uuid := o.word("uuid")
	agent := or(c.began[o.word("parentUuid")], or(o.word("agentId"), uuid)) // some versions name the agent on some lines only
	c.began[uuid] = agent
	return session + "-agent-" + agent
}

func (c *claudeCode) end() error {
	for _, name := range c.order {
		if e := c.talks[name].end(); e != nil {
			if err := c.finish(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftIn lists what is left out of messages that were read together.
func leftIn(c *subject.Case) (list []subject.Left) {
	for _, o := range c.LeftOut {
		list = append(list, o.Kind)
	}
	return list
}
