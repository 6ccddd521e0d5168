package verify

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
)

// maxSearched is how many bytes of messages are searched in all. A file that needs more is not checked to the end.
const maxSearched = 1 << 32

// findInvented looks in the acts of a trial, in their order, for the first quotation that is shown as standing in a message, and does not. It returns the
// act's digest with the finding; zero: of no act. It returns nil if nothing is found, or if the submission does not show evidence that is an array of chat messages.
func findInvented(submission *evidence.Record, acts []jury.Act) (*Finding, evidence.Digest) {
	p := &submission.Payload
	material, withheld := submission.Said("/response", p.Response)
	inside := func(pointer string) bool { return strings.HasPrefix(pointer, "/response/") }
	if withheld || slices.ContainsFunc(p.SealedApart, inside) {
		return nil, evidence.Digest{}
	}
	return inventedIn(material, acts)
}

func inventedIn(material jsontext.Value, acts []jury.Act) (*Finding, evidence.Digest) {
	messages := chatMessages(material)
	if messages == nil {
		return nil, evidence.Digest{}
	}
	s := &search{messages: messages, known: map[jury.Passage]bool{}}
	for i := range acts {
		for _, p := range passages(acts[i].Body) {
			if p.Unfounded || s.stands(p) {
				continue
			}
			if s.searched > maxSearched {
				return found(Verdict, NotProved, "quotation", "its quotations are more than are compared with the evidence"), evidence.Digest{}
			}
			return found(Verdict, Refuted, "quotation", "it quotes from message %d what does not stand there, and is not marked for it", p.Message), acts[i].Digest
		}
	}
	return nil, evidence.Digest{}
}

// passages lists the quotations of an answer: those of its findings, then those of its tables.
func passages(body any) (list []jury.Passage) {
	var o *jury.Opinion
	switch body := body.(type) {
	case *jury.Evaluation:
		o = &body.Opinion
	case *jury.Opinion:
		o = body
	case *jury.Statement:
		if body.UpdatedEvaluation != nil {
			o = &body.UpdatedEvaluation.Opinion
		}
	}
	if o == nil {
		return nil
	}
	for _, f := range o.Findings {
		list = append(list, jury.Passage{Message: f.Message, Quote: f.Quote, Unfounded: f.Unfounded})
	}
	for _, p := range o.Work.Passages() {
		list = append(list, jury.Passage{Message: p.Message, Quote: p.Quote, Unfounded: p.Unfounded})
	}
	return list
}

// A search remembers what it found, because jurors quote the same.
type search struct {
	messages []message
	known    map[jury.Passage]bool
	searched int
}

func (s *search) stands(p jury.Passage) bool {
	if found, known := s.known[p]; known {
		return found
	}
	if p.Message > len(s.messages) {
		return false
	}
	m := &s.messages[p.Message-1]
	if s.searched += len(m.form); s.searched > maxSearched {
		return false
	}
	s.known[p] = m.holds(p.Quote)
	return s.known[p]
}

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
	list := object(form)["conversation"]
	if list.Kind() != '[' {
		return nil
	}
	messages := []message{} // of an empty conversation too: nothing that is quoted is in it
	for _, v := range array(list) {
		members := object(v)
		if members == nil || members["parts"] != nil && members["content"] == nil {
			return nil
		}
		messages = append(messages, readMessage(v))
	}
	return messages
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
