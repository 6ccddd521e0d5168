package otlp

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
