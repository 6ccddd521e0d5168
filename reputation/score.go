package reputation

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// badness orders positions: a later verdict counts only if it is worse.
var badness = map[jury.Position]int{jury.SafePass: 1, jury.NeedsReview: 2, jury.UnsafeFail: 3}

// score makes a Class of each class.
func (c *computation) score() {
	c.view.Classes = []Class{}
	keys := slices.SortedFunc(maps.Keys(c.classes), func(a, b classKey) int {
		return cmp.Or(cmp.Compare(a.name, b.name), compareDigests(a.panel, b.panel))
	})
	for _, key := range keys {
		c.view.Classes = append(c.view.Classes, c.scored(key, c.classes[key]))
	}
}

func (c *computation) scored(key classKey, from *class) Class {
	slices.SortFunc(from.verdicts, func(a, b *verdict) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.place.Origin, b.place.Origin), cmp.Compare(a.place.Index, b.place.Index), compareDigests(a.place.Digest, b.place.Digest))
	})
	t := &tally{c: c, units: map[evidence.Digest]*Unit{}, later: from.later(c.policy)}
	t.made = Class{Class: key.name, Panel: from.panel, Judges: judges(from.verdicts), Moves: []Move{}, Status: Scored}
	t.shown = c.view.Outcome != verify.Refuted && !c.unproved && (key.name != Rules || c.policy.RuleJuries)
	for _, v := range from.verdicts {
		c.rests[v.place.Digest] = true
		t.takeAll(v)
	}
	t.made.Units = sorted(t.units, compareDigests)
	t.made.Months, t.made.Bounds = months(t.made.Units), t.bounds()
	switch {
	case c.view.Outcome == verify.Refuted:
		t.made.Status = Incomplete
	case c.unproved:
		t.made.Status = Unproved
	case !t.shown:
		t.made.Status = Uncounted
	case t.made.Bounds == nil:
		t.made.Status = TooFew
	}
	return t.made
}

// lastOf is the place of the last verdict on a unit in each log.
type lastOf map[unitIn]int64

type unitIn struct {
	unit   evidence.Digest
	origin string
}

// later finds the last verdict of each unit, where the policy asks for it.
func (k *class) later(p *Policy) lastOf {
	if !p.AfterOverturn {
		return nil
	}
	last := lastOf{}
	for _, v := range k.verdicts {
		for _, exhibit := range v.exhibits {
			in := unitIn{exhibit, v.place.Origin}
			last[in] = max(last[in], v.place.Index)
		}
	}
	return last
}

// setAside reports whether a person overturned a verdict, and a later one takes its place.
func (l lastOf) setAside(v *verdict, unit evidence.Digest) bool {
	return l != nil && v.overturns != nil && l[unitIn{unit, v.place.Origin}] > *v.overturns
}

// tally adds up the verdicts of one class.
type tally struct {
	c     *computation
	made  Class
	units map[evidence.Digest]*Unit
	later lastOf
	shown bool // the class may have a number
}

// takeAll takes one verdict on all its units.
func (t *tally) takeAll(v *verdict) {
	var all, fail []*Unit
	for _, exhibit := range v.exhibits {
		t.c.rests[exhibit] = true
		u := t.unit(exhibit)
		if all = append(all, u); u.Outcome != jury.UnsafeFail && !t.later.setAside(v, exhibit) {
			fail = append(fail, u)
		}
	}
	first, again := spread(len(fail)), spread(len(all))
	for _, u := range all {
		switch {
		case v.position != jury.UnsafeFail:
			t.take(v, u, v.shared)
		case u.Outcome != jury.UnsafeFail:
			t.take(v, u, first)
		default:
			t.take(v, u, again)
		}
	}
}

func (t *tally) unit(exhibit evidence.Digest) *Unit {
	if u := t.units[exhibit]; u != nil {
		return u
	}
	r := t.c.records[exhibit]
	u := &Unit{Digest: exhibit, ID: r.ID, Time: rfc3339(t.c.policy.when(r.Standing))}
	t.units[exhibit] = u
	return u
}

// spread returns s of a verdict that fails so many units: the largest with which they weigh, together, as much as one alone. So a
// record that failed weighs no less because idle or failed ones stood beside it before the jury.
func spread(units int) (s int64) { return int64(max(bits.Len(uint(units)), 1) - 1) }

// months counts units by the month of their proved time.
func months(units []Unit) []Month {
	count := map[string]*Month{}
	for i := range units {
		u := &units[i]
		if u.Outcome == "" { // every verdict on it was set aside
			continue
		}
		m := count[u.Time[:len("2006-01")]]
		if m == nil {
			m = &Month{Month: u.Time[:len("2006-01")]}
			count[m.Month] = m
		}
		switch u.Outcome {
		case jury.SafePass:
			m.Good++
		case jury.UnsafeFail:
			m.Bad++
		case jury.NeedsReview:
			m.Neither++
		}
	}
	return sorted(count, strings.Compare)
}

// take takes one verdict on one unit: the first, and later ones that are worse. shared is how often it is halved.
func (t *tally) take(v *verdict, u *Unit, shared int64) {
	said := Verdict{Record: v.place.Digest, At: rfc3339(v.at), Position: v.position, CaseSeq: v.caseSeq, SetAside: t.later.setAside(v, u.Digest)}
	fewer := v.position == jury.UnsafeFail && u.Outcome == jury.UnsafeFail && shared < u.Shared // it fails the unit among fewer
	if !said.SetAside && (badness[v.position] > badness[u.Outcome] || fewer) {
		from := u.Outcome
		t.count(u, -1)
		for i := range u.Verdicts {
			u.Verdicts[i].Stands = false
		}
		said.Stands = true
		u.Outcome, u.Shared = v.position, shared
		u.Weight = one >> u.Shared
		t.count(u, 1)
		t.made.Moves = append(t.made.Moves, Move{At: said.At, Record: said.Record, Unit: u.Digest, From: from, To: u.Outcome, Weight: u.Weight, Bounds: t.bounds()})
	}
	u.Verdicts = append(u.Verdicts, said)
}

// count adds a unit to the sum of its outcome, or takes it away.
func (t *tally) count(u *Unit, times int64) {
	switch u.Outcome {
	case jury.SafePass:
		t.made.Good.Units += times
		t.made.Good.Weight += times * u.Weight
	case jury.UnsafeFail:
		t.made.Bad.Units += times
		t.made.Bad.Weight += times * u.Weight
	case jury.NeedsReview:
		t.made.Neither += times
	}
}

// bounds returns the bounds by now, or nil if there are too few observations for a number.
func (t *tally) bounds() *Bounds {
	good, bad := t.made.Good.Weight, t.made.Bad.Weight
	if !t.shown || good+bad < t.c.policy.Minimum*one {
		return nil
	}
	return new(wilson(good, bad))
}

// judges lists who had a part in verdicts.
func judges(verdicts []*verdict) []Judge {
	count := map[[2]string]*Judge{} // by role and name
	for _, v := range verdicts {
		for _, r := range v.raters {
			key := [2]string{string(r.Role), r.Name}
			if count[key] == nil {
				count[key] = &Judge{Role: r.Role, Name: r.Name}
			}
			count[key].Verdicts++
		}
	}
	return sorted(count, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

// one is the weight of an observation. Those of a verdict over several records weigh a half, a quarter and so on, down to 1; so all sums are whole.
const one = 1 << dyadic

const dyadic = 20

// Bounds are the lower and the upper bound of the Wilson score interval with z = 2, in ten-thousandths, rounded down.
type Bounds struct {
	Lower int64 `json:"lower"`
	Upper int64 `json:"upper"`
}

// wilson computes the bounds from sums of weights, exactly. With g, b and n = g + b in whole observations they are
//
//	(g + 2 ∓ 2 √(g b / n + 1)) / (n + 4)
//
// Wilson 1927, with z = 2. Here all three are multiples of 1/one, so both sides are multiplied by it.
func wilson(good, bad int64) Bounds {
	t := terms(good, bad)
	lower := new(big.Int).Sub(t.centre, t.up)
	upper := new(big.Int).Add(t.centre, t.down)
	return Bounds{lower.Div(lower, t.whole).Int64(), upper.Div(upper, t.whole).Int64()}
}

// terms are the whole numbers of which the bounds are quotients.
type wilsonTerms struct {
	centre   *big.Int // 10,000 (G + 2 S)
	down, up *big.Int // 20,000 √(S G B / N + S²), rounded down and up
	whole    *big.Int // N + 4 S
}

func terms(good, bad int64) wilsonTerms {
	g, b, s, n := big.NewInt(good), big.NewInt(bad), big.NewInt(one), big.NewInt(good+bad)
	t := wilsonTerms{centre: new(big.Int), whole: new(big.Int)}
	t.centre.Mul(big.NewInt(10_000), t.centre.Add(g, new(big.Int).Lsh(s, 1)))
	t.whole.Add(n, new(big.Int).Lsh(s, 2))
	radicand := new(big.Int).Mul(new(big.Int).Mul(s, g), b)
	radicand.Add(radicand, new(big.Int).Mul(new(big.Int).Mul(s, s), n))
	radicand.Mul(radicand, big.NewInt(400_000_000))
	t.down = new(big.Int).Sqrt(new(big.Int).Div(radicand, n))
	t.up = new(big.Int).Set(t.down)
	if square := new(big.Int).Mul(t.down, t.down); square.Mul(square, n).Cmp(radicand) < 0 {
		t.up.Add(t.up, big.NewInt(1))
	}
	return t
}

// maxMissing is how many missing numbers a view lists.
const maxMissing = 10

// completeness asks of each log whether all judgments about the agent are at hand, and how many of the agent's records.
func (c *computation) completeness() {
	logs := map[string]*counts{}
	of := func(origin string) *counts {
		if logs[origin] == nil {
			logs[origin] = &counts{seen: map[CountOf]map[int64]evidence.Digest{OfActor: {}, OfSubject: {}}, end: map[CountOf]int64{}, uncounted: map[CountOf]bool{}}
		}
		return logs[origin]
	}
	for i := range c.facts.Counted {
		of(c.facts.Counted[i].Origin).see(&c.facts.Counted[i])
	}
	for i := range c.facts.Logs {
		of(c.facts.Logs[i].Origin).log = &c.facts.Logs[i]
	}
	c.view.Completeness = []LogView{}
	c.view.Outcome = verify.Proved
	unproved := c.facts.withoutPlace()
	for _, origin := range slices.Sorted(maps.Keys(logs)) {
		l := logs[origin]
		l.unproved, l.heeded = unproved, c.heeded
		made := LogView{Origin: origin, Judgments: l.answer(OfSubject), Records: l.answer(OfActor)}
		if l.log != nil {
			made.Size = l.log.Size
		}
		c.view.Completeness = append(c.view.Completeness, made)
		c.unproved = c.unproved || made.Judgments.Rule == ruleUnproved
		if made.Judgments.Status.Worse(c.view.Outcome) {
			c.view.Outcome = made.Judgments.Status
		}
		if made.Records.Status == verify.Refuted { // records that are not at hand count for nothing: only false numbers count against the whole
			c.view.Outcome = verify.Refuted
		}
	}
	if len(logs) == 0 {
		c.view.Outcome = verify.NotProved
	}
}

// ruleUnproved says that judgments are at hand whose place in the log is not proved.
const ruleUnproved = "unproved"

// withoutPlace returns what judges the agent, is at hand, and has no proved place: witnesses may not have cosigned yet what a log has just taken in.
func (f *Facts) withoutPlace() map[evidence.Digest]bool {
	list := map[evidence.Digest]bool{}
	for _, r := range f.all() {
		if r.what != TheRecord && r.Origin == "" {
			list[r.Digest] = true
		}
	}
	return list
}

// counts is what is known of the numbers of one log.
type counts struct {
	log       *LogFact // nil: the reader does not have its entries
	seen      map[CountOf]map[int64]evidence.Digest
	end       map[CountOf]int64 // one more than the highest index that was seen
	uncounted map[CountOf]bool  // a record at hand has no number
	forked    bool              // two records have one number
	unproved  map[evidence.Digest]bool
	heeded    map[evidence.Digest]bool
}

func (l *counts) see(f *CountedFact) {
	l.end[f.Of] = max(l.end[f.Of], f.Index+1)
	if f.Seq == 0 {
		l.uncounted[f.Of] = true
		return
	}
	if known, there := l.seen[f.Of][f.Seq]; there && known != f.Digest {
		l.forked = true
	}
	l.seen[f.Of][f.Seq] = f.Digest
}

// gaps finds which numbers are missing up to the highest that is known.
func (l *counts) gaps(of CountOf, entries []evidence.Digest) (made Completeness, lacks int64) {
	made.Known = int64(len(l.seen[of]))
	made.Total = int64(len(entries))
	for seq := range l.seen[of] {
		made.Total = max(made.Total, seq)
	}
	lacks = made.Total - made.Known
	for seq := int64(1); lacks > 0 && seq <= made.Total && len(made.Missing) < int(min(lacks, maxMissing)); seq++ {
		if _, there := l.seen[of][seq]; !there {
			made.Missing = append(made.Missing, seq)
		}
	}
	return made, lacks
}

// contradicts reports whether a record at hand has the number of another one in the entries.
func (l *counts) contradicts(of CountOf, entries []evidence.Digest) bool {
	for seq, digest := range l.seen[of] {
		if seq <= int64(len(entries)) && entries[seq-1] != digest {
			return true
		}
	}
	return l.forked
}

// answer says whether all that a log counted is at hand. Records that are missing make nothing wrong: only judgments must all be there.
func (l *counts) answer(of CountOf) Completeness {
	var entries []evidence.Digest
	if l.log != nil {
		entries = map[CountOf][]evidence.Digest{OfActor: l.log.Actor, OfSubject: l.log.Subject}[of]
	}
	made, lacks := l.gaps(of, entries)
	made.Status = verify.Proved
	switch doubted := l.doubted(); {
	case l.log != nil && l.log.Wrong:
		made.Status, made.Rule = verify.Refuted, "count"
	case l.contradicts(of, entries):
		made.Status, made.Rule = verify.Refuted, "fork"
	case of == OfSubject && lacks > 0:
		made.Status, made.Rule = verify.Refuted, "hole"
		if l.areUnproved(made.Total, entries) {
			made.Status, made.Rule = verify.NotProved, ruleUnproved
		} else if made.Missing[0] <= int64(len(entries)) {
			made.Rule = "dropped"
		}
	case of == OfSubject && len(doubted) > 0:
		made.Status, made.Rule, made.Missing = verify.NotProved, "doubted", doubted
	case l.uncounted[of] || l.log != nil && l.log.Counts > 0:
		made.Status, made.Rule = verify.NotProved, "uncounted"
	case l.log == nil, max(l.end[OfSubject], l.end[OfActor]) > l.log.Size:
		made.Status, made.Rule = verify.NotProved, "tail"
	}
	return made
}

// doubted lists the first judgments that are at hand, and whose finding neither counts nor is set aside by a rule of the reader.
func (l *counts) doubted() (numbers []int64) {
	for _, seq := range slices.Sorted(maps.Keys(l.seen[OfSubject])) {
		if len(numbers) < maxMissing && !l.heeded[l.seen[OfSubject][seq]] {
			numbers = append(numbers, seq)
		}
	}
	return numbers
}

// areUnproved reports whether all judgments that are missing are in the entries, and at hand without a place that is proved.
func (l *counts) areUnproved(total int64, entries []evidence.Digest) bool {
	for seq := int64(1); seq <= total; seq++ {
		if _, there := l.seen[OfSubject][seq]; !there && (seq > int64(len(entries)) || !l.unproved[entries[seq-1]]) {
			return false
		}
	}
	return true
}

// Explain traces each digit of the view back to records, a line at a time: which verdicts stand on each unit, what it weighs and
// why, and how the bounds follow from the sums. A name or id in a line may be hostile text: the caller must make it inert.
func (v *View) Explain() (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for i := range v.Classes {
		v.Classes[i].explain(v.Minimum, say)
	}
	return lines
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
	say("  G = %d of %d units that passed, B = %d of %d that failed; %d undecided weigh 0", c.Good.Weight, c.Good.Units, c.Bad.Weight, c.Bad.Units, c.Neither)
	for _, m := range c.Months {
		say("  %s: %d passed, %d failed, %d undecided", m.Month, m.Good, m.Bad, m.Neither)
	}
	n := c.Good.Weight + c.Bad.Weight
	if c.Bounds == nil {
		say("  N = G + B = %d, which is %d.%02d whole observations of 1,048,576 each; the policy's minimum is %d: no number",
			n, n/one, n%one*100/one, minimum)
		return
	}
	t := terms(c.Good.Weight, c.Bad.Weight)
	say("  N = G + B = %d, S = 1048576, 10000 (G + 2 S) = %v, N + 4 S = %v, √R = %v to %v", n, t.centre, t.whole, t.down, t.up)
	say("  lower = ⌊(%v − %v) / %v⌋ = %d of 10,000", t.centre, t.up, t.whole, c.Bounds.Lower)
	say("  upper = ⌊(%v + %v) / %v⌋ = %d of 10,000", t.centre, t.down, t.whole, c.Bounds.Upper)
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
