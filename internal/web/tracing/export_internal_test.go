package tracing

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"jurat/internal/test/must"
)

// TestUnreachableCollector: an error of the connection names the collector without user, password and query.
func TestUnreachableCollector(t *testing.T) {
	at := must.Get(url.Parse("http://a-secret:a-secret@127.0.0.1:1/v1/traces?key=a-secret"))(t)
	again, err := (&Tracing{url: at, header: http.Header{}, http: http.DefaultClient}).post(t.Context(), nil)
	must.Hold(t, again && err != nil && !strings.Contains(err.Error(), "a-secret") && strings.Contains(err.Error(), "the collector at http://127.0.0.1:1/v1/traces: "),
		"%t, %v", again, err)
}

// TestTooManySpans: spans for which there is no room are lost, and the log says how many.
func TestTooManySpans(t *testing.T) {
	var said strings.Builder
	tracer := &Tracing{log: slog.New(slog.NewTextHandler(&said, nil)), ended: make(chan *otlp.Span, 1)}
	for range 3 {
		tracer.end(&otlp.Span{}, time.Now())
	}
	tracer.send(nil)
	tracer.send(nil)
	must.Hold(t, strings.Count(said.String(), "traces were not sent") == 1 && strings.Contains(said.String(), "spans=2"), "%v", said.String())
}
