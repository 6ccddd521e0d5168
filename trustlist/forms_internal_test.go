package trustlist

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestForms compares what is read without regular expressions, to keep the portal's program small, with regular
// expressions: on texts of random pieces of each form.
func TestForms(t *testing.T) {
	xml := regexp.MustCompile(`^<\?xml[ \t\n]+version[ \t\n]*=[ \t\n]*(?:"1\.0"|'1\.0')` +
		`(?:[ \t\n]+encoding[ \t\n]*=[ \t\n]*(?:"(?i:UTF-8)"|'(?i:UTF-8)'))?` +
		`(?:[ \t\n]+standalone[ \t\n]*=[ \t\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>`)
	pivot := regexp.MustCompile(`-pivot-([0-9]{1,9})\.xml$`)
	text := func(pieces [][]string) string {
		var b strings.Builder
		for _, choices := range pieces {
			switch rand.N(40) {
			case 0: // left out
			case 1:
				b.WriteString(pieces[rand.N(len(pieces))][0])
			default:
				b.WriteString(choices[rand.N(len(choices))])
			}
		}
		return b.String()
	}
	space, equals := []string{" ", "\t\n", " ", "\r", "\u00a0"}, []string{"=", " =", "= ", "\n=\t", "=="}
	declared := [][]string{{"<?xml"}, space, {"version"}, equals, {`"1.0"`, `'1.0'`, `"1.0'`, `"1.1"`, `1.0`}, space, {"encoding"}, equals,
		{`"UTF-8"`, `'utf-8'`, `"Utf-8"`, `"UTF-16"`, `"UTF-8'`}, space, {"standalone"}, equals, {`"yes"`, `'no'`, `"yes'`, `"YES"`}, {" ", "", "\n"}, {"?>"}, {"", "<a/>", "?>"}}
	named := [][]string{{"https://example.org/eu-lotl", ""}, {"-pivot-", "-pivot", "pivot-"}, {"-pivot-", ""}, {"0", "1", "335", "123456789", "٣"}, {"", "", "1", "x"}, {".xml", ".xml\n", ".XML", ".xml.xml"}}
	found := map[string]int{}
	for range 200_000 {
		if doc := text(declared); true {
			want := len(xml.FindString(doc))
			if got := declaration(doc); got != want {
				t.Fatalf("the declaration of %q has %d bytes, want %d", doc, got, want)
			}
			found[fmt.Sprint("declaration ", want > 0)]++
		}
		uri := text(named)
		match := pivot.FindStringSubmatch(uri)
		number, is := pivotNumber(uri)
		if is != (match != nil) || is && strings.TrimLeft(match[1], "0") != strings.TrimLeft(fmt.Sprint(number), "0") {
			t.Fatalf("the pivot of %q is %d, %v; want %q", uri, number, is, match)
		}
		found[fmt.Sprint("pivot ", is)]++
	}
	for _, what := range []string{"declaration true", "declaration false", "pivot true", "pivot false"} {
		if found[what] < 1000 {
			t.Errorf("%s: only %d of the texts", what, found[what])
		}
	}
}
