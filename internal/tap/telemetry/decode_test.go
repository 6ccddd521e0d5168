package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/telemetry"
	"jurat/internal/tap/traffic"
	"jurat/internal/tap/traffic/otlp"
	"jurat/internal/test/must"
)

var (
	traceID  = []byte{0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c}
	spanID   = []byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}
	parentID = []byte{1, 2, 3, 4, 5, 6, 7, 8}
)

func str(text string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: text}}
}

func kv(list ...string) (attributes []*common.KeyValue) {
	for i := 0; i < len(list); i += 2 {
		attributes = append(attributes, &common.KeyValue{Key: list[i], Value: str(list[i+1])})
	}
	return attributes
}

func inTraces(spans ...*traces.Span) *traces.TracesData {
	return &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{Resource: &resource.Resource{Attributes: kv("service.name", "shop")}, ScopeSpans: []*traces.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "lib"}, Spans: spans}}}}}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	doc := must.Get(proto.Marshal(m))(t)
	return doc
}

func find(t *testing.T, signal telemetry.Signal, encoding telemetry.Encoding, body []byte) *telemetry.Told {
	t.Helper()
	data := must.Get(telemetry.Decode(signal, encoding, body))(t)
	return telemetry.Find(data)
}

// TestOneFormOfAllEncodings: a span has the same bytes, and so the same record id, in protobuf and in JSON, however the JSON writes numbers and ids.
func TestOneFormOfAllEncodings(t *testing.T) {
	want := find(t, telemetry.Traces, telemetry.Protobuf, marshal(t, inTraces(&traces.Span{TraceId: traceID, SpanId: spanID, ParentSpanId: parentID, Name: "chat m", Kind: traces.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 1795789736896000000,
		EndTimeUnixNano: 1795789736948468185, DroppedAttributesCount: 3, Flags: 257, Status: &traces.Status{Code: traces.Status_STATUS_CODE_OK},
		Attributes: append(kv("gen_ai.operation.name", "chat"), &common.KeyValue{Key: "n", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -9007199254740993}}},
			&common.KeyValue{Key: "f", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 0.5}}}, &common.KeyValue{Key: "b", Value: &common.AnyValue{Value: &common.AnyValue_BytesValue{BytesValue: []byte{0, 255}}}},
			&common.KeyValue{Key: "l", Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{str(""), {}}}}}})})))
	must.Need(t, len(want.Acts) == 1, "%+v", want)
	a := &want.Acts[0]
	if a.Trace != "0af7651916cd43dd8448eb211c80319c" || a.Span != "b7ad6b7169203331" || a.Above != "0102030405060708" || a.Service != "shop" || !a.Began.Equal(time.Unix(0, 1795789736896000000)) {
		t.Errorf("%+v", a)
	}
	for name, text := range map[string]string{
		"as the protocol has it":  `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","parentSpanId":"0102030405060708","flags":257,"name":"chat m","kind":3,"startTimeUnixNano":"1795789736896000000","endTimeUnixNano":"1795789736948468185","droppedAttributesCount":3,"status":{"code":1},"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"n","value":{"intValue":"-9007199254740993"}},{"key":"f","value":{"doubleValue":0.5}},{"key":"b","value":{"bytesValue":"AP8="}},{"key":"l","value":{"arrayValue":{"values":[{"stringValue":""},{}]}}}]}]}]}]}`,
		"as some senders have it": `{"unknown":1,"resourceSpans":[{"schemaUrl":"","resource":{"droppedAttributesCount":0,"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"lib","attributes":[]},"spans":[{"traceId":"0AF7651916CD43DD8448EB211C80319C","spanId":"B7AD6B7169203331","parentSpanId":"0102030405060708","flags":"257","name":"chat m","kind":"SPAN_KIND_CLIENT","events":[],"links":null,"startTimeUnixNano":1795789736896000000,"endTimeUnixNano":1795789736948468185,"droppedAttributesCount":"3","status":{"code":"STATUS_CODE_OK","message":""},"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"n","value":{"intValue":-9007199254740993}},{"key":"f","value":{"doubleValue":"5e-1"}},{"key":"b","value":{"bytesValue":"AP8="}},{"key":"l","value":{"arrayValue":{"values":[{"stringValue":""},{}]}}}]}]}]}]}`,
	} {
		got := find(t, telemetry.Traces, telemetry.JSON, []byte(text))
		must.Hold(t, len(got.Acts) == 1 && bytes.Equal(got.Acts[0].Body, a.Body) && got.Acts[0].RecordID("x", false) == a.RecordID("x", false),
			"%s:\n%s\nwant\n%s", name, got.Acts[0].Body, a.Body)
	}
	read := find(t, telemetry.Traces, telemetry.JSON, a.Body)
	must.Hold(t, bytes.Equal(read.Acts[0].Body, a.Body), "read again it is %s", read.Acts[0].Body)
	must.Hold(t, a.RecordID("x", false) != a.RecordID("y", false) && a.RecordID("x", false) != a.RecordID("x", true),
		"ids: %s, %s", a.RecordID("x", false), a.RecordID("x", true))
}

// TestLogsInProtobuf: events about one span are one act; what is no event of GenAI is counted.
func TestLogsInProtobuf(t *testing.T) {
	event := func(name, text string) *logs.LogRecord {
		return &logs.LogRecord{TraceId: traceID, SpanId: spanID, EventName: name, TimeUnixNano: 1795789736896000000, Body: &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: kv("content", text)}}}}
	}
	body := marshal(t, &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{{LogRecords: []*logs.LogRecord{event("gen_ai.user.message", "Where?"), {Body: str("a line")}, event("gen_ai.choice", "Here."), {EventName: "gen_ai.choice"}}}}}}})
	told := find(t, telemetry.Logs, telemetry.Protobuf, body)
	must.Need(t, len(told.Acts) == 1 && told.Others == 1 && told.Refused == 1 && len(told.Reasons) == 1, "%+v", told)
	p := project(t, &told.Acts[0])
	must.Hold(t, string(p.Prompt) == `[{"content":"Where?","role":"user"}]` && string(p.Output) == `"Here."`, "%s, %s", p.Prompt, p.Output)
	must.Equal(t, told.Acts[0].RequestID(), "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-events")
}

// TestParents: the record of an act names the next act above it, over spans that are none. Ids that go round lead nowhere.
func TestParents(t *testing.T) {
	id := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	span := func(n, parent byte, operation string) *traces.Span {
		s := &traces.Span{TraceId: traceID, SpanId: id(n), Attributes: kv("gen_ai.operation.name", operation)}
		if parent > 0 {
			s.ParentSpanId = id(parent)
		}
		return s
	}
	told := find(t, telemetry.Traces, telemetry.Protobuf, marshal(t, inTraces(span(4, 3, "chat"), span(3, 2, "x"), span(2, 1, "invoke_agent"), span(1, 9, ""), span(5, 6, "chat"), span(6, 5, ""), span(7, 7, "chat"))))
	parents := ""
	for _, a := range told.Acts {
		parents += fmt.Sprintf("%s<%s ", a.Span[15:], strings.TrimPrefix(a.Parent, a.Trace+"-000000000000000"))
	}
	must.Equal(t, parents, "4<2 2< 5< 7< ")
	must.Equal(t, told.Others, 3)
	if p := payload(t, &told.Acts[1]); !strings.Contains(strings.Join(p.Observed.Missing, "\n"), "the span above it, 0000000000000001: not told") || p.ParentRequestID != "" {
		t.Errorf("%q, %q", p.Observed.Missing, p.ParentRequestID)
	}
}

// TestHostileTelemetry: whatever comes is refused with a reason, or makes acts that can be sealed.
func TestHostileTelemetry(t *testing.T) {
	chat := kv("gen_ai.operation.name", "chat")
	many := make([]*common.KeyValue, 100_000)
	for i := range many {
		many[i] = &common.KeyValue{Key: fmt.Sprintf("gen_ai.prompt.%d.content", i), Value: str("x")}
	}
	deep := str("x")
	for range 200 {
		deep = &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{deep}}}}
	}
	good := func(a ...*common.KeyValue) *traces.Span {
		return &traces.Span{TraceId: traceID, SpanId: spanID, Attributes: append(chat[:1:1], a...)}
	}
	for name, test := range map[string]struct {
		encoding telemetry.Encoding
		body     []byte
		err      string // "": it is read
		large    bool
		acts     int
		refused  int
	}{
		"bytes that are no protobuf":    {telemetry.Protobuf, []byte("\xff\xff\xff"), "not OTLP in protobuf", false, 0, 0},
		"a length beyond the end":       {telemetry.Protobuf, []byte{0x0a, 0x7f, 1}, "not OTLP in protobuf", false, 0, 0},
		"text that is not UTF-8":        {telemetry.Protobuf, bytes.ReplaceAll(marshal(t, inTraces(good(kv("k", "@@@@")...))), []byte("@@@@"), []byte("\xff\xff\xff\xff")), "UTF-8", false, 0, 0},
		"empty messages without number": {telemetry.Protobuf, bytes.Repeat([]byte{0x0a, 0}, 500_000), "more than 400000 values", true, 0, 0},
		"empty objects without number":  {telemetry.JSON, []byte(`{"resourceSpans":[{}` + strings.Repeat(`,{}`, 500_000) + `]}`), "more than 400000 values", true, 0, 0},
		"values within each other":      {telemetry.Protobuf, marshal(t, inTraces(good(&common.KeyValue{Key: "k", Value: deep}))), "within each other", true, 0, 0},
		"arrays within each other":      {telemetry.JSON, []byte(strings.Repeat(`[`, 1000)), "within each other", true, 0, 0},
		"JSON that breaks off":          {telemetry.JSON, []byte(`{"resourceSpans":[{`), "not JSON", false, 0, 0},
		"a member twice":                {telemetry.JSON, []byte(`{"resourceSpans":[],"resourceSpans":[]}`), "not JSON", false, 0, 0},
		"an id in base64":               {telemetry.JSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"CvdlGRbNQ92ESOshHIAxnA=="}]}]}]}`), "/resourceSpans/0/scopeSpans/0/spans/0/traceId", false, 0, 0},
		"a time that is none":           {telemetry.JSON, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"-1"}]}]}]}`), "startTimeUnixNano", false, 0, 0},
		"spans that are an object":      {telemetry.JSON, []byte(`{"resourceSpans":{}}`), "/resourceSpans", false, 0, 0},
		"too many bytes":                {telemetry.JSON, bytes.Repeat([]byte(" "), telemetry.MaxBody+1), "at most", true, 0, 0},
		"ids of zeros":                  {telemetry.Protobuf, marshal(t, inTraces(&traces.Span{TraceId: make([]byte, 16), SpanId: spanID, Attributes: chat}, &traces.Span{TraceId: traceID, SpanId: make([]byte, 8), Attributes: chat}, &traces.Span{Attributes: chat})), "", false, 0, 3},
		"ids of other lengths":          {telemetry.Protobuf, marshal(t, inTraces(&traces.Span{TraceId: traceID[:15], SpanId: spanID, Attributes: chat}, &traces.Span{TraceId: bytes.Repeat(traceID, 9), SpanId: spanID, Attributes: chat})), "", false, 0, 2},
		"equal ids":                     {telemetry.Protobuf, marshal(t, inTraces(good(), good(kv("k", "v")...))), "", false, 2, 0},
		"100,000 attributes":            {telemetry.Protobuf, marshal(t, inTraces(good(many...))), "", false, 1, 0},
		"a huge string":                 {telemetry.Protobuf, marshal(t, inTraces(good(kv("gen_ai.input.messages", strings.Repeat("x", 20<<20))...))), "", false, 1, 0},
		"times far off":                 {telemetry.Protobuf, marshal(t, inTraces(&traces.Span{TraceId: traceID, SpanId: spanID, Attributes: chat, StartTimeUnixNano: 1<<64 - 1, EndTimeUnixNano: 1}, &traces.Span{TraceId: traceID, SpanId: parentID, Attributes: chat, StartTimeUnixNano: 1<<63 - 1, EndTimeUnixNano: 1<<63 - 1})), "", false, 2, 0},
		"names that are none":           {telemetry.Protobuf, marshal(t, inTraces(good(kv("gen_ai.request.model", "a\nb", "gen_ai.response.model", strings.Repeat("m", 5000), "session.id", "\x00")...))), "", false, 1, 0},
		"null":                          {telemetry.JSON, []byte(`{"resourceSpans":null}`), "", false, 0, 0},
		"nothing":                       {telemetry.Protobuf, nil, "", false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := telemetry.Decode(telemetry.Traces, test.encoding, test.body)
			if test.err != "" {
				must.Hold(t, err != nil && strings.Contains(err.Error(), test.err) && errors.Is(err, telemetry.ErrLarge) == test.large,
					"%v: want %q", err, test.err)
				return
			}
			must.Do(t, err)
			told := telemetry.Find(data)
			must.Equal(t, len(told.Acts), test.acts)
			must.Equal(t, told.Refused, test.refused)
			for i := range told.Acts {
				p := payload(t, &told.Acts[i])
				p.RecordID = told.Acts[i].RecordID("shop-bot", false)
				must.Fail(t, nil, "an act that cannot be sealed")(evidence.NewDraft(p))
			}
		})
	}
}

// TestIDsOfOneSpan: what a sender says of the time of a span does not make another span of it.
func TestIDsOfOneSpan(t *testing.T) {
	one := telemetry.Act{Trace: "t", Span: "s", Kind: "tool", Began: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), Body: []byte("1")}
	two := one
	two.Began, two.Body = one.Began.Add(time.Hour), []byte("2")
	must.Hold(t, one.RecordID("x", false) == two.RecordID("x", false) && one.RecordID("x", true) != two.RecordID("x", true),
		"%s, %s", one.RecordID("x", false), two.RecordID("x", false))
}

// TestLargeResource: many spans of one large resource do not take many times what was sent. What has no room is refused, and the rest is told.
func TestLargeResource(t *testing.T) {
	var spans []*traces.Span
	for n := range 300 {
		spans = append(spans, &traces.Span{TraceId: traceID, SpanId: []byte{1, 0, 0, 0, 0, 0, byte(n >> 8), byte(n)}, Attributes: kv("gen_ai.operation.name", "chat")})
	}
	data := inTraces(spans...)
	data.ResourceSpans[0].Resource.Attributes = kv("service.name", strings.Repeat("x", 4<<20))
	told, bytes := find(t, telemetry.Traces, telemetry.Protobuf, marshal(t, data)), 0
	for _, a := range told.Acts {
		bytes += len(a.Body)
	}
	must.Hold(t, bytes <= 4*telemetry.MaxBody && len(told.Acts) >= 20 && len(told.Acts)+told.Refused == 300 && len(told.Reasons) == 1,
		"%d acts with %d bytes, %d refused: %v", len(told.Acts), bytes, told.Refused, told.Reasons)
}

// FuzzDecode: what is read can be sealed, and is the same when it is read again.
func FuzzDecode(f *testing.F) {
	f.Add(marshal(f, inTraces(&traces.Span{TraceId: traceID, SpanId: spanID, Attributes: kv("gen_ai.operation.name", "chat", "gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"a"}]}]`)})), false, false)
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","attributes":[{"key":"openinference.span.kind","value":{"stringValue":"LLM"}},{"key":"llm.input_messages.0.message.content","value":{"stringValue":"x"}}]}]}]}]}`), true, false)
	f.Add([]byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","eventName":"gen_ai.choice","body":{"kvlistValue":{"values":[{"key":"index","value":{"intValue":"0"}}]}}}]}]}]}`), true, true)
	f.Fuzz(func(t *testing.T, body []byte, isJSON, isLogs bool) {
		signal, encoding := telemetry.Traces, telemetry.Protobuf
		if isLogs {
			signal = telemetry.Logs
		}
		if isJSON {
			encoding = telemetry.JSON
		}
		data, err := telemetry.Decode(signal, encoding, body)
		if err != nil {
			return
		}
		told := telemetry.Find(data)
		for i := range told.Acts {
			a := &told.Acts[i]
			p := payload(t, a)
			p.RecordID = a.RecordID("shop-bot", true)
			must.Get(evidence.NewDraft(p))(t)
			again := must.Get(telemetry.Decode(signal, telemetry.JSON, a.Body))(t)
			told := telemetry.Find(again)
			must.Need(t, len(told.Acts) == 1 && bytes.Equal(told.Acts[0].Body, a.Body), "read again it is another act: %s", a.Body)
		}
	})
}

// The prompt and the answers of a run that two libraries instrumented: the model asks for a tool, and then answers.
const (
	firstPrompt  = `[{"content":"You find parcels.","role":"system"},{"content":"Where is parcel 17?","role":"user"}`
	toolCall     = `{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":"{\"number\":17}","name":"find_parcel"},"id":"call_1","type":"function"}]}`
	toolResult   = `{"content":"Kassel","role":"tool","tool_call_id":"call_1"}`
	secondAnswer = `"In Kassel."`
)

// TestRealInstrumentations reads what OpenTelemetry's and OpenInference's own instrumentations of the openai library for JavaScript
// sent. The files are as the exporters wrote them. All tell of the same conversation.
func TestRealInstrumentations(t *testing.T) {
	for _, name := range []string{"openinference.json", "opentelemetry.jsonl"} {
		t.Run(name, func(t *testing.T) {
			told := readFile(t, name)
			var spans, events []traffic.Projection
			for i := range told.Acts {
				a := &told.Acts[i]
				p := project(t, a)
				if a.Kind == "" {
					events = append(events, p)
					continue
				}
				spans = append(spans, p)
				f, _ := observed.FactsOf(&evidence.Observed{Protocol: observed.OTLP, Request: new(evidence.ObservedBody)}, a.Body, nil)
				if f.ModelVersion != "gpt-5-2026" && f.Model != "gpt-5-2026" || f.Usage == nil || !strings.Contains(string(f.Parameters), `"provider":"openai"`) {
					t.Errorf("%+v", f)
				}
			}
			said := spans
			if events != nil {
				said = events
				for _, p := range spans {
					if !strings.Contains(p.Problem, "prompt: not told here") || !strings.Contains(p.Problem, "response: not told here") || p.Prompt != nil || p.Output != nil {
						t.Errorf("a span without content: %+v", p)
					}
				}
			}
			must.Need(t, len(said) == 2, "%d acts: want 2", len(said))
			got, want := string(said[0].Prompt), firstPrompt+"]"
			must.Hold(t, got == want, "first prompt\n%s\nwant\n%s", got, want)
			must.Equal(t, string(said[0].Output), toolCall)
			got, want = string(said[1].Prompt), firstPrompt+","+toolCall+","+toolResult+"]"
			must.Hold(t, got == want, "second prompt\n%s\nwant\n%s", got, want)
			got = string(said[1].Output)
			must.Hold(t, got == secondAnswer && said[1].Problem == "", "second answer %s, problem %q", got, said[1].Problem)
		})
	}
}

func readFile(t *testing.T, name string) *telemetry.Told {
	t.Helper()
	file := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	var all otlp.Data
	for doc := range bytes.Lines(file) {
		data := must.Get(telemetry.Decode("", telemetry.JSON, doc))(t)
		all.ResourceSpans, all.ResourceLogs = append(all.ResourceSpans, data.ResourceSpans...), append(all.ResourceLogs, data.ResourceLogs...)
	}
	return telemetry.Find(&all)
}

func project(t *testing.T, a *telemetry.Act) traffic.Projection {
	t.Helper()
	p := must.Get(traffic.Project(traffic.Call{Protocol: traffic.OTLP, Request: a.Body}))(t)
	return p
}

// payload is what a recorder would seal.
func payload(t *testing.T, a *telemetry.Act) evidence.Payload {
	t.Helper()
	o := a.Observed("shop-bot", time.Date(2026, 11, 27, 15, 0, 0, 0, time.UTC))
	o.AgentID = "listener"
	p := must.Get(observed.Draft(o))(t).Payload
	return p
}

// late is the end of a body that did not come in time.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestSlowBody: who sends too slowly is told to send it again, since what is refused for good is lost.
func TestSlowBody(t *testing.T) {
	for name, c := range map[string]struct{ path, media, encoding, begin string }{
		"plain":   {"/v1/traces", "application/json", "", `{"resource`},
		"no byte": {"/v1/traces", "application/json", "gzip", ""},
		"gzip":    {"/v1/traces", "application/json", "gzip", gzipped(t, jsonSpan)[:40]},
	} {
		d := new(desk)
		req := httptest.NewRequest(http.MethodPost, c.path, io.MultiReader(strings.NewReader(c.begin), late{}))
		req.Host = "127.0.0.1:4318"
		req.Header = http.Header{"Content-Type": {c.media}, "Content-Encoding": {c.encoding}}
		w := httptest.NewRecorder()
		telemetry.New(d.config()).ServeHTTP(w, req)
		got := w.Result()
		must.Hold(t, got.StatusCode == http.StatusServiceUnavailable && got.Header.Get("Retry-After") != "", "%s: %d %s", name, got.StatusCode, w.Body)
		must.Hold(t, len(d.reports) == 0, "%s: %d acts", name, len(d.reports))
	}
}
