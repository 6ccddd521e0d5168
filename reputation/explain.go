package reputation

import (
	"cmp"
	"fmt"
	"iter"
)

// Explain traces each digit of the view back to records, a line at a time: which verdicts stand on each unit, what it weighs and
// why, and how the bounds follow from the sums. A name or id in a line may be hostile text: the caller must make it inert.
func (v *View) Explain() iter.Seq[string] {
	return func(yield func(string) bool) {
		more := true
		say := func(format string, args ...any) { more = more && yield(fmt.Sprintf(format, args...)) }
		for i := range v.Classes {
			v.Classes[i].explain(v.Minimum, say)
		}
	}
}

// Title names a class for people.
func (c *Class) Title() string {
	switch {
	case c.Panel == nil:
		return "people"
	case c.Class == Rules:
		return fmt.Sprintf("juries of rules, panel %s", c.Panel.Digest.Short())
	}
	return fmt.Sprintf("juries of models, panel %s", c.Panel.Digest.Short())
}

func (c *Class) explain(minimum int64, say func(string, ...any)) {
	say("%s: %s", c.Title(), c.Status)
	for i := range c.Units {
		c.Units[i].explain(say)
	}
	say("  G = %d of %d units that passed, B = %d of %d that failed; %d undecided units weigh nothing", c.Good.Weight, c.Good.Units, c.Bad.Weight, c.Bad.Units, c.Neither)
	for _, m := range c.Months {
		say("  %s: %d passed, %d failed, %d undecided", m.Month, m.Good, m.Bad, m.Neither)
	}
	n := c.Good.Weight + c.Bad.Weight
	if c.Bounds == nil {
		say("  N = G + B = %d, which is %s whole observations of 1,048,576 each; the policy's minimum is %d: no number", n, decimal(n), minimum)
		return
	}
	t := terms(c.Good.Weight, c.Bad.Weight)
	say("  N = G + B = %d, S = 1048576, 10000 (G + 2 S) = %v, N + 4 S = %v, √R = %v to %v", n, t.centre, t.whole, t.down, t.up)
	say("  lower = ⌊(%v − %v) / %v⌋ = %d of 10,000", t.centre, t.up, t.whole, c.Bounds.Lower)
	say("  upper = ⌊(%v + %v) / %v⌋ = %d of 10,000", t.centre, t.down, t.whole, c.Bounds.Upper)
}

// decimal writes a sum of weights in whole observations, with two digits, rounded down.
func decimal(weight int64) string {
	return fmt.Sprintf("%d.%02d", weight/one, weight%one*100/one)
}

func (u *Unit) explain(say func(string, ...any)) {
	say("  unit %s (record %s): %s", u.Digest, u.ID, cmp.Or(string(u.Outcome), "every verdict on it was set aside"))
	say("    existed by %s; its verdict is shared with s = %d: weight 2^(20 - %d) = %d", u.Time, u.Shared, u.Shared, u.Weight)
	for _, one := range u.Verdicts {
		why := "is not worse than the one that stands"
		switch {
		case one.Stands:
			why = "stands"
		case one.SetAside:
			why = "was overturned by a person, and a later one takes its place"
		}
		say("    verdict %s of %s: %s, %s", one.Record, one.At, one.Position, why)
	}
}
