package subject

import (
	"fmt"
	"strings"

	"jurat/evidence"
	"jurat/internal/observe"
)

// exchanged adds messages for an exchange between two agents. Who asks for a task again gets again what was said of it: that is shown once.
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
		r.hear(one, m, len(r.messages)-len(response)+i+1)
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

// otherAgent names the agent that the recorded one asks.
func otherAgent(p *evidence.Payload) string {
	if u := p.Observed.Upstream; u != nil {
		return "the agent at " + u.Origin
	}
	return "the other agent"
}

// A heard is a message of a chain.
type heard struct {
	chain   string
	message shownMessage
}

func heardOf(one *record, m Message) heard { return heard{one.payload.ChainID, alone(&m)} }

func (r *recording) hear(one *record, m Message, number int) {
	if r.heard == nil {
		r.heard = map[heard]int{}
	}
	if _, known := r.heard[heardOf(one, m)]; !known {
		r.heard[heardOf(one, m)] = number
	}
}

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
func (s *sight) noteTask(p *observe.Projection) {
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

// An askedCall is what a model asked for.
type askedCall struct {
	ID, Name, Arguments string // arguments as they are compared: in canonical form if they have one
	Number              int    // of the message in which it asks
}

// askedCalls are what models asked for so far. The zero value has none.
type askedCalls struct {
	byID  map[string]askedCall
	alike map[[2]string]int // by tool and arguments
}

// An askedHow says how a call was found.
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

// toolIn is a name without the server before it.
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
