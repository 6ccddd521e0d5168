package importing

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
)

// isClaudeAI recognises a conversation of Claude.ai's data export, conversations.json: {"uuid", "name", "created_at", "chat_messages"}, with messages {"uuid",
// "sender" (human or assistant), "text", "content" (blocks), "created_at", "attachments", "files"}. The vendor does not document the file. Its shape was learned from
// a schema and from types of programs that read exports of 2024 to 2025.
func isClaudeAI(o object) bool { return o.has("chat_messages", '[') }

func (r *reader) claudeAI(number int, place string, v jsontext.Value) error {
	o := objectOf(v)
	if o == nil || !isClaudeAI(o) {
		return r.bad(place, errors.New("expected a conversation with chat_messages"))
	}
	name := or(o.word("uuid"), r.label+"-"+strconv.Itoa(number))
	var units []unit
	for i, raw := range o.list("chat_messages") {
		at := place + "/chat_messages/" + strconv.Itoa(i)
		u, err := r.claudeMessage(at, raw)
		if err != nil {
			return r.bad(at, err)
		}
		u.requested = or(u.requested, o.word("model"))
		units = append(units, *u)
	}
	return r.exchanges(name, place, units)
}

func (r *reader) claudeMessage(place string, raw jsontext.Value) (*unit, error) {
	m := objectOf(raw)
	role := map[string]string{"human": "user", "assistant": "assistant"}[m.text("sender")]
	if role == "" {
		return nil, errors.New("the sender of a message is neither human nor assistant")
	}
	blocks := r.blocks(m)
	read, err := subject.ReadPart(r.Name+":"+place, subject.Anthropic, jsonOf([]any{map[string]any{"role": role, "content": blocks}}))
	if err != nil {
		return nil, err
	}
	return &unit{raw: raw, place: place, id: m.word("uuid"), messages: read.Messages, left: leftIn(read), at: m.word("created_at")}, nil
}

// blocks are the content of a message as Anthropic's Messages have it. Exports leave ids of calls out; a result is of the call before it.
func (r *reader) blocks(m object) []any {
	list := []any{}
	call := ""
	for i, raw := range m.list("content") {
		b := objectOf(raw)
		switch kind := b.text("type"); {
		case kind == "text" && strings.TrimSpace(b.text("text")) == "", kind == "token_budget", kind == "flag":
			continue // nothing is said in it
		case kind == "tool_use":
			call = or(b.word("id"), m.word("uuid")+"/"+strconv.Itoa(i))
			list = append(list, map[string]any{"type": kind, "id": call, "name": b["name"], "input": orNull(b["input"])})
			continue
		case kind == "tool_result":
			list = append(list, map[string]any{"type": kind, "tool_use_id": or(b.word("tool_use_id"), call), "content": orNull(b["content"]), "is_error": b.isTrue("is_error")})
			continue
		case kind == "voice_note":
			list = append(list, map[string]any{"type": "text", "text": b.text("text")})
			continue
		}
		list = append(list, raw)
	}
	if len(list) == 0 && m.text("text") != "" {
		list = append(list, map[string]any{"type": "text", "text": m.text("text")})
	}
	for _, raw := range m.list("attachments") {
		a := objectOf(raw)
		list = append(list, map[string]any{"type": "text", "text": "[attachment " + a.text("file_name") + "]\n" + a.text("extracted_content")})
	}
	for _, raw := range m.list("files") {
		list = append(list, map[string]any{"type": "file", "title": objectOf(raw).text("file_name")})
	}
	return list
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}
