package reputation_test

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// TestDecay: each half-life between a record's proved time and the moment of asking halves its weight, to the second, in both directions, until
// nothing is left. Only differences count.
func TestDecay(t *testing.T) {
	w := passed(t, 12)
	r := w.act(12)
	w.give(r)
	w.try(panel(jury.UnsafeFail, "script"), r)
	const halfLife = 180 * 86_400
	at := func(age, later int64) *reputation.View {
		f := w.facts()
		f.At += later
		for i := range f.Records {
			if f.Records[i].Time = f.At; f.Records[i].Digest == r.Digest {
				f.Records[i].Time -= age
			}
		}
		v, err := f.View()
		w.ok(err)
		return v
	}
	for age, want := range map[int64]int64{0: 1 << 20, halfLife - 1: 1 << 20, halfLife: 1 << 19, 2*halfLife - 1: 1 << 19, 2 * halfLife: 1 << 18, 20 * halfLife: 1, 21*halfLife - 1: 1, 21 * halfLife: 0} {
		now, later := class(at(age, 0), reputation.Models), class(at(age, 1000*86_400), reputation.Models)
		if now.Bad.Weight != want || now.Good.Weight != 12<<20 || later.Bad.Weight != want {
			t.Errorf("a failure that is %d seconds old weighs %d, and later %d, want %d; 12 of now weigh %d", age, now.Bad.Weight, later.Bad.Weight, want, now.Good.Weight)
		}
	}
	if young, old := lower(at(0, 0)), lower(at(4*halfLife, 0)); young >= old {
		t.Errorf("the lower bound is %d after a new failure, and %d after an old one", young, old)
	}
}

// TestExplainAddsUp: who adds up what --explain says of each record, and works out its formula, comes to the numbers.
func TestExplainAddsUp(t *testing.T) {
	w := passed(t, 11)
	pair := []*evidence.Record{w.act(11), w.act(12)}
	w.give(pair...)
	w.try(panel(jury.SafePass, "script"), pair...)
	w.try(panel(jury.UnsafeFail, "script"), w.record(3))
	w.try(panel(jury.NeedsReview, "script"), w.record(4))
	v := w.view()
	lines := slices.Collect(v.Explain())
	text := strings.Join(lines, "\n")
	sums := map[string]int64{}
	for _, m := range regexp.MustCompile(`  unit sha256:[0-9a-f]{64} \(record \S+\): (\w+)\n    .*: weight 2\^\(20 - (\d+) - (\d+)\) = (\d+)\n`).FindAllStringSubmatch(text, -1) {
		var h, s, weight int64
		_, err := fmt.Sscan(m[2]+" "+m[3]+" "+m[4], &h, &s, &weight)
		w.ok(err)
		if weight != 1<<20>>(h+s) {
			t.Errorf("%s", m[0])
		}
		sums[m[1]] += weight
	}
	for _, u := range class(v, reputation.Models).Units {
		for _, said := range u.Verdicts {
			if !strings.Contains(text, "    verdict "+said.Record.String()+" of ") {
				t.Errorf("it does not name the verdict %s", said.Record)
			}
		}
	}
	var g, b int64
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  G = ") })
	_, err := fmt.Sscanf(lines[i], "  G = %d of 11 units that passed, B = %d of 1 that failed; 1 undecided", &g, &b)
	w.ok(err)
	if g != sums["safe_pass"] || b != sums["unsafe_fail"] || g != 10<<20 || b != 1<<20 {
		t.Errorf("G = %d and B = %d, and the units come to %v", g, b, sums)
	}
	for name, want := range map[string]int64{"lower": class(v, reputation.Models).Bounds.Lower, "upper": class(v, reputation.Models).Bounds.Upper} {
		m := regexp.MustCompile(name + ` = ⌊\((\d+) ([−+]) (\d+)\) / (\d+)⌋ = (\d+) of`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("there is no %s bound in\n%s", name, text)
		}
		number := func(s string) *big.Int { n, _ := new(big.Int).SetString(s, 10); return n }
		sum := new(big.Int).Add(number(m[1]), number(m[3]))
		if m[2] == "−" {
			sum.Sub(number(m[1]), number(m[3]))
		}
		if got := sum.Div(sum, number(m[4])); got.Int64() != want || m[5] != fmt.Sprint(want) {
			t.Errorf("%s: it comes to %v, and says %s, want %d", name, got, m[5], want)
		}
	}
	if v.Outcome == verify.Refuted {
		t.Errorf("%+v", v.Completeness)
	}
}
