package sdktest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/sealer"
	"jurat/internal/tap/telemetry"
	"jurat/internal/tap/traffic"
	"jurat/internal/test/must"
)

// A desk is a receiver that keeps what it was told.
type desk struct {
	*httptest.Server
	mu      sync.Mutex
	reports []observed.Act
	broken  int // how many reports fail
	types   map[string]int
}

func newDesk(t *testing.T, change func(*telemetry.Config)) *desk {
	t.Helper()
	d := furnishDesk(t, change)
	d.Start()
	return d
}

// furnishDesk is a desk that has not begun.
func furnishDesk(t *testing.T, change func(*telemetry.Config)) *desk {
	t.Helper()
	d := &desk{types: map[string]int{}}
	c := telemetry.Config{Agent: "shop-bot", Log: slog.New(slog.DiscardHandler), Report: d.report, WhoIs: knows}
	if change != nil {
		change(&c)
	}
	h := telemetry.New(c)
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.types[strings.TrimSpace(r.Header.Get("Content-Type")+" "+r.Header.Get("Content-Encoding")+r.Header.Get("Grpc-Encoding"))]++
		d.mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(d.Close)
	return d
}

// knows whose the one token is.
func knows(_ context.Context, token string) (string, error) {
	if token != "secret" {
		return "", errors.New("it is unknown")
	}
	return "token-bot", nil
}

func (d *desk) report(_ context.Context, told observed.Act, _ string) (sealer.Account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken > 0 {
		d.broken--
		return "", errors.New("the disk is full")
	}
	for _, before := range d.reports {
		if before.RecordID == told.RecordID {
			return sealer.Known, nil
		}
	}
	d.reports = append(d.reports, told)
	return sealer.New, nil
}

// said reads what was told.
func said(t *testing.T, told observed.Act) traffic.Projection {
	t.Helper()
	p := must.Get(traffic.Project(traffic.Call{Protocol: traffic.OTLP, Request: told.Request.Kept}))(t)
	return p
}

// factsOf are what a record would state of it.
func factsOf(told observed.Act) observed.Facts {
	f, _ := observed.FactsOf(&evidence.Observed{Protocol: observed.OTLP, Request: new(evidence.ObservedBody)}, told.Request.Kept, nil)
	return f
}

// tracer has OpenTelemetry's SDK send to the receiver.
func tracer(t *testing.T, d *desk, limits trace.SpanLimits, options ...otlptracehttp.Option) *trace.TracerProvider {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", d.URL)
	exporter := must.Get(otlptracehttp.New(t.Context(), options...))(t)
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithRawSpanLimits(limits), trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))))
}

// chat makes a span as instrumentations do.
func chat(p *trace.TracerProvider, more ...attribute.KeyValue) {
	_, span := p.Tracer("shop").Start(context.Background(), "chat m")
	span.SetAttributes(append([]attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", "m"), attribute.Int("gen_ai.usage.input_tokens", 9)}, more...)...)
	span.SetAttributes(attribute.String("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"Where is parcel 17?"}]}]`),
		attribute.String("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"In Kassel."}],"finish_reason":"stop"}]`))
	span.SetStatus(codes.Ok, "")
	span.End()
}

var noLimits = trace.SpanLimits{AttributeValueLengthLimit: -1, AttributeCountLimit: -1, EventCountLimit: -1, LinkCountLimit: -1, AttributePerEventCountLimit: -1, AttributePerLinkCountLimit: -1}

// TestGoSDK: a span of OpenTelemetry's SDK arrives whole, compressed, with a token.
func TestGoSDK(t *testing.T) {
	d := newDesk(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Jurat-Agent=Bearer%20secret") // as docs/recorder.md has it
	p := tracer(t, d, noLimits, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	chat(p)
	must.Do(t, p.Shutdown(t.Context()))
	must.Need(t, len(d.reports) == 1 && d.reports[0].Agent == "token-bot" && d.types["application/x-protobuf gzip"] == 1, "%+v, %v", d.reports, d.types)
	if s := said(t, d.reports[0]); string(s.Prompt) != `[{"content":"Where is parcel 17?","role":"user"}]` || string(s.Output) != `"In Kassel."` || s.Problem != "" || string(factsOf(d.reports[0]).Usage) != `{"input_tokens":9}` {
		t.Errorf("%+v", s)
	}
}

// TestLimitsOfTheSDK: what the SDK drops or cuts by its own limits is named, and a cut prompt is not taken for the prompt.
func TestLimitsOfTheSDK(t *testing.T) {
	limits := noLimits
	limits.AttributeValueLengthLimit = 40
	limits.AttributeCountLimit = 5
	d := newDesk(t, nil)
	p := tracer(t, d, limits)
	chat(p, attribute.String("one", "1"), attribute.String("two", "2"))
	limits.AttributeCountLimit = -1
	q := tracer(t, d, limits)
	chat(q)
	must.Do(t, errors.Join(p.Shutdown(t.Context()), q.Shutdown(t.Context())))
	must.Need(t, len(d.reports) == 2, "%d reports", len(d.reports))
	s := said(t, d.reports[0])
	must.Hold(t, strings.Contains(s.Problem, "2 attributes of the span, which the sender dropped") && s.Prompt == nil, "%+v", s)
	if s := said(t, d.reports[1]); !strings.Contains(s.Problem, "gen_ai.input.messages: what is told has 40 characters and is not whole JSON") || s.Prompt != nil || s.Output != nil {
		t.Errorf("%+v", s)
	}
}

// TestSDKComesAgain: while the log does not seal, the SDK keeps its spans and sends them again.
func TestSDKComesAgain(t *testing.T) {
	d := newDesk(t, nil)
	d.broken = 1
	p := tracer(t, d, noLimits, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: time.Minute}))
	chat(p)
	must.Do(t, p.Shutdown(t.Context()))
	must.Hold(t, len(d.reports) == 1 && d.types["application/x-protobuf"] == 2, "%d reports, %v", len(d.reports), d.types)
}

// TestSDKIsToldOfRefusals: the SDK reports what is refused for good, and does not send it again.
func TestSDKIsToldOfRefusals(t *testing.T) {
	var told []string
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err.Error()) }))
	d := newDesk(t, func(c *telemetry.Config) { c.Agent, c.Services = "", map[string]string{"other": "x"} })
	p := tracer(t, d, noLimits)
	chat(p)
	if err := p.Shutdown(t.Context()); err != nil {
		told = append(told, err.Error())
	}
	if len(d.reports) != 0 || d.types["application/x-protobuf"] != 1 || len(told) != 1 || !strings.Contains(told[0], "1 spans rejected") || !strings.Contains(told[0], `the service "shop"`) {
		t.Errorf("%q, %v", told, d.types)
	}
}

// TestLogsOfTheSDK: events of the SDK for logs arrive with their span.
func TestLogsOfTheSDK(t *testing.T) {
	d := newDesk(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", d.URL)
	exporter := must.Get(otlploghttp.New(t.Context()))(t)
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	ctx, span := trace.NewTracerProvider().Tracer("shop").Start(t.Context(), "chat m")
	for name, body := range map[string]attribute.Value{"gen_ai.user.message": attribute.MapValue(attribute.String("content", "Where?")), "gen_ai.choice": attribute.MapValue(attribute.Int("index", 0), attribute.Map("message", attribute.String("content", "Here.")))} {
		var r log.Record
		r.SetEventName(name)
		r.SetBody(body)
		r.SetTimestamp(time.Now())
		provider.Logger("shop").Emit(ctx, r)
	}
	span.End()
	must.Do(t, provider.Shutdown(t.Context()))
	must.Need(t, len(d.reports) == 1, "%d reports", len(d.reports))
	if s := said(t, d.reports[0]); string(s.Prompt) != `[{"content":"Where?","role":"user"}]` || string(s.Output) != `"Here."` || !strings.HasSuffix(d.reports[0].RequestID, span.SpanContext().SpanID().String()+"-events") {
		t.Errorf("%+v", s)
	}
}
