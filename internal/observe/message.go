package observe

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/llm/wire"
)

// A message is a chat message of a projection. Its fields are in canonical order, so that most need not be put into it.
type message struct {
	Content      content            `json:"content"`
	FunctionCall *wire.ChatFunction `json:"function_call,omitzero"`
	IsError      bool               `json:"is_error,omitzero"` // of a tool's result
	Name         string             `json:"name,omitzero"`
	Refusal      string             `json:"refusal,omitzero"`
	Role         string             `json:"role"`
	ToolCallID   string             `json:"tool_call_id,omitzero"`
	ToolCalls    []call             `json:"tool_calls,omitzero"`
}

// A call is one of the calls in a message.
type call = wire.ChatToolCall

// function makes a call of a function.
func function(id, name, arguments string) call {
	return call{ID: id, Type: "function", Function: wire.ChatFunction{Name: name, Arguments: wire.Arguments(arguments)}}
}

// Content is the parts of a message.
type content []part

// A part is a text, or stands for something that no juror reads.
type part struct {
	Type        string  `json:"type"` // text, image_url, input_audio, video_url or file
	Text        *string `json:"text,omitzero"`
	*attachment `json:",embed"`
}

// An attachment describes a picture, a sound or a file.
type attachment struct {
	URL       string          `json:"url,omitzero"`     // where the provider fetched it
	FileID    string          `json:"file_id,omitzero"` // by which the provider knows it
	Name      string          `json:"name,omitzero"`
	MediaType string          `json:"media_type,omitzero"`
	Digest    evidence.Digest `json:"digest,omitzero"` // of the bytes in the request
	Bytes     int             `json:"bytes,omitzero"`
}

func textPart(text string) part { return part{Type: "text", Text: &text} }

// MarshalJSONTo writes a single text as a string, and everything else as parts.
func (c content) MarshalJSONTo(e *jsontext.Encoder) error {
	switch {
	case len(c) == 0:
		return e.WriteToken(jsontext.String(""))
	case len(c) == 1 && c[0].Text != nil:
		return e.WriteToken(jsontext.String(*c[0].Text))
	}
	return json.MarshalEncode(e, []part(c))
}

// joined joins texts that stand side by side: a model's answer comes in pieces, and a program may send them back as
// one.
func (c content) joined() content {
	var list content
	var texts []string
	end := func() {
		if texts != nil {
			list, texts = append(list, textPart(strings.Join(texts, ""))), nil
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

// output returns what a model said: its text, if that is all, or its message, or several.
func output(said []message) any {
	if len(said) != 1 {
		return append([]message{}, said...)
	}
	m := said[0]
	plain := m.Role == "assistant" && m.Name == "" && m.Refusal == "" && m.ToolCalls == nil && m.FunctionCall == nil
	if plain && (len(m.Content) == 0 || len(m.Content) == 1 && m.Content[0].Text != nil) {
		return m.Content
	}
	return m
}

// callsIn lists the calls of messages.
func callsIn(said []message) (calls []ToolCall) {
	for _, m := range said {
		for _, c := range m.ToolCalls {
			if c.Custom.Name != "" {
				calls = append(calls, ToolCall{c.ID, c.Custom.Name, c.Custom.Input})
			} else {
				calls = append(calls, ToolCall{c.ID, c.Function.Name, string(c.Function.Arguments)})
			}
		}
		if f := m.FunctionCall; f != nil {
			calls = append(calls, ToolCall{"", f.Name, string(f.Arguments)})
		}
	}
	return calls
}

// inline is a picture, a sound or a file whose base64 is in the request.
func inline(kind, name, mediaType, data string) part {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		raw = []byte(data)
	}
	return part{Type: kind, attachment: &attachment{Name: name, MediaType: short(mediaType), Digest: evidence.DigestOf(raw), Bytes: len(raw)}}
}

// at is a picture or a file that has an address: a data URL has its bytes, of any other the provider fetches them.
func at(kind, name, address string) part {
	if data, is := strings.CutPrefix(address, "data:"); is {
		head, data, _ := strings.Cut(data, ",")
		return inline(kind, name, strings.TrimSuffix(head, ";base64"), data)
	}
	return part{Type: kind, attachment: &attachment{Name: name, URL: observed.Address(address)}}
}

// file is a file that the provider has.
func file(kind, name, id string) part {
	return part{Type: kind, attachment: &attachment{Name: name, FileID: short(id)}}
}

// unknown is a part of a kind that this package does not know. It is shown whole.
func unknown(kind string, v jsontext.Value) part { return textPart("[" + kind + "] " + text(v)) }
