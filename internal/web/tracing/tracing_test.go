package tracing_test

import (
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/internal/court/trial"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/internal/web/tracing"
	"jurat/jury"
)

// A sink is a collector that speaks OTLP over HTTP and keeps what it is sent.
type sink struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*otlp.Span
	away  int    // how many requests it refuses at first
	wrong string // what was not as the protocol says; "": nothing
}

func newSink(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) take(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away > 0 {
		s.away--
		http.Error(w, "come again", http.StatusServiceUnavailable)
		return
	}
	doc, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(doc, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("X-Key") != "a b" || r.Header.Get("Other") != "1" {
		s.wrong = r.URL.Path + " " + r.Header.Get("Content-Type")
		http.Error(w, s.wrong, http.StatusBadRequest)
		return
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			s.spans = append(s.spans, scope.Spans...)
		}
	}
}

// sent stops the tracing and returns the spans that were sent, by name.
func (s *sink) sent(t *testing.T, tracing *tracing.Tracing) map[string]*otlp.Span {
	t.Helper()
	err := tracing.Stop(t.Context())
	must.Need(t, err == nil && s.wrong == "", "%v %v", err, s.wrong)
	named := map[string]*otlp.Span{}
	for _, span := range s.spans {
		named[span.Name] = span
	}
	return named
}

func start(t *testing.T, endpoint string) *tracing.Tracing {
	t.Helper()
	tracer := must.Get(tracing.Start(endpoint, "x-key=a%20b, other=1", slog.New(slog.DiscardHandler)))(t)
	return tracer
}

// TestRequests: a request is a span with its route and status, in the caller's trace, without its path or query.
func TestRequests(t *testing.T) {
	s := newSink(t)
	tracer := start(t, s.URL+"/")
	request := httptest.NewRequest(http.MethodGet, "/records/secret-id?token=secret", nil)
	request.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	request.Header.Set("tracestate", "vendor=secret")
	end := tracer.Request(request, "GET /records/{id}")
	end(http.StatusServiceUnavailable)
	span := s.sent(t, tracer)["GET /records/{id}"]
	must.Need(t, span != nil, "%v", s.spans)
	if text := span.String(); strings.Contains(text, "secret") || span.TraceId[0] != 0x0a || span.Kind != otlp.Span_SPAN_KIND_SERVER ||
		!strings.Contains(text, "http.response.status_code") || !strings.Contains(text, "503") {
		t.Error(text)
	}
}

// TestCallersTrace: a caller's trace is continued if its header is as W3C Trace Context has it, and not recorded if the caller does not want that.
func TestCallersTrace(t *testing.T) {
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for header, want := range map[string]string{
		"00-" + trace + "-" + parent + "-01":                    parent,
		"00-" + trace + "-" + parent + "-03":                    parent,
		"cc-" + trace + "-" + parent + "-01-what-follows":       parent,
		"00-" + trace + "-" + parent + "-00":                    "not recorded",
		"00-" + trace + "-" + parent + "-01-more":               "",
		"ff-" + trace + "-" + parent + "-01":                    "",
		"00-" + strings.ToUpper(trace) + "-" + parent + "-01":   "",
		"00-00000000000000000000000000000000-" + parent + "-01": "",
		"00-" + trace + "-0000000000000000-01":                  "",
		"00-" + trace + "-" + parent:                            "",
		"":                                                      "",
	} {
		s := newSink(t)
		tracer := start(t, s.URL)
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("traceparent", header)
		tracer.Request(request, "GET /")(http.StatusOK)
		got := "not recorded"
		if span := s.sent(t, tracer)["GET /"]; span != nil {
			got = hex.EncodeToString(span.ParentSpanId)
			must.Hold(t, (got == "" || hex.EncodeToString(span.TraceId) == trace) && len(span.TraceId) == 16 && len(span.SpanId) == 8, "%q: %v", header, span)
		}
		must.Hold(t, got == want, "%q: %s, want %s", header, got, want)
	}
}

// TestTrials: a trial is a span that contains one for each phase and round. It has no names and no content.
func TestTrials(t *testing.T) {
	s := newSink(t)
	tracer := start(t, s.URL)
	done := jurattest.New(t).Try(t, jury.FinalJudge)
	hear, projector := tracer.Trial(), trial.NewView(nil)
	for _, r := range done.Records {
		list := must.Get(projector.Add(r))(t)
		for _, e := range list {
			hear(e)
		}
	}
	hear(trial.PersonDecided{EventHead: trial.EventHead{Type: "person_decided", At: time.Now()}}) // of a trial that is over
	spans := s.sent(t, tracer)
	whole := spans["trial"]
	must.Need(t, whole != nil && spans["round 1"] != nil && spans[string(jury.Initial)] != nil, "%v", spans)
	for name, span := range spans {
		must.Hold(t, name == "trial" || slices.Equal(span.ParentSpanId, whole.SpanId) && len(span.Events) != 0, "%s: %v", name, span)
		text := span.String()
		must.Hold(t, !strings.Contains(text, "juror-") && !strings.Contains(text, "person_decided"), "%v", text)
	}
}

// TestNoCollector: the program works without a collector, and with a wrong address of one.
func TestNoCollector(t *testing.T) {
	var none *tracing.Tracing
	none.Trial()(trial.TrialClosed{})
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	none.Request(request, "GET /")(http.StatusOK)
	must.Want(t, none.Stop(t.Context()), nil)
	for _, endpoint := range []string{"", "collector:4318", "ftp://x", "http://"} {
		_, err := tracing.Start(endpoint, "x-key=a%20b, other=1", slog.New(slog.DiscardHandler))
		must.Hold(t, err != nil, "%q is taken", endpoint)
	}
	tracer := start(t, "http://127.0.0.1:1")
	tracer.Trial()(trial.TrialClosed{EventHead: trial.EventHead{At: time.Now()}})
}

// TestCollectorAway: the program sends a batch again if the collector was briefly unreachable.
func TestCollectorAway(t *testing.T) {
	s := newSink(t)
	s.away = 1
	tracer := start(t, s.URL)
	end := tracer.Request(httptest.NewRequest(http.MethodGet, "/", nil), "GET /")
	end(http.StatusOK)
	must.Hold(t, s.sent(t, tracer)["GET /"] != nil && s.away == 0, "%v, away %d", s.spans, s.away)
}

// TestHeadersRefused: a malformed list of headers is refused, and the error does not show its content.
func TestHeadersRefused(t *testing.T) {
	for _, list := range []string{"secret", "=secret", "x=%zzsecret"} {
		_, err := tracing.Start("http://127.0.0.1:1", list, nil)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), "secret"), "%s: %v", list, err)
	}
}

// told gets each line of a log.
type told chan string

func (c told) Write(line []byte) (int, error) {
	c <- string(line)
	return len(line), nil
}

// TestErrorsKeepTheEndpointsSecret: an endpoint may have a user, a password and a key in its query. Errors name the collector without them.
func TestErrorsKeepTheEndpointsSecret(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		must.Hold(t, password == "a-secret" && r.URL.Path == "/base/v1/traces" && r.URL.RawQuery == "key=a-secret", "%s, %q", r.URL, password)
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer refusing.Close()
	log, host := make(told, 1), strings.TrimPrefix(refusing.URL, "http://")
	tracer := must.Get(tracing.Start("http://a-secret:a-secret@"+host+"/base/?key=a-secret", "", slog.New(slog.NewJSONHandler(log, nil))))(t)
	end := tracer.Request(httptest.NewRequest(http.MethodGet, "/", nil), "GET /")
	end(http.StatusOK)
	must.Want(t, tracer.Stop(t.Context()), nil)
	said := <-log
	must.Hold(t, !strings.Contains(said, "a-secret") && strings.Contains(said, "the collector at http://"+host+"/base/v1/traces answers 403"), "%s", said)
	for _, endpoint := range []string{"a-secret@collector:4318", "http://user:a-secret@col lector", "ftp://user:a-secret@collector"} {
		_, err := tracing.Start(endpoint, "", nil)
		must.Hold(t, err != nil && !strings.Contains(err.Error(), "a-secret"), "%v", err)
	}
}
