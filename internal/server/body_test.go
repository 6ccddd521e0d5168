package server

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"jurat/api"
	"jurat/evidence"
)

// FuzzBody: a body with a canonical form is read whole. A body that is nested too deeply is refused before its end.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"a":[1,"]\"[",{"b":null}]}`))
	f.Add([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := readBody(httptest.NewRequest("POST", "/", bytes.NewReader(doc)), "application/json")
		if err == nil && !bytes.Equal(got, doc) {
			t.Fatalf("read %q of %q", got, doc)
		}
		if _, refused := evidence.Canonical(doc); refused == nil && err != nil {
			t.Fatalf("%q has a canonical form: %v", doc, err)
		}
		if err != nil && !errors.Is(err, api.ErrInvalid) && !errors.Is(err, api.ErrMalformed) {
			t.Fatal(err)
		}
	})
}

// TestDeepestBody: the maximum nesting is that of payloads. Brackets in strings do not count.
func TestDeepestBody(t *testing.T) {
	for text, good := range map[string]bool{
		strings.Repeat("[", evidence.MaxDepth) + strings.Repeat("]", evidence.MaxDepth):     true,
		strings.Repeat("[", evidence.MaxDepth+1) + strings.Repeat("]", evidence.MaxDepth+1): false,
		`"` + strings.Repeat(`[\"`, 1000) + `"`:                                             true,
		`"\\"` + strings.Repeat("[", evidence.MaxDepth+1):                                   false,
	} {
		_, err := io.ReadAll(shallowReader(strings.NewReader(text)))
		if (err == nil) != good {
			t.Errorf("%.20s: %v", text, err)
		}
	}
}
