package subject

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Talks are the conversations that recorders saw, by agent and chain.
type talks map[string]*talk

// A talk knows each beginning of its conversations that was shown, and the conversation that came last. It knows them by
// their digests, so that each prompt is read once, however many came before.
type talk struct {
	root  beginning
	begun map[beginning]int // the number of the last message of each beginning
	last  []stood
}

// A beginning identifies the first messages of a conversation, in their order.
type beginning [sha256.Size]byte

// A stood is a message of a conversation, and the number under which it is shown.
type stood struct {
	message beginning
	number  int
}

func (t *talks) of(agent, chain string) *talk {
	if *t == nil {
		*t = talks{}
	}
	key := agent + "\x00" + chain
	if (*t)[key] == nil {
		(*t)[key] = &talk{begun: map[beginning]int{}}
	}
	return (*t)[key]
}

// after is the beginning that has one message more.
func (b beginning) after(message beginning) beginning {
	return sha256.Sum256(append(b[:], message[:]...))
}

// alone identifies a message, wherever it stands: what sameMessage compares, but arguments by what they mean.
func alone(m *Message) beginning {
	h := sha256.New()
	write := func(texts ...string) {
		for _, text := range texts {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
			h.Write([]byte(text))
		}
	}
	write(string(m.Role), m.Text, m.ToolCallID)
	for _, call := range m.ToolCalls {
		arguments := call.Arguments
		if call.Args != nil {
			arguments = string(call.Args)
		}
		write(call.ID, call.Name, arguments)
	}
	return beginning(h.Sum(nil))
}

func aloneEach(messages []Message) []beginning {
	list := make([]beginning, len(messages))
	for i := range messages {
		list[i] = alone(&messages[i])
	}
	return list
}

// tries bounds how many places are compared for a prompt that does not begin as the conversation did.
const tries = 8

// repeated returns the first messages of a prompt that were shown before: the longest beginning that is known and, of a
// program that leaves out what is long ago, what follows of the conversation that came last, up to its end.
func (t *talk) repeated(prompt []beginning) (line []stood) {
	at := t.root
	for _, message := range prompt {
		at = at.after(message)
		number := t.begun[at]
		if number == 0 {
			break
		}
		line = append(line, stood{message, number})
	}
	rest := prompt[len(line):]
	if len(rest) == 0 {
		return line
	}
	for i, tried := len(t.last)-1, 0; i >= len(line) && tried < tries; i-- {
		if t.last[i].message != rest[0] {
			continue
		}
		tried++
		end := t.last[i:]
		if len(end) <= len(rest) && slices.EqualFunc(end, rest[:len(end)], func(s stood, message beginning) bool { return s.message == message }) {
			return append(line, end...)
		}
	}
	return line
}

// ends returns the number of the last message of an answer that was given to the same prompt before; 0 if there is none.
func (t *talk) ends(prompt, response []beginning) int {
	if len(response) == 0 {
		return 0
	}
	at := t.root
	for _, message := range slices.Concat(prompt, response) {
		at = at.after(message)
	}
	return t.begun[at]
}

// keep notes a conversation that was shown.
func (t *talk) keep(line []stood) {
	at := t.root
	for _, s := range line {
		if at = at.after(s.message); t.begun[at] == 0 {
			t.begun[at] = s.number
		}
	}
	t.last = line
}
