package jsonform

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `{}`: 1, `[1,2,3]`: 3, `{"a":[{}],"b":{}}`: 5, `",[{"`: 0, `"\",["`: 0, `["\\",1]`: 2,
		`"broken` + "\n" + `[1,2]`: 2, `"broken\` + "\n" + `[1,2]`: 2, "data: \"\r\rdata: [{},{}]": 4, `"x`: 0, `"x\`: 0, `"`: 0, `"\"[`: 0,
	} {
		if got := Values([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestManyValuesHaveNoForm: a document with more values than the bound has no canonical form, in every kind of list; one with as many has. A long text is one value.
func TestManyValuesHaveNoForm(t *testing.T) {
	b := Bounds{Size: 32 << 20, Depth: 128}
	for _, c := range []struct{ before, element, after string }{{"[", "[]", "]"}, {"[", "{}", "]"}, {`{"a":[`, "1", "]}"}, {"[", "1.5", "]"}, {"[", ` "x"`, "]"}} {
		for _, more := range []int{0, 1} {
			per := 1 + strings.Count(c.element, "[") + strings.Count(c.element, "{")
			n := (MaxValues-strings.Count(c.before, "{"))/per + more
			doc := []byte(c.before + strings.TrimSuffix(strings.Repeat(c.element+",", n), ",") + c.after)
			if !jsontext.Value(doc).IsValid() {
				t.Fatal("the test's document is no JSON")
			}
			form, err := b.Canonical(doc)
			if (err != nil) != (more == 1) || err == nil && len(form) == 0 {
				t.Errorf("%d of %s: %v", n, c.element, err)
			}
			if err != nil && !strings.Contains(err.Error(), "more than 262144 values") {
				t.Error(err)
			}
			if b.IsCanonical(doc) && more == 1 {
				t.Errorf("%d of %s are taken at once", n, c.element)
			}
		}
	}
	if _, err := b.Canonical([]byte(`"` + strings.Repeat(`,[{`, MaxValues) + `"`)); err != nil {
		t.Error(err)
	}
}
