package sdktest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"jurat/internal/telemetry/receiver"
)

// grpcDesk is a receiver that takes gRPC.
func grpcDesk(t *testing.T, secure bool, change func(*receiver.Config)) *desk {
	t.Helper()
	d := furnishDesk(t, change)
	d.Config.Protocols = new(http.Protocols)
	d.Config.Protocols.SetHTTP1(true)
	d.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		d.EnableHTTP2 = true
		d.Config.Protocols.SetHTTP2(true)
		d.StartTLS()
	} else {
		d.Start()
	}
	return d
}

// grpcTracer has OpenTelemetry's SDK send by gRPC.
func grpcTracer(t *testing.T, d *desk, options ...otlptracegrpc.Option) *trace.TracerProvider {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", d.URL)
	exporter, err := otlptracegrpc.New(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithRawSpanLimits(noLimits), trace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))))
}

// TestGoSDKByGRPC: a span of OpenTelemetry's SDK arrives whole, with and without compression and TLS, with a token.
func TestGoSDKByGRPC(t *testing.T) {
	for name, secure := range map[string]bool{"": false, "gzip": true} {
		d := grpcDesk(t, secure, nil)
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Jurat-Agent=Bearer%20secret")
		t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", name)
		var options []otlptracegrpc.Option
		if secure {
			options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(d.Client().Transport.(*http.Transport).TLSClientConfig)))
		}
		p := grpcTracer(t, d, options...)
		chat(p)
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(d.reports) != 1 || d.reports[0].Agent != "token-bot" || d.types[strings.TrimSpace("application/grpc "+name)] != 1 {
			t.Fatalf("%q: %+v, %v", name, d.reports, d.types)
		}
		if s := said(t, d.reports[0]); string(s.Prompt) != `[{"content":"Where is parcel 17?","role":"user"}]` || string(s.Output) != `"In Kassel."` || s.Problem != "" || string(s.Usage) != `{"input_tokens":9}` {
			t.Errorf("%+v", s)
		}
	}
}

// TestSDKComesAgainByGRPC: while the log does not seal, the SDK keeps its spans and sends them again.
func TestSDKComesAgainByGRPC(t *testing.T) {
	d := grpcDesk(t, false, nil)
	d.broken = 1
	p := grpcTracer(t, d, otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Second, MaxElapsedTime: time.Minute}))
	chat(p)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(d.reports) != 1 || d.types["application/grpc"] != 2 {
		t.Errorf("%d reports, %v", len(d.reports), d.types)
	}
}

// TestSDKIsToldOfRefusalsByGRPC: the SDK reports what is refused for good, and does not send it again.
func TestSDKIsToldOfRefusalsByGRPC(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*receiver.Config)
		says   []string
	}{
		"a part": {func(c *receiver.Config) { c.Agent, c.Services = "", map[string]string{"other": "x"} }, []string{"1 spans rejected", `the service "shop"`}},
		"all":    {func(c *receiver.Config) { c.Agent = "" }, []string{"Unauthenticated", "nobody says which agent this is"}},
	} {
		var told []string
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { told = append(told, err.Error()) }))
		d := grpcDesk(t, false, test.change)
		p := grpcTracer(t, d)
		chat(p)
		if err := p.Shutdown(t.Context()); err != nil {
			told = append(told, err.Error())
		}
		if all := strings.Join(told, "\n"); len(d.reports) != 0 || d.types["application/grpc"] != 1 || len(told) != 1 || !strings.Contains(all, test.says[0]) || !strings.Contains(all, test.says[1]) {
			t.Errorf("%s: %q, %v", name, told, d.types)
		}
	}
}

// TestLogsAndMetricsByGRPC: events arrive with their span, and metrics are answered.
func TestLogsAndMetricsByGRPC(t *testing.T) {
	d := grpcDesk(t, false, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", d.URL)
	exporter, err := otlploggrpc.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	ctx, span := trace.NewTracerProvider().Tracer("shop").Start(t.Context(), "chat m")
	var r log.Record
	r.SetEventName("gen_ai.user.message")
	r.SetBody(attribute.MapValue(attribute.String("content", "Where?")))
	r.SetTimestamp(time.Now())
	provider.Logger("shop").Emit(ctx, r)
	span.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(d.reports) != 1 || string(said(t, d.reports[0]).Prompt) != `[{"content":"Where?","role":"user"}]` {
		t.Fatalf("%+v", d.reports)
	}

	meter, err := otlpmetricgrpc.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	metrics := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(meter)))
	counter, err := metrics.Meter("shop").Int64Counter("parcels")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 1)
	if err := metrics.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOtherServices: gRPC's own client is told that a service or a method is not here.
func TestOtherServices(t *testing.T) {
	d := grpcDesk(t, false, nil)
	c, err := grpc.NewClient(strings.TrimPrefix(d.URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, method := range []string{"/grpc.health.v1.Health/Check", "/opentelemetry.proto.collector.trace.v1.TraceService/Import"} {
		err := c.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
		if s := status.Convert(err); s.Code() != codes.Unimplemented || !strings.Contains(s.Message(), method) {
			t.Errorf("%s: %v", method, err)
		}
	}
}
