package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	exportTime = 10 * time.Second // the limit for a batch, repeated attempts included
	firstWait  = time.Second      // the pause before the second attempt; doubled before each further one
)

// maxAnswer is how many bytes of a collector's answer are read, so that the next batch can use the same connection.
const maxAnswer = 64 << 10

// An exporter implements sdk.SpanExporter by OTLP over HTTP, with bodies in protobuf. OpenTelemetry's own exporter links gRPC, which this
// protocol does not need.
type exporter struct {
	log    *slog.Logger
	url    *url.URL    // may have a password
	header http.Header // headers that the collector demands, such as a key
	http   *http.Client
}

// ExportSpans sends a batch. It tries again while the collector is temporarily unavailable, for ten seconds at most. After that the batch
// is lost, and the log says so. OpenTelemetry would write an error to standard error, whatever the form of the log.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	if err := e.send(ctx, spans); err != nil {
		e.log.LogAttrs(ctx, slog.LevelWarn, "traces were not sent", slog.Int("spans", len(spans)), slog.Any("error", err))
	}
	return nil
}

func (e *exporter) send(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	// TracesData is ExportTraceServiceRequest by another name: the same fields with the same numbers.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{batch(spans)}})
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	for wait := firstWait; ; wait *= 2 {
		again, err := e.post(ctx, body)
		if err == nil {
			return nil
		}
		if !again {
			return fmt.Errorf("tracing: %w", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("tracing: %w", err)
		}
	}
}

// post sends a body once. again reports whether the error may pass (OTLP, "Retryable Response Codes").
func (e *exporter) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header = e.header.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := e.http.Do(request)
	if err != nil {
		if of := new(url.Error); errors.As(err, &of) {
			err = of.Err // without the URL
		}
		return true, fmt.Errorf("the collector at %s: %w", e.shown(), err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)); err != nil {
		return true, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector at %s answers %s", e.shown(), response.Status)
	}
	return false, fmt.Errorf("the collector at %s answers %s", e.shown(), response.Status)
}

// shown is the URL as it may stand in a log: without user, password and query.
func (e *exporter) shown() string {
	return (&url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: e.url.Path}).String()
}

// headers parses a list of headers in the form of OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value, with URL-encoded values.
func headers(list string) (http.Header, error) {
	h := http.Header{}
	for _, pair := range strings.Split(list, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case strings.TrimSpace(pair) == "":
		case !ok || name == "" || err != nil:
			return nil, fmt.Errorf("tracing: the list of headers: want name=value, separated by commas, with values in URL encoding")
		default:
			h.Set(name, value)
		}
	}
	return h, nil
}

// Shutdown implements sdk.SpanExporter. The exporter keeps nothing between batches.
func (e *exporter) Shutdown(context.Context) error {
	e.http.CloseIdleConnections()
	return nil
}

// batch converts spans of one process and one tracer to OTLP.
func batch(spans []sdk.ReadOnlySpan) *otlp.ResourceSpans {
	scope := spans[0].InstrumentationScope()
	list := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope.Name, Version: scope.Version}}
	for _, s := range spans {
		list.Spans = append(list.Spans, spanOf(s))
	}
	return &otlp.ResourceSpans{
		Resource:   &resources.Resource{Attributes: attributes(spans[0].Resource().Attributes())},
		ScopeSpans: []*otlp.ScopeSpans{list},
	}
}

// spanOf leaves out the trace state, which is the caller's own text.
func spanOf(s sdk.ReadOnlySpan) *otlp.Span {
	trace, id, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	span := &otlp.Span{
		TraceId:           trace[:],
		SpanId:            id[:],
		Name:              s.Name(),
		Kind:              otlp.Span_SpanKind(s.SpanKind()), // both use the protocol's numbers
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()),
		EndTimeUnixNano:   uint64(s.EndTime().UnixNano()),
		Attributes:        attributes(s.Attributes()),
		Status:            statusOf(s.Status()),
	}
	if s.Parent().HasSpanID() {
		span.ParentSpanId = parent[:]
	}
	for _, e := range s.Events() {
		span.Events = append(span.Events, &otlp.Span_Event{TimeUnixNano: uint64(e.Time.UnixNano()), Name: e.Name, Attributes: attributes(e.Attributes)})
	}
	return span
}

func statusOf(s sdk.Status) *otlp.Status {
	status := &otlp.Status{Message: s.Description}
	switch s.Code {
	case codes.Ok:
		status.Code = otlp.Status_STATUS_CODE_OK
	case codes.Error:
		status.Code = otlp.Status_STATUS_CODE_ERROR
	}
	return status
}

// attributes converts the types that this program uses. It converts all other types to text.
func attributes(list []attribute.KeyValue) (out []*common.KeyValue) {
	for _, kv := range list {
		value := &common.AnyValue{}
		switch kv.Value.Type() {
		case attribute.BOOL:
			value.Value = &common.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		case attribute.INT64:
			value.Value = &common.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		default:
			value.Value = &common.AnyValue_StringValue{StringValue: kv.Value.String()}
		}
		out = append(out, &common.KeyValue{Key: string(kv.Key), Value: value})
	}
	return out
}
