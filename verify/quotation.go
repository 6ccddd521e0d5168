package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
)

// maxSearched is how many bytes of messages are searched in all. A file that needs more is not checked to the end.
const maxSearched = 1 << 32

// An inventedQuote is the first quotation that is shown as standing in a message, and does not.
type inventedQuote struct {
	Act     evidence.Digest
	Reason  string
	Unasked bool // nothing was found, but the search was not finished
}

// findInvented searches the acts of a trial in their order. It returns nil if nothing is found, or
// if the submission does not show evidence that is an array of chat messages.
func findInvented(submission *evidence.Record, acts []jury.Act) *inventedQuote {
	p := &submission.Payload
	material, withheld := submission.Said("/response", p.Response)
	inside := func(pointer string) bool { return strings.HasPrefix(pointer, "/response/") }
	if withheld || slices.ContainsFunc(p.SealedApart, inside) {
		return nil
	}
	return inventedIn(material, acts)
}

func inventedIn(material jsontext.Value, acts []jury.Act) *inventedQuote {
	messages := chatMessages(material)
	if messages == nil {
		return nil
	}
	s := &search{messages: messages, known: map[jury.Passage]bool{}}
	for i := range acts {
		for _, p := range passages(acts[i].Body) {
			if p.Unfounded || s.stands(p) {
				continue
			}
			if s.searched > maxSearched {
				return &inventedQuote{Unasked: true, Reason: "its quotations are more than are compared with the evidence"}
			}
			return &inventedQuote{Act: acts[i].Digest, Reason: fmt.Sprintf("it quotes from message %d what does not stand there, and is not marked for it", p.Message)}
		}
	}
	return nil
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
