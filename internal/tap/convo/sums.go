package convo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The answer of Messages.
var (
	messageStart = object(map[string]grows{"id": lastWord, "type": lastWord, "content": all, "stop_reason": lastWord})
	blockStart   = object(map[string]grows{"text": text, "": last})
	blockDelta   = object(map[string]grows{"text": text, "partial_json": text})
	messageDelta = object(map[string]grows{"stop_reason": lastWord})
)

// ReadMessagesStream reads a stream of Anthropic's Messages API, which message_stop ends. It returns ErrUnended or ErrCut with the
// answer so far, a *StreamError, or an error about an event that does not follow the protocol.
func ReadMessagesStream(body []byte) (Streamed, error) {
	m := &messagesSum{sum: newSum(), blocks: parts{}}
	err := m.read(body)
	content, _ := m.whole["content"].([]any)
	for _, i := range slices.Sorted(maps.Keys(m.blocks)) {
		block := m.blocks[i].(map[string]any)
		if input, is := block["partial_json"].(grown); is { // before its deltas, a block has an empty object
			block["input"] = input
			if v := jsontext.Value(input); v.IsValid(lenient) {
				block["input"] = v
			}
			delete(block, "partial_json")
		}
		content = append(content, block)
	}
	m.whole["content"] = content
	return m.streamed(err)
}

type messagesSum struct {
	sum
	blocks  parts
	stopped bool // the event after the last block said why
}

func (m *messagesSum) read(body []byte) error {
	for e := range answerEvents(body) {
		if e.Name == "error" {
			return &StreamError{e.Data}
		}
		event, err := m.event(e.Data)
		if err != nil {
			return err
		}
		switch kind := m.word(event.Get("type")); kind {
		case "message_stop":
			return nil
		case "error":
			return &StreamError{e.Data}
		default:
			if err := m.add(kind, event); err != nil && !errors.Is(err, errNotTheProtocol) {
				return fmt.Errorf("event %s: %w", kind, err)
			} else if err != nil {
				return err
			}
		}
	}
	if m.stopped {
		return ErrUnended
	}
	return ErrCut
}

func (m *messagesSum) add(kind string, event *Node) error {
	i, err := numberIn(event.Get("index"))
	if err != nil {
		return err
	}
	switch block, message, delta := event.Get("content_block"), event.Get("message"), event.Get("delta"); kind {
	case "message_start":
		if message.Absent() {
			return errors.New("there is no message")
		}
		clear(m.blocks)
		m.stopped = false
		clear(m.whole)
		err = m.grow(messageStart, message)
	case "content_block_start":
		if block.Absent() {
			return errors.New("there is no content_block")
		}
		m.blocks[i], err = blockStart(&m.sum, map[string]any{}, block)
	case "content_block_delta":
		if m.blocks[i] == nil {
			return fmt.Errorf("block %d was not started", i)
		}
		m.blocks[i], err = blockDelta(&m.sum, m.blocks[i], delta)
	case "message_delta":
		m.stopped = m.stopped || m.word(delta.Get("stop_reason")) != ""
		err = m.grow(messageDelta, delta)
	}
	return err
}

// ReadResponsesStream reads a stream of OpenAI's Responses API. The last event has the complete answer, or all of it but the items, which
// then are those of the events before. It returns ErrDiffers, ErrCut with what the pieces said so far, a *StreamError, or an error about an event that does not
// follow the protocol.
func ReadResponsesStream(body []byte) (Streamed, error) {
	r := &responsesSum{sum: newSum(), items: map[int]*itemSum{}}
	ended, err := r.read(body)
	if n := ended.Get("output"); err == nil && !n.Absent() && n.Kind != '[' {
		err = mistyped(n)
	}
	if output := ended.Get("output").List(); len(output) > 0 {
		if r.differs(output) {
			err = ErrDiffers
		}
		return Streamed{ended.Raw(), r.strange}, err
	}
	if ended != nil { // of what the first events said nothing stays
		clear(r.whole)
	}
	r.begin(ended)
	r.whole["output"] = r.output()
	return r.streamed(err)
}

type responsesSum struct {
	sum   // as the first events describe it
	items map[int]*itemSum
}

type itemSum struct {
	item   *Node          // as it was added; nil: it was not
	pieces map[string]any // of a call, by what they are of: arguments or input
	parts  parts          // of a message: each has a text, a refusal or both, in pieces
}

// pieceOf says what the pieces in an event are of.
var pieceOf = map[string]string{"response.output_text.delta": "text", "response.refusal.delta": "refusal",
	"response.function_call_arguments.delta": "arguments", "response.mcp_call_arguments.delta": "arguments", "response.custom_tool_call_input.delta": "input"}

func (r *responsesSum) read(body []byte) (ended *Node, err error) {
	for e := range answerEvents(body) {
		if string(e.Data) == done { // some servers add it
			break
		}
		event, err := r.event(e.Data)
		if err != nil {
			return nil, err
		}
		switch kind, response := r.word(event.Get("type")), event.Get("response"); kind {
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
			if response.Absent() {
				return nil, fmt.Errorf("event %s has no response", kind)
			}
			if response.Kind != '{' {
				return nil, mistyped(response)
			}
			return response, nil
		case "response.created", "response.queued", "response.in_progress":
			r.begin(response)
		case "error":
			return nil, &StreamError{e.Data}
		default:
			if err := r.add(kind, event); err != nil {
				return nil, fmt.Errorf("event %s: %w", kind, err)
			}
		}
	}
	return nil, ErrCut
}

func (r *responsesSum) add(kind string, event *Node) error {
	added := kind == "response.output_item.added" || kind == "response.output_item.done"
	if pieceOf[kind] == "" && !added {
		return nil
	}
	number, err := numberIn(event.Get("output_index"))
	if err != nil {
		return err
	}
	if r.items[number] == nil {
		r.items[number] = &itemSum{pieces: map[string]any{}, parts: parts{}}
	}
	item, as, piece := r.items[number], event.Get("item"), event.Get("delta")
	switch {
	case !added && piece == nil:
		return fmt.Errorf("delta: want a string, found %s", piece.KindName())
	case !added:
		return item.take(pieceOf[kind], event.Get("content_index"), r.word(piece))
	case as.Absent():
	case as.Kind != '{':
		return mistyped(as)
	default:
		item.item = as
	}
	return nil
}

// take takes a piece. An empty one says that there is a part, and replaces nothing.
func (i *itemSum) take(of string, part *Node, piece string) error {
	into := i.pieces
	if of == "text" || of == "refusal" {
		number, err := numberIn(part)
		if err != nil {
			return err
		}
		if i.parts[number] == nil {
			i.parts[number] = map[string]any{}
		}
		into = i.parts[number].(map[string]any)
	}
	if v := appended(into[of], piece); v != nil {
		into[of] = v
	}
	return nil
}

// begin takes an answer without its items.
func (r *responsesSum) begin(answer *Node) { maps.Copy(r.whole, answer.ByName()) }

// output are the items that the pieces make.
func (r *responsesSum) output() parts {
	list := parts{}
	for number, i := range r.items {
		item, said := i.item.ByName(), i.said()
		maps.Copy(item, i.pieces)
		if len(said) > 0 {
			item["content"] = said
			if i.item.Word("type") == "" {
				item["type"], item["role"] = "message", Assistant
			}
		}
		list[number] = item
	}
	return list
}

// said are the parts that the pieces make, in the order of their numbers.
func (i *itemSum) said() (list []map[string]any) {
	for _, number := range slices.Sorted(maps.Keys(i.parts)) {
		part := i.parts[number].(map[string]any)
		for _, as := range [][2]string{{"output_text", "text"}, {"refusal", "refusal"}} {
			if piece := part[as[1]]; piece != nil {
				list = append(list, map[string]any{"type": as[0], as[1]: piece})
			}
		}
	}
	return list
}

// differs compares the pieces that arrived with the items of the last event. A stream need not have pieces of everything.
func (r *responsesSum) differs(output []*Node) bool {
	for number, i := range r.items {
		if i.item.Word("type") == "" && len(i.pieces) == 0 && len(i.parts) == 0 {
			continue
		}
		if number >= len(output) || i.differs(output[number]) {
			return true
		}
	}
	return false
}

func (i *itemSum) differs(whole *Node) bool {
	if kind := i.item.Word("type"); kind != "" && kind != whole.Word("type") {
		return true
	}
	for name, piece := range i.pieces {
		if string(piece.(grown)) != Plain(whole.Get(name)) {
			return true
		}
	}
	if len(i.parts) == 0 {
		return false
	}
	for _, name := range []string{"text", "refusal"} { // servers count the parts in different ways
		var pieces, all strings.Builder
		for _, part := range i.said() {
			piece, _ := part[name].(grown)
			pieces.Write(piece)
		}
		for _, part := range whole.Get("content").List() {
			all.WriteString(Plain(part.Get(name)))
		}
		if pieces.String() != all.String() {
			return true
		}
	}
	return false
}

// The answer of generateContent.
var (
	geminiAnswer = object(map[string]grows{"responseId": lastWord, "promptFeedback": blocked, "candidates": candidates})
	candidate    = object(map[string]grows{"index": last, "finishReason": lastWord, "content": object(map[string]grows{"role": lastWord, "parts": contentParts})})
	candidates   = numbered(func(s *sum, has any, more *Node) (any, error) {
		if more.Absent() {
			return has, errors.New("candidates: one is null")
		}
		return candidate(s, has, more)
	})
)

// blocked is the last feedback that says why the prompt was blocked.
func blocked(s *sum, has any, more *Node) (any, error) {
	if s.word(more.Get("blockReason")) == "" {
		return has, nil
	}
	return more.Raw(), nil
}

// ReadGenerateStream reads a stream of Gemini's streamGenerateContent: server-sent events, or one JSON array. The
// last chunk has a finish reason or a blocked prompt. It returns ErrCut with the answer so far, a *StreamError, or an
// error about a chunk that does not follow the protocol.
func ReadGenerateStream(body []byte) (Streamed, error) {
	s := newSum()
	return s.streamed(s.generate(body))
}

func (s *sum) generate(body []byte) error {
	for data, err := range generateChunks(body) {
		if err != nil {
			return err
		}
		chunk, err := s.event(data)
		if err != nil {
			return err
		}
		failure := chunk.Get("error")
		if inside := chunk.Get("response"); !inside.Absent() { // of Google's Code Assist
			chunk = inside
			failure = cmp.Or(inside.First("error"), failure)
		}
		err = s.grow(geminiAnswer, chunk)
		if !failure.Absent() { // what stands beside it is kept
			return &StreamError{fmt.Appendf(nil, `{"error":%s}`, failure.Raw())}
		}
		if err != nil {
			return err
		}
	}
	if s.whole["promptFeedback"] != nil {
		return nil
	}
	given := s.choices()
	if len(given) == 0 || slices.ContainsFunc(given, func(c map[string]any) bool { return c["finishReason"] == nil }) {
		return ErrCut
	}
	return nil
}

// generateChunks returns the chunks of a stream in either form. The error ErrCut ends an array without an end.
func generateChunks(body []byte) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		body := bytes.TrimPrefix(body, []byte("\ufeff"))
		if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
			for e := range answerEvents(body) {
				if !yield(e.Data, nil) {
					return
				}
			}
			return
		}
		d := jsontext.NewDecoder(bytes.NewBuffer(body), lenient) // a bytes.Buffer is read in place
		_, err := d.ReadToken()
		for err == nil && d.PeekKind() == jsontext.KindBeginObject {
			var v jsontext.Value
			if v, err = d.ReadValue(); err == nil && !yield(v.Clone(), nil) {
				return
			}
		}
		if err == nil {
			_, err = d.ReadToken()
		}
		if err != nil {
			yield(nil, ErrCut)
		}
	}
}

// contentParts are the parts of a content. A function call without a name is the next piece of the one before.
func contentParts(s *sum, has any, more *Node) (any, error) {
	known, is := has.(*pieced)
	if !is {
		known = &pieced{parts: parts{}}
	}
	list, err := several(more)
	for _, part := range list {
		switch part.Kind {
		case 'n':
		case '{':
			err = known.take(s, part)
		default:
			err = mistyped(part)
		}
		if err != nil {
			return known, err
		}
	}
	return known, err
}

// pieced are parts of which the last call may come in pieces.
type pieced struct {
	parts
	open map[string]any // the call of which more pieces come; nil: none
}

func (p *pieced) add(part any) { p.parts[len(p.parts)] = part }

// take takes a part. It counts the values in all that comes in pieces.
func (p *pieced) take(s *sum, part *Node) error {
	call := part.First("functionCall", "function_call")
	if call == nil {
		p.add(part.Raw())
		return nil
	}
	name, args, more := s.word(call.Get("name")), call.Get("args"), call.First("partialArgs")
	if name != "" || p.open == nil {
		if name == "" && s.word(call.Get("id")) == "" && more == nil && args.Absent() { // the end of a call that has ended
			return nil
		}
		if !call.Get("willContinue").IsTrue() && more == nil { // in one piece, which may come between those of another
			p.add(part.Raw())
			return nil
		}
		p.open = map[string]any{"id": s.word(call.Get("id")), "name": name, "args": map[string]any{}}
		if args != nil && !args.Empty() {
			p.open["args"] = args.Raw()
		}
		whole := part.ByName()
		delete(whole, "function_call")
		whole["functionCall"] = p.open
		p.add(whole)
	}
	into := p.open
	if !call.Get("willContinue").IsTrue() {
		p.open = nil
	}
	pieces, err := several(more)
	for _, piece := range pieces {
		path, found := strings.CutPrefix(piece.Word("jsonPath"), "$")
		if !found || len(path) > longestPath {
			return fmt.Errorf("partialArgs: a path does not begin with $, or is longer than %d bytes", longestPath)
		}
		if into["args"], err = put(into["args"], path, piece, 0, &s.values); err != nil {
			return fmt.Errorf("partialArgs: %w", err)
		}
	}
	return err
}

const (
	mostSteps   = 64      // how deep a value can be
	longestPath = 4096    // in bytes
	mostEmpty   = 8       // elements of which no piece came before the next
	mostValues  = 1 << 16 // in the arguments of all calls of a stream: short paths can ask for many
)

// put returns a value with a piece put where a path says: an object (of which an empty one is also a value of which no piece came), an array, a
// text that grows, or another value. It counts the values that are new.
func put(in any, path string, piece *Node, steps int, values *int) (any, error) {
	if path == "" {
		return putOn(in, piece), nil
	}
	name, number, rest, err := step(path)
	if err == nil && steps == mostSteps {
		err = fmt.Errorf("a path has more than %d steps", mostSteps)
	}
	if err != nil {
		return in, err
	}
	members, isObject := in.(map[string]any)
	list, isList := in.([]any)
	var next any = map[string]any{}
	added := 0
	switch {
	case number < 0 && isObject:
		if known, there := members[name]; there {
			next = known
		} else {
			added = 1
		}
	case number >= 0 && (isList || isObject && len(members) == 0):
		if number > len(list)+mostEmpty {
			return in, fmt.Errorf("element %d comes before element %d", number, len(list))
		}
		for ; number >= len(list); added++ {
			list = append(list, map[string]any{})
		}
		next = list[number]
	default:
		return in, errors.New("a path leads into a value of another kind")
	}
	if *values += added; *values > mostValues {
		return in, fmt.Errorf("more than %d values: the others are left out", mostValues)
	}
	if next, err = put(next, rest, piece, steps+1, values); number < 0 {
		members[name] = next
		return members, err
	}
	list[number] = next
	return list, err
}

// putOn returns what a piece puts in the place of a value: a text grows.
func putOn(in any, piece *Node) any {
	text, isText := in.(grown)
	said, number, is := piece.Get("stringValue"), piece.Get("numberValue"), piece.Get("boolValue")
	switch {
	case !said.Absent():
		return append(text, Plain(said)...)
	case isText:
		return text
	case !number.Absent():
		return number.Raw()
	case !is.Absent():
		return is.Raw()
	}
	return jsontext.Value("null")
}

// aStep is the first step of a path: .name, ['name'], ["name"] or [0].
var aStep = regexp.MustCompile(`^(?s:\.([^.\[]*)|\['(.*?)'\]|\["(.*?)"\]|\[(\d+)\])`)

// step splits the first step off a path. number is -1 for a name.
func step(path string) (name string, number int, rest string, err error) {
	at := aStep.FindStringSubmatch(path)
	number = -1
	if at != nil && at[4] != "" {
		number, err = strconv.Atoi(at[4])
	}
	if at == nil || err != nil || number > maxIndex {
		return "", 0, "", errors.New("a path has a step that is neither a name nor a number in range")
	}
	return at[1] + at[2] + at[3], number, path[len(at[0]):], nil
}
