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

// unseen says why what a recorder saw is not proved. The rule "gap" is of a record that tells of acts which are not recorded.
func unseen(rule, format string, args ...any) *Finding {
	return found(Vantage, NotProved, rule, format, args...)
}

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

// A Look is what was found of one record alone.
type look struct {
	record *evidence.Record
	opened *observed.Opened // nil: an event
	change *ToolChange
	alone  *Finding // what is known without other records; nil: the record must be read in order
	answer string   // the provider's id of the answer, by its bytes; "": it has none

	references []string // what the call names of what the provider kept, by its bytes where they are read
	leftOut    []string // what the bytes say and the record does not

	proved bool // alone: nothing was found
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
		l.alone, l.change = ofEvent(&r.Payload)
		l.proved = l.alone == nil
		return l
	}
	l.opened = observed.Open(r)
	if reading, is := l.opened.Alone(); is {
		l.alone = l.judge(reading)
		l.proved = l.alone == nil
	}
	return l
}

// ofEvent says what an event of the recorder means for completeness, and which tool changed.
func ofEvent(p *evidence.Payload) (*Finding, *ToolChange) {
	e, err := observed.ParseEvent(p.Response)
	switch {
	case err != nil:
		return unseen("body", "its response is no event of a recorder: %v", err), nil
	case e.Event == observed.Gap:
		calls := int64(0)
		for _, m := range e.Missed {
			calls += min(m.Calls, 1<<40)
		}
		return unseen("gap", "the recorder says that at least %d calls passed without a record", calls), nil
	case e.Event == observed.LostInCrash:
		return unseen("gap", "the recorder died during a call of %q: nothing else is known of it", e.Agent), nil
	case e.Event == observed.ToolDefinitionChanged:
		return nil, &ToolChange{p.RecordID, p.AgentID, e.Agent, e.Server, e.Tool, e.Before, e.After}
	}
	return nil, nil
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
	if l.change != nil && len(f.changes) < maxSeen {
		f.changes = append(f.changes, *l.change)
	}
	if l.opened == nil {
		return l.alone
	}
	f.note(l.record)
	if f.copied += l.opened.Copied(); f.copied > maxCopied && l.opened.Copied() > 0 {
		return unseen("volume", "the records of the file copy more than %d bytes from each other", maxCopied)
	}
	reading, found := f.window.Read(l.opened), l.alone
	if found == nil && !l.proved {
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

// judge applies the rules to a record and its bytes. The first that fits counts.
func (l *look) judge(reading observed.Reading) *Finding {
	p, o := &l.record.Payload, l.record.Payload.Observed
	for _, err := range reading.Errs {
		if errors.Is(err, observed.ErrWrong) {
			return found(Vantage, Refuted, "digest", "%v", err)
		}
	}
	facts, known := l.opened.Facts(reading)
	l.answer, l.references = facts.Answer, o.ContextByReference
	if known {
		l.references, l.leftOut = facts.ContextByReference, leftOut(p, &facts)
		for _, f := range l.facts(&facts) {
			if f.stated && !f.same {
				return found(Vantage, Refuted, "projection", "its bytes say another %s than the record", f.name)
			}
		}
	}
	switch {
	case o.Fidelity == evidence.ByAttributes:
		return unseen("second-hand", "%s: nobody saw the bytes", SeenFrom(o, p.AgentID))
	case o.Fidelity == evidence.Parsed:
		return unseen("second-hand", "%s, as values that somebody else had parsed: nobody saw the bytes", SeenFrom(o, p.AgentID))
	case o.Agent == p.AgentID:
		return unseen("recorder-agent", "%q records its own acts: nobody else saw them", p.AgentID)
	}
	for _, open := range openRules {
		for _, err := range reading.Errs {
			if errors.Is(err, open.err) {
				return unseen(open.rule, "%v", err)
			}
		}
	}
	if why := readDifferently(o); why != "" {
		return unseen("readers", "%s", why)
	}
	switch {
	case !known && slices.ContainsFunc(l.facts(&facts), func(f fact) bool { return f.stated }):
		return unseen("projection", "the protocol %q is not read here: what the record says of its bytes is the recorder's word", o.Protocol)
	case o.Ended == evidence.LostInCrash:
		return unseen("gap", "the recorder died during a call of %q: the end is not known", o.Agent)
	}
	if beside := besideBytes(p); beside != "" {
		return unseen("projection", "its %s is no fact in bytes: what the record says there is the recorder's word", beside)
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

// openRules say under which rule bytes are not proved that cannot be read.
var openRules = []struct {
	err  error
	rule string
}{{observed.ErrMissing, "missing"}, {observed.ErrWithheld, "withheld"}, {observed.ErrUnsealed, "unsealed"}, {observed.ErrTruncated, "truncated"}, {observed.ErrMasked, "masked"}}

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
	c.found(e.record, against)
	if against != nil && against.Rule == "gap" {
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
	c.restOn(Vantage, Content, Authentication)
}

// noteGaps doubts completeness where a recorder missed something: that is in no record.
func (c *check) noteGaps() {
	for _, r := range c.gaps {
		if c.applies(Completeness) {
			c.doubt(Completeness, "gap", r, "a recorder says that it missed acts: they are in no record")
		}
	}
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
