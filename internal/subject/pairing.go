package subject

import (
	"strings"

	"jurat/evidence"
	"jurat/internal/convo"
)

// A pairing finds, in one conversation, the call that each result of a tool answers. A turn is what one speaker says until another one speaks.
//
//   - Ids decide where they tell the calls of a turn apart, and names after them. Otherwise the first result answers the first call without a result.
//   - An id that is used again in a later turn belongs to that turn.
//   - A further result for a call stays with that call.
type pairing struct {
	messages *[]Message
	calls    map[callKey]*shelf
	made     map[[2]int]*madeCall // by message and place
	turn     int
	runs     int       // of results that follow each other
	speaker  speakerAt // of the message before; zero: it is a result
	last     *madeCall
	waiting  map[string]int // results that have no call yet, by the name of the tool
}

func newPairing(messages *[]Message) *pairing {
	return &pairing{messages: messages, calls: map[callKey]*shelf{}, made: map[[2]int]*madeCall{}}
}

type speakerAt struct {
	role   Role
	record evidence.Digest
	part   string
}

type madeCall struct {
	number, place int // of its message, and its place there
	by            Role
	turn          int
	answered      bool
	run           int // in which it was answered last
}

// A callKey is what a result may say of its call. What it does not say is "".
type callKey struct {
	by       Role
	id, name string
	bare     bool // nobody gave the call an id; with an id: a result gave it this one
}

// A shelf has the calls under a key, those of the latest turn last.
type shelf struct {
	turns [][]*madeCall // calls that may be without a result
	last  *madeCall
}

// put adds a call. Where only the latest turn counts, those of earlier turns leave.
func (s *shelf) put(made *madeCall, latest bool) {
	switch {
	case s.last != nil && s.last.turn == made.turn && len(s.turns) > 0:
		n := len(s.turns) - 1
		s.turns[n] = append(s.turns[n], made)
	case latest:
		s.turns = [][]*madeCall{{made}}
	default:
		s.turns = append(s.turns, []*madeCall{made})
	}
	s.last = made
}

// open returns the first call without a result in the latest turn that has one; nil: there is none.
func (s *shelf) open() *madeCall {
	for n := len(s.turns) - 1; n >= 0; n-- {
		for len(s.turns[n]) > 0 && s.turns[n][0].answered {
			s.turns[n] = s.turns[n][1:]
		}
		if len(s.turns[n]) > 0 {
			return s.turns[n][0]
		}
		s.turns = s.turns[:n]
	}
	return nil
}

// read takes the next messages of the conversation, by their numbers, and returns the results whose call it does not know.
func (p *pairing) read(numbers []int) (unanswering []int) {
	for i := 0; i < len(numbers); {
		if p.at(numbers[i]).Role != Tool {
			p.said(p.at(numbers[i]))
			i++
			continue
		}
		from := i
		for i < len(numbers) && p.at(numbers[i]).Role == Tool {
			i++
		}
		unanswering = append(unanswering, p.returned(numbers[from:i])...)
	}
	return unanswering
}

func (p *pairing) at(number int) *Message { return &(*p.messages)[number-1] }

func (p *pairing) said(m *Message) {
	at := speakerAt{m.Role, m.Record, m.Part}
	if at != p.speaker {
		p.turn++
	}
	p.speaker = at
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		p.last = &madeCall{number: m.Number, place: i + 1, by: m.Role, turn: p.turn}
		p.made[[2]int{m.Number, i + 1}] = p.last
		for _, by := range []Role{"", m.Role} {
			p.shelf(callKey{by: by}).put(p.last, false)
			p.shelf(callKey{by: by, name: call.Name}).put(p.last, false)
			if call.ID == "" || strings.HasPrefix(call.ID, convo.Numbered) {
				p.shelf(callKey{by: by, bare: true}).put(p.last, false)
				p.shelf(callKey{by: by, name: call.Name, bare: true}).put(p.last, false)
			}
			if call.ID != "" {
				p.shelf(callKey{by: by, id: call.ID}).put(p.last, true)
				p.shelf(callKey{by: by, id: call.ID, name: call.Name}).put(p.last, true)
			}
		}
	}
}

func (p *pairing) shelf(key callKey) *shelf {
	if p.calls[key] == nil {
		p.calls[key] = new(shelf)
	}
	return p.calls[key]
}

// returned finds the calls of results that follow each other. What says most of its call chooses first.
func (p *pairing) returned(numbers []int) (unanswering []int) {
	p.speaker = speakerAt{}
	p.runs++
	for _, find := range []func(*Message) *madeCall{p.known, p.byIDAndName, p.byID, p.withoutID, p.byName, p.byOrder} {
		unanswering, p.waiting = nil, map[string]int{}
		for _, number := range numbers {
			p.waiting[p.at(number).ToolName]++
		}
		for _, number := range numbers {
			m := p.at(number)
			name := m.ToolName
			if made := find(m); made != nil {
				p.pair(m, made)
			}
			if m.CallNumber == 0 {
				unanswering = append(unanswering, number)
			}
			p.waiting[name]--
		}
		if numbers = unanswering; numbers == nil {
			break
		}
	}
	return unanswering
}

func (p *pairing) pair(m *Message, made *madeCall) {
	call := &p.at(made.number).ToolCalls[made.place-1]
	if call.Result == 0 || made.answered && made.run == p.runs {
		call.Result = max(call.Result, m.Number)
	}
	made.answered, made.run = true, p.runs
	m.CallNumber, m.CallPlace, m.AnswersTo = made.number, made.place, made.by
	if m.ToolName == "" {
		m.ToolName = call.Name
	}
}

// known is the call of a result that is paired already, or stands beside its call.
func (p *pairing) known(m *Message) *madeCall {
	if m.Beside {
		return p.last
	}
	return p.made[[2]int{m.CallNumber, m.CallPlace}]
}

func (p *pairing) byIDAndName(m *Message) *madeCall {
	if m.ToolCallID == "" || m.ToolName == "" {
		return nil
	}
	s, all := p.calls[callKey{by: m.AnswersTo, id: m.ToolCallID, name: m.ToolName}], p.calls[callKey{by: m.AnswersTo, id: m.ToolCallID}]
	if s == nil || s.last.turn != all.last.turn {
		return nil
	}
	return s.next()
}

func (p *pairing) byID(m *Message) *madeCall {
	if s := p.calls[callKey{by: m.AnswersTo, id: m.ToolCallID}]; m.ToolCallID != "" && s != nil {
		return s.next()
	}
	return nil
}

// next is the call that a result answers which names it: a further result, if every call has one.
func (s *shelf) next() *madeCall {
	if made := s.open(); made != nil {
		return made
	}
	return s.last
}

// withoutID is a call of the latest turn without an id, for a result whose id no call has. The call has that id from then on. Results with one
// id take a call each, if there are calls enough for all results that wait; otherwise they tell of one call.
func (p *pairing) withoutID(m *Message) *madeCall {
	s := p.calls[callKey{by: m.AnswersTo, name: m.ToolName, bare: true}]
	if m.ToolCallID == "" || s == nil {
		return nil
	}
	named := p.shelf(callKey{by: m.AnswersTo, id: m.ToolCallID, bare: true})
	made := s.open()
	if made == nil || made.turn != p.last.turn || named.last != nil && len(s.turns[len(s.turns)-1]) < p.waiting[m.ToolName] {
		return named.next()
	}
	named.put(made, true)
	return made
}

func (p *pairing) byName(m *Message) *madeCall {
	if m.ToolName == "" {
		return nil
	}
	return p.byOrder(m)
}

// byOrder is the call for a result without an id. Of what an agent was given as context no message has a call.
func (p *pairing) byOrder(m *Message) *madeCall {
	s := p.calls[callKey{by: m.AnswersTo, name: m.ToolName}]
	if m.ToolCallID != "" || s == nil || m.Part == "context" && m.ToolName == "" {
		return nil
	}
	if made := s.open(); made != nil {
		return made
	}
	if s.last.run == p.runs { // a further result, beside the one before
		return s.last
	}
	return nil
}

// link finds the call of each result of a tool in the case, and returns the results without one.
func (c *Case) link() (unanswering []*Message) {
	numbers := make([]int, len(c.Messages))
	for i := range numbers {
		numbers[i] = i + 1
	}
	for _, number := range newPairing(&c.Messages).read(numbers) {
		unanswering = append(unanswering, &c.Messages[number-1])
	}
	return unanswering
}
