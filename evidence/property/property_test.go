package property

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cloudflare/circl/group"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/test/must"
)

const record = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

func about(form Form, kind Kind, change func(*Statement)) *Statement {
	s := &Statement{Format: Format, Form: form, Kind: kind, Members: []Member{{Record: record, Pointer: "/metadata/amount"}}}
	change(s)
	return s
}

func inRange(kind Kind, lo, hi string) *Statement {
	return about(Range, kind, func(s *Statement) { s.Lo, s.Hi = jsontext.Value(lo), jsontext.Value(hi) })
}

func inSet(form Form, kind Kind, set ...string) *Statement {
	return about(form, kind, func(s *Statement) {
		for _, v := range set {
			s.Set = append(s.Set, jsontext.Value(v))
		}
	})
}

// open makes an opening with a known salt, and the commitment to it.
func open(t testing.TB, s *Statement, value string) (Opening, Commitment) {
	t.Helper()
	o := Opening{Value: jsontext.Value(value), Salt: [SaltSize]byte{1}}
	c := must.Get(Commit(s.Kind, s.Members[0].Pointer, o))(t)
	return o, c
}

func prove(t testing.TB, s *Statement, value string) ([]byte, Commitment) {
	t.Helper()
	opening, commitment := open(t, s, value)
	proof, err := Prove(s, opening, rand.Reader)
	must.Need(t, err == nil, "%v of %v: %v", s, value, err)
	return proof, commitment
}

func TestTrueStatementsAreProved(t *testing.T) {
	for _, test := range []struct {
		name  string
		s     *Statement
		value string
		size  int // of the proof; 0: not looked at
	}{
		{"a range of 64 bits is too wide for integers, 54 are not", inRange(Integer, "-9007199254740991", "9007199254740991"), "-1", 54*33 + 32*(2+3*54)},
		{"0 to 5000", inRange(Integer, "0", "5000"), "5000", 1741},
		{"18 to 150", inRange(Integer, "18", "150"), "18", 1096},
		{"below zero", inRange(Integer, "-10", "-1"), "-10", 0},
		{"two values", inRange(Integer, "7", "8"), "8", 0},
		{"decimals", inRange("decimal:2", "0.01", "99.99"), "12.3", 0},
		{"dates", inRange(Date, `"1969-12-30"`, `"1970-01-02"`), `"1969-12-31"`, 0},
		{"times", inRange(Time, `"2026-01-31T16:15:00Z"`, `"2026-01-31T16:15:00.5Z"`), `"2026-01-31T16:15:00.499Z"`, 0},
		{"one of 16", inSet(In, Integer, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"), "16", 1103},
		{"one of two texts", inSet(In, Text, `"refund"`, `"quote"`), `"refund"`, 0},
		{"the last of three texts", inSet(In, Text, `"refund"`, `"quote"`, `{"a":1}`), `{"a":1}`, 0},
		{"not in a set", inSet(NotIn, Text, `"delete"`, `"pay"`), `"quote"`, 0},
		{"not in a set of numbers with zero", inSet(NotIn, Integer, "0", "-1", "5"), "1", 0},
		{"an age", about(AgeAtLeast, Date, func(s *Statement) { s.Years, s.At = 18, "2026-11-23" }), `"2008-11-23"`, 0},
		{"an age from 29 February", about(AgeAtLeast, Date, func(s *Statement) { s.Years, s.At = 1, "2024-02-29" }), `"2023-02-28"`, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			proof, commitment := prove(t, test.s, test.value)
			must.Want(t, Verify(test.s, commitment, proof), nil)
			must.Hold(t, test.size == 0 || len(proof) == test.size, "the proof has %d bytes, want %d", len(proof), test.size)
			doc := must.Get(test.s.Bytes())(t)
			again := must.Get(ParseStatement(doc))(t)
			must.Want(t, Verify(again, commitment, proof), nil)
		})
	}
}

func TestFalseStatementsHaveNoProof(t *testing.T) {
	for _, test := range []struct {
		name  string
		s     *Statement
		value string
	}{
		{"below", inRange(Integer, "18", "150"), "17"},
		{"above", inRange(Integer, "18", "150"), "151"},
		{"far below", inRange(Integer, "0", "150"), "-9007199254740991"},
		{"not in", inSet(In, Text, `"refund"`, `"quote"`), `"pay"`},
		{"in", inSet(NotIn, Text, `"refund"`, `"quote"`), `"quote"`},
		{"a day too young", about(AgeAtLeast, Date, func(s *Statement) { s.Years, s.At = 18, "2026-11-23" }), `"2008-11-24"`},
	} {
		opening, _ := open(t, test.s, test.value)
		must.Fail(t, ErrFalse, test.name)(Prove(test.s, opening, rand.Reader))
	}
}

// A prover who leaves out the test of the statement has no proof that holds.
func TestForgedProofsDoNotHold(t *testing.T) {
	// A value out of range, written as if it were in it; the prover of relations refuses scalars that do not fit.
	lying := inRange(Integer, "0", "100")
	opening, commitment := open(t, lying, "101")
	_, r, err := opening.open(lying.Kind, lying.Members[0].Pointer)
	must.Do(t, err)
	c := newCompiler()
	c.proving, c.next = true, (&source{random: rand.Reader}).scalar
	must.Do(t, c.compile(lying, commitment, opened{smallScalar(100), r}))
	tag := must.Get(lying.tag())(t)
	_, err = proveRelation(tag, c.relation, c.scalars, rand.Reader)
	must.Want(t, err, errWitness)
}

func TestProofsAreBound(t *testing.T) {
	s := inRange(Integer, "18", "150")
	s.Audience = "the auditor"
	proof, commitment := prove(t, s, "42")
	for name, change := range map[string]func(*Statement){
		"record":   func(s *Statement) { s.Members[0].Record = strings.Replace(record, "aa", "ab", 1) },
		"pointer":  func(s *Statement) { s.Members[0].Pointer = "/metadata/other" },
		"lo":       func(s *Statement) { s.Lo = jsontext.Value("17") },
		"hi":       func(s *Statement) { s.Hi = jsontext.Value("151") },
		"audience": func(s *Statement) { s.Audience = "" },
		"kind":     func(s *Statement) { s.Kind = "decimal:1" },
	} {
		changed := *s
		changed.Members = slices.Clone(s.Members)
		change(&changed)
		must.Want(t, Verify(&changed, commitment, proof), ErrProof, "with another", name)
	}
	set := inSet(In, Integer, "1", "2", "3")
	proof, commitment = prove(t, set, "3")
	set.Set[0], set.Set[1] = set.Set[1], set.Set[0]
	must.Want(t, Verify(set, commitment, proof), ErrProof)
	_, other := open(t, s, "43")
	proof, _ = prove(t, s, "42")
	must.Want(t, Verify(s, other, proof), ErrProof)
}

func TestChangedProofsDoNotHold(t *testing.T) {
	s := inRange(Integer, "0", "9")
	proof, commitment := prove(t, s, "7")
	for i := range proof {
		changed := bytes.Clone(proof)
		changed[i] ^= 1 << (i % 8)
		err := Verify(s, commitment, changed)
		must.Need(t, errors.Is(err, ErrProof), "with byte %d changed: %v, want ErrProof", i, err)
	}
	for name, changed := range map[string][]byte{
		"empty":                nil,
		"a byte shorter":       proof[:len(proof)-1],
		"a byte longer":        append(bytes.Clone(proof), 0),
		"its points exchanged": slices.Concat(proof[33:66], proof[:33], proof[66:]),
		"the challenge zero":   slices.Concat(proof[:4*33], make([]byte, 32), proof[4*33+32:]),
		"nothing but zeros":    make([]byte, len(proof)),
		"nothing but 0xff":     bytes.Repeat([]byte{0xff}, len(proof)),
	} {
		must.Want(t, Verify(s, commitment, changed), ErrProof, name)
	}
}

func TestEveryValueOfSmallRanges(t *testing.T) {
	const most = 7
	for lo := range most {
		for hi := lo + 1; hi <= most; hi++ {
			s := inRange(Integer, fmt.Sprint(lo), fmt.Sprint(hi))
			for v := range most + 1 {
				opening, commitment := open(t, s, fmt.Sprint(v))
				proof, err := Prove(s, opening, rand.Reader)
				inside := lo <= v && v <= hi
				must.Need(t, inside == (err == nil) && (inside || errors.Is(err, ErrFalse)), "%d in %d to %d: %v", v, lo, hi, err)
				must.Need(t, err != nil || Verify(s, commitment, proof) == nil, "%d in %d to %d: the proof does not hold", v, lo, hi)
			}
		}
	}
}

// The bases reach each number up to the width, and none above.
func TestBases(t *testing.T) {
	for width := uint64(1); width <= 600; width++ {
		all := bases(width)
		var sum uint64
		for _, b := range all {
			sum += b
		}
		must.Need(t, sum == width, "width %d: %v add up to %d", width, all, sum)
		for v := range width + 1 {
			var got uint64
			for i, d := range digits(v, all) {
				must.Need(t, d <= 1, "width %d, value %d: digit %d", width, v, d)
				got += d * all[i]
			}
			must.Need(t, got == v, "width %d: the digits of %d add up to %d", width, v, got)
		}
	}
}

// H is what RFC 9380 makes of the text that the documentation names, by another implementation.
func TestH(t *testing.T) {
	want := must.Get(group.P256.HashToElement([]byte("jurat/property/v1/H"), []byte("jurat/property/v1/P256_XMD:SHA-256_SSWU_RO_")).MarshalBinaryCompress())(t)
	must.Hold(t, bytes.Equal(h.Bytes(), want), "H is %x, want %x", h.Bytes(), want)
}

func TestValues(t *testing.T) {
	for _, test := range []struct {
		kind  Kind
		value string
		want  int64
		bad   string // part of the error
	}{
		{Integer, "0", 0, ""},
		{Integer, "-9007199254740991", -9007199254740991, ""},
		{Integer, "9007199254740992", 0, "too large"},
		{Integer, "1.5", 0, "more decimals"},
		{Integer, "1e400", 0, "too large"},
		{Integer, "1e999999999", 0, "too large"},
		{Integer, "1e-999999999", 0, "more decimals"},
		{"decimal:9", "0.000000001", 1, ""},
		{"decimal:9", "9007199254740991", 0, "too large"},
		{Integer, `"1"`, 0, "string"},
		{Integer, "null", 0, "null"},
		{"decimal:2", "12.34", 1234, ""},
		{"decimal:2", "12.345", 0, "more decimals"},
		{"decimal:0", "1", 0, "want"},
		{"decimal:10", "1", 0, "want"},
		{"other", "1", 0, "want"},
		{Date, `"1970-01-01"`, 0, ""},
		{Date, `"1969-12-31"`, -1, ""},
		{Date, `"2026-02-29"`, 0, "not a date"},
		{Date, `"2026-1-01"`, 0, "not a date"},
		{Time, `"1970-01-01T00:00:00.001Z"`, 1, ""},
		{Time, `"1969-12-31T23:59:59.999Z"`, -1, ""},
		{Time, `"1970-01-01T00:00:00.0001Z"`, 0, "finer"},
		{Time, `"1970-01-01T00:00:00+01:00"`, 0, "UTC"},
		{Text, `"x"`, 0, "no order"},
	} {
		got, err := test.kind.Number(jsontext.Value(test.value))
		must.Hold(t, (test.bad != "" || err == nil && got == test.want) && (test.bad == "" || err != nil && strings.Contains(err.Error(), test.bad)),
			"%s of %s: %d, %v", test.value, test.kind, got, err)
	}
}

func BenchmarkRange32(b *testing.B) {
	s := inRange(Integer, "0", "4294967295")
	proof, commitment := prove(b, s, "7")
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			must.Do(b, Verify(s, commitment, proof))
		}
	})
	opening, _ := open(b, s, "7")
	b.Run("prove", func(b *testing.B) {
		for b.Loop() {
			must.Get(Prove(s, opening, rand.Reader))(b)
		}
	})
}

func TestStatementsAreStrict(t *testing.T) {
	const members = `"members":[{"pointer":"/metadata/amount","record":"` + record + `"}]`
	const good = `{"form":"range","format":"jurat/property/v1","hi":9,"kind":"integer","lo":0,` + members + `}`
	const age = `{"at":"2026-11-23","form":"age_at_least","format":"jurat/property/v1","kind":"date",` + members + `,"years":18}`
	for _, doc := range []string{good, age} {
		must.Get(ParseStatement([]byte(doc)))(t)
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
		must.Need(t, changed != test.doc, "%s: nothing was changed", test.name)
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
		warning := test.s.Warning()
		must.Hold(t, (warning != "") == test.warn, "%s with %d entries: %q", test.s.Form, len(test.s.Set), warning)
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
		again, err := s.Bytes()
		must.Hold(t, err == nil && string(again) == string(doc), "read from %q, written as %q: %v", doc, again, err)
		for _, c := range []Commitment{{}, {h}} {
			must.Say(t, Verify(s, c, nil), "", "an empty proof holds of", doc)
		}
	})
}

// TestImplies holds Implies against the values themselves: what one statement allows, the other does, too. Between ranges, and from a set, it also finds each
// implication.
func TestImplies(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
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
			must.Need(t, errA == nil && errB == nil, "%v %v", errA, errB)
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
		must.Need(t, !a.Implies(&other), "%+v implies %+v, which is of another kind", a, other)
	}
	must.Hold(t, found >= 150, "%d implications: too few to mean something", found)
}

// TestAge: a person who is 21 is 18, and not the other way round; nor is a date that lies later enough.
func TestAge(t *testing.T) {
	age := func(years int, at string) *Statement {
		return &Statement{Format: Format, Kind: Date, Form: AgeAtLeast, Years: years, At: at}
	}
	must.Hold(t, age(21, "2026-11-23").Implies(age(18, "2026-11-23")) && age(18, "2026-11-23").Implies(age(18, "2026-11-24")),
		"an implication is not found")
	must.Hold(t, !age(18, "2026-11-23").Implies(age(21, "2026-11-23")) && !age(18, "2026-11-24").Implies(age(18, "2026-11-23")),
		"a wider statement implies a narrower one")
}
