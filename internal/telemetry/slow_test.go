package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"jurat/internal/telemetry"
)

// late is the end of a body that did not come in time.
type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// TestSlowBody: who sends too slowly is told to send it again, since what is refused for good is lost.
func TestSlowBody(t *testing.T) {
	for name, c := range map[string]struct{ path, media, encoding, begin string }{
		"plain":   {"/v1/traces", "application/json", "", `{"resource`},
		"no byte": {"/v1/traces", "application/json", "gzip", ""},
		"gzip":    {"/v1/traces", "application/json", "gzip", gzipped(t, jsonSpan)[:40]},
	} {
		d := new(desk)
		req := httptest.NewRequest(http.MethodPost, c.path, io.MultiReader(strings.NewReader(c.begin), late{}))
		req.Host = "127.0.0.1:4318"
		req.Header = http.Header{"Content-Type": {c.media}, "Content-Encoding": {c.encoding}}
		w := httptest.NewRecorder()
		telemetry.New(d.config()).ServeHTTP(w, req)
		got := w.Result()
		if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, got.StatusCode, w.Body)
		}
		if len(d.reports) > 0 {
			t.Errorf("%s: %d acts", name, len(d.reports))
		}
	}
}
