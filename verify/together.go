package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Together collects the records of several files of one log, to check them against each other. The caller puts it
// into the Options of each file's verification. One goroutine may use it at a time. Together takes a file if nothing
// was found against its Order: then the log itself says where each record stands. A chain_id names a chain within one
// log, so files of two logs are kept apart.
type Together struct {
	options Options
	logs    map[string]*gathered // by origin

	exchanges exchangeMatcher
}

// NewTogether returns a Together for a reader with these Options.
func NewTogether(o Options) *Together {
	o.Together, o.Each, o.envelope = nil, nil, nil
	o.Checkpoint, o.Consistency, o.Entries, o.Demands, o.Before = "", nil, nil, nil, time.Time{} // each file was already held against them
	o.Require = slices.DeleteFunc(slices.Clone(o.Require), func(g Guarantee) bool { return !slices.Contains(Required(SeveralFiles), g) })
	return &Together{options: o, logs: map[string]*gathered{}}
}

// gathered holds the files of one log.
type gathered struct {
	files   int
	largest *operator.Checkpoint
	roots   map[int64]tlog.Hash // by size
	at      map[int64]*evidence.Record
	said    map[*evidence.Record]spoken
	found   map[Finding]bool // findings about content and authentication
	forked  map[int64]bool   // sizes for which there are two roots
	doubled []*evidence.Record
}

// take keeps the records of a verified file.
func (t *Together) take(c *check) {
	if t == nil || c.log == nil || len(c.all) == 0 || c.worst(Order) != nil {
		return
	}
	g := t.logs[c.log.Origin]
	if g == nil {
		g = &gathered{roots: map[int64]tlog.Hash{}, at: map[int64]*evidence.Record{}, said: map[*evidence.Record]spoken{},
			found: map[Finding]bool{}, forked: map[int64]bool{}}
		t.logs[c.log.Origin] = g
	}
	g.files++
	if g.largest == nil || c.log.Size > g.largest.Size {
		g.largest = c.log
	}
	if root, known := g.roots[c.log.Size]; known && root != c.log.Root {
		g.forked[c.log.Size] = true
	}
	g.roots[c.log.Size] = c.log.Root
	for _, r := range c.all {
		alone := *r
		withoutTexts(&alone) // also of a trial's acts: questions across files need only digests
		g.add(&alone, c.said[r])
	}
	for _, f := range c.findings {
		if f.Guarantee == Content || f.Guarantee == Authentication {
			g.found[f] = true
		}
	}
}

// add keeps a record once, with everything that any of the files discloses of it.
func (g *gathered) add(r *evidence.Record, said spoken) {
	known := g.at[r.Log.Index]
	switch {
	case known == nil:
		g.at[r.Log.Index], g.said[r] = r, said
	case known.Digest != r.Digest:
		g.doubled = append(g.doubled, r)
	default:
		g.said[known] = spoken{Response: g.said[known].Response.Or(said.Response), Modified: g.said[known].Modified.Or(said.Modified), Names: said.Names}
	}
}

// Reports returns one report for each log with several files: what their records prove together. It is nil for a log
// whose files have nothing in common. A missing record refutes nothing here, because the reader need not bring all
// files.
func (t *Together) Reports() []*Report {
	var reports []*Report
	for _, origin := range slices.Sorted(maps.Keys(t.logs)) {
		if g := t.logs[origin]; g.files > 1 {
			c := g.check(t.options)
			if slices.ContainsFunc(c.all, chained) || slices.ContainsFunc(c.all, decides) || c.worst(Order) != nil {
				reports = append(reports, c.report())
			}
		}
	}
	return reports
}

func (g *gathered) check(o Options) *check {
	c := newCheck(o, SeveralFiles)
	c.log, c.said = g.largest, g.said
	c.all = slices.SortedFunc(maps.Values(g.at), func(a, b *evidence.Record) int { return cmp.Compare(a.Log.Index, b.Log.Index) })
	place := map[string]int{}
	for i, r := range c.all {
		place[recordName(r)] = i
	}
	c.findings = slices.SortedFunc(maps.Keys(g.found), func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place[a.Record], place[b.Record]), cmp.Compare(a.Guarantee, b.Guarantee), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	c.notes[Content] = "every signature is valid over the canonical payload"
	c.notes[Authentication] = "every signature was made with the key that the trust file gives for the actor in this role"
	c.notes[Order] = "each file is of this log, and none contradicts another about it"
	c.oneHistory(g)
	c.graph = newGraph(c.all)
	c.byDigest = c.graph.ByDigest
	c.tags()
	c.reviews()
	if c.applies(Chain) {
		c.chain()
	}
	return c
}

// oneHistory refutes a log whose files show two histories, or that has one record_id twice.
func (c *check) oneHistory(g *gathered) {
	for _, size := range slices.Sorted(maps.Keys(g.forked)) {
		c.fork("the files show two checkpoints of %d entries with different roots", size)
	}
	for _, r := range g.doubled {
		c.refute(Order, "fork", r, "the files show two records at index %d", r.Log.Index)
	}
	seen := map[string]bool{}
	for _, r := range c.all {
		if seen[recordName(r)] {
			c.refute(Order, "twin", r, "the log has another record with this id, at a lower index")
		}
		seen[recordName(r)] = true
	}
}
