package importing

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// A codex reads a rollout file of the Codex CLI, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl: lines {"timestamp", "type", "payload"}. A session_meta has the id
// of the session and the version of the program, a turn_context the model, a response_item an item of OpenAI's Responses, and an event_msg of the type token_count
// the counts of the answer before. The shape is that of the Rust types RolloutLine, RolloutItem and ResponseItem in https://github.com/openai/codex (codex-rs/protocol), of the versions
// 0.46 to 0.77; other events repeat what items say, and are passed over.
type codex struct {
	*reader
	talk  gathering
	model string
}

func newCodex(r *reader) *codex {
	return &codex{reader: r, talk: gathering{conversation: r.label}}
}

// isCodex recognises a line of a rollout file.
func isCodex(o object) bool {
	switch o.text("type") {
	case "session_meta", "response_item", "turn_context":
		return o.has("payload", '{') && o.has("timestamp", '"')
	}
	return false
}

func (c *codex) line(number int, o object, raw jsontext.Value) error {
	payload := o.within("payload")
	switch o.text("type") {
	case "session_meta":
		if id := first(payload, "id", "session_id"); id != "" && c.talk.count == 0 {
			c.talk.conversation = id
		}
	case "turn_context":
		c.model = or(payload.word("model"), c.model)
	case "event_msg":
		c.count(payload)
	case "response_item":
		return c.item(number, o, payload, raw)
	}
	return nil
}

// count takes the tokens of the answer before.
func (c *codex) count(event object) {
	if used := event.within("info"); event.text("type") == "token_count" && used.has("last_token_usage", '{') && c.talk.answered {
		c.talk.last().usage = used["last_token_usage"]
	}
}

func (c *codex) item(number int, o, item object, raw jsontext.Value) error {
	place := lineAt(number)
	if kind := item.text("type"); kind == "ghost_snapshot" || strings.HasPrefix(kind, "compaction") {
		return nil // of the program's own state
	}
	read, err := subject.ReadPart(c.Name+":"+place, subject.Responses, append(append([]byte{'['}, o["payload"]...), ']'))
	if err != nil {
		return c.bad(place, err)
	}
	u := unit{raw: raw, place: place, messages: read.Messages, left: leftIn(read), at: o.word("timestamp")}
	if u.answers() {
		u.requested, u.call = c.model, item.word("id")
	}
	return c.give(c.talk.add(u))
}

func (c *codex) end() error { return c.give(c.talk.end()) }
