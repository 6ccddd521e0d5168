package verify

import (
	"errors"
	"slices"

	"jurat/evidence"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// An examined record was checked alone, with its whole payload. It keeps the small part that the rules over several
// records need, because a bundle can be larger than the memory.
type examined struct {
	share  *timestamp.Share // the share of the budget that the examination used
	whole  *evidence.Record // as opened
	record *evidence.Record // slim
	said   spoken
	proofs proofs
	shows  []member // of each demand
	look   *look    // nil: not a recorder's

	outcome
	unasked bool // as in trust.Checker
}

// examine checks everything that concerns one record alone. It changes nothing of the check, so that many
// records can be examined at once.
func (c *check) examine(r *evidence.Record) examined { return c.examineWith(timestamp.NewShare(), r) }

func (c *check) examineWith(share *timestamp.Share, r *evidence.Record) examined {
	alone := c.alone(r, share)
	e := examined{share: share, whole: r, record: slim(r), said: spokenIn(r), proofs: proofsOf(r), look: lookAt(r)}
	for _, d := range c.options.Demands {
		e.shows = append(e.shows, find(r, d.pointer))
	}
	e.said.Names = NamedActor(&r.Payload)
	before := len(alone.findings)
	alone.place(r)
	e.outcome, e.unasked = alone.outcome, alone.Unasked
	e.findings, e.placed = alone.findings[:before:before], alone.findings[before:]
	return e
}

// alone checks a record's time, its signatures and what it discloses.
func (c *check) alone(r *evidence.Record, share *timestamp.Share) *check {
	alone := &check{Checker: c.Checker.Alone(share), options: c.options, log: c.log, anchors: c.anchors, outcome: outcome{vouched: map[string]vouched{}}}
	at := alone.time(r)
	if c.options.Policy == Strict {
		if at.Checked == nil {
			alone.doubt(Time, "policy", r, "no authority proves its time whose clock is independent and whose certificates were checked for revocation")
		}
		at.Demanded, at.Independent = true, at.Checked
	}
	alone.before(r, at)
	alone.qualified(r, at)
	for i := range r.Payload.Signers {
		n := len(alone.findings)
		by := alone.signature(r, i, at)
		if by != nil && !slices.ContainsFunc(alone.findings[n:], unsure) {
			alone.identified = trust.AddIdentified(alone.identified, *by)
		}
	}
	if err := r.CheckDisclosures(); err != nil {
		alone.refute(Content, disclosureRule(err), r, "%v", err)
	}
	return alone
}

// unsure reports whether a finding is about who said what.
func unsure(f Finding) bool { return f.Guarantee == Content || f.Guarantee == Authentication }

// disclosureRule tells a false disclosure from one that shows a false second commitment.
func disclosureRule(err error) string {
	if errors.Is(err, evidence.ErrProvable) {
		return "provable"
	}
	return "disclosure"
}

// take keeps the findings about the next record. If the record was examined ahead of time and spent more than the file has left, take examines it
// again.
func (c *check) take(e examined) {
	if !c.budget.Settle(e.share) {
		e = c.examineWith(c.budget.Share(), e.whole)
		c.budget.Settle(e.share)
	}
	if c.options.Each != nil {
		c.options.Each(e.whole)
	}
	c.intern(e.record)
	c.all = append(c.all, e.record)
	c.said[e.record] = e.said
	c.count(e)
	c.details.room += roomOfRecord
	c.findings = c.keep(c.findings, e.findings...)
	c.prove(e.whole, e.proofs, e.shows)
	c.sight(e)
	c.placed = c.keep(c.placed, e.placed...)
	c.times = append(c.times, e.times...)
	c.identified = trust.AddIdentified(c.identified, e.identified...)
	c.party(e.identified)
	for _, g := range e.ownWord {
		c.onWord(g)
	}
	c.Unasked = c.Unasked || e.unasked
	for name, by := range e.vouched {
		c.vouched[name] = by.and(c.vouched[name])
	}
}

// count counts what the check keeps of a record, and keeps less once a bound is exceeded.
func (c *check) count(e examined) {
	if c.volume.Take(e.whole) {
		for _, r := range c.all {
			dropLinks(r)
		}
	}
	if c.volume.Exceeded != "" {
		dropLinks(e.record)
	}
}

// intern keeps each name once, however many records have it.
func (c *check) intern(r *evidence.Record) {
	p := &r.Payload
	for _, name := range []*string{&p.AgentID, &p.ReviewerID, &p.ChainID, &p.PreviousAgent, &p.NextAgent, &p.Model, &p.ModelVersion,
		(*string)(&p.ActionType)} {
		if known, ok := c.names[*name]; ok {
			*name = known
		} else {
			c.names[*name] = *name
		}
	}
}

// begin opens the checkpoint and the anchors, which stand before the records, and checks what the anchors prove.
func (c *check) begin(checkpoint string, list []evidence.Anchor) {
	tree, err := c.openCheckpoint(checkpoint)
	if err == nil {
		c.log = &tree
		c.witnessed(checkpoint)
	} else {
		status := NotProved
		if errors.Is(err, trust.ErrForged) || errors.Is(err, trust.ErrNoCheckpoint) {
			status = Refuted
		}
		c.placed = []Finding{{Guarantee: Order, Status: status, Rule: "checkpoint", Reason: err.Error()}}
	}
	c.Share = c.budget.Share()
	c.openAnchors(list, err)
	c.budget.Settle(c.Share)
}

// end sums up the findings about single records and checks the records together.
func (c *check) end() {
	c.notes[Content] = "every signature is valid over the canonical payload"
	c.notes[Authentication] = "every signature was made with the key that the trust file gives for the actor in this role"
	c.notes[NonRepudiation] = "the actors keep their keys themselves"
	if len(c.all) == 0 {
		for _, g := range []Guarantee{Content, Authentication, NonRepudiation, Time, Qualified, Property, Order} {
			if c.applies(g) {
				c.doubt(g, "empty", nil, "the file has no record")
			}
		}
	}
	c.noteVouched()
	c.noteTimes()
	c.noteSights()
	c.findings = append(c.findings, c.placed...) // counted when they were found
	c.placed = nil
	c.noteOrder()
	c.graph = new(graph)
	if c.volume.Exceeded == "" && (c.kind != OneRecord || slices.ContainsFunc(c.all, decides)) { // otherwise the guarantee does not apply
		c.graph = newGraph(c.all)
	}
	c.byDigest = c.graph.ByDigest
	c.proven()
	c.knownLog()
	c.noteGaps()
}
