package property

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/must"
)

func TestStatementsAreStrict(t *testing.T) {
	const members = `"members":[{"pointer":"/metadata/amount","record":"` + record + `"}]`
	const good = `{"form":"range","format":"jurat/property/v1","hi":9,"kind":"integer","lo":0,` + members + `}`
	const age = `{"at":"2026-11-23","form":"age_at_least","format":"jurat/property/v1","kind":"date",` + members + `,"years":18}`
	for _, doc := range []string{good, age} {
		if _, err := ParseStatement([]byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, doc, old, new, says string }{
		{"white space", good, `{"form"`, `{ "form"`, "canonical"},
		{"another spelling of a number", good, `"hi":9`, `"hi":9.0`, "canonical"},
		{"an unknown member", good, `"lo":0`, `"lo":0,"low":0`, "low"},
		{"a member of another form", good, `"lo":0,`, `"lo":0,"set":[1,2],`, "members"},
		{"an empty audience", good, `{"form"`, `{"audience":"","form"`, "canonical"},
		{"a long audience", good, `{"form"`, `{"audience":"` + strings.Repeat("x", 201) + `","form"`, "audience"},
		{"another format", good, `property/v1`, `property/v2`, "format"},
		{"another form", good, `"range"`, `"about"`, "form"},
		{"another kind", good, `"integer"`, `"number"`, "kind"},
		{"no range", good, `"hi":9`, `"hi":0`, "hi"},
		{"a bound of another kind", good, `"hi":9`, `"hi":"9"`, "hi"},
		{"a range of texts", good, `"integer"`, `"text"`, "order"},
		{"no pointer", good, `"/metadata/amount"`, `""`, "pointer"},
		{"no digest", good, `sha256:00`, `sha256:0`, "digest"},
		{"a digest in capitals", good, `aa"`, `AA"`, "digest"},
		{"no members", good, members, `"members":[]`, "members"},
		{"two members", good, `"members":[`, `"members":[{"pointer":"/metadata/other","record":"` + record + `"},`, "members"},
		{"equality", good, `"form":"range"`, `"form":"equal"`, "unknown form"},
		{"a sum", good, `"form":"range"`, `"form":"at_most_sum"`, "unknown form"},
		{"no years", age, `,"years":18`, ``, "members"},
		{"too many years", age, `"years":18`, `"years":1001`, "years"},
		{"years before the calendar", age, `2026-11-23`, `0018-11-23`, "years"},
		{"no date", age, `2026-11-23`, `2026-11-31`, "date"},
		{"not JSON", good, `{"form"`, `{{"form"`, "reading a statement"},
		{"a member that is unknown", good, `"form"`, `"forms":1,"form"`, "forms: unknown member"},
		{"a member of another type", good, `"range"`, `7`, "form: want a string"},
	} {
		changed := strings.Replace(test.doc, test.old, test.new, 1)
		if changed == test.doc {
			t.Fatalf("%s: nothing was changed", test.name)
		}
		if _, err := ParseStatement([]byte(changed)); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "unmarshal") { // the library's words vary
			t.Errorf("%s: %v, want an error about %q", test.name, err, test.says)
		}
	}
}

func TestStatementsThatNearlyDisclose(t *testing.T) {
	for _, test := range []struct {
		s    *Statement
		warn bool
	}{
		{inRange(Integer, "0", "14"), true},
		{inRange(Integer, "0", "15"), false},
		{inSet(In, Integer, "1", "2", "3"), true},
		{inSet(In, Integer, "1", "2", "3", "4"), false},
		{inSet(NotIn, Integer, "1", "2"), false},
	} {
		if warning := test.s.Warning(); (warning != "") != test.warn {
			t.Errorf("%s with %d entries: %q", test.s.Form, len(test.s.Set), warning)
		}
	}
}

// FuzzParseStatement reads any bytes. What is read is written as it was.
func FuzzParseStatement(f *testing.F) {
	for _, s := range []*Statement{inRange("decimal:2", "0", "9.5"), inSet(In, Text, `"a"`, `{"b":[1]}`),
		about(AgeAtLeast, Date, func(s *Statement) { s.Years, s.At = 18, "2026-11-23" })} {
		doc := must.Get(s.Bytes())(f)
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := ParseStatement(doc)
		if err != nil {
			return
		}
		if again, err := s.Bytes(); err != nil || string(again) != string(doc) {
			t.Errorf("read from %q, written as %q: %v", doc, again, err)
		}
		for _, c := range []Commitment{{}, {H()}} {
			if err := Verify(s, c, nil); err == nil {
				t.Errorf("an empty proof holds of %s", doc)
			}
		}
	})
}

// TestImplies holds Implies against the values themselves: what one statement allows, the other does, too. Between ranges, and from a set, it also finds each
// implication.
func TestImplies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func(n int) jsontext.Value { return jsontext.Value(strconv.Itoa(n)) }
	some := func() *Statement {
		s := &Statement{Format: Format, Kind: Integer, Form: []Form{Range, In, NotIn}[random.IntN(3)]}
		if s.Form == Range {
			lo := random.IntN(12) - 6
			s.Lo, s.Hi = number(lo), number(lo+1+random.IntN(8))
			return s
		}
		for len(s.Set) < 2+random.IntN(4) {
			if n := number(random.IntN(12) - 6); !slices.ContainsFunc(s.Set, func(v jsontext.Value) bool { return string(v) == string(n) }) {
				s.Set = append(s.Set, n)
			}
		}
		return s
	}
	found := 0
	for range 3000 {
		a, b := some(), some()
		holds := true
		for n := -20; n <= 20; n++ {
			inA, errA := a.Allows(number(n))
			inB, errB := b.Allows(number(n))
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			holds = holds && (!inA || inB)
		}
		switch implies := a.Implies(b); {
		case implies && !holds:
			t.Fatalf("%+v implies %+v, but allows more", a, b)
		case implies:
			found++
		case holds && (a.Form == In || a.Form == Range && b.Form != In):
			t.Fatalf("%+v is said not to imply %+v", a, b)
		}
		other := *b
		other.Kind = "decimal:1"
		if a.Implies(&other) {
			t.Fatalf("%+v implies %+v, which is of another kind", a, other)
		}
	}
	if found < 150 {
		t.Errorf("%d implications: too few to mean something", found)
	}
}

// TestAge: a person who is 21 is 18, and not the other way round; nor is a date that lies later enough.
func TestAge(t *testing.T) {
	age := func(years int, at string) *Statement {
		return &Statement{Format: Format, Kind: Date, Form: AgeAtLeast, Years: years, At: at}
	}
	if !age(21, "2026-11-23").Implies(age(18, "2026-11-23")) || !age(18, "2026-11-23").Implies(age(18, "2026-11-24")) {
		t.Error("an implication is not found")
	}
	if age(18, "2026-11-23").Implies(age(21, "2026-11-23")) || age(18, "2026-11-24").Implies(age(18, "2026-11-23")) {
		t.Error("a wider statement implies a narrower one")
	}
}
