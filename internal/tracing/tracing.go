// Package tracing tells an OpenTelemetry collector what the program did and how long it took: requests by route and status,
// trials by phase, acts by type. Spans have no content of records, no names of people and no addresses.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	events "jurat/internal/trial"
)

// Tracing sends spans. A nil *Tracing does nothing.
type Tracing struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Start sends spans to a collector by OTLP over HTTP. The endpoint is that of OTEL_EXPORTER_OTLP_ENDPOINT: a base URL. The
// headers are those of OTEL_EXPORTER_OTLP_HEADERS. A collector that does not answer costs spans, and nothing else.
func Start(endpoint, headerList string) (*Tracing, error) {
	base, err := url.Parse(endpoint)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("tracing: %q is no http or https URL", endpoint)
	}
	header, err := headers(headerList)
	if err != nil {
		return nil, err
	}
	to := &exporter{header: header, url: strings.TrimSuffix(base.String(), "/") + "/v1/traces", http: &http.Client{}}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(to), sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "jurat"))))
	return &Tracing{provider, provider.Tracer("jurat")}, nil
}

// Stop sends what is left.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// callers carries the trace of whoever calls over HTTP, as W3C Trace Context has it.
var callers propagation.TraceContext

// Request begins the span of a request for a route, and returns a function that ends it with the status of the answer.
func (t *Tracing) Request(r *http.Request, route string) (ctx context.Context, end func(status int)) {
	if t == nil {
		return r.Context(), func(int) {}
	}
	ctx = callers.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return ctx, func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Trial returns what hears the events of one trial, one at a time, and makes spans of them: one of the trial, and in it one of
// each phase and round. Events that tell what was recorded before the process began make spans, too: with the times that
// the records claim.
func (t *Tracing) Trial() func(events.Event) {
	if t == nil {
		return func(events.Event) {}
	}
	s := &trialSpans{tracer: t.tracer}
	return s.hear
}

type trialSpans struct {
	tracer      trace.Tracer
	ctx         context.Context // of the span of the trial
	whole, part trace.Span
}

func (s *trialSpans) hear(e events.Event) {
	head := e.Head()
	if s.whole == nil {
		// A trial is the root of a trace of its own: it outlives the request that submitted it.
		s.ctx, s.whole = s.tracer.Start(context.Background(), "trial", trace.WithNewRoot(), trace.WithTimestamp(head.At),
			trace.WithAttributes(attribute.String("jurat.trial", head.SubmissionID)))
	}
	switch e := e.(type) {
	case events.PhaseStarted:
		s.begin(string(e.Phase), head.At)
	case events.RoundStarted:
		s.begin(fmt.Sprintf("round %d", e.Round), head.At)
	}
	current := s.whole
	if s.part != nil {
		current = s.part
	}
	current.AddEvent(head.Type, trace.WithTimestamp(head.At))
	switch e.(type) {
	case events.TrialDegraded:
		s.whole.SetAttributes(attribute.Bool("jurat.degraded", true))
	case events.ConsensusChecked, events.RoundCompleted:
		s.end(head.At)
	case events.TrialClosed:
		s.end(head.At)
		s.whole.End(trace.WithTimestamp(head.At))
	}
}

func (s *trialSpans) begin(name string, at time.Time) {
	s.end(at)
	_, s.part = s.tracer.Start(s.ctx, name, trace.WithTimestamp(at))
}

func (s *trialSpans) end(at time.Time) {
	if s.part != nil {
		s.part.End(trace.WithTimestamp(at))
		s.part = nil
	}
}
