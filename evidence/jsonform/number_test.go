package jsonform

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"

	"jurat/internal/test/must"
)

var bounds = Bounds{Size: 1 << 10, Depth: 4}

// manyDoubles is how many random doubles TestDoublesAgree compares. The long form of the test uses more.
func manyDoubles() int {
	if os.Getenv("JURAT_TEST_LONG") != "" {
		return 10_000_000
	}
	return 200_000
}

// TestDoublesAgree writes random doubles of every magnitude and compares their form with another implementation's.
func TestDoublesAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range manyDoubles() {
		f := math.Float64frombits(random.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
			continue
		}
		want, err := jcs.NumberToJSON(f)
		must.Do(t, err)
		got, err := bounds.Canonical([]byte(strconv.FormatFloat(f, 'e', -1, 64)))
		must.Need(t, err == nil && string(got) == want, "%x: form is %s, %v; want %s", f, got, err, want)
	}
}

// TestNumbersExact compares with math/big: Canonical accepts a number if and only if its canonical form has exactly the
// same value.
func TestNumbersExact(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var kept, lost int
	for range 100_000 {
		literal := randomNumber(random)
		form, err := bounds.Canonical([]byte(literal))
		exact, isNegativeZero := rational(t, literal), strings.HasPrefix(literal, "-") && rational(t, literal).Sign() == 0
		if err == nil {
			kept++
			must.Need(t, !isNegativeZero && exact.Cmp(rational(t, string(form))) == 0, "%s became %s", literal, form)
			continue
		}
		lost++
		double, parseErr := strconv.ParseFloat(literal, 64)
		if isNegativeZero || parseErr != nil {
			continue
		}
		other, jcsErr := jcs.NumberToJSON(double)
		must.Need(t, jcsErr != nil || exact.Cmp(rational(t, other)) != 0, "%s was refused (%v), but its form %s is exact", literal, err, other)
	}
	must.Hold(t, kept >= 10_000 && lost >= 10_000, "%d numbers were accepted and %d refused: each should be at least 10,000", kept, lost)
}

func rational(t *testing.T, literal string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(literal)
	must.Need(t, ok, "%q is not a number", literal)
	return r
}

// randomNumber writes numbers near the limits of doubles: 15 to 18 digits, neighbours of doubles, long tails of zeros.
func randomNumber(random *rand.Rand) string {
	sign := []string{"", "-"}[random.IntN(2)]
	switch random.IntN(5) {
	case 0:
		return sign + strconv.FormatUint(1<<53-8+random.Uint64N(16), 10)
	case 1:
		return sign + strconv.FormatUint(random.Uint64()>>random.IntN(64), 10)
	case 2:
		whole, fraction := random.Uint64()>>random.IntN(64), random.Uint64()>>random.IntN(64)
		return fmt.Sprintf("%s%d.%0*d", sign, whole, 1+random.IntN(22), fraction)
	case 3:
		return fmt.Sprintf("%s%d.%de%+d", sign, random.IntN(10), random.Uint64()>>random.IntN(64), random.IntN(700)-350)
	}
	double := math.Float64frombits(random.Uint64())
	for math.IsNaN(double) || math.IsInf(double, 0) {
		double = math.Float64frombits(random.Uint64())
	}
	return strconv.FormatFloat(double, "eg"[random.IntN(2)], []int{-1, 14, 15, 16, 17}[random.IntN(5)], 64)
}

func TestValues(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `{}`: 1, `[1,2,3]`: 3, `{"a":[{}],"b":{}}`: 5, `",[{"`: 0, `"\",["`: 0, `["\\",1]`: 2,
		`"broken` + "\n" + `[1,2]`: 2, `"broken\` + "\n" + `[1,2]`: 2, "data: \"\r\rdata: [{},{}]": 4, `"x`: 0, `"x\`: 0, `"`: 0, `"\"[`: 0,
	} {
		must.Equal(t, Values([]byte(text)), want, text)
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
			must.Need(t, jsontext.Value(doc).IsValid(), "the test's document is no JSON")
			form, err := b.Canonical(doc)
			must.Hold(t, (err != nil) == (more == 1) && (err != nil || len(form) != 0), "%d of %s: %v", n, c.element, err)
			must.Hold(t, err == nil || strings.Contains(err.Error(), "more than 262144 values"), "%v", err)
		}
	}
	must.Fail(t, nil)(b.Canonical([]byte(`"` + strings.Repeat(`,[{`, MaxValues) + `"`)))
}

// TestIsCanonicalText: a text that is taken for canonical is one that the whole way returns as it is, and no other is.
func TestIsCanonicalText(t *testing.T) {
	check := func(v string) {
		t.Helper()
		got, want := bounds.IsCanonicalText([]byte(v)), strings.HasPrefix(v, `"`) && unchanged(v)
		must.Hold(t, got == want, "%q: %t, and the whole way says %t", v, got, want)
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

// unchanged reports whether the whole way to the canonical form returns a text as it is, within an array.
func unchanged(text string) bool {
	form, err := bounds.Canonical([]byte("[" + text + "]"))
	return err == nil && string(form) == "["+text+"]"
}

// TestOneMark cuts one byte order mark, by however many readers a file passes.
func TestOneMark(t *testing.T) {
	const mark = ByteOrderMark
	for file, want := range map[string]string{"": "", "{}": "{}", mark: "", mark + "{}": "{}", mark + mark + "{}": mark + mark + "{}"} {
		got := string(CutMark(CutMark([]byte(file))))
		must.Hold(t, got == want, "%q: %q, want %q", file, got, want)
	}
}
