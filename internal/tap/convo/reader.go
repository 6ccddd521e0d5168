package convo

import (
	"bytes"
	"slices"

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
	Strange func(kind string) // told of a block or item of a kind that is not known here, which is passed over; nil: it is a mistake, or is shown whole
	Odd     func(at *Node)    // told of another value that stands for a text; nil: nobody asks
	Mistake func(error) error // an item's error, which it may keep for later; nil: the first one ends the reading

	Role   string            // of a message that does not say who speaks; "": each must
	Calls  int               // of Gemini, calls so far: those without an id get a number
	called map[string]string // of Responses: the id of a call, by the id of its item
	err    error
}

// Err returns what is wrong with what was read since it was asked last: the first mistake, or nil.
func (r *Reader) Err() error {
	err := r.err
	r.err = nil
	return err
}

// Fail notes a mistake at a place.
func (r *Reader) Fail(at *Node, format string, args ...any) {
	if r.err == nil {
		r.err = at.Errorf(format, args...)
	}
}

// demand notes a mistake of a person, unless something is so. What was recorded is as it is.
func (r *Reader) demand(so bool, at *Node, format string, args ...any) {
	if !so && !r.Lenient {
		r.Fail(at, format, args...)
	}
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

func (r *Reader) passes(kind string) bool {
	if r.Strange != nil {
		r.Strange(kind)
	}
	return r.Strange != nil
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

// Each reads the items of a list, up to one with a mistake.
func (r *Reader) Each(list *Node, what Thing, read func(*Node)) {
	for _, item := range r.elements(list, "an array") {
		if item.Kind == '{' {
			read(item)
		} else {
			r.Fail(item, "expected %s, found %s; for example %s", what.Name, item.KindName(), what.Example)
		}
		if r.err != nil && r.Mistake != nil {
			r.err = r.Mistake(r.err)
		}
		if r.err != nil {
			return
		}
	}
}

// elements returns the elements of an optional array. Google's own documents write a single one without it.
func (r *Reader) elements(list *Node, what string) []*Node {
	switch {
	case list.Absent():
		return nil
	case list.Kind == '[':
		return r.members(list)
	case list.Kind == '{' && r.Lenient:
		return []*Node{list}
	}
	r.Fail(list, "expected %s, found %s", what, list.KindName())
	return nil
}

// members are the elements of an array, without what is null where it was recorded.
func (r *Reader) members(list *Node) []*Node {
	if !r.Lenient {
		return list.Members
	}
	return slices.DeleteFunc(slices.Clone(list.Members), (*Node).Absent)
}

// Objects are the elements of an optional array of objects.
func (r *Reader) Objects(list *Node, what string) []*Node {
	elements := r.elements(list, "an array")
	for _, item := range elements {
		if item.Kind != '{' {
			r.Fail(item, "expected %s (an object), found %s", what, item.KindName())
			return nil
		}
	}
	return elements
}

// Str reads the first of several optional texts that is not empty. Servers beside the vendors' own write numbers as ids, and more.
func (r *Reader) Str(n *Node, names ...string) (text string) {
	for _, name := range names {
		switch m := n.Get(name); {
		case m.Absent():
			continue
		case m.Kind == '"':
			text = m.Text
		case r.Lenient:
			if text = TextOf(m.Raw()); r.Odd != nil {
				r.Odd(m)
			}
		default:
			r.Fail(m, "expected a string, found %s", m.KindName())
		}
		if text != "" {
			break
		}
	}
	return text
}

// Texts reads an optional array of texts.
func (r *Reader) Texts(list *Node) {
	for _, item := range r.elements(list, "an array of strings") {
		if item.Kind != '"' {
			r.Fail(item, "expected a string, found %s", item.KindName())
		}
	}
}

// Word is a member that is a text; "" for everything else.
func (n *Node) Word(name string) string {
	if m := n.Get(name); m != nil && m.Kind == '"' {
		return m.Text
	}
	return ""
}

// SpokenBy reads the role of a message, as it is written.
func (r *Reader) SpokenBy(n *Node) string {
	at := n.Get("role")
	if r.Answer || at.Absent() && r.Role != "" {
		return r.Role
	}
	if at.Absent() {
		r.demand(false, n, "a message without a role: expected system, developer, user, assistant or tool, for example \"role\": \"user\"")
		return ""
	}
	role := r.Str(n, "role")
	r.demand(RoleOf(role) != "", at, "unknown role %s: expected system, developer, user, assistant or tool (in an A2A task, user or agent), for example \"role\": \"user\"", Quote(role))
	return role
}

// Call makes a call of what stands at a node. Its input is a text, or a value.
func (r *Reader) Call(n *Node, id, name string, input *Node) ChatToolCall {
	r.demand(name != "", n, "a tool call without a name: expected, for example, \"name\": \"get_order\"")
	return Function(id, name, Plain(input))
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
	return (&tokens{Decoder: jsontext.NewDecoder(bytes.NewBuffer(v), lenient), doc: &Document{raw: v, lenient: true}}).read(nil, "")
}
