package subject

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic"
	"jurat/verify"
)

// maxRebuilt bounds the bytes of bodies that are rebuilt for a case. A small record may copy much from earlier ones.
const maxRebuilt = 256 << 20

// A sight is what one record of a recorder says of an act.
type sight struct {
	prompt, response []Message
	notes            []string // of what the messages do not show
	lacks            []Lack
	said             traffic.Projection // zero: the bytes could not be read
	referred         []string           // what the bytes name and do not have
}

func (s *sight) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// A Lack says why the bytes of a request or response cannot be read, or not all of them.
type Lack struct {
	Direction string `json:"direction"` // request or response
	Why       Why    `json:"why"`
}

// Why says why bytes cannot be read.
type Why string

// Why bytes cannot be read.
const (
	Withheld Why = "withheld" // they were sealed apart, and are not disclosed here
	Unsealed Why = "unsealed" // they passed, and no record has them
	Cut      Why = "cut"      // only their beginning is sealed
	Encoded  Why = "encoded"  // they are sealed as they were encoded
	Copied   Why = "copied"   // they repeat those of a record that is not here
	Wrong    Why = "wrong"    // they are not those that the record states
)

// lacks are the sentences for a jury.
var lacks = map[Why]string{
	Withheld: "The bytes of the %s were sealed apart, and the evidence does not have them.",
	Unsealed: "The bytes of the %s are not sealed.",
	Cut:      "Only the beginning of the %s is sealed.",
	Encoded:  "The %s is sealed as it was encoded, and is not read.",
	Copied:   "The bytes of the %s repeat those of an earlier record, which the evidence does not have.",
	Wrong:    "The bytes of the %s are not those that the record states.",
}

func (s *sight) lack(direction string, why Why) {
	s.lacks = append(s.lacks, Lack{direction, why})
	s.note(lacks[why], direction)
}

// observed adds messages for what a recorder saw an agent do. A program sends the whole conversation with each call: what
// was shown is not shown again, also after another attempt, or when conversations run side by side.
func (r *recording) observed(one *record) error {
	s, err := r.sight(one)
	if err != nil {
		return err
	}
	one.sight = &s
	if one.payload.ActionType == evidence.ObservedTool {
		r.linkTools(one, s.prompt)
		r.entire(one, s)
		r.indexed = len(r.messages)
		return nil
	}
	if imported(one.payload.Observed) {
		r.entire(one, s)
		return nil
	}
	if one.payload.ActionType == evidence.ObservedMessage {
		r.exchanged(one, s)
		return nil
	}
	with := r.talks.Of(one.payload.Observed.Agent, one.payload.ChainID)
	asAnswered(with, s.prompt)
	prompt, response := aloneEach(s.prompt), aloneEach(s.response)
	line := with.Repeated(prompt)
	repeated := len(line)
	one.whole, one.repeated = true, slices.Clone(line)
	fresh := s.prompt[repeated:]
	one.remark("%s", promptInWords(s.prompt, line))
	r.add(one, "prompt", fresh...)
	line = append(line, r.newest(prompt[repeated:])...)
	context, _ := one.value("context", Tool)
	r.add(one, "context", context...)
	r.add(one, "tools_used", one.tools()...)
	if number := with.Ends(prompt, response); number > 0 {
		one.again = number
		s.note("The answer is again that of message %d.", number)
	} else {
		r.add(one, "response", s.response...)
		line = append(line, r.newest(response)...)
		noteNumbers(with, s.response)
	}
	with.Keep(line)
	r.addNotes(one, s)
	return nil
}

// asks are the calls of tools that an agent's model asked for.
type asks struct {
	seen askedCalls // in answers that a recorder saw as bytes
	told askedCalls // by the word of others, such as a prompt, which the agent's own program wrote
}

func (r *recording) asksOf(agent string) *asks {
	if r.asked[agent] == nil {
		r.asked[agent] = new(asks)
	}
	return r.asked[agent]
}

// linkTools says which call of the agent's model a use of a tool carries out. A prompt is what the agent's program sent: that a message in it is an
// earlier answer of the model, nobody saw.
func (r *recording) linkTools(one *record, uses []Message) {
	for ; r.indexed < len(r.messages); r.indexed++ {
		m := &r.messages[r.indexed]
		from := r.shown[m.Record]
		if from == nil {
			continue
		}
		calls := &r.asksOf(speaker(from.payload)).told
		if p := from.payload; m.Part == "response" && p.ActionType == evidence.ObservedCall && p.Observed.Fidelity == evidence.ByBytes {
			calls = &r.asksOf(speaker(p)).seen
		}
		for _, call := range m.AgentCalls() {
			calls.Add(askedCall{ID: call.ID, Name: call.Name, Arguments: compared(call), Number: r.indexed + 1})
		}
	}
	of := r.asksOf(speaker(one.payload))
	for i := range uses {
		for _, call := range uses[i].AgentCalls() {
			number, how := of.seen.For(call.ID, call.Name, compared(call))
			sentences := seenAsked
			if how == askedUnknown {
				number, how = of.told.For(call.ID, call.Name, compared(call))
				sentences = toldAsked
			}
			if sentence := sentences[how]; sentence != "" {
				one.remark(sentence, number)
			}
		}
	}
}

// What is said of a use of a tool, with the number of a message.
var (
	seenAsked = map[askedHow]string{
		askedByID:      "the agent's model asked for it in message %d, as the id says that the client states",
		askedOtherwise: "the client states the id of a call for which the agent's model asked in message %d, with another tool or other arguments",
		askedAlike:     "in message %d the agent's model asked for this tool with these arguments",
	}
	toldAsked = map[askedHow]string{
		askedByID:      "message %d has this call with the id that the client states; that it is an answer of a model, no recorder saw",
		askedOtherwise: "the client states the id of a call in message %d that has another tool or other arguments; that it is a model's, no recorder saw",
		askedAlike:     "message %d has a call of this tool with these arguments; that it is an answer of a model, no recorder saw",
	}
)

func compared(call ToolCall) string {
	if call.Args != nil {
		return string(call.Args)
	}
	return call.Arguments
}

func imported(o *evidence.Observed) bool {
	return o.Vantage == evidence.Telemetry && strings.HasPrefix(o.Protocol, observed.Imported)
}

// entire adds messages for an act that repeats nothing of others: it is shown whole. Who uses a tool twice acts twice, and of a file an act has what stands
// there since the answer before.
func (r *recording) entire(one *record, s sight) {
	r.add(one, "prompt", s.prompt...)
	context, _ := one.value("context", Tool)
	r.add(one, "context", context...)
	r.add(one, "tools_used", one.tools()...)
	r.add(one, "response", s.response...)
	r.addNotes(one, s)
}

func (r *recording) addNotes(one *record, s sight) {
	if s.notes != nil || one.payload.Observed.Ended != evidence.Complete || len(r.messages) == one.first {
		r.add(one, "observed", Message{Role: Recorder, Name: one.payload.Actor(), Text: strings.Join(append(s.notes, "How it ended: "+one.ending()+"."), " ")})
	}
}

func (r *recording) newest(added []shownMessage) (line []stood) {
	for i, message := range added {
		line = append(line, stood{Message: message, Number: len(r.messages) - len(added) + i + 1})
	}
	return line
}

func promptInWords(prompt []Message, line []stood) string {
	fresh := prompt[len(line):]
	said := 0
	for i := range fresh {
		if fresh[i].Role == Assistant {
			said++
		}
	}
	text := ""
	switch {
	case len(prompt) == 0:
		return ""
	case len(line) == 0:
		text = "it begins a conversation"
	case len(fresh) == 0:
		text = "its prompt is " + numbersOf(line) + " and nothing more, not shown again"
	default:
		text = "its prompt begins with " + numbersOf(line) + ", not shown again"
	}
	if said > 0 {
		text += fmt.Sprintf("; %d of the prompt's messages are earlier answers of the agent only by the word of its own program", said)
	}
	return text
}

// alone identifies a message: what sameMessage compares, but arguments by what they mean.
func alone(m *Message) shownMessage {
	texts := []string{string(m.Role), m.Text, m.ToolCallID}
	for _, call := range m.ToolCalls {
		texts = append(texts, call.ID, call.Name, compared(call))
	}
	return shownAs(texts...)
}

// idsOf returns the ids of a message's calls, and the message without them.
func idsOf(m *Message) (ids []string, without shownMessage) {
	if len(m.ToolCalls) == 0 {
		return nil, without
	}
	bare := *m
	bare.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range bare.ToolCalls {
		ids, bare.ToolCalls[i].ID = append(ids, bare.ToolCalls[i].ID), ""
	}
	return ids, alone(&bare)
}

func noteNumbers(with *talk, answer []Message) {
	for i := range answer {
		if ids, without := idsOf(&answer[i]); slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, convo.Numbered) }) {
			with.numbers[without] = append(with.numbers[without], ids)
		}
	}
}

// asAnswered gives calls in a prompt the numbers that they had in the answer, where the program gave them ids. Results that name one of these ids name the
// number; an id of several calls in a message names none of them.
func asAnswered(with *talk, prompt []Message) {
	number, calls := map[string]string{}, 0
	for i := range prompt {
		m := &prompt[i]
		if named, is := number[m.ToolCallID]; is && m.Role == Tool {
			m.ToolCallID = named
		}
		ids, without := idsOf(m)
		if ids == nil {
			continue
		}
		answered := with.Numbers(without, fmt.Sprintf(convo.Numbered+"%d", calls+1))
		calls += len(ids)
		for j, id := range ids {
			delete(number, id)
			if j < len(answered) {
				m.ToolCalls[j].ID = answered[j]
			}
		}
		for j, id := range ids[:min(len(ids), len(answered))] {
			if _, twice := number[id]; twice {
				number[id] = ""
			} else if id != "" {
				number[id] = answered[j]
			}
		}
	}
}

func aloneEach(messages []Message) []shownMessage {
	list := make([]shownMessage, len(messages))
	for i := range messages {
		list[i] = alone(&messages[i])
	}
	return list
}

// sight reads a record: what its bytes say, or else what it states.
func (r *recording) sight(one *record) (s sight, err error) {
	o := one.payload.Observed
	request, err := r.body(one, "request", o.Request, &s)
	if err != nil {
		return s, err
	}
	response, err := r.body(one, "response", o.Response, &s)
	if err != nil {
		return s, err
	}
	facts, _ := observed.FactsOf(o, request, response)
	s.referred = facts.Referred
	call := traffic.CallOf(o, request, response)
	if p, err := traffic.Project(call); err == nil && (call.Request != nil || call.Response != nil) {
		if o.Vantage == evidence.Telemetry {
			p.Problem = "" // it is in missing
		}
		s.prompt, s.response = shown(p.Asked), shown(p.Answered)
		p.Asked, p.Answered = nil, nil // who keeps the rest needs no second copy
		s.said = p
		if p.Error != "" {
			s.note("The provider answered with an error: %s.", p.Error)
		}
		if one.payload.ActionType == evidence.ObservedMessage {
			s.noteTask(&p)
		}
		if p.Problem != "" && call.Request != nil {
			s.note("What the bytes say is not wholly known: %s.", p.Problem)
		}
	}
	if len(s.prompt) == 0 && imported(o) && one.members["prompt"].Kind() == '[' {
		s.prompt = spoken(one.members["prompt"])
	}
	if len(s.prompt) == 0 {
		s.prompt, _ = one.value("prompt", User)
	}
	if len(s.response) == 0 {
		s.response = one.answer()
	}
	if len(s.prompt) == 0 && len(s.response) == 0 && one.members["tools_used"] == nil && o.Protocol != traffic.OTLP { // a span without content says nothing
		s.prompt, s.response = unread("request", request), unread("response", response)
	}
	for i := range s.response {
		if m := &s.response[i]; m.Role == Assistant && m.Name == "" {
			m.Name = speaker(one.payload)
		}
	}
	s.of(o, r.fresh(one))
	return s, nil
}

// fresh lists what a record says is missing. Of a file, the same is missing each time: it is said once in a chain.
func (r *recording) fresh(one *record) []string {
	o := one.payload.Observed
	if !imported(o) {
		return o.Missing
	}
	var list []string
	for _, text := range o.Missing {
		if key := one.payload.ChainID + "\x00" + text; !r.told[key] {
			r.told[key] = true
			list = append(list, text)
		}
	}
	return list
}

func (one *record) answer() []Message {
	if !one.isWithheld("response") {
		list := spoken(one.members["response"])
		if list != nil && !slices.ContainsFunc(list, func(m Message) bool { return m.Role != Assistant && m.Role != Tool }) {
			return list
		}
	}
	list, _ := one.value("response", Assistant)
	return list
}

// of notes what a recorder states beside the bytes.
func (s *sight) of(o *evidence.Observed, missing []string) {
	references := o.ContextByReference
	if s.referred != nil { // the bytes say which address, or which question
		references = s.referred
	}
	switch {
	case references == nil:
	case o.Side != "":
		s.note("A part of what was said is named, and not in the bytes: %s.", strings.Join(references, ", "))
	default:
		s.note("A part of what the model was given was kept or fetched by the provider, and is not in the bytes: %s.", strings.Join(references, ", "))
	}
	switch {
	case o.Vantage == evidence.Telemetry && !imported(o):
		s.note("This is second hand: the agent's own telemetry tells it, and nobody saw it.")
		if missing != nil {
			s.note("What it does not tell: %s.", strings.Join(missing, "; "))
		}
	case imported(o) && missing != nil:
		s.note("This is second hand: a file that others wrote tells it, and nobody saw it. What it does not tell: %s.", strings.Join(missing, "; "))
	case missing != nil:
		s.note("By its own word the recorder did not see: %s.", strings.Join(missing, ", "))
	}
	if o.RetryOf != "" {
		s.note("This is another attempt of the request %s.", o.RetryOf)
	}
}

// unread shows bytes that no reader knows. No message is made of them, so that nobody's words are taken for another's.
func unread(direction string, body []byte) []Message {
	switch {
	case len(body) == 0:
		return nil
	case !utf8.Valid(body):
		return []Message{{Role: Recorder, Text: fmt.Sprintf("[%s of %d bytes that are no text]", direction, len(body))}}
	}
	return []Message{{Role: Recorder, Text: string(body)}}
}

// body returns the bytes that a record seals of a direction; nil if there are none. A note says why they cannot be read.
func (r *recording) body(one *record, direction string, stated *evidence.ObservedBody, s *sight) ([]byte, error) {
	member := direction + "_body"
	v := one.members[member]
	switch {
	case stated == nil:
		return nil, nil
	case one.isWithheld(member):
		s.lack(direction, Withheld)
		return nil, nil
	case v == nil && stated.Bytes > 0:
		s.lack(direction, Unsealed)
	}
	if v == nil {
		return nil, nil
	}
	pieces, err := evidence.ParseBody(v)
	if err == nil {
		for _, p := range pieces {
			r.rebuilt += p.Length
		}
		if r.rebuilt > maxRebuilt {
			return nil, fmt.Errorf("the bodies of the calls up to here have more than %d MiB: put fewer records before the jury", maxRebuilt>>20)
		}
		var body []byte
		if body, err = r.window.Rebuild(pieces); err == nil && evidence.DigestOf(body) == stated.Sealed() {
			r.window.Keep(body)
			if stated.Truncated {
				s.lack(direction, Cut)
			}
			if stated.Decoded != "" {
				s.lack(direction, Encoded)
			}
			return body, nil
		}
	}
	if errors.Is(err, observed.ErrMissing) {
		s.lack(direction, Copied)
	} else {
		s.lack(direction, Wrong)
	}
	return nil, nil
}

// shown are messages of a call as jurors read them. A message that is none of a conversation is shown whole, as nobody's.
func shown(said []convo.Message) (list []Message) {
	for i := range said {
		if m := messageOf(&said[i]); isConversation(&m) {
			list = append(list, m)
			continue
		}
		doc, err := json.Marshal(&said[i])
		if err != nil {
			panic(err) // a message that was read has texts alone
		}
		list = append(list, Message{Role: Recorder, Text: convo.TextOf(doc)})
	}
	return list
}

// isConversation reports whether a recorded message has a known role, and calls with names, which the agent or the user makes.
func isConversation(m *Message) bool {
	if m.Role == "" || m.ToolCalls != nil && m.Role != Assistant && m.Role != User {
		return false
	}
	return !slices.ContainsFunc(m.ToolCalls, func(c ToolCall) bool { return c.Name == "" })
}

// spoken reads messages that a record states: a text of the agent, a message, or an array of them. A message that is none of a
// conversation is shown whole, as nobody's.
func spoken(v jsontext.Value) (list []Message) {
	root := canonical(v)
	if v == nil || root == nil {
		return nil
	}
	nodes := []*convo.Node{root}
	switch root.Kind {
	case '"':
		return []Message{{Role: Assistant, Text: root.Text}}
	case '[':
		nodes = root.Members
	}
	for _, n := range nodes {
		m, ok := readChat(n, "")
		if !ok {
			m = Message{Role: Recorder, Text: string(n.Raw())}
		} else if m.Role == Tool {
			m.Failed = n.Get("is_error").IsTrue()
		}
		list = append(list, m)
	}
	return list
}

// speaker is the agent whose acts a record is about.
func speaker(p *evidence.Payload) string {
	if p.Observed != nil {
		return p.Observed.Agent
	}
	return p.Actor()
}

func (one *record) remark(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		one.remarks = append(one.remarks, text)
	}
}

// How much was seen, and how it ended, in words.
var (
	fidelities = map[evidence.Fidelity]string{
		evidence.ByBytes:      "every one",
		evidence.Parsed:       "as values that other software had read",
		evidence.ByAttributes: "only what that software chose to tell, second hand",
	}
	endings = map[evidence.Ended]string{
		evidence.Complete:      "the answer came to its end",
		evidence.UpstreamError: "no answer came",
		evidence.UpstreamCut:   "the answer broke off",
		evidence.ClientGone:    "the agent went away before the end of the answer",
		evidence.RecorderCut:   "the recorder broke the answer off",
		evidence.LostInCrash:   "the recorder stopped working, and the end is unknown",
	}
)

// EndingInWords says in English how an act ended.
func EndingInWords(ended evidence.Ended) string { return endings[ended] }

// witness describes what a recorder saw, and from where.
func (one *record) witness() string {
	p, o := one.payload, one.payload.Observed
	text := fmt.Sprintf("%s of the agent %q: %s, %s; protocol %s; %s", p.ActionType, o.Agent, verify.SeenFrom(o, p.Actor()), fidelities[o.Fidelity], o.Protocol, one.ending()) + sideInWords(o)
	if p.Model != "" {
		text += fmt.Sprintf("; model asked for %q", p.Model)
	}
	if p.ModelVersion != "" {
		text += fmt.Sprintf("; model that answered, by the provider's word, %q", p.ModelVersion)
	}
	return text
}

func (one *record) ending() string {
	o := one.payload.Observed
	if o.Status == 0 {
		return endings[o.Ended]
	}
	return fmt.Sprintf("%s, with status %d", endings[o.Ended], o.Status)
}
