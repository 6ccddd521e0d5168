// Package tracing sends spans to an OpenTelemetry collector, which say what the program did and how long it took: requests by route and
// status, trials by phase, acts by type. Spans contain no content of records, no names of people and no addresses.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
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

// Start returns a Tracing that sends spans to a collector by OTLP over HTTP. endpoint is a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT.
// headerList is a list as in OTEL_EXPORTER_OTLP_HEADERS. Start returns an error if either is malformed. If the collector does not answer,
// spans are lost, which the log says, and the program is not affected.
func Start(endpoint, headerList string, log *slog.Logger) (*Tracing, error) {
	base, err := url.Parse(endpoint)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, errors.New("tracing: want an http or https URL, such as http://localhost:4318") // it may have a password, so it is not repeated
	}
	header, err := headers(headerList)
	if err != nil {
		return nil, err
	}
	to := &exporter{log: log, header: header, url: base.JoinPath("v1", "traces"), http: &http.Client{}}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(to), sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "jurat"))))
	return &Tracing{provider, provider.Tracer("jurat")}, nil
}

// Stop sends the remaining spans. It returns the context's error if that ends before.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// callers reads the caller's trace from HTTP headers (W3C Trace Context).
var callers propagation.TraceContext

// Request begins the span of a request for a route. The returned function ends it with the status of the answer.
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

// Trial returns a function that takes the events of one trial, one at a time, and makes spans: one for the trial, and within it one for
// each phase and round. Events from before the process began also make spans, with the times that the records claim.
func (t *Tracing) Trial() func(events.Event) {
	if t == nil {
		return func(events.Event) {}
	}
	s := &trialSpans{tracer: t.tracer}
	return s.hear
}

type trialSpans struct {
	tracer      trace.Tracer
	ctx         context.Context // contains the trial's span
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
