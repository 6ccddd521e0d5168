package reputation

import (
	"maps"
	"slices"

	"jurat/evidence"
	"jurat/verify"
)

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
		c.view.Outcome = worse(worse(c.view.Outcome, made.Judgments.Status), refuted(made.Records.Status))
	}
	if len(logs) == 0 {
		c.view.Outcome = verify.NotProved
	}
}

// ruleUnproved says that judgments are at hand whose place in the log is not proved.
const ruleUnproved = "unproved"

// withoutPlace returns the digests of what judges the agent, is at hand, and has no place that is proved. A log's witnesses may not have
// cosigned yet what it has just taken in.
func (f *Facts) withoutPlace() map[evidence.Digest]bool {
	list := map[evidence.Digest]bool{}
	for _, r := range f.all() {
		if r.what != TheRecord && r.Origin == "" {
			list[r.Digest] = true
		}
	}
	return list
}

// refuted lets records that are not at hand count for nothing: only false numbers count against the whole.
func refuted(s verify.Status) verify.Status {
	if s == verify.Refuted {
		return s
	}
	return verify.Proved
}

func worse(a, b verify.Status) verify.Status {
	rank := map[verify.Status]int{verify.Proved: 0, verify.NotProved: 1, verify.Refuted: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
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
		made.Status, made.Rule = l.lacking(&made, entries)
	case of == OfSubject && len(doubted) > 0:
		made.Status, made.Rule, made.Missing = verify.NotProved, "doubted", doubted
	case l.uncounted[of] || l.log != nil && l.log.Counts > 0:
		made.Status, made.Rule = verify.NotProved, "uncounted"
	case l.log == nil, max(l.end[OfSubject], l.end[OfActor]) > l.log.Size:
		made.Status, made.Rule = verify.NotProved, "tail"
	}
	return made
}

// lacking says what it means that judgments are missing.
func (l *counts) lacking(made *Completeness, entries []evidence.Digest) (verify.Status, string) {
	switch {
	case l.areUnproved(made.Total, entries):
		return verify.NotProved, ruleUnproved
	case made.Missing[0] <= int64(len(entries)):
		return verify.Refuted, "dropped"
	}
	return verify.Refuted, "hole"
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
