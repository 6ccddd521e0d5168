package subject

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/convo"
)

// isLines reports whether the file has more than one JSON value.
func (f *file) isLines() bool {
	dec := jsontext.NewDecoder(bytes.NewReader(f.raw))
	if dec.SkipValue() != nil {
		return false
	}
	_, err := dec.ReadToken()
	return !errors.Is(err, io.EOF)
}

// lines reads JSON Lines: each line is a message of one conversation, or each line is a conversation.
func (t *reader) lines() error {
	f := t.file
	lines := f.split()
	first := f.isConversation(lines[0])
	if !first {
		t.messages(lines)
		return nil
	}
	for _, line := range lines {
		if err := t.room(line); err != nil {
			return err
		}
		number := strconv.Itoa(f.LineOf(line.from))
		if !f.isConversation(line) {
			err := f.ErrorAt(line.from, "", "expected a conversation, because line 1 of the file is one: either every line is a conversation, or every line is a message of the same one")
			t.wrong(number, err)
			continue
		}
		t.conversation(number, line, "", nil)
	}
	return nil
}

// split returns the lines that are not blank.
func (f *file) split() []span {
	var lines []span
	from := int64(0)
	for line := range bytes.Lines(f.raw) {
		end := from + int64(len(line))
		if len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, span{from: from, to: from + int64(len(bytes.TrimRight(line, "\r\n")))})
		}
		from = end
	}
	return lines
}

// messages reads lines that are the messages of one conversation.
func (t *reader) messages(lines []span) {
	f := t.file
	var list []*convo.Node
	var mistakes []error
	for i, line := range lines {
		n, err := f.parse(line, "/"+strconv.Itoa(i))
		if err == nil && n.Kind != '{' {
			err = n.Errorf("expected a message in each line, for example {\"role\": \"user\", \"content\": \"Hello\"}, found %s", n.KindName())
		}
		if err == nil && f.isConversation(line) {
			err = n.Errorf("expected a message, because line 1 of the file is one, found a whole conversation: either every line is a conversation, or every line is a message of the same one")
		}
		if err != nil {
			mistakes = append(mistakes, err)
			if !t.options.Check || len(mistakes) == MaxMistakes {
				break
			}
			continue
		}
		list = append(list, n)
	}
	if mistakes != nil {
		t.wrong("", mistakes...)
		return
	}
	t.build("", f.List(list), t.options.Form, nil)
}

// isConversation reports whether a value is a whole conversation, and not a message.
func (f *file) isConversation(at span) bool {
	value := bytes.TrimSpace(f.raw[at.from:at.to])
	return bytes.HasPrefix(value, []byte("[")) || convo.ObjectOf(value).IsConversation()
}
