package tracing

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jurat/internal/must"
)

// TestUnreachableCollector: an error of the connection names the collector without user, password and query.
func TestUnreachableCollector(t *testing.T) {
	at := must.Get(url.Parse("http://a-secret:a-secret@127.0.0.1:1/v1/traces?key=a-secret"))(t)
	again, err := (&exporter{url: at, header: http.Header{}, http: http.DefaultClient}).post(t.Context(), nil)
	if !again || err == nil || strings.Contains(err.Error(), "a-secret") || !strings.Contains(err.Error(), "the collector at http://127.0.0.1:1/v1/traces: ") {
		t.Errorf("%t, %v", again, err)
	}
}
