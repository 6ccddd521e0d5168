package telemetry

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"jurat/internal/observe/otlp"
)

// A Signal is what a body is about.
type Signal string

// The signals that have acts in them.
const (
	Traces Signal = "traces"
	Logs   Signal = "logs"
	Either Signal = "" // a file does not say which
)

// An Encoding is how a body is written.
type Encoding string

// The encodings of OTLP over HTTP.
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

// Decode reads a body. Of a body in JSON, Either reads both signals. Its errors say what is not as the protocol has it. An error has ErrLarge in its chain if the sender may send less at a time.
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

// hasSpans reports whether a span has ids, or there is none.
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

// hasEntries reports whether an entry of a log has a time, or there is none.
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

// plainly takes Go's types out of an error.
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

// countProtobuf counts the messages in a body.
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

// countJSON counts the objects in a body, and how deep they are.
func countJSON(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(body))
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
