package reputation_test

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jury"
	"jurat/reputation"
	"jurat/verify"
)

// TestMonths: records weigh the same however old they are, and are counted by the month of their proved time.
func TestMonths(t *testing.T) {
	w := passed(t, 12)
	r := w.tried(panel(jury.UnsafeFail, "script"), 12)
	f := w.facts()
	for i := range f.Records {
		if f.Records[i].Time = 1_735_689_600; f.Records[i].Digest == r.Digest { // 1 January 2025
			f.Records[i].Time -= 1
		}
	}
	v := must.Get(f.View())(w.t)
	c := class(v, reputation.Models)
	if want := []reputation.Month{{Month: "2024-12", Bad: 1}, {Month: "2025-01", Good: 12}}; !slices.Equal(c.Months, want) || c.Good.Weight != 12<<20 || c.Bad.Weight != 1<<20 {
		t.Errorf("%+v, good %+v, bad %+v", c.Months, c.Good, c.Bad)
	}
	f.At += 1000 * 86_400
	later := must.Get(f.View())(w.t)
	if l := class(later, reputation.Models); *l.Bounds != *c.Bounds {
		t.Errorf("the bounds are %+v, and a thousand days later %+v", c.Bounds, l.Bounds)
	}
	if text := strings.Join(slices.Collect(v.Explain()), "\n"); !strings.Contains(text, "2025-01: 12 passed, 0 failed, 0 undecided") {
		t.Error(text)
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
	for _, m := range regexp.MustCompile(`  unit sha256:[0-9a-f]{64} \(record \S+\): (\w+)\n    .*: weight 2\^\(20 - (\d+)\) = (\d+)\n`).FindAllStringSubmatch(text, -1) {
		var s, weight int64
		must.Get(fmt.Sscan(m[2]+" "+m[3], &s, &weight))(w.t)
		if weight != 1<<20>>s {
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
	must.Get(fmt.Sscanf(lines[i], "  G = %d of 11 units that passed, B = %d of 1 that failed; 1 undecided", &g, &b))(w.t)
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
