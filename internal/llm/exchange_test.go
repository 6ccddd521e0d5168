package llm

import "testing"

// TestWithoutKey: withoutKey finds the key in every form in which JSON may contain it. It leaves names alone that
// contain a placeholder key.
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
