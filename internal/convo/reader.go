package convo

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// A Reader reads the messages of one conversation, in any vendor's form. There is one reading of each form, with two policies. What a person brings is read
// strictly: an error of type *Error names the place, what was found and what was expected. What was recorded is read leniently: the last of two members
// counts, another value stands for a text, and what is of an unknown kind is shown whole; only what has no content of any form is an error.
type Reader struct {
	Say     func(Message, *Node) // takes each message, and where it stands
	Lenient bool
	Answer  bool // a model's answer is read, of which a part may be missing

	Left    func(Left)        // told of what is left out; nil: nobody asks
	Mistake func(error) error // an item's error, which it may keep for later; nil: the first one ends the reading

	Role   string            // of a message that does not say who speaks; "": each must
	Calls  int               // of Gemini, calls so far: those without an id get a number
	called map[string]string // of Responses: the id of a call, by the id of its item
}

// A Left is a kind of what is left out.
type Left string

// What is left out of the messages.
const (
	// Reasoning is the inner reasoning of a vendor's model. It is not what the agent said.
	Reasoning Left = "reasoning"
	// Unreadable are images, sounds and files. In their place stands what they are.
	Unreadable Left = "unreadable"
	// Elsewhere is context that the log names, and does not have.
	Elsewhere Left = "elsewhere"
	// Judged are scores and verdicts of an evaluation. They are no evidence of what the agent did.
	Judged Left = "judged"
	// Alternatives are answers that the agent did not give.
	Alternatives Left = "alternatives"
)

// leftOut says in English what each kind is.
var leftOut = map[Left]string{
	Reasoning:    "inner reasoning of a model, which is not what the agent said",
	Unreadable:   "images, sounds or files, which no juror can read",
	Elsewhere:    "references to what is not in the log",
	Judged:       "scores and results of an evaluation, which are no evidence",
	Alternatives: "alternative answers",
}

// InWords says in English what is left out.
func (l Left) InWords() string { return leftOut[l] }

func (r *Reader) leave(kind Left) {
	if r.Left != nil {
		r.Left(kind)
	}
}

// unread is a piece that no juror can read: what it is stands in its place, and its name.
func (r *Reader) unread(p Piece, kind, name string) Piece {
	if p.Text == nil {
		r.leave(Unreadable)
	}
	return p.as(kind, name)
}

func (r *Reader) turn(role string) *Turn { return &Turn{Role: role, Say: r.Say} }

// A Thing is what an item of a list must be.
type Thing struct{ Name, Example string }

// The items of most lists.
var (
	AMessage = Thing{"a message (an object)", `{"role": "user", "content": "Hello"}`}
	anItem   = Thing{"an item (an object)", `{"type": "message", "role": "user", "content": "Hello"}`}
	aContent = Thing{"a content {role, parts}", `{"role": "user", "parts": [{"text": "Hello"}]}`}
)

// Each reads the items of a list.
func (r *Reader) Each(list *Node, what Thing, read func(*Node) error) error {
	if list.Absent() {
		return nil
	}
	items := list.Members
	if r.Lenient && list.Kind == '{' { // as Google's own documents write one item
		items = []*Node{list}
	} else if list.Kind != '[' {
		return list.Errorf("expected an array, found %s", list.KindName())
	}
	for _, item := range items {
		err := error(nil)
		if item.Kind != '{' {
			err = item.Errorf("expected %s, found %s; for example %s", what.Name, item.KindName(), what.Example)
		} else {
			err = read(item)
		}
		if err != nil && r.Mistake != nil {
			err = r.Mistake(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// EachObject reads each element of an optional array of objects.
func EachObject(list *Node, what string, read func(*Node) error) error {
	if list.Absent() {
		return nil
	}
	if list.Kind != '[' {
		return list.Errorf("expected an array, found %s", list.KindName())
	}
	for _, item := range list.Members {
		if item.Kind != '{' {
			return item.Errorf("expected %s (an object), found %s", what, item.KindName())
		}
		if err := read(item); err != nil {
			return err
		}
	}
	return nil
}

// str reads an optional text. Servers beside the vendors' own write numbers as ids, and more.
func (r *Reader) str(n *Node, name string) (string, error) {
	m := n.Get(name)
	if !r.Lenient || m.Absent() || m.Kind == '"' {
		return n.Str(name)
	}
	return TextOf(m.Raw()), nil
}

// first reads the first of several optional texts that is not empty.
func (r *Reader) first(n *Node, names ...string) (string, error) {
	for _, name := range names {
		if text, err := r.str(n, name); err != nil || text != "" {
			return text, err
		}
	}
	return "", nil
}

// Word is a member that is a text; "" for everything else.
func (n *Node) Word(name string) string {
	if m := n.Get(name); m != nil && m.Kind == '"' {
		return m.Text
	}
	return ""
}

// ReadRole reads the role of a message, as it is written.
func (r *Reader) ReadRole(n *Node) (string, error) {
	if r.Answer {
		return r.Role, nil
	}
	if r.Lenient {
		return r.str(n, "role")
	}
	at := n.Get("role")
	if at.Absent() && r.Role != "" {
		return r.Role, nil
	}
	if at.Absent() {
		return "", n.Errorf("a message without a role: expected system, developer, user, assistant or tool, for example \"role\": \"user\"")
	}
	given, err := n.Str("role")
	if err == nil && RoleOf(given) == "" {
		err = at.Errorf("unknown role %s: expected system, developer, user, assistant or tool (in an A2A task, user or agent), for example \"role\": \"user\"", Quote(given))
	}
	return given, err
}

// NewCall makes a call of what stands at a node. Its input is a text, or a value.
func (r *Reader) NewCall(n *Node, id, name string, input *Node) (ChatToolCall, error) {
	if name == "" && !r.Lenient {
		return ChatToolCall{}, n.Errorf("a tool call without a name: expected, for example, \"name\": \"get_order\"")
	}
	return Function(id, name, Plain(input)), nil
}

// Plain is a text as it is, and any other value in canonical form.
func Plain(n *Node) string {
	switch {
	case n.Absent():
		return ""
	case n.Kind == '"':
		return n.Text
	}
	return TextOf(n.Raw())
}

// ReadLenient returns the root of a value as most libraries read it: the last of two members counts, and U+FFFD stands for a broken character.
func ReadLenient(v jsontext.Value) (*Node, error) {
	d := &Document{raw: v, lenient: true}
	return (&tokens{jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), d, 0}).read(nil, "")
}
