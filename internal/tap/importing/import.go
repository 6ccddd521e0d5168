// Package importing reads what others wrote about an agent, and makes of it what a recorder seals: results of evaluations, logs,
// conversations and session files of coding agents.
//
//	file, err := importing.Open(path, importing.Unknown)   // recognised by its content, or refused
//	tally, err := importing.Check(ctx, file, options)      // what is new, known, changed or wrong; nothing is sealed
//	tally, err = importing.Seal(ctx, file, options)        // what is new
//
// # It is second hand, and says so
//
// A file is somebody's word. Each act is an observed_span, with the vantage telemetry and the fidelity attributes, signed by the recorder that
// imported it and never by the agent. Its time is that of the import; times in the file are the file's claim, and stand beside it.
// What such a file cannot have, and what this one lacks, stands in missing.
//
// # The reading can be repeated
//
// Beside what was read, an act seals the bytes that it was read from, with the name, length and digest of the file and the place in
// it. Who has the file finds them there; who has not can still read them again.
//
// # An exchange is one act
//
// What was said to the agent since its last answer, and that answer, are one act. Conversations, samples and sessions are chains. Conversations are read by
// package subject, as a jury would read the file itself: this package finds them in large files, one after the other, and knows the
// session files that no conversation is read from elsewhere.
//
// # The same file twice seals nothing twice
//
// The id of a record follows from the agent, the format, the conversation and the entry in it. An entry that grew gives another record for
// what is new. One that was changed is named, and never sealed under another id.
//
// # Nothing is sealed of a file that has a mistake
//
// A file is read to its end before anything is sealed. Mistakes and changed entries are named by place; unless the caller skips them, nothing is
// sealed. A file that changes while it is read is an error.
package importing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/subject"
	"jurat/internal/tap/convo"
)

// Options say whose acts are imported, and where they go.
type Options struct {
	Agent    string // whose acts the file tells of
	Name     string // of conversations that have none of their own; "": that of the file, without its extension
	Recorder string // who imports
	Version  string // of this program
	Skip     bool   // pass over entries that are wrong or were changed

	// Chain returns the chain of a conversation.
	Chain func(conversation string) string
	// Sealed returns what a record of the log states of its request; nil: there is no such record. The digest is zero if it has expired.
	Sealed func(ctx context.Context, recordID string) (*evidence.ObservedBody, error)
	// Seal seals an act. It is called by several goroutines, but for one chain by one at a time, in the order of the file. nil for Check.
	Seal func(ctx context.Context, act observed.Act) error
	// Each is told of each new entry; nil: nobody is.
	Each func(Entry)
	// Progress is told how many entries were looked at; nil: nobody is.
	Progress func(done, total int64)

	Now     func() time.Time // nil: time.Now
	Workers int              // how many seal at once; 0: 16
}

// An Entry is what is said of one exchange that is new.
type Entry struct {
	Chain   string `json:"chain"`
	Record  string `json:"record"`
	Place   string `json:"place"`
	Prompt  int    `json:"messages_before"` // messages that were said to the agent
	Answers int    `json:"messages_after"`
	Bytes   int    `json:"bytes"`
	SaidAt  string `json:"said_at,omitzero"` // by the word of the file
	Model   string `json:"model,omitzero"`
}

// A Tally counts what a file has.
type Tally struct {
	Entries int     `json:"entries"` // that could be read
	New     int     `json:"new"`     // of these, not in the log; after Seal: that were sealed
	Known   int     `json:"known"`   // in the log, and the same
	Changed int     `json:"changed"` // in the log, and other than in the file
	Wrong   int     `json:"wrong"`   // that could not be read
	Chains  int     `json:"chains"`  // of the entries
	Faults  []error `json:"-"`       // the first of those that are changed or wrong
}

const mostFaults = 100

// ErrChanged is in the chain of the fault of an entry that the log has with other words.
var ErrChanged = errors.New("it was changed since it was imported")

// Check reads a file to its end and says what is new in it. Nothing is sealed.
func Check(ctx context.Context, f *File, o Options) (t Tally, err error) {
	err = f.with(ctx, "import it again", func() error {
		t, err = f.walk(ctx, &o, func(*Exchange, string) error { return nil })
		return err
	})
	return t, err
}

// Seal seals what is new in a file. Call Check before, and only if it finds no fault or they are to be passed over. If the context ends, what was sealed
// stands, and another call goes on from there. Exchanges of one chain are sealed one after the other, those of several at once, as one at a time would
// wait for the disk each time. An act that has begun is sealed whole, however this ends.
func Seal(ctx context.Context, f *File, o Options) (t Tally, err error) {
	err = f.with(context.WithoutCancel(ctx), "what was sealed names a file that had the digest "+f.SHA256.String(), func() error {
		t, err = f.seal(ctx, o)
		return err
	})
	return t, err
}

func (f *File) seal(ctx context.Context, o Options) (Tally, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Workers = cmp.Or(o.Workers, 16)
	o.Skip = true                              // Check has named what is wrong
	group, ending := errgroup.WithContext(ctx) // ends when one cannot be sealed
	queues, seed, sealed := make([]chan func() error, o.Workers), maphash.MakeSeed(), atomic.Int64{}
	for i := range queues {
		queues[i] = make(chan func() error, 1)
		group.Go(func() error {
			for seal := range queues[i] {
				if ending.Err() != nil {
					return nil // the caller's own context, or the other's error, says why
				}
				if err := seal(); err != nil {
					return err
				}
				sealed.Add(1)
			}
			return nil
		})
	}
	tally, err := f.walk(ctx, &o, func(e *Exchange, id string) error {
		seal := func() error {
			if err := o.Seal(context.WithoutCancel(ending), f.act(&o, e, id, o.Now())); err != nil {
				return fmt.Errorf("%s: %s: sealing: %w", f.Name, e.Place(), err)
			}
			return nil
		}
		select {
		case queues[maphash.String(seed, e.Conversation)%uint64(len(queues))] <- seal:
			return nil
		case <-ending.Done():
			return context.Cause(ending)
		}
	})
	for _, queue := range queues {
		close(queue)
	}
	failed := group.Wait()
	tally.New = int(sealed.Load())
	return tally, cmp.Or(failed, err, ctx.Err()) // of the context, too: what waited in the queues was not sealed
}

func (f *File) walk(ctx context.Context, o *Options, do func(e *Exchange, id string) error) (Tally, error) {
	if o.Name != "" {
		f.label, f.given = o.Name, o.Name
	}
	r := &reader{File: f, ctx: ctx, o: o, seen: map[uint64]uint64{}, chains: map[uint64]bool{}, seed: maphash.MakeSeed(), do: do}
	err := r.read()
	r.tally.Chains = len(r.chains)
	return r.tally, cmp.Or(err, ctx.Err())
}

func (r *reader) exchange(e *Exchange) error {
	r.tally.Entries++
	r.chains[maphash.String(r.seed, e.Conversation)] = true
	id, part := r.id(e), e.Part()
	if e.own {
		key, sum := maphash.String(r.seed, id), maphash.Bytes(r.seed, part)
		before, twice := r.seen[key]
		switch {
		case !twice:
			r.seen[key] = sum
		case before == sum:
			r.tally.Known++
			return nil
		default:
			return r.bad(e.Place(), fmt.Errorf("an entry before it has the same id %q and other words", cut(e.Entry, 100)))
		}
	}
	sealed, err := r.o.Sealed(r.ctx, id)
	switch {
	case err != nil:
		return err
	case sealed == nil:
		r.tally.New++
		r.tell(e, id, len(part))
		return r.do(e, id)
	case sealed.SHA256.IsZero(), sealed.Bytes == int64(len(part)) && sealed.SHA256 == evidence.DigestOf(part):
		r.tally.Known++
		return nil
	case sealed.Bytes > 0 && sealed.Bytes < int64(len(part)) && evidence.DigestOf(part[:sealed.Bytes]) == sealed.SHA256:
		if rest := e.rest(sealed.Bytes); rest != nil {
			r.tally.Known++
			return r.exchange(rest)
		}
	}
	r.tally.Changed++
	r.fault(e.Place(), fmt.Errorf("%w: the record %s has another text of this entry, or was made by a version of this program that read it otherwise; --name gives what has no ids of its own another name", ErrChanged, id))
	return nil
}

func (r *reader) id(e *Exchange) string {
	if e.told != nil {
		return e.told.RecordID(r.o.Agent, false) // as if the exporter had sent it
	}
	format := string(r.Format)
	if r.Format.isConversation() {
		format = "conversation" // which form it has may be seen otherwise another time
	}
	return evidence.RecordIDFor("", "import", r.o.Agent, format, e.Conversation, e.Entry)
}

func (r *reader) tell(e *Exchange, id string, bytes int) {
	if r.o.Each == nil {
		return
	}
	prompt, answers, model := e.counted()
	for _, u := range e.units {
		model = cmp.Or(u.model, cmp.Or(u.requested, model))
	}
	r.o.Each(Entry{Chain: r.o.Chain(e.Conversation), Record: id, Place: e.Place(), Prompt: prompt, Answers: answers, Bytes: bytes, SaidAt: e.when(), Model: model})
}

// act is what a recorder seals of an exchange at a time. Its request are the bytes of the file: what was told.
func (f *File) act(o *Options, e *Exchange, id string, now time.Time) observed.Act {
	if e.told != nil {
		return f.span(o, e, now)
	}
	prompt, response := e.said()
	a := observed.Act{Payload: evidence.Payload{RecordID: id, ActionType: evidence.ObservedSpan, AgentID: o.Recorder, RequestID: "import-" + id,
		Timestamp: evidence.FormatTime(now), ChainID: o.Chain(e.Conversation), Prompt: chat(prompt), Response: answer(response)},
		Observed: evidence.Observed{Agent: o.Agent, Began: evidence.FormatTime(now), Ended: evidence.Complete, Fidelity: evidence.ByAttributes,
			Missing: f.missing(e), Protocol: observed.Imported + string(f.Format), Vantage: evidence.Telemetry}, Request: observed.Whole(e.Part(), "")}
	a.Request.Headers = f.headers(o, e)
	if len(e.units) == 1 {
		a.Request.Type = "application/json"
	}
	if len(response) == 0 {
		a.Ended = evidence.UpstreamError
	}
	for _, u := range e.units {
		a.Model, a.ModelVersion = cmp.Or(u.requested, a.Model), cmp.Or(u.model, a.ModelVersion)
		a.ProviderRequestID = cmp.Or(u.call, a.ProviderRequestID)
	}
	if usage, alone := e.usage(); alone {
		a.Usage = usage
	}
	return a
}

// usage returns the counts of the answer. alone is false if there are several, as what a provider reported is not added up.
func (e *Exchange) usage() (usage jsontext.Value, alone bool) {
	call, some := "", false
	for _, u := range e.units {
		if u.usage == nil {
			continue
		}
		if some && (u.call == "" || u.call != call) {
			return nil, false
		}
		usage, call, some = u.usage, u.call, true // of one answer the last counts: its earlier lines were written while it came
	}
	return usage, true
}

func (f *File) headers(o *Options, e *Exchange) jsontext.Value {
	list := map[string]string{"file": cut(f.Name, 1000), "file-bytes": strconv.FormatInt(f.Size, 10), "file-sha256": f.SHA256.String(), "format": string(f.Format),
		"place": placeInClear(cut(e.Place(), 1000)), "conversation": cut(e.Conversation, 1000), "importer": "jurat " + o.Version}
	if e.own && observed.IsPlain(e.Entry) {
		list["entry"] = e.Entry
	}
	if at := e.when(); observed.IsPlain(at) {
		list["said-at"] = at
	}
	if f.header.writer != "" {
		list["writer"] = f.header.writer
	}
	return observed.Headers(list)
}

// ownPlace is a part of a place that no file writes.
var ownPlace = regexp.MustCompile(`^(?:line [0-9]+|document [0-9]+, span [0-9a-f-]+)$`)

// placeInClear is a place without what a file names as it likes, since nobody can erase it.
func placeInClear(place string) string {
	parts := strings.Split(place, "/")
	for i, part := range parts {
		if !ownPlace.MatchString(part) {
			parts[i] = observed.PathInClear(part)
		}
	}
	return strings.Join(parts, "/")
}

// when is when the exchange was by the word of the file: when the answer was, or else what was asked.
func (e *Exchange) when() string {
	for _, u := range slices.Backward(e.units) {
		if u.at != "" {
			return cut(u.at, 100)
		}
	}
	return ""
}

func (f *File) missing(e *Exchange) []string {
	list := []string{"the bytes that passed between the agent and its models", "headers, status and addresses of the calls", "attempts that failed and were repeated",
		"definitions of the tools and other parameters of the calls", "whether the file is whole and unchanged since it was written"}
	list = append(append(list, f.Format.lacks()...), e.lacks...)
	var beside []string
	var models, usage, when bool
	failed := ""
	left := map[convo.Left]bool{}
	for _, u := range e.units {
		models, usage, when = models || u.model != "", usage || u.usage != nil, when || u.at != ""
		failed = cmp.Or(u.failed, failed)
		for _, l := range u.left {
			left[l] = true
		}
		beside = lacking(beside, u.lacks...)
	}
	list = append(list, beside...)
	for _, lack := range []struct {
		has  bool
		what string
	}{{models, "which model answered, by its provider's word"}, {usage, "counts of tokens"}, {when, "when it was said"}} {
		if !lack.has {
			list = append(list, lack.what)
		}
	}
	if when {
		list = append(list, "a time that anybody but the writer of the file vouches for")
	}
	if _, alone := e.usage(); !alone {
		list = append(list, "counts of tokens of each answer alone: several answers follow each other, and the entry of the file has those of each")
	}
	for _, l := range []convo.Left{convo.Reasoning, convo.Unreadable, convo.Elsewhere, convo.Judged, convo.Alternatives} {
		if left[l] {
			list = append(list, "left out: "+l.InWords())
		}
	}
	if failed != "" {
		list = append(list, "an answer: the entry of the file says that there was an error")
	}
	return list
}

func chatOf(m *subject.Message) convo.Message {
	c := convo.Message{Role: string(m.Role), Content: convo.Pieces{convo.Words(m.Text)}, Name: m.Name, ToolCallID: m.ToolCallID, IsError: m.Failed}
	if m.Role == subject.Tool {
		c.Name = m.ToolName
	}
	for _, call := range m.ToolCalls {
		c.ToolCalls = append(c.ToolCalls, convo.Function(call.ID, call.Name, call.Arguments))
	}
	return c
}

func chat(messages []subject.Message) jsontext.Value {
	if len(messages) == 0 {
		return nil
	}
	list := make([]convo.Message, len(messages))
	for i := range messages {
		list[i] = chatOf(&messages[i])
	}
	return jsonOf(list)
}

// answer writes what the agent answered: a text if that is all, or else its messages; nil: it did not answer.
func answer(messages []subject.Message) jsontext.Value {
	if len(messages) == 1 && messages[0].ToolCalls == nil && messages[0].Name == "" && !messages[0].Failed {
		return jsonOf(messages[0].Text)
	}
	return chat(messages)
}

// cut returns at most so many bytes of a text, which are valid UTF-8.
func cut(text string, most int) string {
	if len(text) > most {
		text = text[:most]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

func jsonOf(v any) jsontext.Value {
	doc, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // maps, lists and strings always have a JSON form
	}
	return doc
}
