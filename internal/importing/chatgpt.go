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

// isChatGPT recognises a conversation of ChatGPT's data export, conversations.json: {"id" or "conversation_id", "title", "mapping", "current_node"}. A mapping has
// nodes {"id", "parent", "children", "message"} by id, and current_node is the last message of the conversation as it stands. The vendor does not document the
// file. Its shape was learned from notes and types of programs that read exports of 2023 to 2025: message {id, author {role, name}, create_time, content {content_type, parts or text}, recipient, metadata {model_slug}}.
func isChatGPT(o object) bool { return o.has("mapping", '{') }

// chatGPT reads a conversation: the messages from the first to current_node. Other branches are answers and questions that were given up.
func (r *reader) chatGPT(number int, place string, v jsontext.Value) error {
	o := objectOf(v)
	if o == nil || !isChatGPT(o) {
		return r.bad(place, errors.New("expected a conversation with a mapping"))
	}
	nodes := o.within("mapping")
	if len(nodes) == 0 {
		return nil // a conversation that was never begun
	}
	path, err := branch(nodes, o.text("current_node"))
	if err != nil {
		return r.bad(place, err)
	}
	name := or(first(o, "conversation_id", "id"), r.label+"-"+strconv.Itoa(number))
	t := tree{reader: r, place: place, calls: map[string]string{}}
	var units []unit
	for _, id := range path {
		u, err := t.message(objectOf(nodes[id]))
		if err != nil {
			return r.bad(place+"/mapping/"+cut(id, 200), err)
		}
		if u != nil {
			units = append(units, *u)
		}
	}
	return r.exchanges(name, place, units)
}

// branch lists the nodes from the first to the last of a conversation.
func branch(nodes object, last string) ([]string, error) {
	if last == "" {
		return nil, errors.New("there is no current_node: which branch is the conversation is not known")
	}
	var path []string
	for id := last; id != ""; {
		v, there := nodes[id]
		node := objectOf(v)
		switch {
		case !there:
			return nil, fmt.Errorf("the node %q is named and not there", cut(id, 60))
		case node == nil:
			return nil, fmt.Errorf("the node %q is no object", cut(id, 60))
		case len(path) == len(nodes):
			return nil, errors.New("its nodes are each other's parents, in a circle")
		}
		path = append(path, id)
		id = node.text("parent")
	}
	slices.Reverse(path)
	return path, nil
}

// A tree reads the messages of one conversation.
type tree struct {
	*reader
	place string
	calls map[string]string // by tool: the message that called it last
}

// message reads the message of a node; nil: there is none that says anything.
func (t *tree) message(node object) (*unit, error) {
	m := node.within("message")
	if m == nil {
		return nil, nil
	}
	id, author := m.word("id"), m.within("author")
	role, to := author.text("role"), m.text("recipient")
	content, metadata := m.within("content"), m.within("metadata")
	said, left := contentOf(content)
	if role == "assistant" && m.text("channel") == "analysis" && (to == "" || to == "all") {
		said, left = "", []subject.Left{subject.Reasoning}
	}
	u := &unit{raw: node["message"], id: id, place: t.place + "/mapping/" + cut(id, 200), at: m.word("create_time"), left: left}
	u.beside(m, metadata)
	as := chatMessage{Role: subject.Role(role), Content: said}
	switch kind := content.text("content_type"); {
	case kind == "model_editable_context": // stands as the assistant's
		as.Role, as.Name = subject.System, chatGPTMemory
	case role == "assistant":
		u.requested = metadata.word("model_slug")
		if to != "" && to != "all" {
			as.Content, as.ToolCalls = "", []chatCall{{id, "function", chatFunction{to, said}}}
			t.calls[to], t.calls[toolOf(to)] = id, id
		}
	case role == "tool":
		as.Name = author.text("name")
		as.ToolCallID = or(t.calls[as.Name], t.calls[toolOf(as.Name)])
		as.IsError = kind == "system_error" || strings.HasPrefix(metadata.within("aggregate_result").text("status"), "failed")
	case role != "" && role != "user" && role != "system":
		u.lacks = lacking(u.lacks, "what a participant of a kind says that is not known here: "+plain(role))
		return u, nil
	}
	if said == "" && as.ToolCalls == nil {
		if left == nil && u.lacks == nil {
			return nil, nil // a place in the tree, without words
		}
		return u, nil
	}
	read, err := subject.ReadPart(t.Name+":"+u.place, forms.Chat, jsonOf([]chatMessage{as}))
	if err != nil {
		return nil, err
	}
	u.messages = read.Messages
	for i := range u.messages {
		u.messages[i].Failed = as.IsError
	}
	return u, nil
}

// chatGPTMemory names what ChatGPT remembers of its user, and is given as context.
const chatGPTMemory = "ChatGPT's memory"

// beside names what a message has beside its words.
func (u *unit) beside(m, metadata object) {
	for range metadata.list("attachments") {
		u.left = append(u.left, subject.Unreadable)
		u.lacks = lacking(u.lacks, "what is in a file that was attached") // not its name, which could not be erased here
	}
	if end := metadata.within("finish_details").text("type"); m.text("status") == "in_progress" || end == "interrupted" || end == "max_tokens" {
		u.lacks = lacking(u.lacks, "the rest of a message, which was broken off")
	}
}

// toolOf is the tool of a function: dalle of dalle.text2im.
func toolOf(name string) string {
	tool, _, _ := strings.Cut(name, ".")
	return tool
}

// contentOf reads the content of a message, and what of it no juror reads.
func contentOf(content object) (text string, left []subject.Left) {
	switch kind := content.text("content_type"); kind {
	case "thoughts", "reasoning_recap":
		return "", []subject.Left{subject.Reasoning}
	case "model_editable_context":
		return content.text("model_set_context"), nil
	case "user_editable_context":
		return strings.TrimSpace(content.text("user_profile") + "\n" + content.text("user_instructions")), nil
	}
	if text := or(content.text("text"), content.text("result")); text != "" || content["parts"] == nil {
		if text == "" && content["text"] == nil {
			left = []subject.Left{subject.Unreadable} // of a kind that is not known here
		}
		return text, left
	}
	var texts []string
	for _, part := range content.list("parts") {
		if part.Kind() == '"' {
			texts = append(texts, object{"": part}.text(""))
			continue
		}
		o := objectOf(part)
		if kind := o.text("content_type"); strings.HasSuffix(kind, "_pointer") || o["text"] == nil {
			texts, left = append(texts, "["+or(cut(kind, 60), "part")+"]"), []subject.Left{subject.Unreadable}
			continue
		}
		texts = append(texts, o.text("text"))
	}
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n"), left
}
