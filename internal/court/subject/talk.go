package subject

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/internal/tap/traffic"
)

// A shownMessage identifies one message, wherever it stands.
type shownMessage [sha256.Size]byte

// shownAs returns the message that these texts make: role, words, calls and what else tells it from another.
func shownAs(texts ...string) (m shownMessage) {
	h := sha256.New()
	for _, text := range texts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		h.Write([]byte(text))
	}
	h.Sum(m[:0])
	return m
}

// A beginning identifies the first messages of a conversation, in their order.
type beginning [sha256.Size]byte

func (b beginning) after(m shownMessage) beginning { return sha256.Sum256(append(b[:], m[:]...)) }

// A stood is a message of a conversation, and the number under which it is shown, from 1.
type stood struct {
	Message shownMessage
	Number  int
}

// talks are conversations by agent and chain.
type talks map[string]*talk

// Of returns the conversations of an agent in a chain.
func (t talks) Of(agent, chain string) *talk {
	key := agent + "\x00" + chain
	if t[key] == nil {
		t[key] = &talk{begun: map[beginning]int{}, numbers: map[shownMessage][][]string{}}
	}
	return t[key]
}

// A talk knows each beginning of its conversations that was shown, and the conversation that came last.
type talk struct {
	begun map[beginning]int // the number of the last message of each beginning
	last  []stood

	// Some providers give calls of tools no ids. Readers number such calls, and many programs give them ids of their own before they send them back. By the
	// numbers of the calls in each answer, and the message without them, a call is shown once, and the result that names the program's id is that of the call.
	numbers map[shownMessage][][]string
}

// tries bounds how many places are compared for a prompt that does not begin as the conversation did.
const tries = 8

// Repeated returns the first messages of a prompt that were shown before: the longest beginning that is known and, of a
// program that leaves out what is long ago, what follows of the conversation that came last, up to its end.
func (t *talk) Repeated(prompt []shownMessage) (line []stood) {
	var at beginning
	for _, m := range prompt {
		at = at.after(m)
		number := t.begun[at]
		if number == 0 {
			break
		}
		line = append(line, stood{m, number})
	}
	rest := prompt[len(line):]
	if len(rest) == 0 {
		return line
	}
	for i, tried := len(t.last)-1, 0; i >= len(line) && tried < tries; i-- {
		if t.last[i].Message != rest[0] {
			continue
		}
		tried++
		end := t.last[i:]
		if len(end) <= len(rest) && slices.EqualFunc(end, rest[:len(end)], func(s stood, m shownMessage) bool { return s.Message == m }) {
			return append(line, end...)
		}
	}
	return line
}

// Ends returns the number of the last message of an answer that was given to the same prompt before; 0 if there is none.
func (t *talk) Ends(prompt, answer []shownMessage) int {
	if len(answer) == 0 {
		return 0
	}
	var at beginning
	for _, m := range slices.Concat(prompt, answer) {
		at = at.after(m)
	}
	return t.begun[at]
}

// Keep notes a conversation that was shown.
func (t *talk) Keep(line []stood) {
	var at beginning
	for _, s := range line {
		if at = at.after(s.Message); t.begun[at] == 0 {
			t.begun[at] = s.Number
		}
	}
	t.last = line
}

// numbersOf lists the numbers of messages, of which there is at least one.
func numbersOf(line []stood) string {
	const most = 5
	var runs []string
	for i := 0; i < len(line); {
		end := i + 1
		for end < len(line) && line[end].Number == line[end-1].Number+1 {
			end++
		}
		if from, to := line[i].Number, line[end-1].Number; from == to {
			runs = append(runs, fmt.Sprint(from))
		} else {
			runs = append(runs, fmt.Sprintf("%d to %d", from, to))
		}
		i = end
	}
	if len(runs) > most {
		runs = append(runs[:most], "others")
	}
	if len(line) == 1 {
		return "message " + runs[0]
	}
	return "the messages " + strings.Join(runs, ", ")
}

// Numbers returns the numbers that the calls of a message had in the answer; nil: they had ids, or there was no such answer. first is the number that the first
// call has by its place in the prompt. A program that leaves out what is long ago sends its calls in other places: the latest answer counts then.
func (t *talk) Numbers(without shownMessage, first string) []string {
	list := t.numbers[without]
	if len(list) == 0 {
		return nil
	}
	at := slices.IndexFunc(list, func(numbers []string) bool { return numbers[0] == first })
	if at < 0 {
		at = len(list) - 1
	}
	return list[at]
}

func (r *recording) exchanged(one *record, s sight) {
	if one.payload.Observed.Side == evidence.Asked {
		s.turned(one.payload)
	}
	r.add(one, "prompt", s.prompt...)
	context, _ := one.value("context", Tool)
	r.add(one, "context", context...)
	response := s.response
	if len(s.prompt) == 0 {
		var again []string
		response, again = r.unheard(one, response)
		if again != nil {
			s.note("The answer has again what stands in message %s.", strings.Join(again, ", "))
		}
	}
	r.add(one, "response", response...)
	for i, m := range response {
		if key := heardOf(one, m); r.heard[key] == 0 {
			r.heard[key] = len(r.messages) - len(response) + i + 1
		}
	}
	r.addNotes(one, s)
}

// turned makes the recorded agent the one that speaks where it asks, and the other one the one that it speaks to.
func (s *sight) turned(p *evidence.Payload) {
	for i := range s.prompt {
		if m := &s.prompt[i]; m.Role == User {
			m.Role, m.Name = Assistant, speaker(p)
		}
	}
	for i := range s.response {
		if m := &s.response[i]; m.Role == Assistant {
			m.Role = User
			if m.Name == speaker(p) {
				m.Name = otherAgent(p)
			}
		}
	}
}

func otherAgent(p *evidence.Payload) string {
	if u := p.Observed.Upstream; u != nil {
		return "the agent at " + u.Origin
	}
	return "the other agent"
}

type heard struct {
	chain   string
	message shownMessage
}

func heardOf(one *record, m Message) heard { return heard{one.payload.ChainID, alone(&m)} }

// unheard leaves out what was shown before in the chain, and names it.
func (r *recording) unheard(one *record, messages []Message) (fresh []Message, again []string) {
	for _, m := range messages {
		if number, known := r.heard[heardOf(one, m)]; known {
			again = append(again, fmt.Sprint(number))
			continue
		}
		fresh = append(fresh, m)
	}
	return fresh, again
}

// noteTask says how a task stands that has not come to its end, or not to a good one.
func (s *sight) noteTask(p *traffic.Projection) {
	switch p.Finish {
	case "", "completed", "TASK_STATE_COMPLETED":
	default:
		s.note("The state of the task, in the agent's word: %s.", p.Finish)
	}
}

// sideInWords says which of two agents the recorded one is.
func sideInWords(o *evidence.Observed) string {
	switch o.Side {
	case evidence.Asked:
		return "; this agent asked, and another one answered"
	case evidence.Answered:
		return "; this agent answered, and who asked is not proved"
	}
	return ""
}

type askedCall struct {
	ID, Name, Arguments string // arguments as they are compared: in canonical form if they have one
	Number              int    // of the message in which it asks
}

// askedCalls are what models asked for so far. The zero value has none.
type askedCalls struct {
	byID  map[string]askedCall
	alike map[[2]string]int // by tool and arguments
}

type askedHow int

// The ways.
const (
	askedUnknown   askedHow = iota
	askedByID               // it has the id, the tool and the arguments
	askedOtherwise          // it has the id, and another tool or other arguments
	askedAlike              // it has the tool and the arguments
)

// Add adds a call. The latest counts.
func (c *askedCalls) Add(call askedCall) {
	if c.alike == nil {
		c.byID, c.alike = map[string]askedCall{}, map[[2]string]int{}
	}
	if call.ID != "" {
		c.byID[call.ID] = call
	}
	c.alike[[2]string{call.Name, call.Arguments}] = call.Number
	c.alike[[2]string{toolIn(call.Name), call.Arguments}] = call.Number
}

func toolIn(name string) string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) {
		return name[i+2:]
	}
	return name
}

// For returns the number of the message that asks for a use of a tool. id is the model's id of the call, or "" if nobody states it.
func (c *askedCalls) For(id, tool, arguments string) (number int, how askedHow) {
	if call, known := c.byID[id]; known && id != "" {
		if (call.Name == tool || toolIn(call.Name) == tool) && call.Arguments == arguments {
			return call.Number, askedByID
		}
		return call.Number, askedOtherwise
	}
	if number, known := c.alike[[2]string{tool, arguments}]; known {
		return number, askedAlike
	}
	return 0, askedUnknown
}
