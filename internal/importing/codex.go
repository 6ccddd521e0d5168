package importing

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
	"jurat/internal/subject"
)

// A codex reads a rollout file of the Codex CLI, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl: lines {"timestamp", "type", "payload"}. The first session_meta has
// the id of the session and the version of the program, a turn_context the model, a response_item an item of OpenAI's Responses, and an event_msg of the type
// token_count, or a token_usage_record, the counts of the answer before. The shape is that of the Rust types RolloutLine, RolloutItem and ResponseItem in
// https://github.com/openai/codex (codex-rs/protocol), of the versions 0.46 to 0.77, and of files that 0.171 wrote; other events repeat what items say, and are passed over.
//
// Older files, to September 2025, have a first line {"id", "timestamp", "instructions"} and then the items themselves; those of the first program, to June 2025, are one document {"session", "items"}.
type codex struct {
	*reader
	talk   gathering
	model  string
	named  bool     // the session
	base   string   // the system prompt, if the first line has it
	lacks  []string // of the next item
	called bool     // another agent began the session
}

func newCodex(r *reader) *codex {
	return &codex{reader: r, talk: gathering{conversation: or(r.header.scope, r.label), lacks: []string{noSystem}}}
}

// codexName is how messages name the program.
const codexName = "Codex"

// isCodex recognises a line of a rollout file.
func isCodex(o object) bool {
	switch o.Word("type") {
	case "session_meta", "response_item", "turn_context":
		return o.Has("payload", '{') && o.Has("timestamp", '"')
	}
	return isOldCodex(o)
}

// isOldCodex recognises the first line of an older file.
func isOldCodex(o object) bool {
	return o.Has("id", '"') && o.Has("timestamp", '"') && o["instructions"] != nil && o["type"] == nil
}

func (c *codex) line(place string, o object, raw jsontext.Value) error {
	payload := o.Within("payload")
	switch kind := o.Word("type"); {
	case kind == "session_meta":
		c.session(payload)
	case kind == "turn_context":
		c.model = or(payload.Brief("model"), c.model)
	case kind == "event_msg":
		c.event(payload)
	case kind == "token_usage_record":
		c.counted(payload.Brief("response_id"), payload["usage"])
	case kind == "compacted":
		c.lacks = lacking(c.lacks, "what was said before: from here on the agent was shown a summary of it, which stays in the file ("+place+")")
	case kind == "response_item":
		return c.item(place, o, payload, o["payload"], raw)
	case isOldCodex(o):
		c.session(o)
	case payload == nil && kind != "":
		return c.item(place, o, o, raw, raw)
	}
	return nil
}

// session takes what a file says of its session. A session that goes on from another one has the first line of that one, too, and then what was said there.
func (c *codex) session(meta object) {
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
	c.called = c.called || !c.named && meta.Within("source")["subagent"] != nil
	c.named = true
}

// event takes what an event says of the items before it, or of the next.
func (c *codex) event(event object) {
	last := c.talk.last()
	switch event.Word("type") {
	case "token_count":
		if used := event.Within("info"); used.Has("last_token_usage", '{') && c.talk.answered {
			last.usage = used["last_token_usage"]
		}
	case "thread_rolled_back":
		c.lacks = lacking(c.lacks, "that all before it was shown to the agent: "+or(plain(event.Brief("num_turns")), "some")+" turns before it were taken back")
	case "turn_aborted":
		if last != nil {
			last.lacks = lacking(last.lacks, "the rest of the turn, which was broken off: "+or(plain(event.Brief("reason")), "the file does not say why"))
		}
	case "error":
		if last != nil && !c.talk.answered {
			last.failed = or(event.Brief("message"), "the file says that there was an error")
			c.talk.answered = true
		}
	}
}

// counted gives what one answer of a model used to its items.
func (c *codex) counted(answer string, usage jsontext.Value) {
	for i := len(c.talk.open) - 1; i >= 0 && c.talk.answered; i-- {
		u := &c.talk.open[i]
		if u.usage != nil || len(u.messages) > 0 && !u.answers() {
			return
		}
		u.call = or(answer, u.call)
		if i == len(c.talk.open)-1 && usage.Kind() == '{' {
			u.usage = usage
		}
	}
}

// item reads an item of a conversation. One of a kind that nobody here knows is kept, and named.
func (c *codex) item(place string, o, item object, payload, raw jsontext.Value) error {
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
		u.from(or(item.Brief("author"), "another agent"))
	}
	if u.answers() {
		u.requested, u.call = c.model, item.Brief("id")
	}
	c.speaker(&u, item)
	return c.give(c.talk.add(u))
}

// fromAgent is what another agent of a team says to this one, as a message of a user, and what of it nobody can read.
func fromAgent(item object) (message jsontext.Value, left []subject.Left) {
	parts := []any{}
	for _, raw := range convo.Values(item["content"]) {
		if text := convo.ObjectOf(raw).Word("text"); text != "" {
			parts = append(parts, map[string]any{"type": "input_text", "text": text})
		} else {
			left = append(left, subject.Unreadable)
		}
	}
	return jsonOf(map[string]any{"type": "message", "role": "user", "content": parts}), left
}

// speaker says who said what stands as a user's. Newer files say it of each part of a message.
func (c *codex) speaker(u *unit, item object) {
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
	parts := convo.Values(item.Within("internal_chat_message_metadata_passthrough")["content_item_metadata"])
	ofUser := func(part jsontext.Value) bool {
		return convo.ObjectOf(part).Within("provenance").Word("type") == "user"
	}
	switch {
	case len(parts) > 0 && !slices.ContainsFunc(parts, ofUser):
		u.by(codexName)
	case c.called:
		u.from("the agent that called this one")
	case len(parts) == 0:
		u.lacks = lacking(u.lacks, whose+"older versions write settings and instructions there, too")
	case len(parts) != len(convo.Values(item["content"])) || slices.ContainsFunc(parts, func(part jsontext.Value) bool { return !ofUser(part) }):
		u.lacks = lacking(u.lacks, whose+"the file says that a part of it is not the user's, and which one stands in the entry of the file")
	}
}

func (c *codex) end() error {
	if last := c.talk.last(); last != nil {
		last.lacks = lacking(last.lacks, c.lacks...)
	}
	return c.give(c.talk.end())
}
