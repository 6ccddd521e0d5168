// Package otlp has the JSON form of OpenTelemetry's protocol (OTLP/JSON) for traces and logs, as far as recorders read it, and says which
// spans tell of an agent's acts. It is apart from package telemetry because verifiers read the same spans from records, and need neither
// protobuf nor a server in a browser.
//
// # One form for what came in any form
//
// [Data] reads OTLP/JSON of any sender, and is written in one form: members in the order of the protocol, empty ones left out, ids in lower-case
// hexadecimal. The same span has the same bytes then, whether it came as protobuf or as JSON. Members that this package does not know are not kept.
package otlp

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Data is the body of a request for traces (ExportTraceServiceRequest) or for logs (ExportLogsServiceRequest), or what files have of either.
type Data struct {
	ResourceSpans []ResourceSpans `json:"resourceSpans,omitempty"`
	ResourceLogs  []ResourceLogs  `json:"resourceLogs,omitempty"`
}

// ResourceSpans are the spans of one resource.
type ResourceSpans struct {
	Resource   Resource     `json:"resource,omitempty"`
	ScopeSpans []ScopeSpans `json:"scopeSpans,omitempty"`
	SchemaURL  string       `json:"schemaUrl,omitempty"`
}

// ScopeSpans are the spans of one library.
type ScopeSpans struct {
	Scope     Scope  `json:"scope,omitempty"`
	Spans     []Span `json:"spans,omitempty"`
	SchemaURL string `json:"schemaUrl,omitempty"`
}

// ResourceLogs are the log records of one resource.
type ResourceLogs struct {
	Resource  Resource    `json:"resource,omitempty"`
	ScopeLogs []ScopeLogs `json:"scopeLogs,omitempty"`
	SchemaURL string      `json:"schemaUrl,omitempty"`
}

// ScopeLogs are the log records of one library.
type ScopeLogs struct {
	Scope      Scope       `json:"scope,omitempty"`
	LogRecords []LogRecord `json:"logRecords,omitempty"`
	SchemaURL  string      `json:"schemaUrl,omitempty"`
}

// A Resource is the program that tells.
type Resource struct {
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
}

// A Scope is the library that tells.
type Scope struct {
	Name                   string     `json:"name,omitempty"`
	Version                string     `json:"version,omitempty"`
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
}

// A Span is one operation of a program.
type Span struct {
	TraceID                ID         `json:"traceId,omitempty"`
	SpanID                 ID         `json:"spanId,omitempty"`
	TraceState             string     `json:"traceState,omitempty"`
	ParentSpanID           ID         `json:"parentSpanId,omitempty"`
	Flags                  Count      `json:"flags,omitzero"`
	Name                   string     `json:"name,omitempty"`
	Kind                   Enum       `json:"kind,omitzero"`
	StartTimeUnixNano      Nanos      `json:"startTimeUnixNano,omitzero"`
	EndTimeUnixNano        Nanos      `json:"endTimeUnixNano,omitzero"`
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
	Events                 []Event    `json:"events,omitempty"`
	DroppedEventsCount     Count      `json:"droppedEventsCount,omitzero"`
	Links                  []Link     `json:"links,omitempty"`
	DroppedLinksCount      Count      `json:"droppedLinksCount,omitzero"`
	Status                 Status     `json:"status,omitempty"`
}

// An Event is something that happened during a span.
type Event struct {
	TimeUnixNano           Nanos      `json:"timeUnixNano,omitzero"`
	Name                   string     `json:"name,omitempty"`
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
}

// A Link names another span.
type Link struct {
	TraceID                ID         `json:"traceId,omitempty"`
	SpanID                 ID         `json:"spanId,omitempty"`
	TraceState             string     `json:"traceState,omitempty"`
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
	Flags                  Count      `json:"flags,omitzero"`
}

// A Status says how a span ended.
type Status struct {
	Message string `json:"message,omitempty"`
	Code    Enum   `json:"code,omitzero"`
}

// Failed is the Code of a span that failed.
const Failed Enum = 2

// A LogRecord is an entry of a log, or an event.
type LogRecord struct {
	TimeUnixNano           Nanos      `json:"timeUnixNano,omitzero"`
	ObservedTimeUnixNano   Nanos      `json:"observedTimeUnixNano,omitzero"`
	SeverityNumber         Enum       `json:"severityNumber,omitzero"`
	SeverityText           string     `json:"severityText,omitempty"`
	Body                   *Value     `json:"body,omitempty"`
	Attributes             Attributes `json:"attributes,omitempty"`
	DroppedAttributesCount Count      `json:"droppedAttributesCount,omitzero"`
	Flags                  Count      `json:"flags,omitzero"`
	TraceID                ID         `json:"traceId,omitempty"`
	SpanID                 ID         `json:"spanId,omitempty"`
	EventName              string     `json:"eventName,omitempty"`
}

// Attributes are values by name. No name should stand there twice.
type Attributes []KeyValue

// A KeyValue is one attribute.
type KeyValue struct {
	Key   string `json:"key,omitempty"`
	Value Value  `json:"value,omitempty"`
}

// A Value is one of the kinds of values, or none.
type Value struct {
	String *string `json:"stringValue,omitzero"`
	Bool   *bool   `json:"boolValue,omitzero"`
	Int    *Int    `json:"intValue,omitzero"`
	Double *Double `json:"doubleValue,omitzero"`
	Array  *Array  `json:"arrayValue,omitzero"`
	KVList *KVList `json:"kvlistValue,omitzero"`
	Bytes  *[]byte `json:"bytesValue,omitzero"`
}

// An Array is a list of values.
type Array struct {
	Values []Value `json:"values,omitempty"`
}

// A KVList is an object.
type KVList struct {
	Values Attributes `json:"values,omitempty"`
}

// Named returns the value with a name, the last of several; nil: there is none.
func (a Attributes) Named(name string) *Value {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i].Key == name {
			return &a[i].Value
		}
	}
	return nil
}

// Text returns the string with a name; "": there is none.
func (a Attributes) Text(name string) string {
	if v := a.Named(name); v != nil && v.String != nil {
		return *v.String
	}
	return ""
}

// A Kind says of what act a span tells.
type Kind string

// The kinds of acts. Of other spans "" tells that they are none.
const (
	Inference Kind = "inference" // a call of a model
	Tool      Kind = "tool"      // the use of a tool
	Agent     Kind = "agent"     // the whole of what an agent was asked and answered, whose parts other spans tell
)

var kinds = map[string]map[string]Kind{
	"gen_ai.operation.name":   {"chat": Inference, "text_completion": Inference, "generate_content": Inference, "execute_tool": Tool, "invoke_agent": Agent, "invoke_workflow": Agent, "embeddings": "", "create_agent": "", "retrieval": ""},
	"openinference.span.kind": {"LLM": Inference, "TOOL": Tool, "AGENT": Agent, "CHAIN": "", "EMBEDDING": "", "RETRIEVER": "", "RERANKER": "", "GUARDRAIL": "", "EVALUATOR": "", "PROMPT": ""},
}

// conventions are the attributes of kinds, in the order in which they count.
var conventions = []string{"gen_ai.operation.name", "openinference.span.kind"}

// signs are attributes that only calls of models have, in spans that name no kind, or one that is not known.
var signs = []string{"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.request.model", "llm.input_messages.0.message.role", "llm.model_name"}

// KindOf returns the kind of the act that a span with these attributes tells of; "": of none.
func KindOf(a Attributes) Kind {
	none := false
	for _, name := range conventions {
		if kind, known := kinds[name][a.Text(name)]; kind != "" {
			return kind
		} else if known {
			none = true
		}
	}
	if !none && slices.ContainsFunc(signs, func(name string) bool { return a.Named(name) != nil }) {
		return Inference
	}
	return ""
}

// The events of GenAI that have content.
const (
	Details    = "gen_ai.client.inference.operation.details"
	Choice     = "gen_ai.choice"
	oldMessage = ".message"
)

// RoleOf returns who speaks in an event that has one message of a prompt, such as gen_ai.user.message; "": it has none.
func RoleOf(event string) string {
	role, is := strings.CutSuffix(event, oldMessage)
	role, its := strings.CutPrefix(role, "gen_ai.")
	if is && its && slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, role) {
		return role
	}
	return ""
}

// HasContent reports whether an event of this name has content of an act.
func HasContent(event string) bool {
	return event == Details || event == Choice || RoleOf(event) != ""
}

// EventOf returns the name of an event; "": it is an entry of a log.
func (l *LogRecord) EventOf() string { return cmp.Or(l.EventName, l.Attributes.Text("event.name")) }

// chains are the attributes by which a sender names the conversation, in the order in which they count.
var chains = []string{"gen_ai.conversation.id", "session.id"}

// Chain is the attribute that names the chain of a span's record.
const Chain = "jurat.chain"

// ConversationOf returns what a sender calls the conversation; "": nothing.
func ConversationOf(a Attributes) string {
	for _, name := range chains {
		if text := a.Text(name); text != "" {
			return text
		}
	}
	return ""
}

// Senders write whole numbers as JSON numbers or as strings. Written is what the protocol has: those of 64 bits are strings.
type (
	// ID is the id of a trace or a span in lower-case hexadecimal. "": none.
	ID string
	// Count is a whole number of 32 bits that is not negative.
	Count uint32
	// Enum is a choice by its number.
	Enum int32
	// Nanos is a time in nanoseconds since 1970; 0: none.
	Nanos uint64
	// Int is a whole number of 64 bits.
	Int int64
	// Double is a number that may be NaN or infinite.
	Double float64
)

const maxID = 64

// UnmarshalJSONFrom reads hexadecimal digits. OTLP/JSON has ids so, and not in base64 as protobuf's own JSON has bytes.
func (id *ID) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var text string
	if err := json.UnmarshalDecode(d, &text); err != nil {
		return err
	}
	if len(text) > maxID {
		return errors.New("an id is longer than 64 characters")
	}
	if _, err := hex.DecodeString(text); err != nil {
		return fmt.Errorf("the id %q is not hexadecimal", text)
	}
	*id = ID(strings.ToLower(text))
	return nil
}

// Is reports whether the id has this many bytes and is not zero.
func (id ID) Is(bytes int) bool { return len(id) == 2*bytes && strings.Trim(string(id), "0") != "" }

// UnmarshalJSONFrom reads a number or a string.
func (c *Count) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 32) })
	*c = Count(n)
	return err
}

// UnmarshalJSONFrom reads a number, a string with one, or one of the protocol's names.
func (e *Enum) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (int64, error) {
		if n, known := enums[s]; known {
			return n, nil
		}
		return strconv.ParseInt(s, 10, 32)
	})
	*e = Enum(n)
	return err
}

// enums are names that senders with protobuf's own JSON write.
var enums = map[string]int64{
	"SPAN_KIND_UNSPECIFIED": 0, "SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3, "SPAN_KIND_PRODUCER": 4, "SPAN_KIND_CONSUMER": 5,
	"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2, "SEVERITY_NUMBER_UNSPECIFIED": 0, "SEVERITY_NUMBER_TRACE": 1,
	"SEVERITY_NUMBER_DEBUG": 5, "SEVERITY_NUMBER_INFO": 9, "SEVERITY_NUMBER_WARN": 13, "SEVERITY_NUMBER_ERROR": 17, "SEVERITY_NUMBER_FATAL": 21,
}

// UnmarshalJSONFrom reads a string or a number.
func (n *Nanos) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	at, err := whole(d, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	*n = Nanos(at)
	return err
}

// MarshalJSONTo writes a string.
func (n Nanos) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteToken(jsontext.String(strconv.FormatUint(uint64(n), 10)))
}

// Time returns the time. It is zero if there is none, or if it is after the year 2262.
func (n Nanos) Time() time.Time {
	if n == 0 || n > math.MaxInt64 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// UnmarshalJSONFrom reads a string or a number.
func (i *Int) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	*i = Int(n)
	return err
}

// MarshalJSONTo writes a string.
func (i Int) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteToken(jsontext.String(strconv.FormatInt(int64(i), 10)))
}

// UnmarshalJSONFrom reads a number, or a string with one, or NaN, Infinity or -Infinity.
func (f *Double) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	n, err := whole(d, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	*f = Double(n)
	return err
}

// MarshalJSONTo writes a number, or a string for what is no number of JSON.
func (f Double) MarshalJSONTo(e *jsontext.Encoder) error {
	switch n := float64(f); {
	case math.IsNaN(n):
		return e.WriteToken(jsontext.String("NaN"))
	case math.IsInf(n, 1):
		return e.WriteToken(jsontext.String("Infinity"))
	case math.IsInf(n, -1):
		return e.WriteToken(jsontext.String("-Infinity"))
	default:
		return e.WriteToken(jsontext.Float(n))
	}
}

// whole reads a number that is written as a number or as a string. null is zero.
func whole[T any](d *jsontext.Decoder, parse func(string) (T, error)) (n T, err error) {
	v, err := d.ReadValue()
	if err != nil {
		return n, err
	}
	text := string(v)
	switch v.Kind() {
	case jsontext.KindNull:
		return n, nil
	case jsontext.KindString:
		if err := json.Unmarshal(v, &text); err != nil {
			return n, err
		}
	}
	if n, err = parse(text); err != nil {
		var none T
		return none, fmt.Errorf("%.40q is not a number of the kind that stands here", text)
	}
	return n, nil
}
