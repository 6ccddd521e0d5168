// Package convo has the formats of conversations that vendors publish: bodies of requests, answers, errors and streams of OpenAI (Responses, and Chat
// Completions, which many other servers speak), Anthropic (Messages) and Google (Gemini generateContent), tasks of A2A, and the messages in all of them.
//
// It sends nothing and knows no key. Package llm asks models with its bodies; [Reader] reads messages, whoever sent, recorded or brought them.
//
// # Each format is read once
//
// What a person brings and what a recorder saw of the same conversation are the same messages: one reader of each format reads both, from a tree of values
// that knows its positions. They differ in what becomes of a mistake. In a transcript it is an error that names the place, and in recorded bytes what can be
// read is read. Texts of the model that stand side by side in one message are one text, for a vendor's stream sends them in pieces. In the place of a picture
// or a file stands what it is, and its name.
package convo

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Content is the content of one turn of a conversation: one text, or parts of several kinds.
type Content struct {
	Text  string
	Parts []Part // if not nil, the content is written as parts, and Text is empty
}

// A Part is a piece of content, such as a text, a picture or a call of a tool.
type Part struct {
	Type    string         `json:"type"`
	Text    string         `json:"text,omitzero"`    // of a part of type text, input_text or output_text
	Refusal string         `json:"refusal,omitzero"` // of a part of type refusal
	Raw     jsontext.Value `json:",embed"`           // all other members
}

// MarshalJSONTo writes a string, or an array of parts. Its errors are those of e.
func (c Content) MarshalJSONTo(e *jsontext.Encoder) error {
	if c.Parts != nil {
		return json.MarshalEncode(e, c.Parts)
	}
	return e.WriteToken(jsontext.String(c.Text))
}

// UnmarshalJSONFrom reads a string, an array of parts, or null, which means no content. It refuses every other value.
func (c *Content) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*c = Content{}
	switch kind := d.PeekKind(); kind {
	case jsontext.KindString:
		return json.UnmarshalDecode(d, &c.Text)
	case jsontext.KindBeginArray:
		return json.UnmarshalDecode(d, &c.Parts)
	case jsontext.KindNull:
		return d.SkipValue()
	default:
		return fmt.Errorf("content: want a string or an array, not %v", kind)
	}
}

// All returns the text of the content: all its text parts, joined.
func (c Content) All() string {
	var text strings.Builder
	text.WriteString(c.Text)
	for _, p := range c.Parts {
		if p.Type != "reasoning" {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// Thought returns the model's thinking that is among the parts, as Mistral's server puts it: a text, or parts again.
func (c Content) Thought() string {
	var thought strings.Builder
	for _, p := range c.Parts {
		switch p.Type {
		case "reasoning":
			thought.WriteString(p.Text)
		case "thinking":
			var inner struct {
				Thinking Content `json:"thinking"`
			}
			if json.Unmarshal(p.Raw, &inner, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil {
				thought.WriteString(inner.Thinking.All())
			}
		}
	}
	return thought.String()
}
