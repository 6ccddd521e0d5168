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

// An exporter sends spans by OTLP over HTTP, with bodies in protobuf.
type exporter struct {
	log    *slog.Logger
	url    *url.URL    // may have a password
	header http.Header // headers that the collector demands, such as a key
	http   *http.Client
}

func (e *exporter) send(ctx context.Context, spans []*otlp.Span) error {
	// TracesData is ExportTraceServiceRequest by another name: the same fields with the same numbers.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{Resource: &resources.Resource{Attributes: []*common.KeyValue{text("service.name", "jurat")}},
		ScopeSpans: []*otlp.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "jurat"}, Spans: spans}}}}})
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
