package observed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// An Act is what a recorder saw, or what happened to it, before that is sealed: what it states of it, and the bytes. Of an event the payload alone counts.
type Act struct {
	// Of an act without bytes, or in a protocol of which no facts are read, the members of an output are what is said of it. Facts in the bytes replace them.
	evidence.Payload  `json:"-"`
	evidence.Observed `json:"-"`

	Request, Response *Body // nil: no bytes were seen
}

// A Body is what one direction carried. DecodedSHA256 is found when the act is sealed.
type Body struct {
	evidence.ObservedBody

	// Kept are the bytes to seal: decoded if there is an encoding, and all of them unless Truncated. nil: none are kept.
	Kept []byte
	// Earlier are bodies of records that are sealed already, from which Kept may copy: such as the last request of the same conversation.
	Earlier [][]byte
}

// Whole is a body that passed without an encoding, and is kept as it is.
func Whole[T ~string | ~[]byte](text T, mediaType string) *Body {
	body := []byte(text)
	return &Body{ObservedBody: evidence.ObservedBody{Bytes: int64(len(body)), SHA256: evidence.DigestOf(body), Type: mediaType}, Kept: body}
}

// draft collects what becomes a payload, and what has no place in it.
type draft struct {
	payload           evidence.Payload
	observed          evidence.Observed
	request, response []byte // what is sealed
	room              int    // bytes that values beside the bodies may have
	missing           []string
}

// Draft makes what a recorder seals of an act. What others said and has no place in a payload is left out and named in missing. It
// returns an error only if what the recorder itself says is wrong: names, times, a digest. Its errors are those of evidence.NewDraft.
func Draft(act Act) (*evidence.Draft, error) {
	if act.ActionType == evidence.RecorderEvent {
		return evidence.NewDraft(act.Payload)
	}
	d := &draft{payload: act.Payload, observed: act.Observed}
	d.payload.ActionType, d.payload.Observed = cmp.Or(act.ActionType, evidence.ObservedCall), &d.observed
	d.observe(act.Request, act.Response)
	d.say()
	d.observed.Missing = d.listed()
	return evidence.NewDraft(d.payload)
}

func (d *draft) miss(format string, args ...any) {
	d.missing = append(d.missing, fmt.Sprintf(format, args...))
}

func (d *draft) listed() (list []string) {
	for i, text := range slices.Concat(d.observed.Missing, d.missing) {
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

func (d *draft) observe(request, response *Body) {
	o := &d.observed
	o.Judged = evidence.JudgedAgent
	o.Method, o.Path = d.plain("method", o.Method), d.path(o.Path)
	o.ProviderRequestID, o.RetryOf = d.plain("provider_request_id", o.ProviderRequestID), d.name("retry_of", o.RetryOf)
	if o.Status < 100 || o.Status > 599 {
		if o.Status != 0 {
			d.miss("status: %d is none of HTTP", o.Status)
		}
		o.Status = 0
	}
	o.Request, d.payload.RequestBody, d.request = d.body("request", request)
	o.Response, d.payload.ResponseBody, d.response = d.body("response", response)
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

// Milliseconds is a time after another as records state it.
func Milliseconds(after time.Duration) *int64 { return new(max(0, after.Milliseconds())) }

// body describes a body, writes what of it is kept, and returns these bytes.
func (d *draft) body(direction string, b *Body) (*evidence.ObservedBody, jsontext.Value, []byte) {
	if b == nil {
		return nil, nil, nil
	}
	kept, truncated, refused := b.Kept, b.Truncated, b.Decoded != ""
	if len(kept) > MaxKept {
		kept, truncated = kept[:Beginning:Beginning], true
	}
	o := &evidence.ObservedBody{Bytes: b.Bytes, SHA256: b.SHA256, Delivered: b.Delivered, Encoding: encodingInClear(b.Encoding),
		Type: d.name(direction+": type", b.Type), Headers: d.headers(direction, b.Headers)}
	switch {
	case refused && truncated, kept == nil && b.Encoding != "":
		o.Decoded = evidence.DecodingRefused
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case kept == nil && b.Bytes > 0:
		d.miss("%s: the bytes are not kept", direction)
		return o, nil, nil
	case refused:
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

// Headers are the headers of a body; nil: there are none, or they have no form in JSON.
func Headers(list map[string]string) jsontext.Value {
	if len(list) == 0 {
		return nil
	}
	return canonical(list)
}

func (d *draft) headers(direction string, doc jsontext.Value) jsontext.Value {
	if doc != nil && evidence.CheckHeaders(doc) != nil {
		d.miss("%s: its headers are too many, or too long", direction)
		return nil
	}
	return doc
}

// say fills in the facts in the bytes, or what is said without them.
func (d *draft) say() {
	p, o, said := &d.payload, &d.observed, d.payload
	d.room = evidence.MaxDocument - forTheRest - len(p.RequestBody) - len(p.ResponseBody)
	facts, known := FactsOf(o, d.request, d.response) // in what is sealed alone, so that a verifier finds the same
	told := said.Model+said.ModelVersion != "" || len(said.Prompt)+len(said.Context)+len(said.Response)+len(said.Parameters)+len(said.ToolsUsed)+len(o.Usage) > 0
	if told = told && d.request == nil && d.response == nil; known && !told {
		p.Prompt, p.Context, p.Response, p.ToolsUsed = nil, nil, nil, nil
		p.Model, p.ModelVersion, o.Finish, o.Calls, o.ContextByReference = facts.Model, facts.ModelVersion, facts.Finish, facts.Calls, facts.ContextByReference
		p.Parameters, o.Usage = d.value("parameters", facts.Parameters, "{"), d.value("usage", facts.Usage, "{")
		return
	}
	p.Model, p.ModelVersion = d.plain("model", said.Model), d.plain("model_version", said.ModelVersion)
	p.Prompt, p.Context, p.Response = d.value("prompt", said.Prompt, `"{[`), d.value("context", said.Context, `"{[`), d.value("response", said.Response, `"{[`)
	p.Parameters, p.ToolsUsed, o.Usage = d.value("parameters", said.Parameters, "{"), d.value("tools_used", said.ToolsUsed, "["), d.value("usage", UsageInClear(o.Usage), "{")
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
