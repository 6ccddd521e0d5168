package telemetry

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
	"jurat/internal/tap/traffic/otlp"
)

// An Act is an act of an agent of which telemetry tells. Everything in it is the sender's word.
type Act struct {
	Trace, Span string    // ids in hexadecimal
	Parent      string    // the RequestID of the nearest span above that is an act of the same delivery; "": there is none
	Above       string    // the span above, by its id; "": there is none
	Kind        otlp.Kind // "": events alone, of an act that a span may tell of
	Service     string    // service.name of the program that tells
	Chain       string    // how the sender names the chain: the attribute jurat.chain
	Dialogue    string    // how the sender names the conversation
	Began       time.Time // by the sender's clock; zero: not told
	Ended       time.Time // likewise
	Failed      bool
	Body        []byte // what is told, as package traffic/otlp writes it: one span, or the events of one
}

// Told is what a delivery tells.
type Told struct {
	Acts    []Act
	Others  int      // spans and entries of logs that tell of no act
	Refused int      // spans and entries that cannot be told apart, because they have no ids
	Reasons []string // why, each once; at most 10

	room int // bytes that further acts may have
}

type place struct {
	resource *otlp.Resource
	scope    *otlp.Scope
	schemas  [2]string // of the resource and the scope
}

// mostTold bounds the bytes of all acts of one delivery. Each has what is said of its resource and its scope, so many spans of one large resource would
// take many times what was sent.
const mostTold = 3 * MaxBody

// Find finds the acts in what was decoded, in its order. Those for which there is no room are refused.
func Find(data *otlp.Data) *Told {
	told := &Told{room: mostTold}
	told.spans(data)
	told.logs(data)
	return told
}

const mostReasons = 10

// Refuse counts a span or an event that is not taken, and why.
func (t *Told) Refuse(reason string) {
	t.Refused++
	if len(t.Reasons) < mostReasons && !slices.Contains(t.Reasons, reason) {
		t.Reasons = append(t.Reasons, reason)
	}
}

func refer(trace, span otlp.ID) string { return string(trace) + "-" + string(span) }

func (t *Told) spans(data *otlp.Data) {
	above := map[string]ancestor{} // every span of the delivery
	for _, r := range data.ResourceSpans {
		for _, s := range r.ScopeSpans {
			for i := range s.Spans {
				span := &s.Spans[i]
				one := ancestor{act: otlp.KindOf(span.Attributes) != ""}
				if span.ParentSpanID.Is(8) {
					one.next = refer(span.TraceID, span.ParentSpanID)
				}
				above[refer(span.TraceID, span.SpanID)] = one
			}
		}
	}
	for i := range data.ResourceSpans {
		r := &data.ResourceSpans[i]
		for j := range r.ScopeSpans {
			s := &r.ScopeSpans[j]
			for k := range s.Spans {
				t.span(place{&r.Resource, &s.Scope, [2]string{r.SchemaURL, s.SchemaURL}}, &s.Spans[k], above)
			}
		}
	}
}

// An ancestor leads from a span to the act that it is a part of.
type ancestor struct {
	act  bool
	next string // as refer names it; "": none
}

// highest bounds how many spans are looked at to find the act above one: ids may go round.
const highest = 100

func actAbove(of map[string]ancestor, self string) string {
	at := of[self].next
	for range highest {
		if at == "" || at == self {
			return ""
		}
		if of[at].act {
			return at
		}
		at = of[at].next
	}
	return ""
}

func (t *Told) span(at place, s *otlp.Span, of map[string]ancestor) {
	switch kind := otlp.KindOf(s.Attributes); {
	case !s.TraceID.Is(16) || !s.SpanID.Is(8):
		t.Refuse("a span without ids: want a trace id of 16 bytes and a span id of 8, not all zero")
	case kind == "":
		t.Others++
	default:
		a := Act{Trace: string(s.TraceID), Span: string(s.SpanID), Kind: kind, Service: at.resource.Attributes.Text("service.name"), Ended: s.EndTimeUnixNano.Time(),
			Began: s.StartTimeUnixNano.Time(), Chain: s.Attributes.Text(otlp.Chain), Dialogue: otlp.ConversationOf(s.Attributes), Failed: s.Status.Code == otlp.Failed}
		a.Parent = actAbove(of, a.RequestID())
		if s.ParentSpanID.Is(8) {
			a.Above = string(s.ParentSpanID)
		}
		t.add(a, &otlp.Data{ResourceSpans: []otlp.ResourceSpans{{Resource: *at.resource, SchemaURL: at.schemas[0],
			ScopeSpans: []otlp.ScopeSpans{{Scope: *at.scope, SchemaURL: at.schemas[1], Spans: []otlp.Span{*s}}}}}})
	}
}

func (t *Told) add(a Act, data *otlp.Data) {
	if t.room <= 0 {
		t.Refuse("there is no room for more acts: each has all that is said of its resource and scope; export fewer spans at a time")
		return
	}
	body, err := json.Marshal(data)
	if err != nil { // a value that was read and cannot be written
		t.Refuse(fmt.Sprintf("what was read cannot be written: %v", err))
		return
	}
	a.Body = body
	t.room -= len(body)
	t.Acts = append(t.Acts, a)
}

// logs finds the events with content. Those about one span, of one library, are one act: each of the older ones has one message.
func (t *Told) logs(data *otlp.Data) {
	for i := range data.ResourceLogs {
		r := &data.ResourceLogs[i]
		for j := range r.ScopeLogs {
			s := &r.ScopeLogs[j]
			t.events(place{&r.Resource, &s.Scope, [2]string{r.SchemaURL, s.SchemaURL}}, s.LogRecords)
		}
	}
}

func (t *Told) events(at place, list []otlp.LogRecord) {
	var order []string
	of := map[string][]otlp.LogRecord{}
	for _, l := range list {
		switch {
		case !otlp.HasContent(l.EventOf()):
			t.Others++
		case !l.TraceID.Is(16) || !l.SpanID.Is(8):
			t.Refuse("an event without the ids of its span: want a trace id of 16 bytes and a span id of 8, not all zero")
		default:
			name := refer(l.TraceID, l.SpanID)
			if of[name] == nil {
				order = append(order, name)
			}
			of[name] = append(of[name], l)
		}
	}
	for _, name := range order {
		group := of[name]
		first, last := &group[0], &group[len(group)-1]
		a := Act{Trace: string(first.TraceID), Span: string(first.SpanID), Service: at.resource.Attributes.Text("service.name"), Began: timeOf(first), Ended: timeOf(last)}
		for k := range group {
			a.Chain = cmp.Or(a.Chain, group[k].Attributes.Text(otlp.Chain))
			a.Dialogue = cmp.Or(a.Dialogue, otlp.ConversationOf(group[k].Attributes))
		}
		t.add(a, &otlp.Data{ResourceLogs: []otlp.ResourceLogs{{Resource: *at.resource, SchemaURL: at.schemas[0],
			ScopeLogs: []otlp.ScopeLogs{{Scope: *at.scope, SchemaURL: at.schemas[1], LogRecords: group}}}}})
	}
}

func timeOf(l *otlp.LogRecord) time.Time {
	if l.TimeUnixNano != 0 {
		return l.TimeUnixNano.Time()
	}
	return l.ObservedTimeUnixNano.Time()
}

// RequestID is the request_id of a record of the act: trace and span, and of events a word that says so.
func (a *Act) RequestID() string {
	id := a.Trace + "-" + a.Span
	if a.Kind == "" {
		id += "-events"
	}
	return id
}

// RecordID returns the id of a record of the act of an agent. The same span has the same id, however often it is sent; other content, such as
// another account of the same span, can have an id of its own.
func (a *Act) RecordID(agent string, otherContent bool) string {
	words := []string{"jurat otlp", agent, a.RequestID()}
	if otherContent || a.Kind == "" { // events of one span may come in several deliveries
		sum := sha256.Sum256(a.Body)
		words = append(words, hex.EncodeToString(sum[:]))
	}
	return evidence.RecordIDFor("", words...) // not the sender's time: an account with another one is of the same span
}

// Conversation returns the sender's name for the conversation, or its digest and false if it is no name of one word: the names of chains cannot be erased.
func (a *Act) Conversation() (name string, named bool) {
	if a.Dialogue == "" || observed.IsPlain(a.Dialogue) {
		return a.Dialogue, true
	}
	return evidence.DigestOf([]byte(a.Dialogue)).String(), false
}

// never is what no telemetry has.
const never = "the bytes of the call, its headers, its status and its attempts: telemetry does not have them"

// Observed is the act as a recorder states it, but for the recorder's own name and the chain. received is when it was told, by the recorder's clock.
func (a *Act) Observed(agent string, received time.Time) observed.Act {
	p, _ := traffic.Project(traffic.Call{Protocol: traffic.OTLP, Request: a.Body}) // the protocol is known
	o := observed.Act{Payload: evidence.Payload{RecordID: a.RecordID(agent, false), ActionType: evidence.ObservedSpan, RequestID: a.RequestID(),
		Timestamp: evidence.FormatTime(received), ParentRequestID: a.Parent}, Observed: evidence.Observed{Agent: agent, Began: evidence.FormatTime(a.Began),
		Ended: evidence.Complete, Fidelity: evidence.ByAttributes, Missing: append([]string{never}, p.Problems...), Protocol: traffic.OTLP,
		Vantage: evidence.Telemetry}, Request: observed.Whole(a.Body, "application/json")}
	switch {
	case a.Began.IsZero():
		o.Began = evidence.FormatTime(received)
		o.Missing = append(o.Missing, "when it began: not told; the time is that at which it was told")
	case !a.Ended.IsZero() && !a.Ended.Before(a.Began):
		o.EndedMS = observed.Milliseconds(a.Ended.Sub(a.Began))
	default:
		o.Missing = append(o.Missing, "when it ended: not told, or before it began")
	}
	if a.Above != "" && a.Parent == "" {
		o.Missing = append(o.Missing, "the span above it, "+a.Above+": not told as an act together with it")
	}
	if a.Failed && p.Output == nil {
		o.Ended = evidence.UpstreamError
	}
	return o
}

type Signal string

const (
	Traces Signal = "traces"
	Logs   Signal = "logs"
	Either Signal = "" // a file does not say which
)

type Encoding string

const (
	Protobuf Encoding = "protobuf"
	JSON     Encoding = "json"
)

// Limits of one body. An exporter sends a few hundred spans at a time.
const (
	MaxBody   = 32 << 20 // bytes
	maxValues = 400_000  // objects and messages; each takes a few hundred bytes of memory
	maxDepth  = 150      // of objects and arrays within each other: a value of the protocol takes three
)

// ErrLarge says that a body is within its bytes, and has more in it than is read.
var ErrLarge = errors.New("more than is read at once")

// Decode reads a body; in JSON, Either reads both signals. Its errors say what breaks the protocol. They wrap ErrLarge if the sender may send less at a time.
func Decode(signal Signal, encoding Encoding, body []byte) (*otlp.Data, error) {
	if len(body) > MaxBody {
		return nil, fmt.Errorf("%d bytes: %w: at most %d", len(body), ErrLarge, MaxBody)
	}
	data := new(otlp.Data)
	if encoding == Protobuf && signal == Either {
		return either(body)
	}
	if encoding == Protobuf {
		text, err := fromProtobuf(signal, body)
		if err != nil {
			return nil, err
		}
		body = text
	} else if err := countJSON(body); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, data); err != nil {
		return nil, fmt.Errorf("not OTLP in JSON: %w", plainly(err))
	}
	switch { // the other signal's members are none of this one's
	case signal == Traces:
		data.ResourceLogs = nil
	case signal == Logs:
		data.ResourceSpans = nil
	}
	return data, nil
}

// either reads a body in protobuf as traces or, if no span of it has ids then, as logs. The two begin alike, and protobuf passes over what it does not know.
func either(body []byte) (*otlp.Data, error) {
	data, err := Decode(Traces, Protobuf, body)
	if err == nil && hasSpans(data) || errors.Is(err, ErrLarge) {
		return data, err
	}
	list, failed := Decode(Logs, Protobuf, body)
	if failed == nil && hasEntries(list) {
		return list, nil
	}
	return nil, errors.Join(err, failed, errNothing)
}

var errNothing = errors.New("no span in it has ids, and no entry of a log a time")

func hasSpans(d *otlp.Data) bool {
	none := true
	for _, r := range d.ResourceSpans {
		for _, s := range r.ScopeSpans {
			for i := range s.Spans {
				if none = false; s.Spans[i].TraceID.Is(16) && s.Spans[i].SpanID.Is(8) {
					return true
				}
			}
		}
	}
	return none
}

func hasEntries(d *otlp.Data) bool {
	none := true
	for _, r := range d.ResourceLogs {
		for _, s := range r.ScopeLogs {
			for i := range s.LogRecords {
				if none = false; !timeOf(&s.LogRecords[i]).IsZero() {
					return true
				}
			}
		}
	}
	return none
}

func plainly(err error) error {
	if semantic, is := errors.AsType[*json.SemanticError](err); is {
		reason := semantic.Err
		if reason == nil {
			reason = errors.New("a value of another kind is wanted")
		}
		return fmt.Errorf("at %.200q: %w", semantic.JSONPointer, reason)
	}
	return err
}

// fromProtobuf writes a body in protobuf as JSON. TracesData and LogsData are the requests by other names: the same fields with the same
// numbers. The packages of the requests link gRPC, which this does not need.
func fromProtobuf(signal Signal, body []byte) ([]byte, error) {
	var m proto.Message = &traces.TracesData{}
	if signal == Logs {
		m = &logs.LogsData{}
	}
	left := maxValues
	if err := countProtobuf(m.ProtoReflect().Descriptor(), body, maxDepth, &left); err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("not OTLP in protobuf: %w", err)
	}
	inHex(m)
	text, err := (protojson.MarshalOptions{UseEnumNumbers: true}).Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("not OTLP in protobuf: %w", err)
	}
	return text, nil
}

func countProtobuf(of protoreflect.MessageDescriptor, body []byte, depth int, left *int) error {
	if depth == 0 {
		return fmt.Errorf("values within each other: %w", ErrLarge)
	}
	if *left--; *left < 0 {
		return fmt.Errorf("more than %d values: %w", maxValues, ErrLarge)
	}
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return fmt.Errorf("not OTLP in protobuf: %w", protowire.ParseError(n))
		}
		body = body[n:]
		if n = protowire.ConsumeFieldValue(number, kind, body); n < 0 {
			return fmt.Errorf("not OTLP in protobuf: %w", protowire.ParseError(n))
		}
		if f := of.Fields().ByNumber(number); f != nil && f.Message() != nil && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(body)
			if err := countProtobuf(f.Message(), inner, depth-1, left); err != nil {
				return err
			}
		}
		body = body[n:]
	}
	return nil
}

func countJSON(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for left := maxValues; ; {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		if d.StackDepth() > 3*maxDepth {
			return fmt.Errorf("values within each other: %w", ErrLarge)
		}
		if token.Kind() == jsontext.KindBeginObject {
			if left--; left < 0 {
				return fmt.Errorf("more than %d values: %w", maxValues, ErrLarge)
			}
		}
	}
}

// inHex has protobuf's JSON, which writes bytes in base64, write ids in hexadecimal, as OTLP/JSON has them: the digits, taken for base64, are
// the bytes that it writes as these digits.
func inHex(m proto.Message) {
	switch m := m.(type) {
	case *traces.TracesData:
		for _, r := range m.ResourceSpans {
			for _, s := range r.GetScopeSpans() {
				for _, span := range s.GetSpans() {
					digits(&span.TraceId, &span.SpanId, &span.ParentSpanId)
					for _, l := range span.GetLinks() {
						digits(&l.TraceId, &l.SpanId)
					}
				}
			}
		}
	case *logs.LogsData:
		for _, r := range m.ResourceLogs {
			for _, s := range r.GetScopeLogs() {
				for _, l := range s.GetLogRecords() {
					digits(&l.TraceId, &l.SpanId)
				}
			}
		}
	}
}

// digits replaces ids. One of a length that no id has is left out.
func digits(ids ...*[]byte) {
	for _, id := range ids {
		taken, err := base64.StdEncoding.DecodeString(hex.EncodeToString(*id))
		if err != nil || len(*id) > 16 {
			taken = nil
		}
		*id = taken
	}
}
