package recording

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
)

// conversations finds the chain of a call: the conversation that it continues. It remembers what each conversation looked like after its
// last answer. It is safe for concurrent use.
//
// A call continues a conversation if its messages begin with all messages of it, the last answer included. Two conversations may look the
// same. Then nobody can say which of them is continued, and a new chain begins.
type conversations struct {
	most int // how many states are remembered

	mu     sync.Mutex
	states map[state]*list.Element // of remembered
	order  *list.List              // of *remembered, the one that was used last first
}

// A state is what a conversation of an agent looked like: its messages, or the provider's id of its last answer.
type state struct {
	agent string
	sum   [sha256.Size]byte
}

type remembered struct {
	state state
	chain string // "": several look like this
}

// said is what a call says about the conversation that it belongs to.
type said struct {
	agent    string
	trace    string         // the trace id of its traceparent; "": none
	previous string         // the provider's id of the answer that it continues; "": none
	prompt   jsontext.Value // an array of chat messages, canonical; nil: unknown
	response jsontext.Value // a string, a message, or an array of messages; nil: there was no answer
	id       string         // the provider's id of the answer; "": none
	refers   string         // to what the provider keeps: a conversation, or else a message of one; "": to nothing
	made     []string       // what later calls may refer to
	kept     []string       // what the other side knows the conversation by, the surest first; of such a call nothing else counts
}

// fresh is the chain of a call that continues none: that of the context or the task that an agent keeps or, of a call without one, a chain of its own.
func (s said) fresh(recordID string) string {
	if len(s.kept) == 0 {
		return ChainOf(s.agent, recordID)
	}
	_, name, _ := strings.Cut(s.kept[0], ":")
	chain := ChainOf(s.agent, "context-"+name) // callers may choose it, and must not choose another chain by it
	if evidence.CheckName(chain) != nil || !observed.IsPlain(name) {
		chain = ChainOf(s.agent, "context-"+evidence.DigestOf([]byte(name)).String())
	}
	return chain
}

// mostMade bounds what is remembered of one answer: the last of it, to which the next call refers.
const mostMade = 32

// conversationIn returns a reference to a conversation, and "" for another.
func conversationIn(reference string) string {
	if strings.HasPrefix(reference, "conversation:") {
		return reference
	}
	return ""
}

func newConversations(most int) *conversations {
	return &conversations{most: most, states: map[state]*list.Element{}, order: list.New()}
}

// place returns the chain of a call, and remembers how the conversation looks after it. fresh is the chain to use if it continues none.
func (c *conversations) place(s said, fresh string) string {
	begun := beginnings(s.prompt)
	c.mu.Lock()
	defer c.mu.Unlock()
	chain := c.find(s, begun, fresh)
	for _, name := range s.kept {
		c.remember(state{s.agent, hashOf("kept", name)}, chain)
	}
	if s.id != "" {
		c.remember(state{s.agent, hashOf("id", s.id)}, chain)
	}
	for _, name := range s.made[max(0, len(s.made)-mostMade):] {
		c.remember(state{s.agent, hashOf("made", name)}, chain)
	}
	if len(s.response) > 0 {
		var last [sha256.Size]byte
		if len(begun) > 0 {
			last = begun[len(begun)-1].sum
		}
		answer := following(last, messagesOf(s.response))
		n := len(answer)
		if n > 0 {
			c.rememberAnswer(s.agent, answer[n-1], chain)
		}
		if n > 1 { // of an answer with tools that the provider ran, many programs send back the last message alone
			c.rememberAnswer(s.agent, following(last, []jsontext.Value{answer[n-1].message})[0], chain)
		}
	}
	return chain
}

// rememberAnswer remembers how a conversation looks after the last message of an answer. Of calls to which the provider gave no ids, programs make ids of their own.
func (c *conversations) rememberAnswer(agent string, b beginning, chain string) {
	c.remember(state{agent, b.sum}, chain)
	if bytes.Contains(b.message, []byte(`"id":"`+observe.Numbered)) {
		if sum, is := b.unnamed(); is {
			c.remember(state{agent, sum}, chain)
		}
	}
}

func (c *conversations) find(s said, begun []beginning, fresh string) string {
	if len(s.kept) > 0 {
		for _, name := range s.kept {
			if chain := c.recall(state{s.agent, hashOf("kept", name)}); chain != "" {
				return chain
			}
		}
		return fresh
	}
	if s.previous != "" {
		if chain := c.recall(state{s.agent, hashOf("id", s.previous)}); chain != "" {
			return chain
		}
	}
	if s.refers != "" {
		if chain := c.recall(state{s.agent, hashOf("made", s.refers)}); chain != "" {
			return chain
		}
	}
	for _, b := range slices.Backward(begun) {
		of := state{s.agent, b.sum}
		if c.states[of] == nil {
			of.sum, _ = b.unnamed()
		}
		if c.states[of] != nil {
			return cmp.Or(c.recall(of), fresh) // fresh: several conversations look like this
		}
	}
	if s.trace != "" {
		of := state{s.agent, hashOf("trace", s.trace)}
		if c.recall(of) == "" {
			c.remember(of, fresh)
		}
		return c.recall(of)
	}
	return fresh
}

func (c *conversations) recall(s state) string {
	e := c.states[s]
	if e == nil {
		return ""
	}
	c.order.MoveToFront(e)
	return e.Value.(*remembered).chain
}

func (c *conversations) remember(s state, chain string) {
	if e := c.states[s]; e != nil {
		if r := e.Value.(*remembered); r.chain != chain {
			r.chain = ""
		}
		c.order.MoveToFront(e)
		return
	}
	c.states[s] = c.order.PushFront(&remembered{s, chain})
	for c.order.Len() > c.most {
		last := c.order.Remove(c.order.Back()).(*remembered)
		delete(c.states, last.state)
	}
}

// A beginning is a conversation up to one of its messages.
type beginning struct {
	before, sum [sha256.Size]byte // without and with the message
	message     jsontext.Value
}

// beginnings returns each beginning of a conversation: the first message, the first two, and so on.
func beginnings(prompt jsontext.Value) []beginning {
	return following([sha256.Size]byte{}, messagesOf(prompt))
}

func following(last [sha256.Size]byte, messages []jsontext.Value) []beginning {
	list := make([]beginning, len(messages))
	for i, m := range messages {
		list[i] = beginning{last, follow(last, m), m}
		last = list[i].sum
	}
	return list
}

// unnamed returns the sum of a beginning whose last message has calls, as if these had no ids.
func (b *beginning) unnamed() (sum [sha256.Size]byte, is bool) {
	if !bytes.Contains(b.message, []byte(`"tool_calls":`)) {
		return sum, false
	}
	return digest(b.before, resembling(b.message, false)), true
}

func follow(before [sha256.Size]byte, message jsontext.Value) [sha256.Size]byte {
	return digest(before, alike(message))
}

func digest(before [sha256.Size]byte, message jsontext.Value) [sha256.Size]byte {
	h := sha256.New()
	h.Write(before[:])
	h.Write(message)
	return [sha256.Size]byte(h.Sum(nil))
}

// alike is a model's message as programs send it back.
func alike(message jsontext.Value) jsontext.Value {
	if !bytes.Contains(message, []byte(`"arguments":`)) && !spaced(message) && !named(message) {
		return message
	}
	return resembling(message, true)
}

// named reports whether a message in canonical form may be one of the model to which the program gave a name.
func named(message []byte) bool {
	return bytes.Contains(message, []byte(`"name":`)) && bytes.Contains(message, []byte(`"role":"assistant"`))
}

// resembling is a model's message with the arguments of its calls in canonical form, without white space around its text, and without the name that a program
// gives to its model: many programs read what the model wrote, and write it anew. ids says whether the calls keep theirs.
func resembling(message jsontext.Value, ids bool) jsontext.Value {
	var m struct {
		Content jsontext.Value `json:"content"`
		Name    jsontext.Value `json:"name,omitzero"`
		Role    string         `json:"role"`
		Calls   []struct {
			ID       jsontext.Value `json:"id,omitzero"`
			Function struct {
				Arguments string         `json:"arguments,omitzero"`
				Rest      jsontext.Value `json:",embed"`
			} `json:"function"`
			Rest jsontext.Value `json:",embed"`
		} `json:"tool_calls,omitzero"`
		Rest jsontext.Value `json:",embed"`
	}
	if json.Unmarshal(message, &m) != nil {
		return message
	}
	var text string
	if m.Content.Kind() == '"' && json.Unmarshal(m.Content, &text) == nil {
		if quoted, err := jsontext.AppendQuote(nil, strings.TrimSpace(text)); err == nil {
			m.Content = quoted
		}
	}
	if m.Role == "assistant" {
		m.Name = nil
	}
	for i := range m.Calls {
		if !ids {
			m.Calls[i].ID = nil
		}
		f := &m.Calls[i].Function
		if form, err := evidence.Canonical([]byte(f.Arguments)); err == nil {
			f.Arguments = string(form)
		}
	}
	doc, err := json.Marshal(m)
	if err == nil {
		doc, err = evidence.Canonical(doc)
	}
	if err != nil {
		return message
	}
	return doc
}

// spaced reports whether a message in canonical form may be a model's text that begins or ends with white space.
func spaced(message []byte) bool {
	text, is := bytes.CutPrefix(message, []byte(`{"content":"`))
	end := bytes.LastIndex(text, []byte(`","role":"assistant"`))
	if !is || end < 0 {
		return false
	}
	for _, white := range []string{" ", `\n`, `\r`, `\t`} {
		if bytes.HasPrefix(text[:end], []byte(white)) || bytes.HasSuffix(text[:end], []byte(white)) {
			return true
		}
	}
	return false
}

func hashOf(kind, text string) [sha256.Size]byte {
	return sha256.Sum256([]byte(kind + "\x00" + text))
}

// messagesOf returns the messages of a prompt or an answer, in canonical form. A string is a message of the assistant.
func messagesOf(v jsontext.Value) []jsontext.Value {
	switch v.Kind() {
	case '[':
		return elements(v)
	case '{':
		return []jsontext.Value{v}
	case '"':
		return []jsontext.Value{slices.Concat(jsontext.Value(`{"content":`), bytes.TrimSpace(v), jsontext.Value(`,"role":"assistant"}`))}
	}
	return nil
}

// elements returns the elements of an array. They are parts of it.
func elements(v jsontext.Value) []jsontext.Value {
	var list []jsontext.Value
	d := jsontext.NewDecoder(bytes.NewBuffer(v)) // a bytes.Buffer is read in place
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	for d.PeekKind() != ']' && d.PeekKind() != 0 {
		e, err := d.ReadValue()
		if err != nil {
			return nil
		}
		end := d.InputOffset()
		list = append(list, v[end-int64(len(e)):end:end])
	}
	return list
}

// traceOf returns the trace id of a W3C traceparent header, or "".
func traceOf(header string) string {
	parts := strings.Split(header, "-")
	if len(parts) < 4 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[1], "0123456789abcdef") != "" {
		return ""
	}
	return parts[1]
}
