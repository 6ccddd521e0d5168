package importing

import (
	"errors"
	"fmt"
	"jurat/internal/subject/forms"
	"slices"
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
	messages := o.list("chat_messages")
	path, err := claudeBranch(messages, o.word("current_leaf_message_uuid"))
	if err != nil {
		return r.bad(place, err)
	}
	var units []unit
	before := ""
	for _, i := range path {
		at := place + "/chat_messages/" + strconv.Itoa(i)
		u, err := r.claudeMessage(at, messages[i])
		if err != nil {
			return r.bad(at, err)
		}
		switch parent := objectOf(messages[i]).word("parent_message_uuid"); {
		case len(units) == 0 && !isRoot(parent):
			u.lacks = lacking(u.lacks, "what was said before it: it names a message before it that is not there")
		case before != "" && parent != "" && parent != before:
			u.lacks = lacking(u.lacks, wentBack)
		}
		u.requested, before = or(u.requested, o.word("model")), u.id
		units = append(units, *u)
	}
	return r.exchanges(name, place, units)
}

// isRoot reports whether what stands as a parent says that there is none: nothing, zeros, or 00000000-0000-4000-8000-000000000000.
func isRoot(parent string) bool {
	return strings.Trim(parent, "0-") == "" || parent == "00000000-0000-4000-8000-000000000000"
}

// claudeBranch lists the messages of the branch that ends at the last one, by their places; of an export that does not name it, all.
func claudeBranch(messages []jsontext.Value, last string) (path []int, err error) {
	places, parents := map[string]int{}, make([]string, len(messages))
	for i, raw := range messages {
		m := objectOf(raw)
		id := m.word("uuid")
		if before, twice := places[id]; twice && id != "" {
			return nil, fmt.Errorf("its messages %d and %d have the same uuid, %q: which of them was said is not known", before, i, cut(id, 60))
		}
		if id != "" {
			places[id] = i
		}
		parents[i] = m.word("parent_message_uuid")
		path = append(path, i)
	}
	if last == "" {
		return path, nil
	}
	at, there := places[last]
	if !there {
		return nil, errors.New("the message that current_leaf_message_uuid names is not there: which branch is the conversation is not known")
	}
	for path = nil; there; at, there = places[parents[at]] {
		if len(path) == len(messages) {
			return nil, errors.New("its messages are each other's parents, in a circle")
		}
		path = append(path, at)
	}
	slices.Reverse(path)
	return path, nil
}

func (r *reader) claudeMessage(place string, raw jsontext.Value) (*unit, error) {
	m := objectOf(raw)
	role := map[string]string{"human": "user", "assistant": "assistant"}[m.text("sender")]
	if role == "" {
		return nil, errors.New("the sender of a message is neither human nor assistant")
	}
	blocks, lacks := r.blocks(m)
	if m.isTrue("truncated") {
		lacks = lacking(lacks, "the rest of a message, which was broken off")
	}
	read, err := subject.ReadPart(r.Name+":"+place, forms.Anthropic, jsonOf([]any{map[string]any{"role": role, "content": blocks}}))
	if err != nil {
		return nil, err
	}
	return &unit{raw: raw, place: place, id: m.word("uuid"), messages: read.Messages, left: leftIn(read), at: m.word("created_at"), lacks: lacks}, nil
}

// blocks are the content of a message as Anthropic's Messages have it. Older exports leave ids of calls out: a result is of the first call of
// its name that has none.
func (r *reader) blocks(m object) (list []any, lacks []string) {
	list = []any{}
	var calls openCalls
	for i, raw := range m.list("content") {
		b := objectOf(raw)
		switch kind, name := b.text("type"), b.text("name"); {
		case kind == "text" && strings.TrimSpace(b.text("text")) == "", kind == "token_budget", kind == "flag":
			continue // nothing is said in it
		case kind == "tool_use":
			id := or(b.word("id"), m.word("uuid")+"/"+strconv.Itoa(i))
			calls.add(name, id)
			list = append(list, map[string]any{"type": kind, "id": id, "name": b["name"], "input": orNull(b["input"])})
		case kind == "tool_result":
			id := calls.answer(name, b.word("tool_use_id"))
			list = append(list, map[string]any{"type": kind, "tool_use_id": id, "content": orNull(b["content"]), "is_error": b.isTrue("is_error")})
		case kind == "voice_note":
			list = append(list, map[string]any{"type": "text", "text": b.text("text")})
		case !forms.IsBlock(kind):
			lacks = lacking(lacks, unknownBlock+plain(kind))
		default:
			list = append(list, raw)
		}
	}
	if len(list) == 0 && m.text("text") != "" {
		list = append(list, map[string]any{"type": "text", "text": m.text("text")})
	}
	for _, raw := range m.list("attachments") {
		a := objectOf(raw)
		list = append(list, map[string]any{"type": "text", "text": "[attachment " + a.text("file_name") + "]\n" + a.text("extracted_content")})
	}
	files := m.list("files")
	if len(files) == 0 {
		files = m.list("files_v2")
	}
	for _, raw := range files {
		list = append(list, map[string]any{"type": "file", "title": objectOf(raw).text("file_name")})
	}
	return list, lacks
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

// openCalls are the calls of one message: the ids of those of each name that may have no result yet, in their order.
type openCalls struct {
	named  map[string][]string
	taken  map[string]bool // ids that have one
	newest string
}

func (o *openCalls) add(name, id string) {
	if o.named == nil {
		o.named, o.taken = map[string][]string{}, map[string]bool{}
	}
	o.named[name], o.newest = append(o.named[name], id), id
}

// answer returns the id of the call that a result is of.
func (o *openCalls) answer(name, id string) string {
	list := o.named[name]
	for id == "" && len(list) > 0 {
		if first := list[0]; !o.taken[first] {
			id = first
		}
		list = list[1:]
		o.named[name] = list
	}
	if id = or(id, o.newest); o.taken != nil {
		o.taken[id] = true
	}
	return id
}
