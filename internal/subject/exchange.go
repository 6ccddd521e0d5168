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
