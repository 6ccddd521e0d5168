// Package convo has the formats of conversations that vendors publish: answers, errors and streams of OpenAI (Responses, and Chat
// Completions, which many other servers speak), Anthropic (Messages) and Google (Gemini generateContent), tasks of A2A, and the messages in all of them.
//
// It sends nothing and knows no key. Package llm asks models; [Reader] reads messages, whoever sent, recorded or brought them.
//
// # Each format is read once
//
// What a person brings and what a recorder saw of the same conversation are the same messages: one reader of each format reads both, from a tree of values
// that knows its positions. They differ in what becomes of a mistake. In a transcript it is an error that names the place, and in recorded bytes what can be
// read is read. Texts of the model that stand side by side in one message are one text, for a vendor's stream sends them in pieces. In the place of a picture
// or a file stands what it is, and its name.
package convo

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
)

// A Message is one message of a conversation, in the form of a chat. Its members are in canonical order, so that most need not be put into it.
type Message struct {
	Content      Pieces         `json:"content"`
	FunctionCall *ChatFunction  `json:"function_call,omitzero"`
	IsError      bool           `json:"is_error,omitzero"` // of a tool's result
	Name         string         `json:"name,omitzero"`     // of who speaks or, of a tool's result, of the tool
	Refusal      string         `json:"refusal,omitzero"`
	Role         string         `json:"role"` // as it is written: see RoleOf
	ToolCallID   string         `json:"tool_call_id,omitzero"`
	ToolCalls    []ChatToolCall `json:"tool_calls,omitzero"`

	// Of a tool's result, what no chat says:
	Beside    bool   `json:"-"` // it stands in one piece with its call, which is the last one before it
	AnswersTo string `json:"-"` // who made the call, Assistant or User; "": unknown
}

// The roles.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool"
)

var roles = map[string]string{
	"system": System, "developer": System,
	"user": User, "ROLE_USER": User, "human": User,
	"assistant": Assistant, "agent": Assistant, "ROLE_AGENT": Assistant, "model": Assistant,
	"tool": Tool, "function": Tool,
}

// RoleOf returns the role that a word stands for; "" if it is unknown.
func RoleOf(word string) string { return roles[word] }

// Function makes a call of a function.
func Function(id, name, arguments string) ChatToolCall {
	return ChatToolCall{ID: id, Type: "function", Function: ChatFunction{Name: name, Arguments: arguments}}
}

// Said returns the name and the arguments of a call.
func (c *ChatToolCall) Said() (name, arguments string) {
	if c.Custom.Name != "" {
		return c.Custom.Name, c.Custom.Input
	}
	return c.Function.Name, c.Function.Arguments
}

// Numbered begins the ids of calls to which nobody gave one: no vendor's ids have it.
const Numbered = "#"

// Pieces are the content of a message.
type Pieces []Piece

// A Piece is a text, or stands for something that no juror reads.
type Piece struct {
	Type        string  `json:"type"` // text, image_url, input_audio, video_url or file
	Text        *string `json:"text,omitzero"`
	*Attachment `json:",embed"`
}

// An Attachment describes a picture, a sound or a file.
type Attachment struct {
	URL       string          `json:"url,omitzero"`     // where the provider fetched it
	FileID    string          `json:"file_id,omitzero"` // by which the provider knows it
	Name      string          `json:"name,omitzero"`
	MediaType string          `json:"media_type,omitzero"`
	Digest    evidence.Digest `json:"digest,omitzero"` // of the bytes that were sent
	Bytes     int             `json:"bytes,omitzero"`

	shown string // in its place; "": its type
}

// Words is a piece that is a text.
func Words(text string) Piece { return Piece{Type: "text", Text: &text} }

// Shown is the text of a piece, or what stands in its place.
func (p Piece) Shown() string {
	switch {
	case p.Text != nil:
		return *p.Text
	case p.Attachment != nil && p.shown != "":
		return "[" + p.shown + "]"
	}
	return "[" + p.Type + "]"
}

// as says what stands in the place of a piece: what it is, and its name.
func (p Piece) as(kind, name string) Piece {
	if p.Attachment != nil {
		p.shown = strings.TrimSpace(kind + " " + strings.TrimSpace(name))
	}
	return p
}

// MarshalJSONTo writes a single text as a string, and everything else as parts.
func (c Pieces) MarshalJSONTo(e *jsontext.Encoder) error {
	switch {
	case len(c) == 0:
		return e.WriteToken(jsontext.String(""))
	case len(c) == 1 && c[0].Text != nil:
		return e.WriteToken(jsontext.String(*c[0].Text))
	}
	return json.MarshalEncode(e, []Piece(c))
}

// Shown is the text of a content, with a line for each piece.
func (c Pieces) Shown() string {
	texts := make([]string, len(c))
	for i, p := range c {
		texts[i] = p.Shown()
	}
	return strings.Join(texts, "\n")
}

// Joined joins texts that stand side by side: a model's answer comes in pieces, and a program may send them back as one.
func (c Pieces) Joined() Pieces {
	var list Pieces
	var texts []string
	end := func() {
		if texts != nil {
			list, texts = append(list, Words(strings.Join(texts, ""))), nil
		}
	}
	for _, p := range c {
		if p.Text != nil {
			texts = append(texts, *p.Text)
			continue
		}
		end()
		list = append(list, p)
	}
	end()
	return list
}

// Spoken leaves out messages with nothing in them.
func Spoken(said []Message) []Message {
	return slices.DeleteFunc(said, func(m Message) bool {
		return len(m.Content) == 0 && m.Refusal == "" && len(m.ToolCalls) == 0 && m.FunctionCall == nil && m.ToolCallID == ""
	})
}

// Inline is a picture, a sound or a file whose base64 stands in the conversation.
func Inline(kind, name, mediaType, data string) Piece {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		raw = []byte(data)
	}
	return Piece{Type: kind, Attachment: &Attachment{Name: name, MediaType: Short(mediaType), Digest: evidence.DigestOf(raw), Bytes: len(raw)}}
}

// Linked is a picture or a file that has an address: a data URL has its bytes, of any other the provider fetches them.
func Linked(kind, name, address string) Piece {
	if data, is := strings.CutPrefix(address, "data:"); is {
		head, data, _ := strings.Cut(data, ",")
		return Inline(kind, name, strings.TrimSuffix(head, ";base64"), data)
	}
	return Piece{Type: kind, Attachment: &Attachment{Name: name, URL: observed.Address(address)}}
}

// Kept is a file that the provider has.
func Kept(kind, name, id string) Piece {
	return Piece{Type: kind, Attachment: &Attachment{Name: name, FileID: Short(id)}}
}

// Unknown is a piece of a kind that is not known here. It is shown whole.
func Unknown(kind string, v jsontext.Value) Piece { return Words("[" + kind + "] " + TextOf(v)) }

// KindOf returns the kind of a piece for a media type, or for its first half alone.
func KindOf(mediaType string) string {
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image":
		return "image_url"
	case "audio":
		return "input_audio"
	case "video":
		return "video_url"
	}
	return "file"
}

// TextOf is a value in canonical form or, if it has none, as it stands: the arguments of a call, or what a tool returned.
func TextOf(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	if form, err := evidence.Canonical(v); err == nil {
		return string(form)
	}
	return strings.ToValidUTF8(string(v), "\ufffd")
}

const mostText = 2 << 10

// Short cuts a text that somebody else may have written.
func Short(text string) string {
	if len(text) > mostText {
		text = text[:mostText] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// A Turn collects what one speaker says and calls, until the result of a tool interrupts it. Vendors other than OpenAI put results of tools into a turn; a
// chat has a message for each.
type Turn struct {
	Role, Name string
	Say        func(Message, *Node) // takes each message, and where it begins
	Apart      bool                 // texts of the model that stand side by side are no pieces of one

	open  bool
	at    *Node
	said  Pieces
	calls []ChatToolCall
}

func (t *Turn) begin(at *Node) {
	if !t.open {
		t.open, t.at = true, at
	}
}

// Add adds a piece of what is said.
func (t *Turn) Add(at *Node, p Piece) {
	t.begin(at)
	t.said = append(t.said, p)
}

// Call adds a call.
func (t *Turn) Call(at *Node, c ChatToolCall) {
	t.begin(at)
	t.calls = append(t.calls, c)
}

// Result ends the message, and adds what a tool returned.
func (t *Turn) Result(at *Node, m Message) {
	t.End()
	m.Role = Tool
	t.Say(m, at)
}

// End ends the message, if there is something in it.
func (t *Turn) End() {
	if t.open {
		if RoleOf(t.Role) == Assistant && !t.Apart {
			t.said = t.said.Joined()
		}
		t.Say(Message{Role: t.Role, Name: t.Name, Content: t.said, ToolCalls: t.calls}, t.at)
	}
	t.open, t.at, t.said, t.calls = false, nil, nil, nil
}

func number(given string, calls *int) string {
	if *calls++; given != "" {
		return given
	}
	return fmt.Sprintf(Numbered+"%d", *calls)
}
