package subject

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/convo"
)

// A recording turns records into messages, one record after the other.
type recording struct {
	messages []Message
	actors   []string
	last     map[string][]Message        // by chain and actor: the expected beginning of the next prompt
	shown    map[evidence.Digest]*record // by digest
	pairings map[string]*pairing         // of acts that repeat nothing, by chain and actor
	calls    map[string]*callWithID      // by the id

	// Of what recorders saw:
	asked   map[string]*asks // by agent
	indexed int              // messages whose calls are in asked, or are uses of tools
	told    map[string]bool  // what is missing of a file, by chain
	talks   talks
	heard   map[heard]int   // what agents said, and the number of the message that shows it
	window  observed.Window // bodies that later ones copy from
	rebuilt int64           // bytes of bodies
}

func newRecording() *recording {
	return &recording{last: map[string][]Message{}, shown: map[evidence.Digest]*record{}, pairings: map[string]*pairing{}, calls: map[string]*callWithID{},
		asked: map[string]*asks{}, told: map[string]bool{}, talks: talks{}, heard: map[heard]int{}}
}

// A record is an exhibit with its parsed parts.
type record struct {
	payload  *evidence.Payload
	digest   evidence.Digest
	members  map[string]jsontext.Value
	withheld []string
	outputs  map[string]int // the number of the message for each output, by canonical form
	first    int            // how many messages came before it
	remarks  []string       // what its description says beside the payload

	// Of what a recorder saw:
	sight    *sight
	whole    bool    // its prompt has all of its conversation
	repeated []stood // the messages of its prompt that were shown before
	again    int     // the number of the message that its answer repeats; 0: it repeats none
}

func (c *Case) readRecords(exhibits []Exhibit) error {
	r := newRecording()
	for i := range exhibits {
		if err := r.take(&exhibits[i]); err != nil {
			return unfit("record %d: %v", i+1, err)
		}
		p := r.shown[exhibits[i].Digest].payload
		if p.Observed != nil && p.ChainID != "" && !slices.Contains(c.Recorded.Chains, p.ChainID) {
			c.Recorded.Chains = append(c.Recorded.Chains, p.ChainID)
		}
		if !slices.Contains(c.Models, p.Model) {
			c.Models = append(c.Models, p.Model)
		}
		if len(r.messages) > maxMessages {
			return unfit("record %d: more than %d messages up to here: put fewer records before the jury", i+1, maxMessages)
		}
	}
	c.Messages = r.messages
	if c.Card.Name == "" {
		c.Card.Name = nameOf(r.actors)
	}
	return nil
}

// withActor adds the agent that made the record, or that a recorder saw.
func withActor(actors []string, p *evidence.Payload) []string {
	acts := p.Role() == evidence.RoleAgent || p.Observed != nil
	if !acts || slices.Contains(actors, speaker(p)) {
		return actors
	}
	return append(actors, speaker(p))
}

// NameIn returns the agent's name from evidence that Parse has accepted, as the Card of its Case has it. It parses
// only what that takes. It returns "" for other evidence.
func NameIn(material []byte) string {
	var on struct {
		AgentCard struct {
			Name string `json:"name"`
		} `json:"agentCard"`
		Records []struct {
			Payload struct {
				ActionType evidence.ActionType `json:"action_type"`
				AgentID    string              `json:"agent_id"`
				Observed   *evidence.Observed  `json:"observed"`
			} `json:"payload"`
		} `json:"records"`
	}
	if json.Unmarshal(material, &on) != nil {
		return ""
	}
	if on.AgentCard.Name != "" || on.Records == nil {
		return on.AgentCard.Name
	}
	var actors []string
	for _, r := range on.Records {
		actors = withActor(actors, &evidence.Payload{ActionType: r.Payload.ActionType, AgentID: r.Payload.AgentID, Observed: r.Payload.Observed})
	}
	return nameOf(actors)
}

func nameOf(actors []string) string {
	const most = 3
	switch n := len(actors); {
	case n == 0:
		return "(no agent acts)"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(actors[:most], ", "), n-most)
	}
	return strings.Join(actors, ", ")
}

func (r *recording) take(e *Exhibit) error {
	payload, err := evidence.ParsePayload(e.Payload)
	if err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	if payload.ActionType.InTrial() {
		return fmt.Errorf("%s: an act of a trial is what a jury says, and no evidence of what an agent did", payload.ActionType)
	}
	one := &record{payload: payload, digest: e.Digest, outputs: map[string]int{}}
	if one.members, one.withheld, err = evidence.Reveal(e.Payload, e.Disclosures); err != nil {
		return err
	}
	one.first = len(r.messages)
	r.actors = withActor(r.actors, payload)
	switch role := payload.Role(); {
	case payload.Observed != nil:
		if err := r.observed(one); err != nil {
			return err
		}
	case role == evidence.RoleAgent:
		r.agent(one)
	case role == evidence.RoleReviewer:
		r.review(one)
	case role == evidence.RoleRecorder:
		r.add(one, "response", Message{Role: Recorder, Name: payload.Actor(), Text: fmt.Sprintf("%s: %s", payload.ActionType, one.members["response"])})
	default:
		r.add(one, "response", Message{Role: Operator, Name: payload.Actor(), Text: fmt.Sprintf("%s: %s", payload.ActionType, one.members["response"])})
	}
	r.messages[one.first].Head = one.head(e)
	r.shown[e.Digest] = one
	r.pair(one)
	return nil
}

type callWithID struct {
	number, place int
	several       bool // have the id
}

// pair finds the calls of the results in a record: in its own conversation, which others may run beside, or else by an id that one call alone has.
// A result may answer a call in a record that the evidence does not have.
func (r *recording) pair(one *record) {
	var numbers []int
	for number := one.first + 1; number <= len(r.messages); number++ {
		numbers = append(numbers, number)
		for i, call := range r.messages[number-1].ToolCalls {
			if known := r.calls[call.ID]; known != nil {
				known.several = true
			} else if call.ID != "" {
				r.calls[call.ID] = &callWithID{number: number, place: i + 1}
			}
		}
	}
	key := one.payload.ChainID + "\x00" + speaker(one.payload)
	in := r.pairings[key]
	switch {
	case one.whole:
		in = newPairing(&r.messages)
		numbers = append(one.before(), numbers...)
	case in == nil:
		in = newPairing(&r.messages)
		r.pairings[key] = in
	}
	for _, number := range in.read(numbers) {
		m := &r.messages[number-1]
		if known := r.calls[m.ToolCallID]; known != nil && !known.several {
			in.pair(m, &madeCall{number: known.number, place: known.place, by: r.messages[known.number-1].Role})
		}
	}
}

func (one *record) before() (numbers []int) {
	for _, stood := range one.repeated {
		numbers = append(numbers, stood.Number)
	}
	return numbers
}

func (r *recording) add(one *record, part string, messages ...Message) {
	for _, m := range messages {
		m.Number, m.Record, m.Part = len(r.messages)+1, one.digest, part
		r.messages = append(r.messages, m)
	}
}

func (r *recording) agent(one *record) {
	if one.payload.ActionType == evidence.Delivery {
		r.delivery(one)
		return
	}
	key := one.payload.ChainID + "\x00" + one.payload.Actor()
	prompt, isWithheld := one.value("prompt", User)
	history := slices.Clone(prompt)
	if before, n := r.last[key], len(r.last[key]); !isWithheld && n > 0 && len(prompt) >= n && slices.EqualFunc(prompt[:n], before, sameMessage) {
		prompt = prompt[n:]
	}
	r.add(one, "prompt", prompt...)
	context, _ := one.value("context", Tool)
	r.add(one, "context", context...)
	tools := one.tools()
	r.add(one, "tools_used", tools...)
	response, _ := one.value("response", Assistant)
	one.outputs[string(one.members["response"])] = len(r.messages) + 1
	r.add(one, "response", response...)
	r.last[key] = slices.Concat(history, tools, response)
}

func sameMessage(a, b Message) bool {
	return a.Role == b.Role && a.Text == b.Text && a.ToolCallID == b.ToolCallID &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y ToolCall) bool {
			return x.ID == y.ID && x.Name == y.Name && x.Arguments == y.Arguments
		})
}

// delivery adds messages for what was delivered. It does not repeat what an agent or a reviewer already said.
func (r *recording) delivery(one *record) {
	context, _ := one.value("context", Tool)
	r.add(one, "context", context...)
	for _, digest := range one.payload.Saw {
		if said := r.shown[digest]; said != nil && !one.isWithheld("response") {
			if n, same := said.outputs[string(one.members["response"])]; same {
				r.add(one, "response", Message{Role: Operator, Name: one.payload.Actor(), Text: fmt.Sprintf("[delivered as it stands in message %d]", n)})
				return
			}
		}
	}
	response, _ := one.value("response", Assistant)
	r.add(one, "response", response...)
}

func (r *recording) review(one *record) {
	p := one.payload
	r.add(one, "approval_status", Message{Role: Reviewer, Name: p.Actor(), Text: fmt.Sprintf("%s: %s", p.ApprovalStatus, p.OriginalResponseID)})
	for _, part := range []string{"modified_response", "changes", "context"} {
		if _, there := one.members[part]; !there {
			continue
		}
		text := one.text(part)
		if part == "modified_response" {
			one.outputs[string(one.members[part])] = len(r.messages) + 1
		}
		r.add(one, part, Message{Role: Reviewer, Name: p.Actor(), Text: text})
	}
	if original, bound := r.reviewed(p); bound && p.ApprovalStatus == evidence.Approved {
		for output, n := range original.outputs {
			one.outputs[output] = n // the approved text is the one that the review puts out
		}
	}
}

// reviewed returns the record that a review is bound to.
func (r *recording) reviewed(p *evidence.Payload) (*record, bool) {
	for _, digest := range p.Saw {
		if one := r.shown[digest]; one != nil && one.payload.RecordID == p.OriginalResponseID {
			return one, true
		}
	}
	return nil, false
}

func (one *record) isWithheld(member string) bool { return slices.Contains(one.withheld, "/"+member) }

func (one *record) text(member string) string {
	if one.isWithheld(member) {
		return fmt.Sprintf("[withheld: /%s was sealed apart, and the evidence does not have it]", member)
	}
	return plain(one.members[member])
}

func plain(v jsontext.Value) string {
	if v.Kind() == '"' {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}

// value reads a member as messages: chat messages if it has that form, one message of the given role otherwise.
func (one *record) value(member string, role Role) (messages []Message, withheld bool) {
	v, there := one.members[member]
	if !there {
		return nil, false
	}
	name := ""
	if role == Assistant {
		name = speaker(one.payload)
	}
	if one.isWithheld(member) {
		return []Message{{Role: role, Name: name, Text: one.text(member)}}, true
	}
	if string(v) == "[]" && role != Assistant {
		return nil, false // there was no input
	}
	if list := chatIn(v, role); list != nil {
		return list, false
	}
	if role == Tool {
		name = member
	}
	return []Message{{Role: role, Name: name, Text: plain(v)}}, false
}

// chatMembers are the members of a chat message that readChat reads. A message with other members is shown unchanged,
// so that the jury misses nothing.
var chatMembers = []string{"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call"}

// chatIn reads chat messages: an array of them, an object {"messages": …} without other members, or a single one. A
// single one that is a response may omit its role. It returns nil for everything else.
func chatIn(v jsontext.Value, role Role) []Message {
	root := canonical(v)
	if root == nil {
		return nil
	}
	list := []*convo.Node{root}
	switch {
	case root.Kind == '[':
		list = root.Members
	case root.Kind != '{':
		return nil
	case len(root.Names) == 1 && root.Names[0] == "messages" && root.Members[0].Kind == '[':
		list = root.Members[0].Members
	}
	var messages []Message
	for _, n := range list {
		m, ok := readChat(n, role)
		if !ok || !isChat(n) {
			return nil
		}
		messages = append(messages, m)
	}
	return messages
}

func isChat(n *convo.Node) bool {
	if n.Kind != '{' || n.Get("content") == nil && n.Get("tool_calls").Absent() && n.Get("function_call").Absent() {
		return false
	}
	for i, name := range n.Names {
		if !slices.Contains(chatMembers, name) && !n.Members[i].Empty() {
			return false
		}
	}
	return true
}

// readChat reads a chat message of a record. The output of an agent is its own text, whatever role it states. A
// response with another role is shown unchanged, and so are calls of the user, and a message with a model's reasoning. That rule of docs/case.md must not
// change, because findings about records name messages by number.
func readChat(n *convo.Node, role Role) (m Message, ok bool) {
	read, lacks := 0, false
	r := &convo.Reader{
		Say:  func(from convo.Message, _ *convo.Node) { m, read = messageOf(&from), read+1 },
		Left: func(kind Left) { lacks = lacks || kind != convo.Unreadable },
	}
	if role == Assistant {
		r.Role = convo.Assistant
	}
	if r.ChatMessage(n); r.Err() != nil || read != 1 || lacks {
		return m, false
	}
	return m, (role != Assistant || m.Role == Assistant) && (m.Role != User || len(m.ToolCalls) == 0)
}

func canonical(v jsontext.Value) *convo.Node {
	root, err := convo.ReadTree(evidenceName, v)
	if err != nil {
		return nil
	}
	return root
}

// Members under which programs store what a tool received and returned.
var (
	toolNames   = []string{"name", "tool"}
	toolInputs  = []string{"arguments", "args", "input"}
	toolOutputs = []string{"result", "output", "response"}
)

func (one *record) tools() []Message {
	v, there := one.members["tools_used"]
	if !there {
		return nil
	}
	actor := speaker(one.payload)
	if one.isWithheld("tools_used") {
		return []Message{{Role: Assistant, Name: actor, Text: one.text("tools_used")}}
	}
	root := canonical(v)
	if root == nil {
		return []Message{{Role: Assistant, Name: actor, Text: plain(v)}}
	}
	var list []Message
	for i, n := range root.Members {
		if i > maxMessages {
			break // more than the limit for all records together, which take refuses
		}
		call, result := toolUse(n)
		if call.ID == "" {
			call.ID = fmt.Sprintf("%s/%d", one.payload.RecordID, i) // unique, so that no other result is assigned to this call
		}
		list = append(list, Message{Role: Assistant, Name: actor, ToolCalls: []ToolCall{call}})
		if result != nil {
			list = append(list, Message{Role: Tool, ToolCallID: call.ID, Text: plain(result.Raw()), Beside: true})
		}
	}
	return list
}

// toolUse reads one use of a tool: only its name, or an object with name, input and output. If an object has other
// members, the call's arguments show all of it.
func toolUse(n *convo.Node) (call ToolCall, result *convo.Node) {
	if n.Kind == '"' {
		return ToolCall{Name: n.Text}, nil
	}
	whole := ToolCall{Name: "(tool)", Arguments: string(n.Raw())}
	if n.Kind != '{' {
		return whole, nil
	}
	used := map[string]bool{"id": true}
	pick := func(names []string) *convo.Node {
		for _, name := range names {
			if m := n.Get(name); m != nil {
				used[name] = true
				return m
			}
		}
		return nil
	}
	name, input, output := pick(toolNames), pick(toolInputs), pick(toolOutputs)
	id := n.Get("id")
	if !id.Absent() && id.Kind != '"' || name == nil || name.Kind != '"' || name.Text == "" || slices.ContainsFunc(n.Names, func(name string) bool { return !used[name] }) {
		return whole, nil
	}
	call = ToolCall{ID: n.Word("id"), Name: name.Text}
	if input != nil {
		call.setArguments(plain(input.Raw()))
	}
	return call, output
}

func (one *record) head(e *Exhibit) string {
	p := one.payload
	text := fmt.Sprintf("record %s, %s: ", p.RecordID, e.Digest)
	if p.Observed != nil {
		text += one.witness()
	} else {
		text += fmt.Sprintf("%s by the %s %q", p.ActionType, p.Role(), p.Actor())
	}
	if p.Model != "" && p.Observed == nil {
		text += fmt.Sprintf(", model %q, version %q", p.Model, p.ModelVersion)
	}
	if p.Timestamp != "" {
		text += ", at " + p.Timestamp + " by its own word"
	}
	for _, t := range []*ProvedTime{e.ProvedTime, e.IndependentTime} {
		if t != nil {
			text += fmt.Sprintf("; it existed by %s, says the authority %q (%s clock)", t.Time, t.Authority, t.Clock)
		}
	}
	if e.ProvedTime == nil && e.IndependentTime == nil {
		text += "; no time is proved"
	}
	if len(one.withheld) > 0 {
		text += "; sealed apart and withheld: " + strings.Join(one.withheld, ", ")
	}
	for _, remark := range one.remarks {
		text += "; " + remark
	}
	return text
}
