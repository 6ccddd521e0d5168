package convo

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrCut is the error of a stream that ends before the vendor's last event. The readers return the part that came
// with it.
var ErrCut = errors.New("the stream ends before its last event")

// ErrDiffers is the error of a stream whose pieces say something else than the complete answer in its last event, which is the answer then.
var ErrDiffers = errors.New("the pieces of the stream differ from the complete answer at its end")

// ErrUnended is ErrCut of a stream in which each answer that began says why it stopped. Some servers send nothing more.
var ErrUnended = fmt.Errorf("%w, and all answers had stopped", ErrCut)

// A StreamError is an error that a vendor reports within a stream, after a success status.
type StreamError struct{ Body jsontext.Value } // in the form of the vendor's errors

func (e *StreamError) Error() string { return "the vendor ends the stream with an error" }

// An Event is one server-sent event.
type Event struct {
	Name string // "": message
	Data []byte
}

// Events splits a body into server-sent events by the HTML standard (section 9.2.6): lines end with CR, LF or both,
// an empty line ends an event, and an event without an empty line at its end does not count.
func Events(body []byte) iter.Seq[Event] { return events(body, func([]byte) bool { return false }) }

// answerEvents returns the events of a model's answer that have data. Some servers leave out the empty line at the end: there, an event
// counts if its data is whole.
func answerEvents(body []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range events(body, func(data []byte) bool { return string(data) == done || isObject(data) }) {
			if len(bytes.TrimSpace(e.Data)) > 0 && !yield(e) {
				return
			}
		}
	}
}

const done = "[DONE]" // the data of OpenAI's last event

func isObject(data []byte) bool {
	return bytes.HasPrefix(data, []byte("{")) && jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// events returns events, and one without an empty line at its end if its data counts.
func events(body []byte, counts func(data []byte) bool) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		body = bytes.TrimPrefix(body, []byte("\ufeff"))
		var e Event
		some := false
		for len(body) > 0 {
			end := bytes.IndexAny(body, "\r\n")
			if end < 0 {
				end = len(body)
			}
			line := body[:end]
			if bytes.HasPrefix(body[end:], []byte("\r\n")) {
				end++
			}
			body = body[min(end+1, len(body)):]
			if len(line) == 0 {
				if some && !yield(e) {
					return
				}
				e, some = Event{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "event":
				e.Name = string(value)
			case "data":
				if some {
					e.Data = append(e.Data, '\n')
				}
				e.Data, some = append(e.Data, value...), true
			}
		}
		if some && counts(e.Data) {
			yield(e)
		}
	}
}

// A Streamed is the answer that the events of a stream make, in the form of a whole one, as far as a [Reader] reads that. Counts and names of models are facts,
// which package observed finds.
type Streamed struct {
	Answer  jsontext.Value
	Strange bool // an event is JSON with a member twice or a broken character, or has another value for a text: it is read as most libraries do
}

// A sum puts events together. What comes in pieces is appended to buffers, so that its time is in proportion to what arrived.
type sum struct {
	whole   map[string]any // what grew so far: of objects, parts, texts that grow, and values as they came
	strange bool
	values  int // in arguments of Gemini that come in pieces
}

// A grows is how a value grows by what an event has of it: it returns the value with that. One table of them for each vendor says what an answer has.
type grows func(s *sum, has any, more *Node) (any, error)

func newSum() sum { return sum{whole: map[string]any{}} }

// grow grows the answer.
func (s *sum) grow(answer grows, more *Node) error {
	_, err := answer(s, s.whole, more)
	return err
}

// streamed is what came, with the error that ended it; or no answer, and why it cannot be written.
func (s *sum) streamed(err error) (Streamed, error) {
	doc, failed := json.Marshal(s.whole, lenient, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if failed != nil {
		return Streamed{}, failed
	}
	return Streamed{doc, s.strange}, err
}

// event reads the data of an event, which is an object, or null for nothing.
func (s *sum) event(data []byte) (*Node, error) {
	v := jsontext.Value(data)
	if !v.IsValid() {
		s.strange = true
	}
	if !v.IsValid(lenient) {
		return nil, errNotTheProtocol
	}
	n, err := ReadLenient(v)
	if err == nil && n.Kind != '{' && n.Kind != 'n' {
		err = errNotTheProtocol
	}
	return n, err
}

var errNotTheProtocol = errors.New("an event does not follow the vendor's protocol")

// mistyped names the member that has the wrong type.
func mistyped(n *Node) error {
	return fmt.Errorf("%w: %s has the wrong type", errNotTheProtocol, n.Pointer())
}

// word is a member that is a text. Servers beside the vendors' own write numbers as ids, and more.
func (s *sum) word(n *Node) string {
	switch {
	case n.Absent():
		return ""
	case n.Kind == '"':
		return n.Text
	}
	s.strange = true
	return string(n.Raw())
}

// numberIn reads the number of a choice, block, call or candidate.
func numberIn(n *Node) (int, error) {
	if n.Absent() {
		return 0, nil
	}
	i, err := strconv.Atoi(n.Text)
	switch {
	case n.Kind != '0' || err != nil:
		return 0, mistyped(n)
	case i < 0 || i > maxIndex:
		return 0, fmt.Errorf("%s: number %d is out of range", n.Pointer(), i)
	}
	return i, nil
}

// maxIndex limits the number of a choice, block, call or candidate in a stream.
const maxIndex = 1 << 10

// text grows by each text. It marshals as one.
func text(s *sum, has any, more *Node) (any, error) {
	return appended(has, s.word(more)), nil
}

func appended(has any, more string) any {
	if has == nil && more == "" {
		return nil
	}
	known, _ := has.(grown)
	return append(known, more...)
}

// A grown text is a text that comes in pieces.
type grown []byte

// MarshalText returns the text.
func (g grown) MarshalText() ([]byte, error) { return g, nil }

// lastWord is the last text that is not empty.
func lastWord(s *sum, has any, more *Node) (any, error) {
	if said := s.word(more); said != "" {
		return said, nil
	}
	return has, nil
}

// last is the last value that is neither null nor empty.
func last(_ *sum, has any, more *Node) (any, error) {
	if more.Absent() || more.Kind == '"' && more.Text == "" {
		return has, nil
	}
	return more.Raw(), nil
}

// all are the elements of all arrays.
func all(_ *sum, has any, more *Node) (any, error) {
	list, _ := has.([]any)
	if !more.Absent() && more.Kind != '[' {
		return has, mistyped(more)
	}
	if !more.Absent() {
		for _, one := range more.Members {
			list = append(list, one.Raw())
		}
	}
	return list, nil
}

// object grows member by member. Members of other names grow as "" does; without it, they are left out.
func object(members map[string]grows) grows {
	return func(s *sum, has any, more *Node) (any, error) {
		if more.Absent() {
			return has, nil
		}
		if more.Kind != '{' {
			return has, mistyped(more)
		}
		known, is := has.(map[string]any)
		if !is {
			known = map[string]any{}
		}
		for i, name := range more.Names {
			grow := members[name]
			if grow == nil {
				grow = members[""]
			}
			if grow == nil {
				continue
			}
			v, err := grow(s, known[name], more.Members[i])
			if v != nil {
				known[name] = v
			}
			if err != nil {
				return known, err
			}
		}
		return known, nil
	}
}

// parts are those of an answer, by their numbers. They take memory for what arrived, whatever the numbers are.
type parts map[int]any

// MarshalJSONTo writes an array in the order of the numbers.
func (p parts) MarshalJSONTo(e *jsontext.Encoder) error {
	list := []any{}
	for _, i := range slices.Sorted(maps.Keys(p)) {
		list = append(list, p[i])
	}
	return json.MarshalEncode(e, list)
}

// numbered grows by an array, or by one element alone: each says its number. A null begins one, and says no more; what part leaves out begins none.
func numbered(part grows) grows {
	return func(s *sum, has any, more *Node) (any, error) {
		known, is := has.(parts)
		if !is {
			known = parts{}
		}
		list, err := several(more)
		for _, one := range list {
			i, err := numberIn(one.Get("index"))
			if err != nil {
				return known, err
			}
			v, err := part(s, known[i], one)
			if v == nil && err == nil && one.Absent() {
				v = map[string]any{}
			}
			if v != nil {
				known[i] = v
			}
			if err != nil {
				return known, err
			}
		}
		return known, err
	}
}

func several(n *Node) ([]*Node, error) {
	if list := n.OneOrMore(); list != nil || n.Absent() || n.Kind == '[' {
		return list, nil
	}
	return nil, mistyped(n)
}

// ifRead leaves out what has another form, so that it hides nothing else.
func ifRead(grow grows) grows {
	return func(s *sum, has any, more *Node) (any, error) {
		v, err := grow(s, has, more)
		if errors.Is(err, errNotTheProtocol) {
			return has, nil
		}
		return v, err
	}
}

// The answer of Chat Completions.
var (
	chatAnswer = object(map[string]grows{"id": lastWord, "choices": numbered(object(map[string]grows{"index": last, "finish_reason": lastWord, "error": last, "delta": chatDelta}))})
	chatDelta  = object(map[string]grows{"role": lastWord, "content": chatContent, "refusal": text, "function_call": function, "tool_calls": grownCalls,
		"audio":  ifRead(object(map[string]grows{"id": lastWord, "transcript": text, "data": sound})),
		"images": ifRead(all), "executed_tools": ifRead(numbered(ifRead(object(map[string]grows{"": last}))))})

	function = object(map[string]grows{"name": lastWord, "arguments": arguments})
	aCall    = object(map[string]grows{"id": first, "type": lastWord, "function": function, "custom": object(map[string]grows{"name": lastWord, "input": text})})
)

// ReadChatStream reads a stream of Chat Completions, which [DONE] ends. It returns ErrUnended or ErrCut with the answer so far, a
// *StreamError, or an error about a chunk that does not follow the protocol.
func ReadChatStream(body []byte) (Streamed, error) {
	s := newSum()
	err := s.chat(body)
	for _, choice := range s.choices() {
		choice["message"] = choice["delta"]
		delete(choice, "delta")
	}
	return s.streamed(err)
}

func (s *sum) chat(body []byte) error {
	for e := range answerEvents(body) {
		if string(e.Data) == done {
			return nil
		}
		if e.Name == "error" {
			return &StreamError{e.Data}
		}
		chunk, err := s.event(e.Data)
		if err == nil {
			err = s.grow(chatAnswer, chunk)
		}
		if err != nil {
			return err
		}
		if !chunk.Get("error").Absent() || chunk.Word("object") == "error" {
			return &StreamError{e.Data}
		}
	}
	choices := s.choices()
	if len(choices) > 0 && !slices.ContainsFunc(choices, func(c map[string]any) bool { return c["finish_reason"] == nil }) {
		return ErrUnended
	}
	return ErrCut
}

// choices are the choices of a chat, or the candidates of Gemini.
func (s *sum) choices() (list []map[string]any) {
	for _, name := range []string{"choices", "candidates"} {
		known, _ := s.whole[name].(parts)
		for _, one := range known {
			if choice, is := one.(map[string]any); is {
				list = append(list, choice)
			}
		}
	}
	return list
}

// chatContent grows by a text, or by the texts of parts.
func chatContent(s *sum, has any, more *Node) (any, error) {
	switch {
	case more.Absent():
		return has, nil
	case more.Kind == '"':
		return appended(has, more.Text), nil
	case more.Kind != '[':
		return has, mistyped(more)
	}
	for _, part := range more.Members {
		if part.Word("type") != "reasoning" {
			has = appended(has, s.word(part.Get("text")))
		}
	}
	return has, nil
}

// sound grows by pieces that are encoded by themselves.
func sound(_ *sum, has any, more *Node) (any, error) {
	known, _ := has.([]byte)
	piece, err := base64.StdEncoding.DecodeString(Plain(more))
	if err != nil || len(piece) == 0 {
		return has, nil
	}
	return append(known, piece...), nil
}

// first is the first text that is not empty.
func first(s *sum, has any, more *Node) (any, error) {
	if has != nil {
		return has, nil
	}
	return lastWord(s, has, more)
}

// arguments grow, unless they are sent again when they are whole, as some servers do.
func arguments(_ *sum, has any, more *Node) (any, error) {
	known, _ := has.(grown)
	again := Plain(more)
	if again == string(known) && isObject(known) {
		return has, nil
	}
	return appended(has, again), nil
}

// calls are those of an answer. By the protocol, each has a number, and only its first fragment has id, type and name. Some servers
// number all calls alike, or none, and some repeat the id and the name in every fragment.
type calls struct {
	parts                       // in the order of their numbers, and as they came
	latest *madeCall            // that came last; nil: none
	at     map[int]*madeCall    // the call to which a number belongs
	named  map[string]*madeCall // by id
}

type madeCall struct {
	number, place int    // place is in parts
	id            string // the first that it has
	named         bool   // it has a name
	entire        bool   // it came in one piece: with a name, and with arguments that are an object
}

func grownCalls(s *sum, has any, more *Node) (any, error) {
	known, is := has.(*calls)
	if !is {
		known = &calls{parts: parts{}, at: map[int]*madeCall{}, named: map[string]*madeCall{}}
	}
	list, err := several(more)
	for i := 0; i < len(list) && err == nil; i++ {
		err = known.add(s, list[i])
	}
	return known, err
}

func (c *calls) add(s *sum, fragment *Node) (err error) {
	index, function := fragment.Get("index"), fragment.Get("function")
	told := &madeCall{id: s.word(fragment.Get("id")), named: cmp.Or(function.Word("name"), fragment.Get("custom").Word("name")) != ""}
	told.entire = function.Word("name") != "" && isObject([]byte(Plain(function.Get("arguments"))))
	if told.number, err = numberIn(index); err != nil {
		return err
	}
	call := c.of(told, !index.Absent())
	switch {
	case call != nil:
		call.entire = false
	case len(c.parts) > maxIndex:
		return fmt.Errorf("tool_calls: more than %d", maxIndex)
	default:
		if index.Absent() && c.latest != nil {
			told.number = c.latest.number
		}
		call = &madeCall{number: told.number, place: told.number<<16 + len(c.parts), entire: told.entire}
		c.latest, c.at[call.number] = call, call
	}
	call.id, call.named = cmp.Or(call.id, told.id), call.named || told.named
	if told.id != "" && c.named[told.id] == nil {
		c.named[told.id] = call
	}
	c.parts[call.place], err = aCall(s, c.parts[call.place], fragment)
	return err
}

// of returns the call to which a fragment belongs; nil: it begins one.
func (c *calls) of(told *madeCall, isNumbered bool) *madeCall {
	known, call := c.named[told.id], c.at[told.number]
	switch {
	case !isNumbered && (known != nil || !told.named):
		return cmp.Or(known, c.latest)
	case !isNumbered:
		return nil
	case known != nil && known.number == told.number:
		return known
	case call == nil || !told.named || !call.named:
		return call
	}
	another := told.id != "" && call.id != "" && told.id != call.id
	if another || told.id == "" && call.id == "" && call.entire && told.entire {
		return nil
	}
	return call
}
