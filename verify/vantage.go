package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
)

// maxCopied is how many bytes the records of a file may copy. docs/format.md has the same number, because two verifiers must agree.
const maxCopied = 2 << 30

// Seen says who saw how many acts of a file, from where.
type Seen struct {
	Recorder string            `json:"recorder"`
	Vantage  evidence.Vantage  `json:"vantage"`
	Fidelity evidence.Fidelity `json:"fidelity"`
	Side     evidence.Side     `json:"side,omitzero"` // Answered: of messages that others sent to the agent; "": of all else
	Records  int               `json:"records"`
}

// maxSeen bounds the list of Seen, and of changes.
const maxSeen = 1000

// A Change of a tool's definition, by the word of a recorder: a server said something else of it than before. What an agent was told of a
// tool decides how it uses it.
type ToolChange struct {
	Record   string          `json:"record"`
	Recorder string          `json:"recorder"`
	Agent    string          `json:"agent"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Before   evidence.Digest `json:"before"`
	After    evidence.Digest `json:"after"`
}

// InWords says in English what changed.
func (c ToolChange) InWords() string {
	return fmt.Sprintf("the server %q said something else of its tool %q than before to the agent %q, says the recorder %q in the record %s", c.Server, c.Tool, c.Agent, c.Recorder, c.Record)
}

// A look is what was found of one record alone.
type look struct {
	record *evidence.Record
	opened *observed.Opened // nil: an event
	event  *observed.Event
	unread error    // why the response is no event
	alone  *Finding // what is known without other records; nil: nothing, or the record must be read in order
	read   bool     // alone: without other records

	unseenFor []error // why bytes are not seen
	compared  []fact  // with what the bytes say
	known     bool    // facts of the protocol are read
	tooMuch   bool    // the records up to this one copy too much
	answer    string  // the provider's id of the answer, by its bytes; "": it has none

	references []string // what the call names of what the provider kept, by its bytes where they are read
	leftOut    []string // what the bytes say and the record does not
}

// ByRecorder reports whether a record is a recorder's.
func ByRecorder(r *evidence.Record) bool { return r.Payload.Role() == evidence.RoleRecorder }

// lookAt looks at a recorder's record; nil: it is another's. Many records can be looked at at once.
func lookAt(r *evidence.Record) *look {
	if !ByRecorder(r) {
		return nil
	}
	l := &look{record: r}
	if r.Payload.Observed == nil {
		l.event, l.unread = observed.ParseEvent(r.Payload.Response)
		l.alone = l.against(rulesOfEvent)
		return l
	}
	l.opened = observed.Open(r)
	if reading, is := l.opened.Alone(); is {
		l.alone, l.read = l.judge(reading), true
	}
	return l
}

// A File collects the looks at the records of a file. The zero File is of a file without records.
type sights struct {
	window  observed.Window
	copied  int64
	seen    []Seen
	changes []ToolChange

	answers   map[string]bool // the provider's ids of answers that the file has
	elsewhere []string        // what the provider kept of what was asked, and the file has not
	leftOut   []string
}

// Take takes the next record of the file, and returns what is found against it; nil: nothing, or it is not a recorder's.
func (f *sights) Take(l *look) *Finding {
	if l == nil {
		return nil
	}
	if l.opened == nil {
		if e := l.event; l.unread == nil && e.Event == observed.ToolDefinitionChanged && len(f.changes) < maxSeen {
			f.changes = append(f.changes, ToolChange{recordName(l.record), l.record.Payload.AgentID, e.Agent, e.Server, e.Tool, e.Before, e.After})
		}
		return l.alone
	}
	f.note(l.record)
	f.copied += l.opened.Copied()
	if l.tooMuch = f.copied > maxCopied && l.opened.Copied() > 0; l.tooMuch {
		return l.against(rulesOfSight)
	}
	reading, found := f.window.Read(l.opened), l.alone
	if !l.read {
		found = l.judge(reading)
	}
	f.refer(l)
	return found
}

// refer notes what a call names without saying it: what the provider kept is in no bytes, unless it is an answer that the file has.
func (f *sights) refer(l *look) {
	for _, said := range l.leftOut {
		if len(f.leftOut) < maxSeen {
			f.leftOut = append(f.leftOut, fmt.Sprintf("%s (%s)", said, l.record.Payload.RecordID))
		}
	}
	for _, reference := range l.references {
		id, is := strings.CutPrefix(reference, "previous_response_id:")
		if len(f.elsewhere) < maxSeen && !(is && f.answers[id]) && !slices.Contains(f.elsewhere, reference) {
			f.elsewhere = append(f.elsewhere, reference)
		}
	}
	if l.answer != "" && len(f.answers) < maxAnswers {
		if f.answers == nil {
			f.answers = map[string]bool{}
		}
		f.answers[l.answer] = true
	}
}

// maxAnswers bounds the ids of answers that a File remembers. A reference to a further one is said to be elsewhere.
const maxAnswers = 1 << 20

// leftOut lists what bytes say and their record does not.
func leftOut(p *evidence.Payload, from *observed.Facts) (list []string) {
	if p.Model == "" && from.Model != "" {
		list = append(list, fmt.Sprintf("the model %q was asked", from.Model))
	}
	if p.ModelVersion == "" && from.ModelVersion != "" {
		list = append(list, fmt.Sprintf("the model %q answered", from.ModelVersion))
	}
	if p.Observed.Usage == nil && from.Usage != nil {
		list = append(list, "usage "+evidence.Abbreviate(string(from.Usage)))
	}
	return list
}

// note counts who saw what.
func (f *sights) note(r *evidence.Record) {
	o := r.Payload.Observed
	one := Seen{Recorder: r.Payload.AgentID, Vantage: o.Vantage, Fidelity: o.Fidelity, Records: 1}
	if o.Side == evidence.Answered {
		one.Side = o.Side
	}
	for i := range f.seen {
		if s := &f.seen[i]; s.Recorder == one.Recorder && s.Vantage == one.Vantage && s.Fidelity == one.Fidelity && s.Side == one.Side {
			s.Records++
			return
		}
	}
	if len(f.seen) < maxSeen {
		f.seen = append(f.seen, one)
	}
}

// SeenFrom says in English from where a recorder has an act. It is InWords, but tells telemetry from a file.
func SeenFrom(o *evidence.Observed, recorder string) string {
	switch {
	case o.Vantage != evidence.Telemetry:
		return Seen{Recorder: recorder, Vantage: o.Vantage, Side: o.Side}.InWords()
	case strings.HasPrefix(o.Protocol, observed.Imported):
		return fmt.Sprintf("told by a file that others wrote, which the recorder %q imported", recorder)
	}
	return fmt.Sprintf("told by the agent's telemetry to the recorder %q", recorder)
}

// InWords says in English who saw, from where.
func (s Seen) InWords() string {
	if s.Answered() {
		return fmt.Sprintf("bytes seen by the recorder %q between the agent and those who ask it", s.Recorder)
	}
	return VantageInWords(s.Vantage, s.Recorder)
}

// Answered reports whether the recorder stands before an agent that answers: nobody there is upstream of it.
func (s Seen) Answered() bool { return s.Side == evidence.Answered && s.Vantage == evidence.Proxy }

// fromWhere says in English from where a recorder saw, without its name.
var fromWhere = map[evidence.Vantage]string{
	evidence.Proxy:     "bytes seen by the recorder %q between the agent and the upstream",
	evidence.ProxyMITM: "bytes seen by the recorder %q between the agent and the upstream, inside a TLS connection that it opened",
	evidence.InProcess: "seen inside the agent's own process by the recorder %q",
	evidence.Examiner:  "seen by the recorder %q, which asked the agent itself",
}

// VantageInWords says in English from where a recorder saw.
func VantageInWords(v evidence.Vantage, recorder string) string {
	return fmt.Sprintf(cmp.Or(fromWhere[v], "told to the recorder %q by the agent's telemetry, or by a file"), recorder)
}

// judge asks the rules of a record and its bytes.
func (l *look) judge(reading observed.Reading) *Finding {
	if l.unseenFor = reading.Errs; l.unseen(observed.ErrWrong) == nil {
		facts, known := l.opened.Facts(reading)
		l.answer, l.references, l.known = facts.Answer, l.record.Payload.Observed.ContextByReference, known
		if known {
			l.references, l.leftOut = facts.ContextByReference, leftOut(&l.record.Payload, &facts)
		}
		l.compared = l.facts(&facts)
	}
	return l.against(rulesOfSight)
}

// against returns what the first rule finds that finds something; nil: none does.
func (l *look) against(table rules[*look]) *Finding {
	var found findings
	if !ask(&found, table, l.record, l) {
		return nil
	}
	return &found.list[0]
}

// unseen returns the error that says that bytes are not seen for a reason; nil: none does.
func (l *look) unseen(reason error) error {
	if i := slices.IndexFunc(l.unseenFor, func(err error) bool { return errors.Is(err, reason) }); i >= 0 {
		return l.unseenFor[i]
	}
	return nil
}

// besideBytes returns the first member that says something of the act and is no fact in its bytes; "": there is none.
func besideBytes(p *evidence.Payload) string {
	for i, value := range []jsontext.Value{p.Prompt, p.Response, p.Context, p.ToolsUsed} {
		if value != nil {
			return []string{"prompt", "response", "context", "tools_used"}[i]
		}
	}
	return ""
}

// whyUnseen says for which reason bytes are not proved that cannot be read, by rule.
var whyUnseen = map[string]error{"missing": observed.ErrMissing, "withheld": observed.ErrWithheld, "unsealed": observed.ErrUnsealed,
	"truncated": observed.ErrTruncated, "masked": observed.ErrMasked}

// A fact is a member that the bytes of an act can say, too.
type fact struct {
	name         string
	stated, same bool // the record states it; the bytes say the same
}

// facts compares what a record states with what its bytes say. No fact can be sealed apart.
func (l *look) facts(found *observed.Facts) []fact {
	p, o := &l.record.Payload, l.record.Payload.Observed
	return []fact{
		{"model", p.Model != "", p.Model == found.Model},
		{"model_version", p.ModelVersion != "", p.ModelVersion == found.ModelVersion},
		{"finish", o.Finish != "", o.Finish == found.Finish},
		{"calls", o.Calls != nil, slices.Equal(o.Calls, found.Calls)},
		{"context_by_reference", o.ContextByReference != nil, slices.Equal(o.ContextByReference, found.ContextByReference)},
		{"parameters", p.Parameters != nil, bytes.Equal(p.Parameters, found.Parameters)},
		{"usage", o.Usage != nil, bytes.Equal(o.Usage, found.Usage)},
	}
}

// sight takes what a recorder saw, in the order of the file.
func (c *check) sight(e examined) {
	against := c.sights.Take(e.look)
	c.exchange(e, against)
	if against == nil {
		return
	}
	if c.keep(*against); against.Rule == "gap" {
		c.gaps = append(c.gaps, e.record)
	}
}

// noteSights says from where recorders saw. What they saw is proved only as far as their records are.
func (c *check) noteSights() {
	if !c.applies(Vantage) {
		return
	}
	var from []string
	for _, s := range c.sights.seen {
		from = append(from, s.InWords())
	}
	c.notes[Vantage] = "the bytes are those that are stated, and say what the records say; that a recorder saw everything is not shown"
	if len(from) > 0 {
		c.notes[Vantage] = strings.Join(from[:min(len(from), 8)], "; ") + ": " + c.notes[Vantage]
	}
	if kept := c.sights.elsewhere; len(kept) > 0 {
		c.notes[Vantage] += "; a part of what was asked was kept by the provider, and is in no record before it: " + strings.Join(kept[:min(len(kept), 8)], ", ")
	}
	if said := c.sights.leftOut; len(said) > 0 {
		c.notes[Vantage] += "; the bytes also say what their records leave out: " + strings.Join(said[:min(len(said), 8)], ", ")
	}
	ask(&c.findings, rulesOfRest[Vantage], nil, &c.findings)
}

// codings are the content codings that every reader removes alike: by RFC 9110, section 8.4.1, RFC 7932 and RFC 8878.
var codings = []string{"gzip", "deflate", "br", "zstd"}

// readDifferently says why the side that got a body need not have read in it what is read here; "": it must have.
func readDifferently(o *evidence.Observed) string {
	encoded := func(b *evidence.ObservedBody) bool { return b != nil && b.Encoding != "" && b.Bytes > 0 }
	for _, b := range []*evidence.ObservedBody{o.Request, o.Response} {
		switch {
		case b == nil || b.Bytes == 0:
		case b.Decoded != "":
			return fmt.Sprintf("the encoding %q of a body was not removed, so what it says was not read", b.Encoding)
		case strings.Contains(b.Type, ","):
			return fmt.Sprintf("a body has more than one content type, %q, and each reader takes another", b.Type)
		}
	}
	switch {
	case encoded(o.Request):
		return fmt.Sprintf("a server need not remove the encoding %q of a request", o.Request.Encoding)
	case encoded(o.Response) && !offered(o.Request, o.Response.Encoding):
		return fmt.Sprintf("the request does not say in Accept-Encoding that its sender removes the encoding %q of the response", o.Response.Encoding)
	}
	return ""
}

// offered reports whether a request says that its sender removes an encoding: each coding of it, none of which may be there twice.
func offered(request *evidence.ObservedBody, encoding string) bool {
	takes := accepted(request)
	for coding := range strings.SplitSeq(encoding, ",") {
		coding = plainCoding(coding)
		takesIt, named := takes[coding]
		if !named {
			takesIt = takes["*"]
		}
		if !slices.Contains(codings, coding) || !takesIt {
			return false
		}
		takes[coding] = false // a second time
	}
	return true
}

// accepted reads the header Accept-Encoding of a request: which codings it names, and whether they are taken. With a weight of 0 they are not.
func accepted(request *evidence.ObservedBody) map[string]bool {
	takes := map[string]bool{}
	var headers map[string]string
	if request == nil || request.Headers == nil || json.Unmarshal(request.Headers, &headers) != nil {
		return takes
	}
	for element := range strings.SplitSeq(headers["accept-encoding"], ",") {
		coding, weight, weighed := strings.Cut(element, ";")
		digits, is := strings.CutPrefix(strings.Trim(weight, " \t"), "q=")
		coding = plainCoding(coding)
		before, twice := takes[coding]
		takes[coding] = (!weighed || is && strings.ContainsAny(digits, "123456789")) && (before || !twice)
	}
	return takes
}

// plainCoding returns the name of a coding in one spelling.
func plainCoding(name string) string {
	name = strings.Trim(name, " \t")
	if name == "x-gzip" {
		return "gzip"
	}
	return name
}
