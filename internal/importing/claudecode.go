package importing

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// A claudeCode reads a session file of Claude Code, ~/.claude/projects/*/SESSION.jsonl: in each line an event, of which those of the types user and assistant
// have a message in the form of Anthropic's Messages. The vendor does not document the files. Their shape was learned from notes and tests of programs that read them, of
// the versions 1.0 to 2.1, and from files that 2.1.197 wrote: sessionId, uuid, parentUuid, isSidechain, agentId, timestamp, requestId, version, message {id, model, role, content, usage}.
//
// Several lines may be of one answer, which has one message.id. A line with isSidechain is of a subagent, which has a conversation of its own: agentId names it, or
// in older files the line with which it began. Not all that stands as a user's or an agent's is: the program says so with isMeta, isCompactSummary, origin, and the model <synthetic>.
// What is said while the agent works stands in a line of the type attachment.
type claudeCode struct {
	*reader
	talks map[string]*gathering
	order []string
	began map[string]string // by uuid of a line of a subagent: what names the subagent
	calls map[string]bool   // answers whose counts were given
	lines map[string]*event // by uuid: every line that has one
	last  map[string]string // by conversation: the uuid of the newest words of a user
	lacks map[string][]string
}

// An event is what is kept of a line.
type event struct {
	above   *event
	prompt  string // the uuid of the newest words of a user down to here; "": not known
	message string // the digest of its message
}

func newClaudeCode(r *reader) *claudeCode {
	return &claudeCode{reader: r, talks: map[string]*gathering{}, began: map[string]string{}, calls: map[string]bool{}, lines: map[string]*event{}, last: map[string]string{}, lacks: map[string][]string{}}
}

// claudeCodeName is how messages name the program.
const claudeCodeName = "Claude Code"

// isClaudeCode recognises a line of a session file.
func isClaudeCode(o object) bool {
	return o.Has("sessionId", '"') && o.Has("uuid", '"') && o.Has("message", '{') && (o.Word("type") == "user" || o.Word("type") == "assistant")
}

func (c *claudeCode) line(place string, o object, raw jsontext.Value) error {
	kind := o.Word("type")
	session, uuid := o.Brief("sessionId"), o.Brief("uuid")
	switch {
	case kind == "attachment" && session != "" && uuid != "":
		return c.attachment(place, c.conversation(session, o), o, raw)
	case kind != "user" && kind != "assistant" || !o.Has("message", '{'):
		if c.follow(o, ""); session != "" && uuid != "" {
			c.conversation(session, o)
		}
		return nil // what the program notes for itself
	case session == "" || uuid == "":
		return c.bad(place, errors.New("a message without sessionId and uuid: expected those of Claude Code"))
	}
	m := o.Within("message")
	if role := m.Word("role"); role != kind {
		return c.bad(place, errors.New("the role of the message is not the type of the line"))
	}
	message := string(sum(string(o["message"])))
	if before := c.lines[uuid]; before != nil && before.message != "" {
		if before.message == message {
			return nil // written twice
		}
		return c.bad(place, errors.New("a line before it has the same uuid and another message"))
	}
	u, err := c.message(place, o, raw, o["message"])
	if err != nil {
		return c.bad(place, err)
	}
	if kind == "assistant" {
		c.answered(&u, o, m)
	}
	name := c.conversation(session, o)
	c.speaker(&u, o)
	c.branch(name, &u, o)
	c.lines[uuid].message = message
	return c.add(name, u)
}

// message reads a message of a line.
func (c *claudeCode) message(place string, o object, raw, message jsontext.Value) (unit, error) {
	u := unit{raw: raw, place: place, id: o.Brief("uuid"), at: o.Brief("timestamp")}
	return u, c.part(&u, subject.AnthropicForm, message, "a block")
}

// speaker says who said what stands as a user's, if it was no user.
func (c *claudeCode) speaker(u *unit, o object) {
	origin := o.Within("origin").Word("kind")
	switch {
	case o.Word("type") != "user" && o.Word("type") != "attachment":
	case o.Has("isMeta", 't'), o.Has("isCompactSummary", 't'), origin != "" && origin != "human":
		u.by(claudeCodeName)
		if o.Has("isCompactSummary", 't') {
			u.lacks = lacking(u.lacks, "what was said before: from here on the agent was shown a summary of it")
		}
	case o.Has("isSidechain", 't'):
		u.from("the agent that called this one")
	}
}

// attachment reads what the program added to a prompt: what a user said while the agent worked, or what the program says itself.
func (c *claudeCode) attachment(place, name string, o object, raw jsontext.Value) error {
	a := o.Within("attachment")
	c.follow(o, "")
	prompt := a["prompt"]
	if a.Word("type") != "queued_command" || prompt.Kind() != '"' && prompt.Kind() != '[' {
		what := "what the program added to the prompt in a line of its own: " + or(cut(a.Word("type"), 60), "attachment")
		c.lacks[name] = lacking(c.lacks[name], what)
		return nil
	}
	u, err := c.message(place, o, raw, jsonOf(map[string]any{"role": "user", "content": prompt}))
	if err != nil {
		return c.bad(place, err)
	}
	if mode := a.Word("commandMode"); mode != "" && mode != "prompt" || a.Has("isMeta", 't') {
		u.by(claudeCodeName)
	}
	if a.Has("origin", '{') {
		o["origin"] = a["origin"]
	}
	c.speaker(&u, o)
	return c.add(name, u)
}

// follow keeps where a line stands: below its parent, and with which words of a user, or below those of its parent.
func (c *claudeCode) follow(o object, prompt string) *event {
	e := &event{above: c.lines[o.Brief("parentUuid")], prompt: prompt}
	if e.above != nil && prompt == "" {
		e.prompt = e.above.prompt
	}
	if uuid := o.Brief("uuid"); uuid != "" && c.lines[uuid] == nil {
		c.lines[uuid] = e
	}
	return e
}

// wentBack is what a message lacks that is not below the one before it.
const wentBack = "that all before it was shown to the agent: the user went back to an earlier place of the conversation, and what was said since was given up"

// branch keeps where a message stands, and notes that a user went back to an earlier place of the conversation.
func (c *claudeCode) branch(name string, u *unit, o object) {
	if !slices.ContainsFunc(u.messages, func(m subject.Message) bool { return m.Role == subject.User }) {
		c.follow(o, "")
		return
	}
	uuid := o.Brief("uuid")
	e := c.follow(o, uuid)
	if e.above != nil && e.above.prompt != "" && e.above.prompt != c.last[name] {
		u.lacks = lacking(u.lacks, wentBack)
	}
	c.last[name] = uuid
}

// synthetic stands for the model of what the program itself wrote in the place of an answer, such as the error of a call.
const synthetic = "<synthetic>"

// answered adds what a line says of an answer.
func (c *claudeCode) answered(u *unit, o, m object) {
	if m.Brief("model") == synthetic || o.Has("isApiErrorMessage", 't') {
		u.by(claudeCodeName)
		if o.Has("isApiErrorMessage", 't') {
			u.failed = "the program wrote it in the place of an answer"
		}
		return
	}
	u.model, u.call = m.Brief("model"), or(o.Brief("requestId"), m.Brief("id"))
	if m.Has("usage", '{') {
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
	if len(c.lacks[name]) > 0 {
		last := g.last()
		last.lacks = lacking(last.lacks, c.lacks[name]...)
		delete(c.lacks, name)
	}
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
	if !o.Has("isSidechain", 't') {
		return session
	}
	uuid := o.Brief("uuid")
	agent := or(c.began[o.Brief("parentUuid")], or(o.Brief("agentId"), uuid)) // some versions name the agent on some lines only
	c.began[uuid] = agent
	return session + "-agent-" + agent
}

func (c *claudeCode) end() error {
	for _, name := range c.order {
		if last := c.talks[name].last(); last != nil {
			last.lacks = lacking(last.lacks, c.lacks[name]...)
		}
		if e := c.talks[name].end(); e != nil {
			if err := c.finish(e); err != nil {
				return err
			}
		}
	}
	return nil
}
