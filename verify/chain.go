package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/verify/graph"
)

// chained reports whether a record is judged by the rules of chains. Acts of a trial have a stricter law of their own;
// to a review in a trial's chain they are what it follows.
func chained(r *evidence.Record) bool {
	p := &r.Payload
	return !p.ActionType.InTrial() && (p.ChainID != "" || p.ChainPosition > 0 || p.ParentRequestID != "" ||
		p.PreviousAgent != "" || p.NextAgent != "" || !p.PreviousRecord.IsZero())
}

// chain asks whether the records stand to each other as they say. It says nothing of how long a chain goes on: what
// came after its last record is not in the file, and no rule can miss it.
func (c *check) chain() {
	g, rooted := c.graph, c.graph.Rooted()
	c.notes[Chain] = "what records follow, they name by digest; places, names and claimed times agree"
	if n := c.counted(); n > 0 {
		c.notes[Chain] += fmt.Sprintf("; by the log's count, %s whole up to the last record here", plural.Of(n, "chain")+plural.Or(n, " is", " are"))
	}
	for _, r := range g.All {
		if !chained(r) {
			continue
		}
		c.bound(r)
		c.position(r)
		c.previousAgent(r)
		c.nextAgent(r)
		c.forward(r)
		c.parent(r, rooted)
	}
	c.restOn(Chain, Content, Authentication, Order)
}

// restOn: what records say together counts as proved only if each is proved to be what it seems.
func (c *check) restOn(g Guarantee, on ...Guarantee) {
	if !c.applies(g) {
		return
	}
	for _, other := range on {
		if f := c.worst(other); f != nil && c.worst(g) == nil {
			c.doubt(g, "rests", nil, "it rests on records whose %s is %s", other, f.Status)
		}
	}
}

// unsure refutes what is wrong of a record that names its chain, and doubts it of one that may simply not belong there.
func (c *check) unsure(rule string, r *evidence.Record, format string, args ...any) {
	c.add(Chain, c.missed(r.Payload.ChainID != ""), rule, r, format, args...)
}

// missed is what the lack of a record comes to: refuted where it must be there, but not proved of files that were chosen by their reader.
func (c *check) missed(must bool) Status {
	if must && c.kind != SeveralFiles {
		return Refuted
	}
	return NotProved
}

// counted holds each chain against the log's own count of it: what the log counted and the file leaves out was said too.
// It returns how many chains the log counts.
func (c *check) counted() int {
	counts, broken := map[string]int64{}, map[string]bool{}
	for _, r := range c.all {
		id := r.Payload.ChainID
		if id == "" || r.Log == nil || broken[id] {
			continue
		}
		counts[id]++
		if r.Log.ChainSeq == counts[id] {
			continue
		}
		broken[id] = true
		if chained(r) { // of an act of a trial, the trial's own rules tell
			c.add(Chain, c.missed(true), "gap", r, "the log counts it as record %d of chain %q, and it is number %d in the file: something was left out",
				r.Log.ChainSeq, id, counts[id])
		}
	}
	return len(counts)
}

// bound asks whether a record names what it follows by digest, and whether that is there.
func (c *check) bound(r *evidence.Record) {
	p, g := &r.Payload, c.graph
	if c.dangling(r) || len(g.Within(r)) > 0 {
		return
	}
	if p.ChainPosition > 1 && len(g.At[g.Before(r)]) == 0 {
		c.unsure("gap", r, "it stands at position %d, and no record of its chain at position %d", p.ChainPosition, p.ChainPosition-1)
		return
	}
	named := g.Named(r)
	begins := p.ChainPosition == 1 || p.ChainPosition == 0 && (g.First[g.Threads[r]] == r || len(named) > 0 || len(g.Parents(r)) > 0)
	known := p.PreviousAgent == "" || !p.PreviousRecord.IsZero() || anyOf(named, p.PreviousAgent)
	if begins && known {
		return
	}
	c.doubt(Chain, "unbound", r, "it names no record of its chain by digest: what it follows is said by names and places alone, and could be another record of that name")
}

// dangling looks for links to records that are not in the file, and reports whether the record before is missing.
func (c *check) dangling(r *evidence.Record) bool {
	p := &r.Payload
	for _, d := range p.Saw {
		if c.byDigest[d] == nil {
			c.doubt(Chain, "dangling", r, "it names %s, and the file has no such record", d)
			break
		}
	}
	if p.PreviousRecord.IsZero() || c.byDigest[p.PreviousRecord] != nil {
		return false
	}
	// At the beginning of a chain, the record before is of another one.
	c.add(Chain, c.missed(p.ChainPosition > 1), "dangling", r, "the record before it is %s, and the file has no such record", p.PreviousRecord)
	return true
}

// position: one more than the highest place among what it names. So acts of one round, which name the same, share one.
func (c *check) position(r *evidence.Record) {
	p, highest := &r.Payload, int64(0)
	for _, other := range c.graph.Within(r) {
		highest = max(highest, other.Payload.ChainPosition)
	}
	if p.ChainPosition > 0 && highest > 0 && p.ChainPosition != highest+1 {
		c.refute(Chain, "position", r, "it stands at position %d, and what it names at %d", p.ChainPosition, highest)
	}
}

// previousAgent holds the name of who went before against the record before, or, where no digest says which record
// that is, against those that may be it.
func (c *check) previousAgent(r *evidence.Record) {
	p, g := &r.Payload, c.graph
	if p.PreviousAgent == "" {
		return
	}
	if !p.PreviousRecord.IsZero() {
		before := g.ByDigest[p.PreviousRecord]
		if before != nil && before.Payload.Actor() != p.PreviousAgent {
			c.refute(Chain, "previous-agent", r, "it names %q as the one before, and the record before it is of %q", p.PreviousAgent, before.Payload.Actor())
		}
		return
	}
	saw := g.Within(r)
	if anyOf(saw, p.PreviousAgent) {
		return
	}
	before := g.Before(r)
	_, named := g.Claimed(before, p.PreviousAgent)
	if _, any := g.Claimed(before, ""); !named && (any || len(saw) > 0) {
		c.unsure("previous-agent", r, "it names %q as the one before, and no record before it in the chain is of that name", p.PreviousAgent)
	}
}

// anyOf reports whether one of the records is this actor's.
func anyOf(records []*evidence.Record, actor string) bool {
	return slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.Actor() == actor })
}

// nextAgent asks whether somebody of the name that a record passes on to took over.
func (c *check) nextAgent(r *evidence.Record) {
	p, g := &r.Payload, c.graph
	if p.NextAgent == "" {
		return
	}
	after := g.After(r)
	placed := p.ChainPosition > 0
	if placed && g.IsLoose(after, p.NextAgent) {
		return
	}
	contradicted := placed && g.IsLoose(after, "")
	for _, other := range g.Followers[r] {
		if other.Payload.Actor() == p.NextAgent {
			return
		}
		contradicted = contradicted || graph.Carries(other) && g.Threads[other] == g.Threads[r] // another chain has its own order
	}
	if contradicted {
		c.unsure("next-agent", r, "it passes on to %q, and what follows it is by others", p.NextAgent)
		return
	}
	c.doubt(Chain, "next-agent", r, "it passes on to %q, of whom no record follows in the file", p.NextAgent)
}

// forward: nobody can claim to have acted before what it followed. It is the claims that are compared; that the log's
// order agrees is for the guarantee of order.
func (c *check) forward(r *evidence.Record) {
	p, g := &r.Payload, c.graph
	for _, other := range g.Named(r) {
		if p.Time().Before(other.Payload.Time()) {
			c.refute(Chain, "time", r, "it claims %s, and record %s, which it names, claims %s", p.Timestamp, recordName(other), other.Payload.Timestamp)
			return
		}
	}
	if p.ChainPosition < 2 || len(g.Within(r)) > 0 {
		return
	}
	if earliest, there := g.Claimed(g.Before(r), p.PreviousAgent); there && p.Time().Before(earliest) {
		c.unsure("time", r, "it claims %s, and what stands before it in the chain %s", p.Timestamp, utc(earliest))
	}
}

// parent asks for the request that a record calls its parent. A parent is often recorded after its children, so there
// is no order in this link; and it can be in another chain, or in none.
func (c *check) parent(r *evidence.Record, rooted map[string]bool) {
	p := &r.Payload
	switch {
	case p.ParentRequestID == "":
	case len(c.graph.Parents(r)) == 0:
		c.doubt(Chain, "parent", r, "it belongs to the request %q, of which the file has no other record", p.ParentRequestID)
	case p.RequestID != "" && !rooted[p.RequestID]:
		c.add(Chain, c.missed(true), "cycle", r, "from request to parent request, it never comes to a beginning: the parents go in a circle")
	}
}
