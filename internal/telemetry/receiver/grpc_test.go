package receiver_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	"jurat/internal/telemetry"
	"jurat/internal/telemetry/receiver"
)

const exportTraces = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// overHTTP2 serves a receiver on HTTP/1 and HTTP/2 without TLS.
func overHTTP2(t *testing.T, c receiver.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(receiver.New(c))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// client speaks HTTP/2 alone.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// frame is a message as gRPC sends it. A length below 0 is its own.
func frame(flag byte, length int, body string) string {
	if length < 0 {
		length = len(body)
	}
	return string(binary.BigEndian.AppendUint32([]byte{flag}, uint32(length))) + body
}

// call makes a call of gRPC. It returns the message of the answer, and the trailers.
func call(t *testing.T, s *httptest.Server, path string, header map[string]string, body io.Reader) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	answer, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/grpc" {
		t.Errorf("status %d, content type %q", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	return string(got), answer.Trailer
}

// TestGRPC: each call has the status that gRPC has for it, and a reason. What is refused is not recorded.
func TestGRPC(t *testing.T) {
	spans := string(protobuf(t))
	zipped := gzipped(t, spans)
	gz := map[string]string{"Grpc-Encoding": "gzip"}
	const logs = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	for name, test := range map[string]struct {
		path   string
		header map[string]string
		body   string
		status string
		says   string
	}{
		"spans":                              {"", nil, frame(0, -1, spans), "0", ""},
		"spans, with the name of protobuf":   {"", map[string]string{"Content-Type": "application/grpc+proto"}, frame(0, -1, spans), "0", ""},
		"spans, compressed":                  {"", gz, frame(1, -1, zipped), "0", ""},
		"spans, not compressed this time":    {"", gz, frame(0, -1, spans), "0", ""},
		"nothing":                            {"", nil, frame(0, -1, ""), "0", ""},
		"logs of nothing":                    {logs, nil, frame(0, -1, ""), "0", ""},
		"metrics":                            {"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", nil, frame(0, -1, "any"), "0", ""},
		"another service":                    {"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", nil, frame(0, -1, ""), "12", "traces, logs and metrics"},
		"another method":                     {"/opentelemetry.proto.collector.trace.v1.TraceService/Import", nil, frame(0, -1, ""), "12", "TraceService/Import"},
		"the path of HTTP":                   {"/v1/traces", nil, frame(0, -1, spans), "12", "/v1/traces"},
		"messages in JSON":                   {"", map[string]string{"Content-Type": "application/grpc+json"}, frame(0, -1, "{}"), "12", "with protobuf"},
		"no protobuf":                        {"", nil, frame(0, -1, "\xff\xff"), "3", "not OTLP in protobuf"},
		"no bytes":                           {"", nil, "", "3", "before its message"},
		"half a prefix":                      {"", nil, "\x00\x00\x00", "3", "before its message"},
		"a length that is too long":          {"", nil, frame(0, len(spans)+1, spans), "3", "breaks off after"},
		"a length that is too short":         {"", nil, frame(0, len(spans)-1, spans), "3", "more follows"},
		"a length of 4 GiB":                  {"", nil, frame(0, 1<<32-1, spans), "8", "4294967295 bytes"},
		"a length above the limit":           {"", nil, frame(0, telemetry.MaxBody+1, spans), "8", "export fewer spans"},
		"two messages":                       {"", nil, frame(0, -1, spans) + frame(0, -1, spans), "3", "more follows"},
		"two compressed messages":            {"", gz, frame(1, -1, zipped) + frame(1, -1, zipped), "3", "more follows"},
		"a flag that is none":                {"", nil, frame(2, -1, spans), "3", "begins with 2"},
		"compressed, without an encoding":    {"", nil, frame(1, -1, zipped), "13", "no grpc-encoding"},
		"compressed by identity":             {"", map[string]string{"Grpc-Encoding": "identity"}, frame(1, -1, spans), "13", "no grpc-encoding"},
		"an unknown encoding":                {"", map[string]string{"Grpc-Encoding": "lzma"}, frame(1, -1, zipped), "12", "gzip"},
		"no gzip":                            {"", gz, frame(1, -1, spans), "3", "encoding"},
		"gzip that breaks off":               {"", gz, frame(1, -1, zipped[:len(zipped)-9]), "3", "breaks off"},
		"a length beyond the compressed one": {"", gz, frame(1, len(zipped)+3, zipped), "3", "breaks off after"},
		"a bomb":                             {"", gz, frame(1, -1, gzipped(t, strings.Repeat("\n", telemetry.MaxBody+1))), "8", "export fewer spans"},
		"too many values":                    {"", gz, frame(1, -1, gzipped(t, strings.Repeat("\x0a\x00", 500_000))), "8", "export fewer spans"},
		"an unknown token":                   {"", map[string]string{"Jurat-Agent": "Bearer other"}, frame(0, -1, spans), "16", "it is unknown"},
		"a page's name for us":               {"", map[string]string{"Host": "rebound.example:4317"}, frame(0, -1, spans), "7", "--host"},
		"a chain that is none":               {"", map[string]string{"Jurat-Chain": strings.Repeat("x", 500)}, frame(0, -1, spans), "3", "Jurat-Chain"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := new(desk)
			s := overHTTP2(t, d.config())
			path := test.path
			if path == "" {
				path = exportTraces
			}
			message, trailer := call(t, s, path, test.header, strings.NewReader(test.body))
			if trailer.Get("Grpc-Status") != test.status || !strings.Contains(trailer.Get("Grpc-Message"), test.says) {
				t.Errorf("status %q, %q: want %s %q", trailer.Get("Grpc-Status"), trailer.Get("Grpc-Message"), test.status, test.says)
			}
			if recorded := strings.HasPrefix(name, "spans"); (len(d.reports) == 1) != recorded || strings.HasPrefix(message, "\x00") != (test.status == "0") {
				t.Errorf("%d reports; answered %q", len(d.reports), message)
			}
		})
	}
}

// TestPartialSuccessByGRPC holds the answer against the protocol's own definition.
func TestPartialSuccessByGRPC(t *testing.T) {
	d := new(desk)
	message, trailer := call(t, overHTTP2(t, d.config()), exportTraces, map[string]string{"Jurat-Agent": "Bearer secret", "Jurat-Chain": "monday"}, strings.NewReader(frame(0, -1, string(protobuf(t)))))
	if trailer.Get("Grpc-Status") != "0" || len(message) < 5 || message != frame(0, -1, message[5:]) {
		t.Fatalf("%v %q", trailer, message)
	}
	var answer collector.ExportTraceServiceResponse
	if err := proto.Unmarshal([]byte(message[5:]), &answer); err != nil {
		t.Fatal(err)
	}
	if p := answer.PartialSuccess; p.GetRejectedSpans() != 1 || !strings.Contains(p.GetErrorMessage(), "without ids") || len(answer.ProtoReflect().GetUnknown()) > 0 {
		t.Errorf("%v", &answer)
	}
	if len(d.reports) != 1 || d.reports[0].Agent != "token-bot" || d.reports[0].Chain != "monday" {
		t.Errorf("%+v", d.reports)
	}
}

// TestSealsBeforeYesByGRPC: while the log does not seal, the sender is told to come again, and when.
func TestSealsBeforeYesByGRPC(t *testing.T) {
	d := &desk{broken: errors.New("the disk is full: 100 % of /var, größer")}
	s := overHTTP2(t, d.config())
	body := frame(0, -1, string(protobuf(t)))
	_, trailer := call(t, s, exportTraces, nil, strings.NewReader(body))
	if trailer.Get("Grpc-Status") != "14" || !strings.HasSuffix(trailer.Get("Grpc-Message"), "the disk is full: 100 %25 of /var, gr%C3%B6%C3%9Fer") {
		t.Errorf("%v", trailer)
	}
	raw, err := base64.RawStdEncoding.DecodeString(trailer.Get("Grpc-Status-Details-Bin"))
	if err != nil {
		t.Fatal(err)
	}
	const retry = "\x1a\x30" + "\x0a\x28type.googleapis.com/google.rpc.RetryInfo" + "\x12\x04\x0a\x02\x08\x02" // details {type_url, value {retry_delay {seconds: 2}}}
	if !strings.HasPrefix(string(raw), "\x08\x0e\x12") || !strings.HasSuffix(string(raw), retry) {
		t.Errorf("%q", raw)
	}
	d.mu.Lock()
	d.broken = nil
	d.mu.Unlock()
	for range 2 {
		if _, trailer := call(t, s, exportTraces, nil, strings.NewReader(body)); trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%v", trailer)
		}
	}
	if len(d.reports) != 1 {
		t.Errorf("%d reports", len(d.reports))
	}
}

// TestResetWithinAMessage: of a call that is broken off, nothing is recorded, and the receiver goes on.
func TestResetWithinAMessage(t *testing.T) {
	d := new(desk)
	c := d.config()
	failed := make(chan string, 1)
	c.Log = slog.New(&noting{Handler: slog.DiscardHandler, said: failed})
	s := overHTTP2(t, c)
	body := frame(0, -1, string(protobuf(t)))
	half, rest := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+exportTraces, half)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	go func() {
		_, _ = io.WriteString(rest, body[:len(body)/2]) // the call is cancelled
		cancel()
	}()
	if answer, err := client(t).Do(req); err == nil {
		answer.Body.Close()
		t.Errorf("the call was answered: %s", answer.Status)
	}
	if said := <-failed; !strings.Contains(said, "not recorded") {
		t.Errorf("logged %q", said)
	}
	if _, trailer := call(t, s, exportTraces, nil, strings.NewReader(body)); trailer.Get("Grpc-Status") != "0" || len(d.reports) != 1 {
		t.Errorf("%v; %d reports", trailer, len(d.reports))
	}
}

// noting passes on what is logged.
type noting struct {
	slog.Handler
	said chan string
}

func (*noting) Enabled(context.Context, slog.Level) bool { return true }

func (n *noting) Handle(_ context.Context, r slog.Record) error {
	select {
	case n.said <- r.Message:
	default:
	}
	return nil
}

// TestGRPCNeedsHTTP2: a call over HTTP/1 has no trailers to be told in; requests over HTTP are taken by both versions.
func TestGRPCNeedsHTTP2(t *testing.T) {
	d := new(desk)
	s := overHTTP2(t, d.config())
	answer, err := http.Post(s.URL+exportTraces, "application/grpc", strings.NewReader(frame(0, -1, "")))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Errorf("%s", answer.Status)
	}
	for version, c := range map[string]*http.Client{"HTTP/1.1": http.DefaultClient, "HTTP/2.0": client(t)} {
		answer, err := c.Post(s.URL+"/v1/traces", "application/json", strings.NewReader(jsonSpan))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Proto != version {
			t.Errorf("%s %s", answer.Proto, answer.Status)
		}
	}
	if len(d.reports) != 1 {
		t.Errorf("%d reports", len(d.reports))
	}
}

// FuzzGRPC: whatever the bytes of a call, it has one status, and is recorded only if that is 0.
func FuzzGRPC(f *testing.F) {
	for _, seed := range []string{"", frame(0, -1, ""), frame(1, -1, ""), frame(0, 9, "\x0a\x00"), frame(0, 1<<31, "")} {
		for _, encoding := range []string{"", "gzip", "deflate", "zstd", "br", "identity"} {
			f.Add(seed, encoding)
		}
	}
	f.Fuzz(func(t *testing.T, body, encoding string) {
		d := new(desk)
		req := httptest.NewRequest(http.MethodPost, exportTraces, strings.NewReader(body))
		req.Host, req.ProtoMajor = "127.0.0.1:4317", 2
		req.Header = http.Header{"Content-Type": {"application/grpc"}, "Grpc-Encoding": {encoding}}
		w := httptest.NewRecorder()
		receiver.New(d.config()).ServeHTTP(w, req)
		status := w.Result().Trailer["Grpc-Status"]
		if status == nil {
			status = w.Header()[http.TrailerPrefix+"Grpc-Status"]
		}
		if len(status) != 1 || (status[0] != "0" && len(d.reports) > 0) {
			t.Errorf("status %q, %d reports, %v", status, len(d.reports), maps.Clone(w.Header()))
		}
	})
}
