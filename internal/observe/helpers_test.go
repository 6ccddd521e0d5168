package observe_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/must"
)

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	doc := must.Get(json.Marshal(v))(t)
	return doc
}

// form returns a document in canonical form, indented for people who compare.
func form(t testing.TB, doc []byte) string {
	t.Helper()
	canonical, err := evidence.Canonical(doc)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	v := jsontext.Value(canonical)
	must.Do(t, v.Indent())
	return string(v)
}

// typed writes data as server-sent events that are named for their type.
func typed(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, kind, _ := strings.Cut(d, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		b.WriteString("event: " + kind + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

// array writes data as one JSON array, as Gemini streams it.
func array(data []string) string { return "[" + strings.Join(data, "\n,\r\n") + "\n]\n" }

func oneLine(doc string) string { return strings.ReplaceAll(doc, "\n", "") }
