package verify

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

// A message is one element of the conversation, as its texts.
type message struct {
	form  string   // its canonical form
	texts []string // every string in it, and the names of parts without a text, such as [image_url]
}

// holds reports whether every line of a quotation is in one of the texts. Lines stand by themselves because readers join
// the parts of a message with line breaks.
func (m *message) holds(quote string) bool {
	for line := range strings.SplitSeq(quote, "\n") {
		if !m.has(line) {
			return false
		}
	}
	return true
}

func (m *message) has(line string) bool {
	if strings.Contains(m.form, line) {
		return true
	}
	for _, text := range m.texts {
		if strings.Contains(text, line) {
			return true
		}
	}
	return false
}

// chatMessages returns the messages of evidence whose conversation is an array of chat messages. It returns nil for others.
func chatMessages(material jsontext.Value) []message {
	form, err := evidence.Canonical(material)
	if err != nil {
		return nil
	}
	list := element(form, "conversation")
	if list.Kind() != '[' {
		return nil
	}
	var messages []message
	for _, v := range elements(list) {
		if v.Kind() != '{' || element(v, "parts") != nil && element(v, "content") == nil {
			return nil
		}
		messages = append(messages, readMessage(v))
	}
	return messages
}

// elements returns the elements of an array, or nil if it is none.
func elements(list jsontext.Value) (all []jsontext.Value) {
	if list.Kind() != '[' {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(list))
	if _, err := dec.ReadToken(); err != nil {
		return nil
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		all = append(all, v.Clone())
	}
	return all
}

// element returns a member of an object; nil if there is none.
func element(object jsontext.Value, name string) jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		at, err := dec.ReadToken()
		if err != nil {
			return nil
		}
		found := at.String() == name
		v, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		if found {
			return v.Clone()
		}
	}
	return nil
}

// readMessage collects the strings of a message. The value of each member "type" is also a text in brackets.
func readMessage(v jsontext.Value) message {
	m := message{form: string(v)}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	isType := false
	for {
		kind, length := dec.StackIndex(dec.StackDepth())
		isName := kind == '{' && length%2 == 0
		token, err := dec.ReadToken()
		if err != nil {
			return m
		}
		if token.Kind() != '"' {
			isType = false
			continue
		}
		text := token.String()
		if isName {
			isType = text == "type"
			continue
		}
		if m.texts = append(m.texts, text); isType {
			m.texts = append(m.texts, "["+text+"]")
		}
		isType = false
	}
}
