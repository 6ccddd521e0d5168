package importing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/internal/telemetry"
)

func attribute(name, text string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text}}}
}

// spansOf are traces with a call of a model in each span, and with one that is none.
func spansOf(t *testing.T, ids ...byte) []byte {
	t.Helper()
	scope := &traces.ScopeSpans{Spans: []*traces.Span{{TraceId: bytes.Repeat([]byte{9}, 16), SpanId: bytes.Repeat([]byte{9}, 8), Name: "GET"}}}
	for i, id := range ids {
		scope.Spans = append(scope.Spans, &traces.Span{TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{id}, 8), Name: "chat gpt-4o", StartTimeUnixNano: uint64(1_700_000_000+i) * 1e9, EndTimeUnixNano: 1_700_000_100e9,
			Attributes: []*common.KeyValue{attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.request.model", "gpt-4o"), attribute("gen_ai.conversation.id", "talk"),
				attribute("gen_ai.input.messages", fmt.Sprintf(`[{"role":"user","parts":[{"type":"text","content":"Question %d"}]}]`, id)),
				attribute("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Answer"}],"finish_reason":"stop"}]`)}})
	}
	return marshalled(t, &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{scope}}}})
}

func entriesOf(t *testing.T, id byte) []byte {
	t.Helper()
	return marshalled(t, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{TimeUnixNano: 1_700_000_000e9, EventName: "gen_ai.client.inference.operation.details",
		TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{id}, 8),
		Attributes: []*common.KeyValue{attribute("gen_ai.operation.name", "chat"), attribute("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"In an event"}]}]`)}}}}}}}})
}

func marshalled(t *testing.T, m proto.Message) []byte {
	t.Helper()
	return must.Get(proto.Marshal(m))(t)
}

// inJSON writes a body as OTLP in JSON.
func inJSON(t *testing.T, body []byte) []byte {
	t.Helper()
	data := must.Get(telemetry.Decode(telemetry.Either, telemetry.Protobuf, body))(t)
	return must.Get(json.Marshal(data))(t)
}

func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write(text))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// withLengths writes messages as OpenTelemetry's collector writes them into a file.
func withLengths(messages ...[]byte) (file []byte) {
	for _, m := range messages {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(m))), m...)
	}
	return file
}

// TestTelemetryInFiles: what an exporter wrote into a file is sealed as if it had been sent, whichever way it is written, with the file that it was found in; and once.
func TestTelemetryInFiles(t *testing.T) {
	two, log := spansOf(t, 2, 3), entriesOf(t, 2)
	plain := marshalled(t, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{{TimeUnixNano: 1, Body: attribute("", "it started").Value}}}}}}})
	for name, test := range map[string]struct {
		file []byte
		acts int
	}{
		"protobuf":                     {two, 2},
		"protobuf, logs":               {log, 1},
		"protobuf, logs without ids":   {plain, 0}, // it could be read as a span without ids
		"protobuf, gzip":               {gzipped(t, two), 2},
		"protobuf with lengths":        {withLengths(spansOf(t, 2), log, spansOf(t, 3)), 3},
		"protobuf with lengths, gzip":  {gzipped(t, withLengths(spansOf(t, 2), spansOf(t, 3))), 2},
		"JSON":                         {inJSON(t, two), 2},
		"JSON that begins with a line": {append([]byte("\n"), inJSON(t, two)...), 2},
		"JSON, logs":                   {inJSON(t, log), 1},
		"JSON in lines":                {bytes.Join([][]byte{inJSON(t, spansOf(t, 2)), inJSON(t, log), inJSON(t, spansOf(t, 3))}, []byte("\n")), 3},
		"JSON in lines, gzip":          {gzipped(t, bytes.Join([][]byte{inJSON(t, spansOf(t, 2)), inJSON(t, spansOf(t, 3))}, []byte("\n"))), 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			for round := range 2 {
				checked, sealed := imported(t, b, "traces.bin", string(test.file))
				if want := test.acts * (1 - round); checked.Entries != test.acts || checked.New != want || sealed.New != want || checked.Known != test.acts-want || len(checked.Faults) > 0 {
					t.Fatalf("%+v %+v", checked, sealed)
				}
			}
			for id, a := range b.acts {
				direct := must.Get(telemetry.Decode(telemetry.Either, telemetry.JSON, a.Request.Kept))(t)
				told := telemetry.Find(direct)
				if len(told.Acts) != 1 || id != told.Acts[0].RecordID("support", false) || a.Protocol != "otlp" || a.Recorder != "recorder" || a.Request.Headers["file"] != "traces.bin" || a.Request.Headers["format"] != "otel" ||
					!strings.Contains(strings.Join(a.Missing, ";"), "whether the file is whole") || a.Fidelity != evidence.ByAttributes {
					t.Errorf("%s %+v", id, a)
				}
				if a.ChainID != "recorded/support/talk" && !strings.HasSuffix(a.RequestID, "-events") {
					t.Errorf("%s is in %s", a.RequestID, a.ChainID)
				}
			}
		})
	}
}

// TestEmptyMessages: a small packed file can have millions of messages of no bytes. The first of them ends the reading.
func TestEmptyMessages(t *testing.T) {
	for name, file := range map[string][]byte{"first": gzipped(t, withLengths(nil, spansOf(t, 2))), "later": withLengths(spansOf(t, 2), nil, nil)} {
		f, err := in(t, "traces.bin", file, Unknown)
		if err == nil {
			_, err = Check(t.Context(), f, newBook().options())
		}
		if want := "message " + map[string]string{"first": "1", "later": "2"}[name]; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "0 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTelemetryThatDiffers: another account of a span is named, and of a file with a mistake nothing is taken without --skip.
func TestTelemetryThatDiffers(t *testing.T) {
	b := newBook()
	imported(t, b, "a", string(spansOf(t, 2)))
	checked, _ := imported(t, b, "b", strings.Replace(string(spansOf(t, 2, 3)), "Question 2", "Question 7", 1))
	if checked.Changed != 1 || checked.New != 1 || !errors.Is(checked.Faults[0], ErrChanged) || !strings.Contains(checked.Faults[0].Error(), "message 1, span 01") {
		t.Errorf("%+v", checked)
	}
	nameless := marshalled(t, &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{{Spans: []*traces.Span{{Name: "x", SpanId: []byte{1}}}}}}}})
	checked, _ = imported(t, b, "z", string(append(spansOf(t, 9), nameless...))) // protobuf joins them
	if checked.Wrong != 1 || checked.New != 1 || !strings.Contains(checked.Faults[0].Error(), "a span without ids") {
		t.Errorf("%+v", checked)
	}
	without := strings.Replace(string(inJSON(t, spansOf(t, 4, 5))), "0404040404040404", "", 1)
	checked, _ = imported(t, b, "c", without)
	if checked.Wrong != 1 || checked.New != 1 || !strings.Contains(checked.Faults[0].Error(), "a span without ids") {
		t.Errorf("%+v", checked)
	}
	checked, _ = imported(t, b, "d", string(inJSON(t, spansOf(t, 6)))+"\n{\"resourceSpans\":7}\n"+string(inJSON(t, spansOf(t, 7))))
	if checked.Wrong != 1 || checked.New != 2 || !strings.Contains(checked.Faults[0].Error(), "document 2: not OTLP in JSON") {
		t.Errorf("%+v %v", checked, checked.Faults)
	}
	var entry Entry
	o := b.options()
	o.Each = func(e Entry) { entry = e }
	if _, err := Check(context.Background(), open(t, "e", string(spansOf(t, 8))), o); err != nil || entry.Prompt != 1 || entry.Answers != 1 || entry.Model != "gpt-4o" || !strings.HasPrefix(entry.SaidAt, "2023-11-14T") {
		t.Errorf("%+v %v", entry, err)
	}
}

// TestNoTelemetry: a file that is cut off, is another one, or unpacks without end is an error that names the place.
func TestNoTelemetry(t *testing.T) {
	whole, many := spansOf(t, 2), withLengths(spansOf(t, 2), spansOf(t, 3))
	for name, test := range map[string]struct {
		file   []byte
		format Format
		says   string
	}{
		"cut off":                 {whole[:len(whole)-1], Unknown, "is not certain"},
		"cut off gzip":            {gzipped(t, whole)[:100], Unknown, "unexpected EOF"},
		"gzip of a conversation":  {gzipped(t, []byte(`{"messages":[]}`)), Unknown, "no OTLP"},
		"gzip of nothing":         {gzipped(t, nil), Unknown, "no OTLP"},
		"another length":          {append([]byte{1, 255, 255, 255}, whole...), Unknown, "is not certain"},
		"too long":                {append([]byte{0, 0, 0, 200}, whole[:100]...), Unknown, "is not certain"},
		"protobuf of another":     {[]byte("\n\x05hello"), Unknown, "is not certain"},
		"empty messages":          {withLengths(nil, nil), Unknown, "is not certain"},
		"another format is given": {whole, Chat, "this looks like otel"},
		"metrics":                 {[]byte(`{"resourceMetrics":[]}`), Unknown, "is not certain"},
	} {
		if _, err := in(t, "file", test.file, test.format); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := open(t, "file", string(many[:len(many)-1]))
	if _, err := Check(context.Background(), f, newBook().options()); err == nil || !strings.Contains(err.Error(), "message 2: unexpected EOF") {
		t.Errorf("%v", err)
	}
	bomb := gzipped(t, slices.Concat([]byte(`{"resourceSpans":[`), bytes.Repeat([]byte(" "), 70<<20), []byte(`]}`)))
	if _, err := in(t, "file", bomb, Unknown); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("%v", err)
	}
}
