package importing

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/subject"
	"jurat/internal/tap/convo"
)

// A claudeCode reads a session file of Claude Code, ~/.claude/projects/*/SESSION.jsonl: each line is an event. Those of the types user and assistant have
// a message in the form of Anthropic's Messages. The vendor does not document it. Notes and tests of programs that read versions 1.0 to 2.1, and files of
// 2.1.197, show: sessionId, uuid, parentUuid, isSidechain, agentId, timestamp, requestId, version, message {id, model, role, content, usage}.
//
// Several lines may be of one answer, which has one message.id. A line with isSidechain is of a subagent, which has a conversation of its own: agentId names
// it, or in older files the line with which it began. Not all that stands as a user's or an agent's is: the program says so with isMeta, isCompactSummary,
// origin, and the model <synthetic>. What is said while the agent works stands in a line of the type attachment.
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

type event struct {
	above   *event
	prompt  string // the uuid of the newest words of a user down to here; "": not known
	message string // the digest of its message
}

const claudeCodeName = "Claude Code"

func isClaudeCode(o *convo.Node) bool {
	return o.Has("sessionId", '"') && o.Has("uuid", '"') && o.Has("message", '{') && (o.Word("type") == "user" || o.Word("type") == "assistant")
}

func (c *claudeCode) line(place string, o *convo.Node, raw jsontext.Value) error {
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
	message := string(sum(string(m.Raw())))
	if before := c.lines[uuid]; before != nil && before.message != "" {
		if before.message == message {
			return nil // written twice
		}
		return c.bad(place, errors.New("a line before it has the same uuid and another message"))
	}
	u, err := c.message(place, o, raw, m.Raw())
	if err != nil {
		return c.bad(place, err)
	}
	if kind == "assistant" {
		c.answered(&u, o, m)
	}
	name := c.conversation(session, o)
	c.speaker(&u, o, o.Within("origin"))
	c.branch(name, &u, o)
	c.lines[uuid].message = message
	return c.add(name, u)
}

func (c *claudeCode) message(place string, o *convo.Node, raw, message jsontext.Value) (unit, error) {
	u := unit{raw: raw, place: place, id: o.Brief("uuid"), at: o.Brief("timestamp")}
	return u, c.part(&u, subject.AnthropicForm, message, "a block")
}

// speaker says who said what stands as a user's, if it was no user.
func (c *claudeCode) speaker(u *unit, o, from *convo.Node) {
	origin := from.Word("kind")
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
func (c *claudeCode) attachment(place, name string, o *convo.Node, raw jsontext.Value) error {
	a := o.Within("attachment")
	c.follow(o, "")
	prompt := a.Get("prompt").Raw()
	if a.Word("type") != "queued_command" || prompt.Kind() != '"' && prompt.Kind() != '[' {
		what := "what the program added to the prompt in a line of its own: " + cmp.Or(cut(a.Word("type"), 60), "attachment")
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
	c.speaker(&u, o, cmp.Or(a.Within("origin"), o.Within("origin")))
	return c.add(name, u)
}

// follow keeps where a line stands: below its parent, and with which words of a user, or below those of its parent.
func (c *claudeCode) follow(o *convo.Node, prompt string) *event {
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
func (c *claudeCode) branch(name string, u *unit, o *convo.Node) {
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

func (c *claudeCode) answered(u *unit, o, m *convo.Node) {
	if m.Brief("model") == synthetic || o.Has("isApiErrorMessage", 't') {
		u.by(claudeCodeName)
		if o.Has("isApiErrorMessage", 't') {
			u.failed = "the program wrote it in the place of an answer"
		}
		return
	}
	u.model, u.call = m.Brief("model"), cmp.Or(o.Brief("requestId"), m.Brief("id"))
	if m.Has("usage", '{') {
		u.usage = m.Get("usage").Raw()
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

func (c *claudeCode) conversation(session string, o *convo.Node) string {
	if !o.Has("isSidechain", 't') {
		return session
	}
	uuid := o.Brief("uuid")
	agent := cmp.Or(c.began[o.Brief("parentUuid")], cmp.Or(o.Brief("agentId"), uuid)) // some versions name the agent on some lines only
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

// A codex reads a rollout file of Codex CLI, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl: lines {"timestamp", "type", "payload"}. The first session_meta has
// the id of the session and the version of the program, a turn_context the model, a response_item an item of OpenAI's Responses, and an event_msg of the type
// token_count, or a token_usage_record, the counts of the answer before. The shape is that of the Rust types RolloutLine, RolloutItem and ResponseItem in
// https://github.com/openai/codex (codex-rs/protocol), of the versions 0.46 to 0.77, and of files that 0.171 wrote; other events repeat items, and are skipped.
//
// To September 2025, files have a first line {"id", "timestamp", "instructions"} and then the items; to June 2025, they are one document {"session", "items"}.
type codex struct {
	*reader
	talk   gathering
	model  string
	named  bool     // the session
	base   string   // the system prompt, if the first line has it
	lacks  []string // of the next item
	called bool     // another agent began the session
}

const codexName = "Codex"

func isCodex(o *convo.Node) bool {
	switch o.Word("type") {
	case "session_meta", "response_item", "turn_context":
		return o.Has("payload", '{') && o.Has("timestamp", '"')
	}
	return isOldCodex(o)
}

func isOldCodex(o *convo.Node) bool {
	return o.Has("id", '"') && o.Has("timestamp", '"') && o.Get("instructions") != nil && o.Get("type") == nil
}

func (c *codex) line(place string, o *convo.Node, raw jsontext.Value) error {
	payload := o.Within("payload")
	switch kind := o.Word("type"); {
	case kind == "session_meta":
		c.session(payload)
	case kind == "turn_context":
		c.model = cmp.Or(payload.Brief("model"), c.model)
	case kind == "event_msg":
		c.event(payload)
	case kind == "token_usage_record":
		c.counted(payload.Brief("response_id"), payload.Get("usage").Raw())
	case kind == "compacted":
		c.lacks = lacking(c.lacks, "what was said before: from here on the agent was shown a summary of it, which stays in the file ("+place+")")
	case kind == "response_item":
		return c.item(place, o, payload, o.Get("payload").Raw(), raw)
	case isOldCodex(o):
		c.session(o)
	case payload == nil && kind != "":
		return c.item(place, o, o, raw, raw)
	}
	return nil
}

// session takes what a file says of its session. A session that goes on from another one has the first line of that one, too, and then what was said there.
func (c *codex) session(meta *convo.Node) {
	id := first(meta, "id", "session_id")
	again := c.named && id != c.talk.conversation || meta.Brief("forked_from_id") != ""
	if !c.named && id != "" {
		c.talk.conversation = id
	}
	if base := meta.Within("base_instructions").Word("text"); base != "" && !c.named {
		c.base, c.talk.lacks = base, []string{"the system prompt, which stays in the first line of the file"}
	}
	const copied = "that all of it was said in this session: it goes on from another one, and has what was said there"
	if again {
		c.talk.lacks = lacking(c.talk.lacks, copied)
	}
	c.called = c.called || !c.named && meta.Within("source").Get("subagent") != nil
	c.named = true
}

func (c *codex) event(event *convo.Node) {
	last := c.talk.last()
	switch event.Word("type") {
	case "token_count":
		if used := event.Within("info"); used.Has("last_token_usage", '{') && c.talk.answered {
			last.usage = used.Get("last_token_usage").Raw()
		}
	case "thread_rolled_back":
		c.lacks = lacking(c.lacks, "that all before it was shown to the agent: "+cmp.Or(plain(event.Brief("num_turns")), "some")+" turns before it were taken back")
	case "turn_aborted":
		if last != nil {
			last.lacks = lacking(last.lacks, "the rest of the turn, which was broken off: "+cmp.Or(plain(event.Brief("reason")), "the file does not say why"))
		}
	case "error":
		if last != nil && !c.talk.answered {
			last.failed = cmp.Or(event.Brief("message"), "the file says that there was an error")
			c.talk.answered = true
		}
	}
}

func (c *codex) counted(answer string, usage jsontext.Value) {
	for i := len(c.talk.open) - 1; i >= 0 && c.talk.answered; i-- {
		u := &c.talk.open[i]
		if u.usage != nil || len(u.messages) > 0 && !u.answers() {
			return
		}
		u.call = cmp.Or(answer, u.call)
		if i == len(c.talk.open)-1 && usage.Kind() == '{' {
			u.usage = usage
		}
	}
}

// item reads an item of a conversation. One of a kind that nobody here knows is kept, and named.
func (c *codex) item(place string, o, item *convo.Node, payload, raw jsontext.Value) error {
	kind := item.Word("type")
	switch {
	case kind == "ghost_snapshot", kind == "additional_tools":
		return nil // of the program's own state
	case strings.HasPrefix(kind, "compaction"), kind == "context_compaction":
		c.lacks = lacking(c.lacks, "what was said before: from here on the agent was shown a summary of it, which nobody can read")
		return nil
	}
	u := unit{raw: raw, place: place, at: o.Brief("timestamp"), lacks: c.lacks}
	c.lacks = nil
	if kind == "agent_message" {
		payload, u.left = fromAgent(item)
	}
	if err := c.part(&u, subject.ResponsesForm, payload, "an item"); err != nil {
		return c.bad(place, err)
	}
	if kind == "agent_message" {
		u.from(cmp.Or(item.Brief("author"), "another agent"))
	}
	if u.answers() {
		u.requested, u.call = c.model, item.Brief("id")
	}
	c.speaker(&u, item)
	return c.give(c.talk.add(u))
}

// fromAgent is what another agent of a team says to this one, as a message of a user, and what of it nobody can read.
func fromAgent(item *convo.Node) (message jsontext.Value, left []convo.Left) {
	parts := []any{}
	for _, part := range item.Get("content").List() {
		if text := part.Word("text"); text != "" {
			parts = append(parts, map[string]any{"type": "input_text", "text": text})
		} else {
			left = append(left, convo.Unreadable)
		}
	}
	return jsonOf(map[string]any{"type": "message", "role": "user", "content": parts}), left
}

// speaker says who said what stands as a user's. Newer files say it of each part of a message.
func (c *codex) speaker(u *unit, item *convo.Node) {
	if len(u.messages) == 0 {
		return
	}
	switch m := &u.messages[0]; {
	case m.Role == subject.System && c.base != "" && m.Text == c.base:
		c.talk.lacks = slices.DeleteFunc(c.talk.lacks, func(what string) bool { return strings.HasPrefix(what, noSystem) })
		return
	case m.Role != subject.User || m.Name != "":
		return
	}
	const whose = "whether a user or the program wrote what stands as the user's: "
	parts := item.Within("internal_chat_message_metadata_passthrough").Get("content_item_metadata").List()
	ofUser := func(part *convo.Node) bool { return part.Within("provenance").Word("type") == "user" }
	switch {
	case len(parts) > 0 && !slices.ContainsFunc(parts, ofUser):
		u.by(codexName)
	case c.called:
		u.from("the agent that called this one")
	case len(parts) == 0:
		u.lacks = lacking(u.lacks, whose+"older versions write settings and instructions there, too")
	case len(parts) != len(item.Get("content").List()) || slices.ContainsFunc(parts, func(part *convo.Node) bool { return !ofUser(part) }):
		u.lacks = lacking(u.lacks, whose+"the file says that a part of it is not the user's, and which one stands in the entry of the file")
	}
}

func (c *codex) end() error {
	if last := c.talk.last(); last != nil {
		last.lacks = lacking(last.lacks, c.lacks...)
	}
	return c.give(c.talk.end())
}
