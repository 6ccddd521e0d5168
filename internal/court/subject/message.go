package subject

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/tap/convo"
)

// Role says who a message is from.
type Role string

const (
	System    Role = "system" // also "developer"
	User      Role = "user"
	Assistant Role = "assistant" // the agent under trial
	Tool      Role = "tool"      // a tool's answer; in records also the context that the agent was given

	// These roles exist only in evidence that is made of records:
	Reviewer Role = "reviewer" // a person who decided on what the agent said
	Operator Role = "operator" // runs the installation, or delivers what the agent said
	Recorder Role = "recorder" // a program that saw what the agent did, and says what no message shows
)

// A Message is one message of a conversation. As JSON it is a message of a recorded chain.
type Message struct {
	Number     int        `json:"number"` // from 1, in the order of the file or chain; 0: not known, in a late part of a long chain
	Role       Role       `json:"role"`
	Name       string     `json:"name,omitzero"`         // of a participant, if the file gives one
	Text       string     `json:"text"`                  // text parts joined by line breaks
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`  // of the agent or, if Role is User, the user's own
	ToolCallID string     `json:"tool_call_id,omitzero"` // of a tool's message: the call that it answers
	ToolName   string     `json:"tool,omitzero"`         // of a tool's message: the tool's name
	CallNumber int        `json:"call,omitzero"`         // of a tool's message: the number of the message that made the call; 0: unknown
	CallPlace  int        `json:"call_place,omitzero"`   // of a tool's message: which of that message's calls it answers, from 1; 0: unknown
	Beside     bool       `json:"-"`                     // of a tool's message: the file has the result in one piece with its call, the last one before it
	AnswersTo  Role       `json:"-"`                     // of a tool's message: who made the call, Assistant or User; "": unknown
	Failed     bool       `json:"failed,omitzero"`       // of a tool's message: the log marks it as an error, apart from its text

	// Of a message that comes from a record:
	Record evidence.Digest `json:"-"`    // zero if the evidence is a conversation
	Part   string          `json:"part"` // the member of the payload that holds the text, such as "prompt"
	Head   string          `json:"-"`    // of a record's first message: the program's description of the record
}

// A ToolCall is one call that the agent or the user made. Its message says who: see [Message.Caller].
type ToolCall struct {
	ID        string         `json:"id,omitzero"`
	Name      string         `json:"name"`
	Arguments string         `json:"arguments"`       // the string in the file, usually a JSON object; or the object in canonical form
	Args      jsontext.Value `json:"-"`               // Arguments as a JSON object in canonical form; nil if they are not one
	Result    int            `json:"result,omitzero"` // number of the message with its result, of several at once the last; 0 if there is none
}

// Caller returns who made the calls of a message or, of a tool's message, the call that it answers: Assistant, which
// is the agent under trial, or User. It returns "" if the message has no calls, or answers a call that is not known.
// Where the user has tools of their own (dual control), a juror must not attribute their calls to the agent.
func (m *Message) Caller() Role {
	if m.Role == Tool {
		return m.AnswersTo
	}
	if len(m.ToolCalls) == 0 {
		return ""
	}
	return m.Role
}

// AgentCalls returns the calls that the agent made in the message, and none that the user made.
func (m *Message) AgentCalls() []ToolCall {
	if m.Role != Assistant {
		return nil
	}
	return m.ToolCalls
}

// Holds reports whether a text occurs literally in the message's text, or in a name or the arguments of its calls.
func (m *Message) Holds(quote string) bool {
	return quote != "" && (strings.Contains(m.Text, quote) || slices.ContainsFunc(m.ToolCalls, func(call ToolCall) bool {
		return strings.Contains(call.Arguments, quote) || strings.Contains(call.Name, quote)
	}))
}

func callName(m *Message) string {
	if m.AnswersTo == User {
		return "of the user " + nameOfCall(m)
	}
	return nameOfCall(m)
}

func nameOfCall(m *Message) string {
	if m.ToolCallID != "" {
		return convo.Quote(m.ToolCallID)
	}
	if m.ToolName != "" {
		return "to " + convo.Quote(m.ToolName)
	}
	return "that it answers"
}

// An Omission is something in a conversation that jurors are not shown.
type Omission struct {
	Kind  Left   `json:"kind"`
	What  string `json:"what"` // in English
	Count int    `json:"count"`
}

// A Left is a kind of what is left out.
type Left = convo.Left

func (c *Case) omits(kind Left) {
	i := slices.IndexFunc(c.LeftOut, func(o Omission) bool { return o.Kind == kind })
	if i < 0 {
		c.LeftOut = append(c.LeftOut, Omission{Kind: kind, What: kind.InWords()})
		i = len(c.LeftOut) - 1
	}
	c.LeftOut[i].Count++
	c.omitted = append(c.omitted, omitted{kind, len(c.Messages) + 1})
}

// An omitted is something that is left out while a message is read: the one with this number, or one before it.
type omitted struct {
	kind   Left
	number int
}

// mistake keeps an error for later while checking, and returns it otherwise. It returns an error that ends the check
// when there are too many.
func (c *Case) mistake(err error) error {
	if err == nil || !c.checking {
		return err
	}
	if len(c.mistakes) == MaxMistakes {
		return fmt.Errorf("more mistakes: these are the first %d", MaxMistakes)
	}
	c.mistakes = append(c.mistakes, err)
	return nil
}

// MaxMistakes bounds what a check reports of a hostile file.
const MaxMistakes = 100

func (c *Case) say(m Message, at *convo.Node) {
	m.Number = len(c.Messages) + 1
	c.Messages = append(c.Messages, m)
	c.stands(at)
}

func (c *Case) reader() *convo.Reader {
	r := &convo.Reader{Say: func(m convo.Message, at *convo.Node) { c.say(messageOf(&m), at) }, Left: c.omits, Mistake: c.mistake}
	if c.part {
		r.Strange = func(kind string) { c.Strange = append(c.Strange, kind) }
	}
	return r
}

func messageOf(from *convo.Message) Message {
	m := Message{Role: Role(convo.RoleOf(from.Role)), Text: from.Content.Shown(), Name: from.Name, Beside: from.Beside, AnswersTo: Role(from.AnswersTo)}
	m.Text = cmp.Or(m.Text, from.Refusal)
	if m.Role == Tool {
		m.ToolName, m.ToolCallID, m.Failed = from.Name, from.ToolCallID, from.IsError
		return m
	}
	for i := range from.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, callOf(&from.ToolCalls[i]))
	}
	if f := from.FunctionCall; f != nil {
		m.ToolCalls = append(m.ToolCalls, callOf(&convo.ChatToolCall{Function: *f}))
	}
	return m
}

func callOf(from *convo.ChatToolCall) ToolCall {
	name, arguments := from.Said()
	call := ToolCall{ID: from.ID, Name: name}
	call.setArguments(arguments)
	return call
}

func (call *ToolCall) setArguments(text string) {
	call.Arguments = text
	if object, err := evidence.Canonical([]byte(text)); err == nil && jsontext.Value(object).Kind() == '{' {
		call.Args = object
	}
}

// A Setting says how a user takes part in a conversation, as far as the log shows.
type Setting string

// The settings.
const (
	// Dialogue: the user spoke or acted after the agent did, so the user could have agreed, refused or corrected.
	Dialogue Setting = "dialogue"
	// Delegated: the user gave a task, the agent worked on it, and the user does not appear again. In the log, no user
	// could have agreed to a single act. The task itself is what they agreed to.
	Delegated Setting = "delegated task"
	// Ticket: there is no user. The agent works from its instructions and from what tools return.
	Ticket Setting = "no user"
)

// Setting returns how the user takes part. An agent that asks and goes on without waiting is in the setting Delegated,
// too. If that matters, look for its question.
func (c *Case) Setting() Setting {
	setting, acted := Ticket, false
	for i := range c.Messages {
		switch m := &c.Messages[i]; {
		case m.Role == Assistant:
			acted = true
		case m.Role == User && acted:
			return Dialogue
		case m.Role == User:
			setting = Delegated
		}
	}
	return setting
}

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
	m.ToolName = cmp.Or(m.ToolName, call.Name)
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
