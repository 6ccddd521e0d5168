package wire

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"jurat/internal/llm"
)

// TestWithoutKey: however a JSON writer wrote it, and no placeholder for a key.
func TestWithoutKey(t *testing.T) {
	const key = `sk/a+b<c>&"d\e`
	for _, form := range []string{key, `sk/a+b<c>&\"d\\e`, `sk\/a+b<c>&\"d\\e`, `sk/a\u002bb\u003cc\u003e\u0026\"d\\e`, `sk/a+b\u003cc\u003e\u0026\"d\\e`} {
		if got := string(withoutKey([]byte(`{"x":"is `+form+`."}`), key)); got != `{"x":"is [key]."}` {
			t.Errorf("%s: %s", form, got)
		}
	}
	if got := string(withoutKey([]byte(`{"model":"ollama/x"}`), "ollama")); got != `{"model":"ollama/x"}` {
		t.Error(got)
	}
	if got := string(withoutKey([]byte(`{}`), "")); got != `{}` {
		t.Error(got)
	}
}

// TestNothingSent: SDKs print their configuration when they refuse it, and the key with it.
func TestNothingSent(t *testing.T) {
	line := Open(llm.Config{Key: "sk-1234567890"})
	ctx, x := line.Begin(t.Context())
	err := x.Problem(ctx, errors.New("bad config {APIKey: sk-1234567890}"), nil)
	if llm.KindOf(err) != llm.Malformed || strings.Contains(err.Error(), "sk-1") || !strings.Contains(err.Error(), "[key]") {
		t.Error(err)
	}
}

// TestOutsideOfACall: an SDK that asks for something on its own is stopped.
func TestOutsideOfACall(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := Open(llm.Config{}).HTTP.Do(request); err == nil || !strings.Contains(err.Error(), "outside of a call") {
		t.Error(response, err)
	}
}
