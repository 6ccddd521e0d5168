package importing

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/subject"
	"jurat/internal/kit/fault"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/telemetry"
)

// A reader reads a file from its beginning to its end.
type reader struct {
	*File
	ctx    context.Context
	o      *Options
	tally  Tally
	seen   map[uint64]uint64 // digests of ids and parts: an id may stand twice in a file
	chains map[uint64]bool   // digests of names
	seed   maphash.Seed
	do     func(e *Exchange, id string) error // for each that is new
}

func (r *reader) give(e *Exchange) error {
	if err := r.ctx.Err(); err != nil || e == nil {
		return err
	}
	e.Conversation = r.fit(e.Conversation)
	if err := r.exchange(e); err != nil {
		return err
	}
	if r.o.Progress != nil {
		r.o.Progress(int64(r.tally.Entries), 0)
	}
	return nil
}

// mostName leaves room in the name of a chain for that of the agent.
const mostName = 90

// fit returns a name that a chain can have: a digest stands for one that is none, or that others wrote and that may stand nowhere where nobody can erase it.
func (r *reader) fit(name string) string {
	if len(name) <= mostName && evidence.CheckName(name) == nil && isPlainOrNone(strings.TrimPrefix(name, r.label)) {
		return name
	}
	return "sha256-" + hex.EncodeToString(sum(name))[:40]
}

func sum(text string) []byte {
	d := sha256.Sum256([]byte(text))
	return d[:]
}

// bad notes an entry that cannot be read. The next can.
func (r *reader) bad(place string, err error) error {
	r.tally.Wrong++
	r.fault(place, err)
	return r.ctx.Err()
}

func (r *reader) fault(place string, err error) {
	if len(r.tally.Faults) < mostFaults {
		r.tally.Faults = append(r.tally.Faults, &Fault{r.Name, place, err})
	}
}

func (r *reader) read() error {
	switch r.Format {
	case ClaudeCode:
		return r.session(&claudeCode{reader: r, talks: map[string]*gathering{}, began: map[string]string{}, calls: map[string]bool{},
			lines: map[string]*event{}, last: map[string]string{}, lacks: map[string][]string{}})
	case Codex:
		return r.session(&codex{reader: r, talk: gathering{conversation: cmp.Or(r.header.scope, r.label), lacks: []string{noSystem}}})
	case OTel:
		return r.otel()
	}
	if r.header.archive {
		return r.samples()
	}
	return r.values(r.entry)
}

// guarded takes a panic for a mistake of the entry.
func (r *reader) guarded(place string, read func() error) (err error) {
	if panicked := fault.Guard(func() error { err = read(); return nil }); panicked != nil {
		return r.bad(place, panicked)
	}
	return err
}

func (r *reader) entry(number int, place string, v jsontext.Value) error {
	return r.guarded(place, func() error {
		switch r.Format {
		case Promptfoo:
			return r.result(number, place, v)
		case Inspect:
			return r.sample(number, place, v)
		}
		return r.conversation(number, place, v)
	})
}

func (r *reader) values(do func(number int, place string, v jsontext.Value) error) error {
	h := &r.header
	switch {
	case h.lines:
		return r.eachLine(do)
	case h.whole:
		data, err := io.ReadAll(io.LimitReader(r.text(), maxValue+1))
		if err == nil && len(data) > maxValue {
			err = errLong
		}
		if err != nil {
			return r.broken("the document", err)
		}
		return do(0, "the document", data)
	case h.single:
		d := newStream(r.text())
		v, err := d.value()
		if err == nil {
			err = d.end()
		}
		if err != nil {
			return r.broken("the document", err)
		}
		return do(0, "the document", v)
	}
	return r.list(do)
}

func (r *reader) list(do func(number int, place string, v jsontext.Value) error) error {
	last, stopped := "", error(nil)
	found, err := newStream(r.text()).each(r.header.at, func(i int, v jsontext.Value) error {
		last = r.header.at + "/" + strconv.Itoa(i)
		stopped = do(i+1, last, v)
		return stopped
	})
	switch {
	case stopped != nil:
		return stopped
	case err != nil:
		return r.broken("after "+cmp.Or(last, r.header.at+"/0"), err)
	case !found:
		return r.broken(r.header.at, errors.New("there is no list of entries"))
	}
	return nil
}

func (r *reader) eachLine(do func(number int, place string, v jsontext.Value) error) error {
	return lines(r.text(), func(number int, line []byte) error {
		v := jsontext.Value(line).Clone()
		if !v.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			return r.bad(lineAt(number), errors.New("it is no JSON: expected one JSON value in each line"))
		}
		return do(number, lineAt(number), v)
	}, func(number int) error { return r.bad(lineAt(number), errLong) })
}

type session interface {
	line(place string, o *convo.Node, raw jsontext.Value) error
	end() error
}

func (r *reader) session(s session) error {
	err := r.values(func(_ int, place string, v jsontext.Value) error {
		o := convo.ObjectOf(v)
		if o == nil {
			return r.bad(place, errors.New("expected an object"))
		}
		return r.guarded(place, func() error { return s.line(place, o, v) })
	})
	if err != nil {
		return err
	}
	return s.end()
}

// part reads one message or item into a unit. It names the kinds of what is not known here and was passed over.
func (r *reader) part(u *unit, form subject.Form, value jsontext.Value, what string) error {
	read, err := subject.ReadPart(r.Name+":"+u.place, form, slices.Concat([]byte("["), value, []byte("]")))
	if err != nil {
		return err
	}
	for _, kind := range read.Strange {
		u.lacks = lacking(u.lacks, "what "+what+" of a kind says that is not known here: "+plain(kind))
	}
	for _, o := range read.LeftOut {
		u.left = append(u.left, o.Kind)
	}
	u.messages = read.Messages
	return nil
}

func isPlainOrNone(text string) bool { return text == "" || observed.IsPlain(text) }

// plain returns a name that others wrote, if it may stand where nobody can erase it.
func plain(name string) string {
	if !isPlainOrNone(name) {
		return "(its name is not kept)"
	}
	return name
}

// A unit is one message as it stands in a file: what a program wrote at once. Package subject may read several messages from it, or none.
type unit struct {
	raw      []byte
	place    string
	id       string // the file's own; "": it gives none
	messages []subject.Message
	left     []convo.Left

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

func (u *unit) from(name string) {
	for i := range u.messages {
		if m := &u.messages[i]; m.Role == subject.User && m.Name == "" {
			m.Name = name
		}
	}
}

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
	if len(e.units) == 1 {
		return e.units[0].raw // large ones are alone
	}
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

func (g *gathering) last() *unit {
	if len(g.open) == 0 {
		return nil
	}
	return &g.open[len(g.open)-1]
}
