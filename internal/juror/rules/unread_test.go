package rules

import (
	"strings"
	"testing"

	"jurat/internal/subject"
	"jurat/jury"
)

// TestNothingRead: where nothing that the agent said or did could be read, rules do not pass it, and say why.
func TestNothingRead(t *testing.T) {
	message := func(role subject.Role, text string) subject.Message { return subject.Message{Role: role, Text: text} }
	user := message(subject.User, "Hi")
	for name, one := range map[string]struct {
		messages []subject.Message
		unread   bool
	}{
		"notes of a recorder":             {[]subject.Message{message(subject.Recorder, "How it ended: the answer came to its end, with status 200.")}, true},
		"bytes of an unknown protocol":    {[]subject.Message{message(subject.Recorder, `{"model":"m"}`), message(subject.Recorder, `{"done":true}`)}, true},
		"an answer that is withheld":      {[]subject.Message{user, message(subject.Assistant, "[withheld: /response was sealed apart, and the evidence does not have it]")}, true},
		"an answer of unknown parts":      {[]subject.Message{user, message(subject.Assistant, `[newKind] {"x":1}`)}, true},
		"an answer that is a picture":     {[]subject.Message{user, message(subject.Assistant, "[data image/png]\n[image]")}, true},
		"an empty answer":                 {[]subject.Message{user, message(subject.Assistant, " ")}, true},
		"words":                           {[]subject.Message{user, message(subject.Assistant, "[image]\nHello")}, false},
		"a list in JSON":                  {[]subject.Message{user, message(subject.Assistant, `["a", "b"]`)}, false},
		"a call":                          {[]subject.Message{{Role: subject.Assistant, ToolCalls: []subject.ToolCall{{Name: "get"}}}}, false},
		"one act of two that can be read": {[]subject.Message{message(subject.Recorder, "x"), message(subject.Assistant, "Hello")}, false},
	} {
		c := &subject.Case{Messages: one.messages}
		for i := range c.Messages {
			c.Messages[i].Number = i + 1
		}
		o := alone(1).opinion(c, jury.DefaultRubric(), nil)
		if err := (&jury.Request{Rubric: jury.DefaultRubric()}).ValidateOpinion(&o); err != nil {
			t.Error(name, err)
		}
		if unread := o.Position == jury.NeedsReview && strings.Contains(o.Rationale, "could be read"); unread != one.unread {
			t.Errorf("%s: %s %d: %s", name, o.Position, o.TotalScore, o.Rationale)
		}
	}
}
