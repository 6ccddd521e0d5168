package observe_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
)

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	doc, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := v.Indent(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}
