package jsonform

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestIsCanonicalText: a text that is taken for canonical is one that the whole way returns as it is, and no other is.
func TestIsCanonicalText(t *testing.T) {
	check := func(v string) {
		t.Helper()
		if got, want := bounds.IsCanonical([]byte(v)), unchanged(v); got != want {
			t.Errorf("%q: %t, and the whole way says %t", v, got, want)
		}
	}
	for c := range 256 {
		check(fmt.Sprintf(`"%c"`, c))
		check(`"` + string([]byte{byte(c)}) + `"`)
		check(fmt.Sprintf(`"\u%04x"`, c))
		check(fmt.Sprintf(`"\u%04X"`, c))
		check(fmt.Sprintf(`"\%c"`, c))
		check(fmt.Sprintf(`"\u00%c0"`, c))
		check(fmt.Sprintf(`"\u000%c"`, c))
		check(fmt.Sprintf(`"\u%c00b"`, c))
		for at := range 17 { // eight bytes are looked at together
			check(`"` + strings.Repeat("\x7f", at) + string([]byte{byte(c)}) + strings.Repeat("z", 16-at) + `"`)
		}
	}
	for _, v := range []string{`""`, `"`, `"\"`, `"\\"`, `"\\\"`, `"a"b"`, `"a" `, ` "a"`, `"\u001"`, `"\u00"`, `"\u"`, "\"\u2028\u2029\U0001F600\"", `"\ud83d\ude00"`, `"\ud83d"`,
		"\"\xed\xa0\x80\"", `{"a":1}`, `["a"]`, `1`, `null`} {
		check(v)
	}
	random := rand.New(rand.NewPCG(1, 2))
	const parts = `"\\\\ubnrt/019af00cC ` + "\n\x1f\x7f\xc3\xa9é😀"
	for range 20_000 {
		text := []byte{'"'}
		for range random.IntN(30) {
			text = append(text, parts[random.IntN(len(parts))])
		}
		check(string(append(text, '"')))
	}
}

// unchanged reports whether the whole way to the canonical form returns a document as it is.
func unchanged(doc string) bool {
	form, err := bounds.rewritten([]byte(doc), bytes.Clone)
	return err == nil && string(form) == doc
}

// TestIsCanonical: what programs write is recognised, and no document that the whole way would change or refuse is, however it is damaged.
func TestIsCanonical(t *testing.T) {
	written := []string{`{}`, `[]`, `[[[[]]]]`, `{"":{},"a":[],"b":true,"c":false,"d":null}`, `{"A":0,"a":-1,"a ":123456789012345,"b":[1,-20,{"z":1,"é":"\n\u001f\""}]}`, `[1,"2",[3]]`, `-5`, `999999999999999`}
	for _, doc := range written {
		if want := !strings.Contains(doc, `"é":`); bounds.IsCanonical([]byte(doc)) != want || !unchanged(doc) {
			t.Errorf("%s: want %t", doc, want)
		}
	}
	for _, doc := range []string{``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `[1`, `[1,`, `[1,]`, `{"a":1,}`, `{,}`, `[,]`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"":1,"":2}`, `{"a":1,"":2}`, `[1 ]`, `{"a": 1}`, `-`, `-0`, `01`,
		`-01`, `1.0`, `1e2`, `+1`, `9007199254740993`, `tru`, `truE`, `nul`, `falsE`, `1 2`, `{}{}`, `[[[[[]]]]]`, `{"a":{"a":{"a":{"a":{}}}}}`, `"` + strings.Repeat("x", 1<<10) + `"`, "\ufeff{}", "\x00{", "{\x00"} {
		if bounds.IsCanonical([]byte(doc)) || unchanged(doc) {
			t.Errorf("%.40q: %t, and the whole way says %t", doc, bounds.IsCanonical([]byte(doc)), unchanged(doc))
		}
	}
	random, taken := rand.New(rand.NewPCG(7, 8)), 0
	const parts = `{}[]":,\ntruefalsnu0123456789-.eE ab` + "\xc3\xa9\x1f"
	for range 200_000 {
		doc := []byte(written[random.IntN(len(written))])
		for range random.IntN(4) {
			at := random.IntN(len(doc) + 1)
			switch c := parts[random.IntN(len(parts))]; {
			case at == len(doc) || random.IntN(3) == 0:
				doc = append(doc[:at:at], append([]byte{c}, doc[at:]...)...)
			case random.IntN(2) == 0:
				doc = append(doc[:at:at], doc[at+1:]...)
			default:
				doc[at] = c
			}
		}
		if bounds.IsCanonical(doc) {
			if taken++; !unchanged(string(doc)) {
				t.Fatalf("%q is taken for canonical", doc)
			}
		}
	}
	if taken < 10_000 {
		t.Errorf("%d documents were taken for canonical: want at least 10,000", taken)
	}
}
