package pages

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// sides rebuilds both texts from their difference.
func sides(changes []Change) (before, after string) {
	var b, a strings.Builder
	for _, c := range changes {
		if c.Kind != Added {
			b.WriteString(c.Text)
		}
		if c.Kind != Removed {
			a.WriteString(c.Text)
		}
	}
	return b.String(), a.String()
}

func edits(changes []Change) (n int) {
	for _, c := range changes {
		if c.Kind != Same {
			n += len(cut(c.Text))
		}
	}
	return n
}

func TestDiff(t *testing.T) {
	equal(t, diff("The refund is 100.", "The refund is 80."), []Change{{Same, "The refund is "}, {Removed, "100"}, {Added, "80"}, {Same, "."}})
	equal(t, diff("", ""), []Change(nil))
	equal(t, diff("a", ""), []Change{{Removed, "a"}})
	equal(t, diff("", "a"), []Change{{Added, "a"}})
	equal(t, diff("返金は百円です", "返金は八十円です"), []Change{{Same, "返金は"}, {Removed, "百"}, {Added, "八十"}, {Same, "円です"}})
}

// TestDiffIsShortest compares the difference of random texts with their longest common subsequence, computed in the
// simple way.
func TestDiffIsShortest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString([]string{"a ", "b ", "c ", "漢"}[random.IntN(4)])
		}
		return b.String()
	}
	for range 3000 {
		x, y := text(), text()
		d := diff(x, y)
		if before, after := sides(d); before != x || after != y {
			t.Fatalf("%q to %q: %v", x, y, d)
		}
		a, b := cut(x), cut(y)
		if want := len(a) + len(b) - 2*common(a, b); edits(d) != want {
			t.Fatalf("%q to %q: %d edits, want %d: %v", x, y, edits(d), want, d)
		}
	}
}

func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		last := 0
		for j, y := range b {
			up := row[j+1]
			if x == y {
				row[j+1] = last + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			last = up
		}
	}
	return row[len(b)]
}

func TestDiffOfWhatHasNothingInCommon(t *testing.T) {
	x, y := strings.Repeat("a.", 50_000), strings.Repeat("b,", 50_000)
	d := diff(x, y)
	if before, after := sides(d); before != x || after != y || len(d) != 2 {
		t.Errorf("%d changes", len(d))
	}
}
