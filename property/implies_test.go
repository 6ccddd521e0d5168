package property

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

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
