package sealer

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/relay"
	"jurat/internal/tap/traffic"
)

// An attempt is a request of an agent: a repetition of it can name the call before.
type attempt struct {
	agent, path string
	request     evidence.Digest
}

type made struct {
	requestID, chain string
	failed           bool // there is no whole answer to it
}

// recent remembers a value for each of the keys that were used last. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	most int         // of the sizes of all values
	size func(V) int // nil: of each 1

	mu     sync.Mutex
	values map[K]*list.Element // of *remembered
	order  *list.List          // the one that was used last first
	sum    int
}

type remembered[K comparable, V any] struct {
	key   K
	value V
	size  int
}

func newRecent[K comparable, V any](most int, size func(V) int) *recent[K, V] {
	if size == nil {
		size = func(V) int { return 1 }
	}
	return &recent[K, V]{most: most, size: size, values: map[K]*list.Element{}, order: list.New()}
}

func (r *recent[K, V]) get(key K) (value V, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.values[key]
	if e == nil {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*remembered[K, V]).value, true
}

func (r *recent[K, V]) set(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(r.values[key])
	one := &remembered[K, V]{key, value, r.size(value)}
	r.values[key], r.sum = r.order.PushFront(one), r.sum+one.size
	for r.sum > r.most {
		r.remove(r.order.Back())
	}
}

func (r *recent[K, V]) forget(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(r.values[key])
}

func (r *recent[K, V]) remove(e *list.Element) {
	if e == nil {
		return
	}
	one := r.order.Remove(e).(*remembered[K, V])
	delete(r.values, one.key)
	r.sum -= one.size
}

// turns has one call at a time do something for each key: the others wait for their turn.
type turns struct {
	mu    sync.Mutex
	under map[string]chan struct{} // closed when the turn ends
}

// enter returns at once if what is to be done is done, and otherwise when nobody else does it. leave must be called. Its error is that of the context.
func (b *turns) enter(ctx context.Context, key string, done func() bool) (leave func(), err error) {
	for {
		b.mu.Lock()
		if done() {
			b.mu.Unlock()
			return func() {}, nil
		}
		other := b.under[key]
		if other == nil {
			if b.under == nil {
				b.under = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			b.under[key] = mine
			b.mu.Unlock()
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.under, key)
				close(mine)
			}, nil
		}
		b.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// conversations finds the chain of a call: the conversation that it continues. It remembers what each conversation looked like after its
// last answer. It is safe for concurrent use.
//
// A call continues a conversation if its messages begin with all messages of it, the last answer included. Two conversations may look the
// same. Then nobody can say which of them is continued, and a new chain begins.
type conversations struct {
	mu     sync.Mutex             // held from finding the chain of a call until what it looks like is remembered
	chains *recent[state, string] // "": several look like this
}

// A state is what a conversation of an agent looked like: its messages, or the provider's id of its last answer.
type state struct {
	agent string
	sum   [sha256.Size]byte
}

// said is what a call says about the conversation that it belongs to.
type said struct {
	agent    string
	trace    string          // the trace id of its traceparent; "": none
	previous string          // the provider's id of the answer that it continues; "": none
	prompt   []convo.Message // nil: unknown
	response []convo.Message // nil: there was no answer
	id       string          // the provider's id of the answer; "": none
	refers   string          // to what the provider keeps: a conversation, or else a message of one; "": to nothing
	made     []string        // what later calls may refer to
	kept     []string        // what the other side knows the conversation by, the surest first; of such a call nothing else counts
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

func newConversations(most int) *conversations {
	return &conversations{chains: newRecent[state, string](most, nil)}
}

// place returns the chain of a call, and remembers how the conversation looks after it. fresh is the chain to use if it continues none.
func (c *conversations) place(s said, fresh string) string {
	begun := following([sha256.Size]byte{}, s.prompt)
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
		answer := following(last, s.response)
		n := len(answer)
		if n > 0 {
			c.rememberAnswer(s.agent, answer[n-1], chain)
		}
		if n > 1 { // of an answer with tools that the provider ran, many programs send back the last message alone
			c.rememberAnswer(s.agent, following(last, s.response[n-1:])[0], chain)
		}
	}
	return chain
}

// rememberAnswer remembers how a conversation looks after the last message of an answer. Programs make ids for calls to which the provider gave none.
func (c *conversations) rememberAnswer(agent string, b beginning, chain string) {
	c.remember(state{agent, b.sum}, chain)
	if slices.ContainsFunc(b.message.ToolCalls, func(call convo.ChatToolCall) bool { return strings.HasPrefix(call.ID, convo.Numbered) }) {
		c.remember(state{agent, b.unnamed()}, chain)
	}
}

func (c *conversations) find(s said, begun []beginning, fresh string) string {
	var known []state // the surest first
	for _, name := range s.kept {
		known = append(known, state{s.agent, hashOf("kept", name)})
	}
	if len(s.kept) == 0 && s.previous != "" {
		known = append(known, state{s.agent, hashOf("id", s.previous)})
	}
	if len(s.kept) == 0 && s.refers != "" {
		known = append(known, state{s.agent, hashOf("made", s.refers)})
	}
	for _, of := range known {
		if chain := c.recall(of); chain != "" {
			return chain
		}
	}
	if len(s.kept) > 0 {
		return fresh
	}
	for _, b := range slices.Backward(begun) {
		chain, known := c.chains.get(state{s.agent, b.sum})
		if !known && b.message.ToolCalls != nil {
			chain, known = c.chains.get(state{s.agent, b.unnamed()})
		}
		if known {
			return cmp.Or(chain, fresh) // fresh: several conversations look like this
		}
	}
	if s.trace == "" {
		return fresh
	}
	of := state{s.agent, hashOf("trace", s.trace)}
	if c.recall(of) == "" {
		c.remember(of, fresh)
	}
	return c.recall(of)
}

func (c *conversations) recall(s state) string {
	chain, _ := c.chains.get(s)
	return chain
}

func (c *conversations) remember(s state, chain string) {
	if before, known := c.chains.get(s); known && before != chain {
		chain = ""
	}
	c.chains.set(s, chain)
}

// A beginning is a conversation up to one of its messages.
type beginning struct {
	before, sum [sha256.Size]byte // without and with the message
	message     *convo.Message
}

// following are the beginnings of a conversation that goes on: up to the first of these messages, the second, and so on.
func following(last [sha256.Size]byte, messages []convo.Message) []beginning {
	list := make([]beginning, len(messages))
	for i := range messages {
		list[i] = beginning{last, digest(last, messages[i], true), &messages[i]}
		last = list[i].sum
	}
	return list
}

// unnamed returns the sum of a beginning whose last message has calls, as if these had no ids.
func (b *beginning) unnamed() (sum [sha256.Size]byte) { return digest(b.before, *b.message, false) }

// digest is the sum of a conversation with a further message, as programs send back what a model said: with the arguments of its calls in canonical form,
// without white space around its text, and without the name that a program gives to its model. ids says whether the calls keep theirs.
func digest(before [sha256.Size]byte, m convo.Message, ids bool) [sha256.Size]byte {
	if m.Role == convo.Assistant {
		m.Name = ""
		if len(m.Content) == 1 && m.Content[0].Text != nil {
			m.Content = convo.Pieces{convo.Words(strings.TrimSpace(*m.Content[0].Text))}
		}
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		if !ids {
			call.ID = ""
		}
		if form, err := evidence.Canonical([]byte(call.Function.Arguments)); err == nil {
			call.Function.Arguments = string(form)
		}
	}
	h := sha256.New()
	h.Write(before[:])
	if err := json.MarshalWrite(h, &m, jsontext.AllowInvalidUTF8(true)); err != nil {
		fmt.Fprint(h, err) // it has texts alone, and a hash takes them: whatever an upstream sends, its record is sealed
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func hashOf(kind, text string) [sha256.Size]byte {
	return sha256.Sum256([]byte(kind + "\x00" + text))
}

func traceOf(header string) string {
	parts := strings.Split(header, "-")
	if len(parts) < 4 || len(parts[1]) != 32 || strings.Trim(parts[1], "0") == "" || strings.Trim(parts[1], "0123456789abcdef") != "" {
		return ""
	}
	return parts[1]
}

const definitionsFolder = "definitions"

// definitions remember what servers last said of their tools, in a file for each server, so that a change between two sessions is seen. Names and
// digests are all that they keep.
type definitions struct {
	folder string
	turns  turns // for each file, from reading it to replacing it
}

type listing struct {
	Agent  string                     `json:"agent"`
	Server string                     `json:"server"` // as records name it
	Tools  map[string]evidence.Digest `json:"tools"`
}

const (
	mostTools   = 10_000  // of one server; others are not remembered
	longestList = 4 << 20 // of a file
)

// unknownChange begins what a record says if a list of tools was not compared with the one before.
const unknownChange = "whether a tool is defined as it was before: "

// watched compares the answer to a tools/list with what is remembered of the server, seals each change and remembers the answer. Call done when the act
// is sealed; nil: it has no such answer. If the answer or what is remembered is unreadable, the act says changes are unknown; the list replaces the latter.
//
// It comes before the list's own record: if a change cannot be sealed, closed mode neither hands the list out nor says that it did. In open mode the list
// passes, and its record says what is not known. What could not be sealed is found again with the next list. The error may also say that other answers of the
// server had not been noted when the context ended.
func (e *exchange) watched(ctx context.Context, act *observed.Act) (done func(), err error) {
	if act.ActionType != evidence.ObservedTool || act.Response == nil {
		return nil, nil
	}
	tools, unread := traffic.Definitions(callOf(act))
	if unread != "" && act.Ended == evidence.Complete && act.Status < http.StatusMultipleChoices {
		if act.Response.Decoded != "" {
			unread = "the answer to tools/list cannot be decoded"
		}
		e.recorder.Tell.Error("a list of tools cannot be compared with the one before, and the record says so", "server", act.Upstream.Origin, "why", unread)
		act.Missing = append(act.Missing, unknownChange+unread)
	}
	if len(tools) == 0 {
		return nil, nil
	}
	server := act.Upstream.Origin
	if e.call.Path != "" && e.call.Method != "" && act.Status != 0 { // on HTTP a host may have several
		server += e.call.Path
	}
	d := &e.recorder.definitions
	file := d.file(act.Agent, e.call.Upstream, server)
	done, err = d.turns.enter(ctx, file, func() bool { return false })
	if err != nil {
		return nil, fmt.Errorf("waiting until an earlier answer of the server %s about its tools is sealed: %w", server, err)
	}
	known, err := readListing(file)
	if err != nil {
		e.recorder.Tell.Error("whether a server's tools changed is not known, and the record says so", "server", server, "error", err)
		act.Missing = append(act.Missing, unknownChange+"what was remembered of the server's tools cannot be read")
	}
	known.Agent, known.Server = act.Agent, name(server)
	err = e.recorder.sealChanges(ctx, act.Payload.Time(), act.ChainID, known, tools)
	err = errors.Join(err, known.keep(file)) // what was sealed is not sealed again
	if err != nil && e.recorder.Mode == relay.Open {
		e.recorder.Tell.Error("a list of tools was not compared with the one before, and the record says so", "server", known.Server, "error", err)
		act.Missing = append(act.Missing, unknownChange+inWords(err))
		err = nil
	}
	return done, err
}

// file is where a server is remembered. Two commands, or two addresses, are two servers.
func (d *definitions) file(agent, upstream, server string) string {
	digest := evidence.DigestOf([]byte(agent + "\x00" + upstream + "\x00" + server))
	return filepath.Join(d.folder, fmt.Sprintf("%x.json", digest[:]))
}

// readListing returns what is remembered of a server: nothing, if there is no such file or it cannot be read.
func readListing(file string) (*listing, error) {
	nothing := &listing{Tools: map[string]evidence.Digest{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nothing, nil
	}
	l := new(listing)
	if err == nil {
		err = json.Unmarshal(text, l, json.RejectUnknownMembers(true))
	}
	if err == nil && l.Tools == nil {
		err = errors.New("it names no tools")
	}
	if err != nil {
		return nothing, fmt.Errorf("what is remembered of a server's tools: %s: %w", file, err)
	}
	return l, nil
}

// sealChanges seals each change against what is known, and has it known. at is when the server said so.
func (r *Recorder) sealChanges(ctx context.Context, at time.Time, chain string, known *listing, list []traffic.Definition) error {
	for tool, after := range digestsOf(list) {
		before, seen := known.Tools[tool]
		if seen && before != after {
			change := &observed.Event{Event: observed.ToolDefinitionChanged, Agent: known.Agent, Server: known.Server, Tool: tool, Before: before, After: after}
			if _, err := r.sealEventAs(ctx, "", chain, at, change); err != nil {
				return fmt.Errorf("the definition of the tool %s changed, and that could not be sealed: %w", evidence.Abbreviate(tool), err)
			}
			r.Tell.Warn("a server says something else of a tool than before", "server", known.Server, "tool", tool, "before", before, "after", after)
		}
		if seen || len(known.Tools) < mostTools {
			known.Tools[tool] = after
		}
	}
	return nil
}

// digestsOf returns a digest for each tool. Of one that is defined more than once, it is of all its definitions.
func digestsOf(list []traffic.Definition) map[string]evidence.Digest {
	tools := map[string]evidence.Digest{}
	for _, d := range list {
		tool := d.Name
		if !observed.IsPlain(tool) {
			tool = "(a name of the digest " + evidence.DigestOf([]byte(tool)).String() + ")"
		}
		if before, twice := tools[tool]; twice {
			d.Digest = evidence.DigestOf(append(before[:], d.Digest[:]...))
		}
		tools[tool] = d.Digest
	}
	return tools
}

func (l *listing) keep(file string) error {
	text, err := json.Marshal(l, json.Deterministic(true))
	if err != nil {
		return err
	}
	if len(text) > longestList {
		return fmt.Errorf("what %s says of its tools is too long to be remembered", l.Server)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return atomicfile.Replace(file, text, 0o600)
}
