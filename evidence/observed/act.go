package observed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

const (
	// MaxKept is the length of the longest body that a record holds. Two bodies of this size fit into a payload in every spelling.
	MaxKept = 11 << 20
	// Beginning is how much a record holds of a longer body, whose digest and count are of all its bytes. JSON of which the end is missing says
	// nothing, however much of it there is; and whoever sends such bodies should not decide how much memory a recorder takes.
	Beginning = 512 << 10
)

// An Act is what a recorder saw, or what happened to it, before that is sealed. Zero values mean "unknown" or "none" unless the field says otherwise.
type Act struct {
	Recorder  string              // agent_id of the record: the recorder's own name
	RecordID  string              // of the record; "": whoever seals it makes one
	RequestID string              // the recorder's own id of the act
	Type      evidence.ActionType // "": ObservedCall
	At        time.Time           // when the act ended: the record's timestamp

	ChainID, ParentRequestID string
	Saw                      []evidence.Digest // the record before in the chain: without it, the chain is linked by its name alone

	// Event is what happened to the recorder itself: what follows does not count then. nil: it saw an act of an agent.
	Event *Event

	Agent    string        // who acted
	Side     evidence.Side // of an ObservedMessage: whether the agent sent it, or answered
	Vantage  evidence.Vantage
	Fidelity evidence.Fidelity
	Protocol string // such as OpenAIChat
	Method   string
	Path     string // without query and credentials
	Upstream *evidence.Upstream
	Status   int
	Ended    evidence.Ended

	Attempt                                int64
	RetryOf, ProviderRequestID, Credential string

	Began              time.Time
	FirstByte, Elapsed *time.Duration // after Began

	Request, Response *Body // nil: no bytes were seen
	Missing           []string

	// What is said of an act without bytes, or in a protocol of which no facts are read. Facts in the bytes replace it.
	Said Said
}

// Said are members of a model's output, in JSON; nil or "": not said.
type Said struct {
	Model, ModelVersion                              string
	Prompt, Context, Response, Parameters, ToolsUsed jsontext.Value
	Usage                                            jsontext.Value // an object
}

func (s *Said) nothing() bool {
	return s.Model == "" && s.ModelVersion == "" && len(s.Prompt)+len(s.Context)+len(s.Response)+len(s.Parameters)+len(s.ToolsUsed)+len(s.Usage) == 0
}

// A Body is what one direction carried.
type Body struct {
	Bytes     int64           // as they passed, all of them
	SHA256    evidence.Digest // of these
	Encoding  string          // Content-Encoding; "": none
	Type      string          // Content-Type
	Headers   map[string]string
	Delivered *int64 // of a response: bytes that the agent's side took

	// Kept are the bytes to seal: decoded if there is an encoding, and all of them unless Truncated. nil: none are kept.
	Kept      []byte
	Truncated bool // Kept is only the beginning
	Masked    bool // secrets in Kept are overwritten
	Refused   bool // Kept is still encoded: it could not be decoded within the recorder's bounds

	// Earlier are bodies of records that are sealed already, from which Kept may copy: such as the last request of the same conversation.
	Earlier [][]byte
}

// draft collects what becomes a payload, and what has no place in it.
type draft struct {
	act               *Act
	payload           evidence.Payload
	request, response []byte // what is sealed
	room              int    // bytes that values beside the bodies may have
	missing           []string
}

// Draft makes what a recorder seals of an act. What others said and has no place in a payload is left out and named in missing. It
// returns an error only if what the recorder itself says is wrong: names, times, a digest, an event. Its errors are those of evidence.NewDraft and ParseEvent.
func Draft(act Act) (*evidence.Draft, error) {
	if act.Event != nil {
		p, err := act.Event.Payload(act.Recorder, evidence.FormatTime(act.At), act.ChainID)
		if err != nil {
			return nil, fmt.Errorf("the event %s: %w", act.Event.Event, err)
		}
		p.RecordID, p.Saw = act.RecordID, act.Saw
		return evidence.NewDraft(p)
	}
	act.Type = cmp.Or(act.Type, evidence.ObservedCall)
	d := &draft{act: &act}
	d.observe()
	d.say()
	d.payload.Observed.Missing = d.listed()
	return evidence.NewDraft(d.payload)
}

func (d *draft) miss(format string, args ...any) {
	d.missing = append(d.missing, fmt.Sprintf(format, args...))
}

func (d *draft) listed() (list []string) {
	for i, text := range append(d.act.Missing, d.missing...) {
		if i == 999 {
			return append(list, "more, which is not listed")
		}
		if evidence.CheckName(text) != nil {
			text = evidence.Abbreviate(fmt.Sprintf("%+q", text))
		}
		list = append(list, text)
	}
	return list
}

// name returns a name that somebody else chose, or "" if it is none.
func (d *draft) name(member, text string) string {
	if text == "" {
		return ""
	}
	if err := evidence.CheckName(text); err != nil {
		d.miss("%s: %v", member, err)
		return ""
	}
	return text
}

// plain returns a name that somebody else chose, if it may stand in clear: nobody can erase it there.
func (d *draft) plain(member, text string) string {
	if text != "" && !IsPlain(text) {
		d.miss("%s: it is no name of one word, and is not kept", member)
		return ""
	}
	return text
}

func (d *draft) observe() {
	a := d.act
	d.payload = evidence.Payload{RecordID: a.RecordID, ActionType: a.Type, AgentID: a.Recorder, RequestID: a.RequestID, Timestamp: evidence.FormatTime(a.At),
		ChainID: a.ChainID, ParentRequestID: a.ParentRequestID, Saw: a.Saw}
	o := &evidence.Observed{Agent: a.Agent, Attempt: a.Attempt, Began: evidence.FormatTime(a.Began), Credential: a.Credential, Ended: a.Ended,
		EndedMS: milliseconds(a.Elapsed), Fidelity: a.Fidelity, FirstByteMS: milliseconds(a.FirstByte), Judged: evidence.JudgedAgent,
		Method: d.plain("method", a.Method), Path: d.path(a.Path), Protocol: a.Protocol, ProviderRequestID: d.plain("provider_request_id", a.ProviderRequestID),
		RetryOf: d.name("retry_of", a.RetryOf), Side: a.Side, Status: int64(a.Status), Upstream: a.Upstream, Vantage: a.Vantage}
	if o.Status < 100 || o.Status > 599 {
		if o.Status != 0 {
			d.miss("status: %d is none of HTTP", o.Status)
		}
		o.Status = 0
	}
	d.payload.Observed = o
	o.Request, d.payload.RequestBody, d.request = d.body("request", a.Request)
	o.Response, d.payload.ResponseBody, d.response = d.body("response", a.Response)
	if o.Request != nil {
		o.Request.Delivered = nil
	}
}

// path returns the path if it may stand in observed, without what in it is no name.
func (d *draft) path(path string) string {
	if err := evidence.CheckPath(path); err != nil {
		d.miss("path: %v", err)
		return ""
	}
	kept := PathInClear(path)
	if kept != path {
		d.miss("path: what in it is no name of one word is not kept")
	}
	return kept
}

func milliseconds(after *time.Duration) *int64 {
	if after == nil {
		return nil
	}
	return new(max(0, after.Milliseconds()))
}

// body describes a body, writes what of it is kept, and returns these bytes.
func (d *draft) body(direction string, b *Body) (*evidence.ObservedBody, jsontext.Value, []byte) {
	if b == nil {
		return nil, nil, nil
	}
	kept, truncated := b.Kept, b.Truncated
	if len(kept) > MaxKept {
		kept, truncated = kept[:Beginning:Beginning], true
	}
	o := &evidence.ObservedBody{Bytes: b.Bytes, SHA256: b.SHA256, Delivered: b.Delivered, Encoding: encodingInClear(b.Encoding),
		Type: d.name(direction+": type", b.Type), Headers: d.headers(direction, b.Headers)}
	switch {
	case b.Refused && truncated, kept == nil && b.Encoding != "":
		o.Decoded = evidence.DecodingRefused
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case kept == nil && b.Bytes > 0:
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case b.Refused:
		o.Decoded = evidence.DecodingRefused
	case b.Encoding != "" || truncated || b.Masked:
		o.DecodedSHA256, o.Truncated, o.Masked = evidence.DigestOf(kept), truncated, b.Masked
	}
	value, err := evidence.FormatBody(Pieces(kept, b.Earlier...)...)
	if err != nil {
		d.miss("%s: the bytes are not kept: %v", direction, err)
		return o, nil, nil
	}
	return o, value, kept
}

// codings are the names of encodings that a record may have. What has another is never decoded.
var codings = []string{"gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "identity"}

// areCodings reports whether a text is a list of such names. A comma may end it.
func areCodings(encoding string) bool {
	names := strings.Split(encoding, ",")
	last := len(names) - 1
	for i, name := range names {
		if i > 0 {
			name = strings.TrimLeft(name, " \t")
		}
		if i < last {
			name = strings.TrimRight(name, " \t")
		}
		ends := i > 0 && i == last && name == ""
		if !ends && !slices.ContainsFunc(codings, func(coding string) bool { return strings.EqualFold(name, coding) }) {
			return false
		}
	}
	return true
}

// encodingInClear returns the name of an encoding: of one that is not known, not what it says.
func encodingInClear(encoding string) string {
	if encoding == "" || areCodings(encoding) {
		return encoding
	}
	return "unknown"
}

func (d *draft) headers(direction string, headers map[string]string) jsontext.Value {
	if len(headers) == 0 {
		return nil
	}
	fit := map[string]string{}
	for name, value := range headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			d.miss("%s: a header that is not UTF-8", direction)
			continue
		}
		fit[name] = value
	}
	doc := canonical(fit)
	if doc == nil || evidence.CheckHeaders(doc) != nil {
		d.miss("%s: its headers are too many, or too long", direction)
		return nil
	}
	return doc
}

// say fills in the facts in the bytes, or what is said without them.
func (d *draft) say() {
	p, o, said := &d.payload, d.payload.Observed, d.act.Said
	d.room = evidence.MaxDocument - forTheRest - len(p.RequestBody) - len(p.ResponseBody)
	facts, known := FactsOf(o, d.request, d.response) // in what is sealed alone, so that a verifier finds the same
	if told := d.request == nil && d.response == nil && !said.nothing(); known && !told {
		p.Model, p.ModelVersion, o.Finish, o.Calls, o.ContextByReference = facts.Model, facts.ModelVersion, facts.Finish, facts.Calls, facts.ContextByReference
		p.Parameters, o.Usage = d.value("parameters", facts.Parameters, "{"), d.value("usage", facts.Usage, "{")
		return
	}
	p.Model, p.ModelVersion = d.plain("model", said.Model), d.plain("model_version", said.ModelVersion)
	p.Prompt, p.Context, p.Response = d.value("prompt", said.Prompt, `"{[`), d.value("context", said.Context, `"{[`), d.value("response", said.Response, `"{[`)
	p.Parameters, p.ToolsUsed, o.Usage = d.value("parameters", said.Parameters, "{"), d.value("tools_used", said.ToolsUsed, "["), d.value("usage", UsageInClear(said.Usage), "{")
}

const (
	// mostSaid bounds a value that is stated beside the bytes.
	mostSaid = 4 << 20
	// forTheRest is what a payload has beside bodies and values at most: above all, headers and what is missing.
	forTheRest = 2 << 20
)

// value returns a value in canonical form, if it has one, is not too long, and begins as one of the kinds.
func (d *draft) value(member string, v jsontext.Value, kinds string) jsontext.Value {
	if v == nil {
		return nil
	}
	form, err := evidence.Canonical(v)
	switch {
	case err != nil: // its words may quote what cannot be erased here
		err = errors.New("it has no canonical form")
	case len(form) > mostSaid:
		err = fmt.Errorf("longer than %d bytes", mostSaid)
	case len(form) > d.room:
		err = errors.New("no room beside the bytes")
	case strings.IndexByte(kinds, form[0]) < 0:
		err = errors.New("not of a kind that the member may have")
	default:
		d.room -= len(form)
		return form
	}
	d.miss("%s: %v", member, err)
	return nil
}

// EventName says what happened to a recorder.
type EventName string

// The events of recorders.
const (
	Start                 EventName = "start"
	Stop                  EventName = "stop"
	Heartbeat             EventName = "heartbeat"
	ModeChanged           EventName = "mode"
	Configuration         EventName = "configuration"
	Gap                   EventName = "gap"
	LostInCrash           EventName = "lost_in_crash"
	ToolDefinitionChanged EventName = "tool_definition_changed"
)

// Mode says what a recorder does with what it cannot record.
type Mode string

// The modes.
const (
	Closed  Mode = "closed" // nothing passes without a record
	Passing Mode = "open"   // everything passes, and what was missed is counted
)

// An Event is the response of a recorder_event. Which fields it has depends on the Event; see docs/format.md, "What a recorder saw". Its
// fields are in canonical order.
type Event struct {
	After         evidence.Digest  `json:"after,omitzero"`
	Agent         string           `json:"agent,omitzero"`
	Before        evidence.Digest  `json:"before,omitzero"`
	Began         string           `json:"began,omitzero"`
	Calls         *int64           `json:"calls,omitzero"`
	Configuration evidence.Digest  `json:"configuration,omitzero"`
	Event         EventName        `json:"event"`
	Missed        []Missed         `json:"missed,omitempty"`
	Mode          Mode             `json:"mode,omitzero"`
	Protocol      string           `json:"protocol,omitzero"`
	Reason        string           `json:"reason,omitzero"`
	RequestSHA256 evidence.Digest  `json:"request_sha256,omitzero"`
	Server        string           `json:"server,omitzero"`
	Since         string           `json:"since,omitzero"`
	Tool          string           `json:"tool,omitzero"`
	Vantage       evidence.Vantage `json:"vantage,omitzero"`
	Version       string           `json:"version,omitzero"`
}

// Missed counts the calls of an agent that passed without a record in one minute.
type Missed struct {
	Agent  string `json:"agent"`
	Calls  int64  `json:"calls"`
	Minute string `json:"minute"` // when it begins
}

// maxMissed is how many counts one gap has. More go into another.
const maxMissed = 1000

// members lists the members of each event, besides event.
var members = map[EventName][]string{
	Start:                 {"configuration", "mode", "vantage", "version"},
	Stop:                  {"reason"},
	Heartbeat:             {"calls", "since"},
	ModeChanged:           {"mode", "reason"},
	Configuration:         {"configuration", "reason"},
	Gap:                   {"missed", "reason"},
	LostInCrash:           {"agent", "began", "protocol", "request_sha256"},
	ToolDefinitionChanged: {"after", "agent", "before", "server", "tool"},
}

// optional lists members that an event has all of or none: recorders before them did not state these.
var optional = map[EventName][]string{Stop: {"calls", "since"}}

// ParseEvent reads the response of a recorder_event, in canonical form. It is strict: an event has exactly its members.
func ParseEvent(response jsontext.Value) (*Event, error) {
	e := new(Event)
	if err := evidence.DecodeForm(response, e); err != nil {
		return nil, err
	}
	return e, e.check(response)
}

// Payload makes the payload of an event. Its errors are those of ParseEvent.
func (e *Event) Payload(recorder string, timestamp string, chainID string) (evidence.Payload, error) {
	response, err := json.Marshal(e)
	if err != nil {
		return evidence.Payload{}, err
	}
	if _, err := ParseEvent(response); err != nil {
		return evidence.Payload{}, err
	}
	return evidence.Payload{ActionType: evidence.RecorderEvent, AgentID: recorder, Timestamp: timestamp, ChainID: chainID, Response: response}, nil
}

func (e *Event) check(response jsontext.Value) error {
	wanted, known := members[e.Event]
	if !known {
		return fmt.Errorf("event: unknown value %q", evidence.Abbreviate(string(e.Event)))
	}
	var there map[string]jsontext.Value
	if err := json.Unmarshal(response, &there); err != nil {
		return evidence.Steady(err)
	}
	delete(there, "event")
	if more := optional[e.Event]; slices.ContainsFunc(more, func(name string) bool { _, has := there[name]; return has }) {
		wanted = slices.Concat(more, wanted)
	}
	for _, name := range wanted {
		if _, has := there[name]; !has {
			return fmt.Errorf("%s: missing, and required for %s", name, e.Event)
		}
		if err := e.checkMember(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(there, name)
	}
	if len(there) > 0 {
		names := make([]string, 0, len(there))
		for name := range there {
			names = append(names, name)
		}
		return fmt.Errorf("%s: not allowed in %s", slices.Min(names), e.Event)
	}
	return nil
}

func (e *Event) checkMember(name string) error {
	names := map[string]string{"agent": e.Agent, "protocol": e.Protocol, "reason": e.Reason, "server": e.Server, "tool": e.Tool, "version": e.Version}
	if text, is := names[name]; is {
		return evidence.CheckName(text)
	}
	switch name {
	case "began", "since":
		_, err := evidence.ParseTime(map[string]string{"began": e.Began, "since": e.Since}[name])
		return err
	case "mode":
		if e.Mode != Closed && e.Mode != Passing {
			return fmt.Errorf("unknown value %q: expected closed or open", evidence.Abbreviate(string(e.Mode)))
		}
	case "vantage":
		if !slices.Contains(evidence.Vantages(), e.Vantage) {
			return fmt.Errorf("unknown value %q", evidence.Abbreviate(string(e.Vantage)))
		}
	case "calls":
		return checkCount(*e.Calls)
	case "missed":
		return checkMissed(e.Missed)
	}
	return nil // a digest: DecodeForm has read it
}

func checkCount(n int64) error {
	if n < 0 || n > 1<<53-1 {
		return errors.New("want a whole number from 0 to 9007199254740991")
	}
	return nil
}

func checkMissed(list []Missed) error {
	if len(list) == 0 || len(list) > maxMissed {
		return fmt.Errorf("%d counts: want 1 to %d", len(list), maxMissed)
	}
	for i, m := range list {
		_, err := evidence.ParseTime(m.Minute)
		if err = cmp.Or(err, evidence.CheckName(m.Agent), checkCount(m.Calls)); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if m.Calls == 0 {
			return fmt.Errorf("element %d: calls: 0; leave it out", i)
		}
		if i > 0 && cmp.Or(cmp.Compare(list[i-1].Minute, m.Minute), cmp.Compare(list[i-1].Agent, m.Agent)) >= 0 {
			return fmt.Errorf("element %d: not sorted by minute and agent, or there twice", i)
		}
	}
	return nil
}
