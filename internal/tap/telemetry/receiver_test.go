package telemetry_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/sealer"
	"jurat/internal/tap/telemetry"
	"jurat/internal/test/must"
)

// A desk takes reports.
type desk struct {
	mu      sync.Mutex
	reports []observed.Act
	broken  error
}

func (d *desk) report(_ context.Context, told observed.Act, _ string) (sealer.Account, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return "", d.broken
	}
	for _, before := range d.reports {
		if before.RecordID == told.RecordID {
			return sealer.Known, nil
		}
	}
	d.reports = append(d.reports, told)
	return sealer.New, nil
}

func (d *desk) config() telemetry.Config {
	return telemetry.Config{Report: d.report, Agent: "shop-bot", Log: slog.New(slog.DiscardHandler), WhoIs: func(_ context.Context, token string) (string, error) {
		if token != "secret" {
			return "", errors.New("it is unknown")
		}
		return "token-bot", nil
	}}
}

const jsonSpan = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","startTimeUnixNano":"1795789736896000000","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}}]}]}]}]}`

// with adds attributes to the span.
func with(attributes string) string {
	return strings.Replace(jsonSpan, `[{"key":"gen_ai`, "["+attributes+`,{"key":"gen_ai`, 1)
}

func text(key, value string) string {
	return `{"key":"` + key + `","value":{"stringValue":"` + value + `"}}`
}

type request struct {
	method, path, body string
	header             map[string]string
	host               string
}

func (q request) do(h http.Handler) *httptest.ResponseRecorder {
	q.method = cmp.Or(q.method, http.MethodPost)
	q.path = cmp.Or(q.path, "/v1/traces")
	req := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	req.Host = "127.0.0.1:4318"
	req.Host = cmp.Or(q.host, req.Host)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range q.header {
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func gzipped(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	must.Get(io.WriteString(z, body))(t)
	must.Do(t, z.Close())
	return b.String()
}

// TestAnswers: each request has the status that the protocol has for it, and a reason.
func TestAnswers(t *testing.T) {
	bomb := gzipped(t, strings.Repeat(" ", telemetry.MaxBody+1))
	for name, test := range map[string]struct {
		request request
		status  int
		says    string
	}{
		"spans":                     {request{body: jsonSpan}, 200, `{}`},
		"spans, compressed":         {request{body: gzipped(t, jsonSpan), header: map[string]string{"Content-Encoding": "gzip"}}, 200, `{}`},
		"metrics":                   {request{path: "/v1/metrics", body: `{"resourceMetrics":[]}`}, 200, `{}`},
		"by GET":                    {request{method: "GET"}, 405, "POST"},
		"another path":              {request{path: "/v1/profiles"}, 404, "/v1/traces"},
		"a form":                    {request{body: "a=b", header: map[string]string{"Content-Type": "text/plain"}}, 415, "application/x-protobuf"},
		"no content type":           {request{body: jsonSpan, header: map[string]string{"Content-Type": ""}}, 415, "application/json"},
		"an unknown encoding":       {request{body: jsonSpan, header: map[string]string{"Content-Encoding": "lzma"}}, 415, "gzip"},
		"no gzip":                   {request{body: jsonSpan, header: map[string]string{"Content-Encoding": "gzip"}}, 400, "encoding"},
		"gzip that breaks off":      {request{body: gzipped(t, jsonSpan)[:40], header: map[string]string{"Content-Encoding": "gzip"}}, 400, "breaks off"},
		"a bomb":                    {request{body: bomb, header: map[string]string{"Content-Encoding": "gzip"}}, 413, "export fewer spans"},
		"too many bytes":            {request{body: strings.Repeat(" ", telemetry.MaxBody+1)}, 413, "export fewer spans"},
		"too many values":           {request{body: `{"resourceSpans":[{}` + strings.Repeat(`,{}`, 500_000) + `]}`}, 413, "export fewer spans"},
		"no JSON":                   {request{body: `{"resourceSpans":[`}, 400, "not JSON"},
		"no protobuf":               {request{body: "\xff\xff", header: map[string]string{"Content-Type": "application/x-protobuf"}}, 400, "not OTLP in protobuf"},
		"an unknown token":          {request{body: jsonSpan, header: map[string]string{"Jurat-Agent": "Bearer other"}}, 401, "it is unknown"},
		"a token of another kind":   {request{body: jsonSpan, header: map[string]string{"Jurat-Agent": "Basic x"}}, 401, "Bearer TOKEN"},
		"a chain that is none":      {request{body: jsonSpan, header: map[string]string{"Jurat-Chain": strings.Repeat("x", 500)}}, 400, "Jurat-Chain"},
		"a page's name for us":      {request{body: jsonSpan, host: "rebound.example:4318"}, 403, "--host"},
		"an address of version 6":   {request{body: jsonSpan, host: "[::1]:4318"}, 200, `{}`},
		"a name without a port":     {request{body: jsonSpan, host: "LOCALHOST"}, 200, `{}`},
		"a span without an id":      {request{body: strings.Replace(jsonSpan, "b7ad6b7169203331", "0000000000000000", 1)}, 200, `{"partialSuccess":{"errorMessage":"a span without ids: want a trace id of 16 bytes and a span id of 8, not all zero","rejectedSpans":"1"}}`},
		"logs of nothing":           {request{path: "/v1/logs", body: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"hello"}}]}]}]}`}, 200, `{}`},
		"an event without an id":    {request{path: "/v1/logs", body: `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"gen_ai.choice"}]}]}]}`}, 200, `"rejectedLogRecords":"1"`},
		"spans on the path of logs": {request{path: "/v1/logs", body: jsonSpan}, 200, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := test.request.do(telemetry.New(new(desk).config()))
			must.Hold(t, w.Code == test.status && strings.Contains(w.Body.String(), test.says), "%d %s: want %d %s", w.Code, w.Body, test.status, test.says)
		})
	}
}

// TestSealsBeforeYes: while the log does not seal, the sender is told to come again; afterwards everything is there once.
func TestSealsBeforeYes(t *testing.T) {
	d := &desk{broken: errors.New("the disk is full")}
	r := telemetry.New(d.config())
	w := request{body: jsonSpan}.do(r)
	must.Hold(t, w.Code == 503 && w.Header().Get("Retry-After") != "" && strings.Contains(w.Body.String(), "the disk is full"),
		"%d %v %s", w.Code, w.Header(), w.Body)
	if w := (request{body: string(protobuf(t)), header: map[string]string{"Content-Type": "application/x-protobuf"}}).do(r); w.Code != 503 || w.Header().Get("Content-Type") != "application/x-protobuf" || !strings.Contains(w.Body.String(), "the disk is full") {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
	d.broken = nil
	for range 2 {
		w := (request{body: jsonSpan}).do(r)
		must.Hold(t, w.Code == 200, "%d %s", w.Code, w.Body)
	}
	must.Equal(t, len(d.reports), 1)
	must.Equal(t, r.Counts(), "acts sealed: 1, acts told again: 1")
}

// protobuf is a request with a span that is fit and one that is not.
func protobuf(t *testing.T) []byte {
	t.Helper()
	chat := []*common.KeyValue{{Key: "gen_ai.operation.name", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "chat"}}}}
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*traces.ResourceSpans{{ScopeSpans: []*traces.ScopeSpans{{Spans: []*traces.Span{
		{TraceId: bytes.Repeat([]byte{7}, 16), SpanId: bytes.Repeat([]byte{8}, 8), Attributes: chat}, {Attributes: chat}}}}}}})
	must.Do(t, err)
	return body
}

// TestAnswerInProtobuf holds the answer against the protocol's own definition.
func TestAnswerInProtobuf(t *testing.T) {
	d := new(desk)
	w := request{body: string(protobuf(t)), header: map[string]string{"Content-Type": "application/x-protobuf"}}.do(telemetry.New(d.config()))
	var answer collector.ExportTraceServiceResponse
	if err := proto.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/x-protobuf" {
		t.Fatalf("%d %v: %v", w.Code, w.Header(), err)
	}
	if p := answer.PartialSuccess; p.GetRejectedSpans() != 1 || !strings.Contains(p.GetErrorMessage(), "without ids") || len(d.reports) != 1 || len(answer.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("%v; %d reports", &answer, len(d.reports))
	}
}

// TestWhoseActs: the agent is the token's, or the operator's for this service or for all; the sender's service.name alone chooses nobody.
func TestWhoseActs(t *testing.T) {
	token := map[string]string{"Jurat-Agent": "Bearer secret"}
	for name, test := range map[string]struct {
		change func(*telemetry.Config)
		header map[string]string
		agent  string // "": refused
	}{
		"the operator's":               {func(*telemetry.Config) {}, nil, "shop-bot"},
		"the token's":                  {func(c *telemetry.Config) { c.Services = map[string]string{"shop": "mapped-bot"} }, token, "token-bot"},
		"mapped":                       {func(c *telemetry.Config) { c.Services = map[string]string{"shop": "mapped-bot"} }, nil, "mapped-bot"},
		"another service":              {func(c *telemetry.Config) { c.Services = map[string]string{"other": "mapped-bot"} }, nil, "shop-bot"},
		"another service, and nobody":  {func(c *telemetry.Config) { c.Services, c.Agent = map[string]string{"other": "mapped-bot"}, "" }, nil, ""},
		"service.name is not an agent": {func(c *telemetry.Config) { c.Services, c.Agent = map[string]string{"shop-bot": "shop-bot"}, "" }, nil, ""},
	} {
		d := new(desk)
		c := d.config()
		test.change(&c)
		w := request{body: jsonSpan, header: test.header}.do(telemetry.New(c))
		switch {
		case test.agent == "" && (len(d.reports) > 0 || w.Code != 200 || !strings.Contains(w.Body.String(), `"rejectedSpans":"1"`)):
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		case test.agent != "" && (len(d.reports) != 1 || d.reports[0].Agent != test.agent):
			t.Errorf("%s: %+v", name, d.reports)
		}
	}
	c := new(desk).config()
	c.Agent = ""
	w := (request{body: jsonSpan}).do(telemetry.New(c))
	must.Hold(t, w.Code == 401 && strings.Contains(w.Body.String(), "OTEL_EXPORTER_OTLP_HEADERS"), "nobody: %d %s", w.Code, w.Body)
}

// TestChains: an act goes to the chain that is named, or to the conversation's, or to the trace's.
func TestChains(t *testing.T) {
	for name, test := range map[string]struct {
		body   string
		header string
		common string // Config.Chain
		want   string
	}{
		"the trace":                {jsonSpan, "", "", "0af7651916cd43dd8448eb211c80319c"},
		"the conversation":         {with(text("gen_ai.conversation.id", "c-7")), "", "", "c-7"},
		"the session":              {with(text("session.id", "s-7")), "", "", "s-7"},
		"the attribute":            {with(text("jurat.chain", "mine") + "," + text("session.id", "s-7")), "head", "all", "mine"},
		"the header":               {with(text("session.id", "s-7")), "head", "all", "head"},
		"the operator's":           {with(text("session.id", "s-7")), "", "all", "all"},
		"a name that is no chain":  {with(text("session.id", strings.Repeat("x", 500))), "", "", evidence.DigestOf([]byte(strings.Repeat("x", 500))).String()},
		"a name with a line break": {with(text("gen_ai.conversation.id", `a\nb`)), "", "", evidence.DigestOf([]byte("a\nb")).String()},
	} {
		d := new(desk)
		c := d.config()
		c.Chain = test.common
		request{body: test.body, header: map[string]string{"Jurat-Chain": test.header}}.do(telemetry.New(c))
		if len(d.reports) != 1 || d.reports[0].ChainID != sealer.ChainOf("shop-bot", test.want) {
			t.Errorf("%s: %+v", name, d.reports)
			continue
		}
		if named := strings.Contains(strings.Join(d.reports[0].Missing, "\n"), "the chain that the sender names"); named != strings.HasPrefix(name, "a name") {
			t.Errorf("%s: missing %q", name, d.reports[0].Missing)
		}
	}
}

// TestOrderOfChains: the acts of one chain are sealed in the order in which they began, whatever the order in which they are sent.
func TestOrderOfChains(t *testing.T) {
	span := func(id, start string) string {
		return `{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"` + id + `","startTimeUnixNano":"` + start + `","attributes":[` + text("gen_ai.operation.name", "chat") + `]}`
	}
	d := new(desk)
	request{body: `{"resourceSpans":[{"scopeSpans":[{"spans":[` + span("0000000000000003", "3000") + "," + span("0000000000000001", "1000") + "," + span("0000000000000002", "2000") + `]}]}]}`}.do(telemetry.New(d.config()))
	var order []string
	for _, told := range d.reports {
		order = append(order, told.RequestID[len(told.RequestID)-1:])
	}
	must.Hold(t, slices.Equal(order, []string{"1", "2", "3"}), "%q", order)
}

// TestManySenders: many send the same spans at once, and each is sealed once.
func TestManySenders(t *testing.T) {
	d := new(desk)
	server := httptest.NewServer(telemetry.New(d.config()))
	defer server.Close()
	var senders sync.WaitGroup
	for i := range 40 {
		senders.Go(func() {
			body := strings.ReplaceAll(jsonSpan, "b7ad6b7169203331", "b7ad6b716920333"+string("0123456789"[i%10]))
			answer, err := http.Post(server.URL+"/v1/traces", "application/json", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			must.Equal(t, answer.StatusCode, 200)
		})
	}
	senders.Wait()
	ids := map[string]bool{}
	for _, told := range d.reports {
		ids[told.RecordID] = true
	}
	must.Equal(t, len(slices.Collect(maps.Keys(ids))), 10)
	must.Equal(t, len(d.reports), 10)
}

// TestBodiesInMemory: requests that wait until others are sealed are counted among those whose bodies are in memory.
func TestBodiesInMemory(t *testing.T) {
	seal, c, read := make(chan struct{}), (&desk{}).config(), atomic.Int64{}
	report := c.Report
	c.Report = func(ctx context.Context, told observed.Act, other string) (sealer.Account, error) {
		<-seal
		return report(ctx, told, other)
	}
	h := telemetry.New(c)
	var all sync.WaitGroup
	for range 60 {
		all.Go(func() {
			req := httptest.NewRequest(http.MethodPost, "/v1/traces", &noticed{strings.NewReader(jsonSpan), &read})
			req.Host = "127.0.0.1:4318"
			req.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			must.Hold(t, w.Code == http.StatusOK, "%d %s", w.Code, w.Body)
		})
	}
	for before := int64(-1); read.Load() != before || before == 0; time.Sleep(100 * time.Millisecond) {
		before = read.Load()
	}
	n := read.Load()
	must.Hold(t, n <= 16, "%d bodies are in memory", n)
	close(seal)
	all.Wait()
}

// noticed counts the bodies that were read to their ends.
type noticed struct {
	io.Reader
	ends *atomic.Int64
}

func (n *noticed) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	if err == io.EOF {
		n.ends.Add(1)
	}
	return read, err
}

// TestBothVersionsOfHTTP: requests are taken by both versions of HTTP. A call of gRPC is refused with what to use instead, which is logged, since its clients do not show it. Of a request that
// is broken off, nothing is recorded, and the receiver goes on.
func TestBothVersionsOfHTTP(t *testing.T) {
	d, said := new(desk), make(chan string, 1)
	c := d.config()
	c.Log = slog.New(&noting{Handler: slog.DiscardHandler, said: said})
	s := httptest.NewUnstartedServer(telemetry.New(c))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	second := &http.Client{Transport: tr}
	half, rest := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/traces", half))(t)
	req.Header.Set("Content-Type", "application/json")
	go func() {
		_, _ = io.WriteString(rest, jsonSpan[:len(jsonSpan)/2]) // the request is cancelled
		cancel()
	}()
	if answer, err := second.Do(req); err == nil {
		answer.Body.Close()
		t.Errorf("a request that broke off was answered: %s", answer.Status)
	}
	text := <-said
	must.Hold(t, strings.Contains(text, "not recorded"), "logged %q", text)
	for version, one := range map[string]*http.Client{"HTTP/1.1": http.DefaultClient, "HTTP/2.0": second} {
		answer := must.Get(one.Post(s.URL+"/v1/traces", "application/json", strings.NewReader(jsonSpan)))(t)
		answer.Body.Close()
		must.Hold(t, answer.StatusCode == http.StatusOK && answer.Proto == version, "%s %s", answer.Proto, answer.Status)
		answer = must.Get(one.Post(s.URL+"/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc", strings.NewReader("\x00\x00\x00\x00\x00")))(t)
		answer.Body.Close()
		text := <-said
		must.Hold(t, answer.StatusCode == http.StatusNotFound && strings.Contains(text, "http/protobuf"), "gRPC: %s, logged %q", answer.Status, text)
	}
	must.Equal(t, len(d.reports), 1)
}

// noting passes on what is logged.
type noting struct {
	slog.Handler
	said chan string
}

func (*noting) Enabled(context.Context, slog.Level) bool { return true }

func (n *noting) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	select {
	case n.said <- text:
	default:
	}
	return nil
}
