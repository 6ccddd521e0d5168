// Package tracing sends spans to an OpenTelemetry collector, which say what the program did and how long it took: requests by route and
// status, trials by phase, acts by type. Spans contain no content of records, no names of people and no addresses.
//
// The spans are OTLP's own messages. The SDK of OpenTelemetry brought eight modules for two kinds of them.
package tracing

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/internal/court/trial"
)

// Tracing sends spans. A nil *Tracing does nothing.
type Tracing struct {
	log    *slog.Logger
	url    *url.URL    // may have a password
	header http.Header // headers that the collector demands, such as a key
	http   *http.Client

	ended chan *otlp.Span // to be sent
	stop  context.CancelFunc
	done  chan struct{} // closed when nothing more is sent
	lost  atomic.Int64  // spans for which there was no room
}

// The spans that wait are sent every few seconds, or when there are enough of them.
const (
	waitTime    = 5 * time.Second
	batchSize   = 512
	mostWaiting = 2048
)

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
	ctx, stop := context.WithCancel(context.Background())
	t := &Tracing{log: log, header: header, url: base.JoinPath("v1", "traces"), http: &http.Client{},
		ended: make(chan *otlp.Span, mostWaiting), stop: stop, done: make(chan struct{})}
	go t.run(ctx)
	return t, nil
}

func (t *Tracing) run(ctx context.Context) {
	defer close(t.done)
	defer t.http.CloseIdleConnections()
	due := time.NewTicker(waitTime)
	defer due.Stop()
	var batch []*otlp.Span
	send := func() {
		t.send(batch)
		batch = nil
	}
	for {
		select {
		case span := <-t.ended:
			if batch = append(batch, span); len(batch) == batchSize {
				send()
			}
		case <-due.C:
			send()
		case <-ctx.Done():
			for len(t.ended) > 0 {
				batch = append(batch, <-t.ended)
			}
			send()
			return
		}
	}
}

// send sends spans, and says in the log which were lost. It takes exportTime at most.
func (t *Tracing) send(batch []*otlp.Span) {
	if lost := t.lost.Swap(0); lost > 0 {
		t.log.Warn("traces were not sent", "spans", lost, "error", "too many wait for the collector")
	}
	if len(batch) == 0 {
		return
	}
	if err := t.export(context.Background(), batch); err != nil {
		t.log.Warn("traces were not sent", "spans", len(batch), "error", err)
	}
}

// Stop sends the remaining spans. It returns the context's error if that ends before.
func (t *Tracing) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.stop()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin makes a span that begins at a time, in a trace and below a span; nil: in a trace of its own.
func begin(name string, kind otlp.Span_SpanKind, at time.Time, trace, parent []byte) *otlp.Span {
	if trace == nil {
		trace = random(16)
	}
	return &otlp.Span{TraceId: trace, SpanId: random(8), ParentSpanId: parent, Name: name, Kind: kind, StartTimeUnixNano: uint64(at.UnixNano()), Status: &otlp.Status{}}
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // it never fails
	return b
}

func (t *Tracing) end(span *otlp.Span, at time.Time) {
	span.EndTimeUnixNano = uint64(at.UnixNano())
	select {
	case t.ended <- span:
	default:
		t.lost.Add(1)
	}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

// traceparent matches the header of the caller's trace: https://www.w3.org/TR/trace-context/#traceparent-header.
var traceparent = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// callers reads the caller's trace from HTTP headers. sampled is false if the caller does not want the trace to be recorded.
func callers(h http.Header) (trace, parent []byte, sampled bool) {
	found := traceparent.FindStringSubmatch(h.Get("traceparent"))
	if found == nil || found[1] == "ff" || found[1] == "00" && found[5] != "" || strings.Trim(found[2], "0") == "" || strings.Trim(found[3], "0") == "" {
		return nil, nil, true
	}
	var parts [3][]byte
	for i := range parts {
		parts[i], _ = hex.DecodeString(found[2+i]) // it has nothing but digits
	}
	return parts[0], parts[1], parts[2][0]&1 == 1
}

// Request begins the span of a request for a route. The returned function ends it with the status of the answer.
func (t *Tracing) Request(r *http.Request, route string) (end func(status int)) {
	if t == nil {
		return func(int) {}
	}
	trace, parent, sampled := callers(r.Header)
	if !sampled {
		return func(int) {}
	}
	span := begin(route, otlp.Span_SPAN_KIND_SERVER, time.Now(), trace, parent)
	return func(status int) {
		code := &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(status)}}
		span.Attributes = []*common.KeyValue{text("http.request.method", r.Method), text("http.route", route), {Key: "http.response.status_code", Value: code}}
		if status >= http.StatusInternalServerError {
			span.Status.Code = otlp.Status_STATUS_CODE_ERROR
		}
		t.end(span, time.Now())
	}
}

// Trial returns a function that takes the events of one trial, one at a time, and makes spans: one for the trial, and within it one for
// each phase and round. Events from before the process began also make spans, with the times that the records claim.
func (t *Tracing) Trial() func(trial.Event) {
	if t == nil {
		return func(trial.Event) {}
	}
	s := &trialSpans{to: t}
	return s.hear
}

type trialSpans struct {
	to          *Tracing
	whole, part *otlp.Span
	closed      bool // whole is sent: what people decide later is no part of it
}

func (s *trialSpans) hear(e trial.Event) {
	head := e.Head()
	if s.closed {
		return
	}
	if s.whole == nil {
		// A trial is the root of a trace of its own: it outlives the request that submitted it.
		s.whole = begin("trial", otlp.Span_SPAN_KIND_INTERNAL, head.At, nil, nil)
		s.whole.Attributes = []*common.KeyValue{text("jurat.trial", head.SubmissionID)}
	}
	switch e := e.(type) {
	case trial.PhaseStarted:
		s.begin(string(e.Phase), head.At)
	case trial.RoundStarted:
		s.begin(fmt.Sprintf("round %d", e.Round), head.At)
	}
	current := s.whole
	if s.part != nil {
		current = s.part
	}
	current.Events = append(current.Events, &otlp.Span_Event{TimeUnixNano: uint64(head.At.UnixNano()), Name: head.Type})
	switch e.(type) {
	case trial.TrialDegraded:
		yes := &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}
		s.whole.Attributes = append(s.whole.Attributes, &common.KeyValue{Key: "jurat.degraded", Value: yes})
	case trial.ConsensusChecked, trial.RoundCompleted:
		s.end(head.At)
	case trial.TrialClosed:
		s.end(head.At)
		s.to.end(s.whole, head.At)
		s.closed = true
	}
}

func (s *trialSpans) begin(name string, at time.Time) {
	s.end(at)
	s.part = begin(name, otlp.Span_SPAN_KIND_INTERNAL, at, s.whole.TraceId, s.whole.SpanId)
}

func (s *trialSpans) end(at time.Time) {
	if s.part != nil {
		s.to.end(s.part, at)
		s.part = nil
	}
}

const (
	exportTime = 10 * time.Second // the limit for a batch, repeated attempts included
	firstWait  = time.Second      // the pause before the second attempt; doubled before each further one
)

// maxAnswer is how many bytes of a collector's answer are read, so that the next batch can use the same connection.
const maxAnswer = 64 << 10

func (t *Tracing) export(ctx context.Context, spans []*otlp.Span) error {
	// TracesData is ExportTraceServiceRequest by another name: the same fields with the same numbers.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{Resource: &resources.Resource{Attributes: []*common.KeyValue{text("service.name", "jurat")}},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "jurat"}, Spans: spans}}}}})
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	for wait := firstWait; ; wait *= 2 {
		again, err := t.post(ctx, body)
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
func (t *Tracing) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header = t.header.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := t.http.Do(request)
	if err != nil {
		if of := new(url.Error); errors.As(err, &of) {
			err = of.Err // without the URL
		}
		return true, fmt.Errorf("the collector at %s: %w", t.shown(), err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)); err != nil {
		return true, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true, fmt.Errorf("the collector at %s answers %s", t.shown(), response.Status)
	}
	return false, fmt.Errorf("the collector at %s answers %s", t.shown(), response.Status)
}

// shown is the URL as it may stand in a log: without user, password and query.
func (t *Tracing) shown() string {
	return (&url.URL{Scheme: t.url.Scheme, Host: t.url.Host, Path: t.url.Path}).String()
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
