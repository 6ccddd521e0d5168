package importing

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/subject"
	"jurat/internal/telemetry"
)

// A unit is one message as it stands in a file: what a program wrote at once. Package subject may read several messages from it, or none.
type unit struct {
	raw      []byte
	place    string
	id       string // the file's own; "": it gives none
	messages []subject.Message
	left     []subject.Left

	// What the file says beside the message; "" or nil: nothing.
	at        string         // when
	requested string         // the model that was asked for
	model     string         // the model that answered
	call      string         // the provider's id of the answer: several units may be of one
	usage     jsontext.Value // of that answer
	failed    string         // why there was no answer
	lacks     []string       // what the file says is otherwise or elsewhere, in words
	given     bool           // what stands in it was written before the agent was asked, also if it stands as an answer
}

// mostLacks bounds what is named of one message as missing: a file may be hostile.
const mostLacks = 20

// lacking adds what is missing, once.
func lacking(list []string, more ...string) []string {
	for _, what := range more {
		switch {
		case len(list) > mostLacks:
			return list
		case slices.Contains(list, what):
		case len(list) == mostLacks:
			list = append(list, "more that is not named here: the entry of the file, or the file, has it")
		default:
			list = append(list, what)
		}
	}
	return list
}

// by says that a program wrote what stands as a message of a user or an agent.
func (u *unit) by(program string) {
	for i := range u.messages {
		if m := &u.messages[i]; m.Role == subject.User || m.Role == subject.Assistant {
			m.Role, m.Name = subject.System, program
		}
	}
}

// from names who said what stands as a user's.
func (u *unit) from(name string) {
	for i := range u.messages {
		if m := &u.messages[i]; m.Role == subject.User && m.Name == "" {
			m.Name = name
		}
	}
}

// answers reports whether the unit is the agent's.
func (u *unit) answers() bool {
	return !u.given && slices.ContainsFunc(u.messages, isAnswer)
}

func isAnswer(m subject.Message) bool { return m.Role == subject.Assistant }

// An Exchange is what becomes one act: what was said to the agent, and its answer. Either may be missing.
type Exchange struct {
	Conversation string // its name within the agent and the format
	Entry        string // names the exchange in the conversation: the file's own id of its first message, or the number of that
	own          bool   // Entry is the file's own id

	told  *telemetry.Act // of telemetry; then units has what it was read from, without messages
	units []unit
	whole bool     // it is one call with its whole prompt, which may hold earlier answers
	lacks []string // what the conversation lacks, in words
}

// Place is where the exchange begins in the file.
func (e *Exchange) Place() string { return e.units[0].place }

// Part is what of the file says it: its messages, as they stand there, one after the other. It begins with the part of the same exchange when
// it was shorter.
func (e *Exchange) Part() []byte {
	parts := make([][]byte, len(e.units))
	for i, u := range e.units {
		parts[i] = u.raw
	}
	return bytes.Join(parts, []byte("\n"))
}

// rest returns what follows after so many bytes of the part; nil: no message ends there.
func (e *Exchange) rest(sealed int64) *Exchange {
	for i, at := 0, int64(0); i < len(e.units)-1; i++ {
		if at += int64(len(e.units[i].raw)); at == sealed {
			next := e.units[i+1]
			r := &Exchange{Conversation: e.Conversation, Entry: next.id, own: next.id != "", units: e.units[i+1:], lacks: e.lacks}
			if !r.own {
				first, _ := strconv.Atoi(e.Entry) // without ids of its own, entries are numbers
				r.Entry = strconv.Itoa(first + i + 1)
			}
			return r
		}
		at++ // of the line end
	}
	return nil
}

// said returns what was said to the agent, and what it answered, with the results of tools that its provider ran meanwhile.
func (e *Exchange) said() (prompt, response []subject.Message) {
	var all []subject.Message
	at := -1
	for _, u := range e.units {
		if at < 0 && u.answers() {
			at = len(all) + slices.IndexFunc(u.messages, isAnswer)
		}
		all = append(all, u.messages...)
	}
	if e.whole && len(all) > 0 && all[len(all)-1].Role == subject.Assistant {
		at = len(all) - 1
	}
	if at < 0 {
		return all, nil
	}
	return all[:at], all[at:]
}

// A gathering puts the messages of one conversation together as exchanges.
type gathering struct {
	conversation string
	count        int // of units
	open         []unit
	first        int      // the number of the first open unit
	answered     bool     // or there was an error in the place of an answer
	lacks        []string // what the conversation lacks, in words
	size         int
}

// mostOpen bounds what is held of one exchange: more is another.
const mostOpen = 32 << 20

// add takes the next message of the conversation. It returns an exchange that ended before it, or nil.
func (g *gathering) add(u unit) (done *Exchange) {
	if g.answered && len(u.messages) > 0 && !u.answers() || g.size > mostOpen {
		done = g.end()
	}
	if g.count++; g.open == nil {
		g.first = g.count
	}
	g.open = append(g.open, u)
	g.size += len(u.raw)
	g.answered = g.answered || u.answers() || u.failed != ""
	return done
}

// end returns the exchange that is open, or nil.
func (g *gathering) end() *Exchange {
	open, first := g.open, g.first
	g.open, g.answered, g.size = nil, false, 0
	if len(open) == 0 || !slices.ContainsFunc(open, func(u unit) bool { return len(u.messages) > 0 || u.failed != "" }) {
		return nil
	}
	e := &Exchange{Conversation: g.conversation, Entry: open[0].id, own: open[0].id != "", units: open, lacks: slices.Clone(g.lacks)}
	if !e.own {
		e.Entry = strconv.Itoa(first)
	}
	return e
}

// last is the newest open unit, or nil.
func (g *gathering) last() *unit {
	if len(g.open) == 0 {
		return nil
	}
	return &g.open[len(g.open)-1]
}
