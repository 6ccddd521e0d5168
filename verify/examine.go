package verify

import (
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/fault"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify/graph"
	"jurat/verify/trust"
)

// An examined record was looked at alone, with its whole payload. What the rules over several records need of it is kept, and
// is small: a bundle can be larger than the memory.
type examined struct {
	share  *timestamp.Share // of the budget, with which it was examined
	whole  *evidence.Record // as it was opened
	record *evidence.Record // slim
	said   graph.Spoken
	found  []Finding
	placed []Finding // under order, which is told after everything else that was found
	times  []trust.TimeOf

	unasked bool            // as in check
	vouched map[string]bool // as in check
}

// examine asks the questions that a record has to answer alone. It changes nothing of the check but what the budget gives out, so that
// many records can be examined at once.
func (c *check) examine(r *evidence.Record) examined { return c.examineWith(c.budget.Share(), r) }

func (c *check) examineWith(share *timestamp.Share, r *evidence.Record) examined {
	alone := c.alone(r, share)
	e := examined{share: share, whole: r, record: slim(r), said: graph.SpokenIn(r), found: alone.findings, times: alone.times,
		unasked: alone.Unasked, vouched: alone.vouched}
	alone.findings = nil
	alone.place(r)
	e.placed = alone.findings
	return e
}

// alone asks a record's time, its signatures and what it discloses.
func (c *check) alone(r *evidence.Record, share *timestamp.Share) *check {
	alone := &check{Checker: c.Checker, options: c.options, log: c.log, checkpoint: c.checkpoint, vouched: map[string]bool{}}
	alone.Share, alone.Unasked = share, false
	at := alone.time(r)
	alone.before(r, at)
	for i := range r.Payload.Signers {
		alone.signature(r, i, at)
	}
	if err := r.CheckDisclosures(); err != nil {
		alone.refute(Content, "disclosure", r, "%v", err)
	}
	return alone
}

// Sealed says of a record by itself what stands most against its content, its authentication and its time: what Record says of these
// three, for who verifies very many records and proves their places otherwise. Where nothing does, the Status is Proved. If the
// program itself fails on the record, content is not proved.
//
// That it claims a later time than the one that is proved is nothing against its having been sealed: the Status is Proved then, too, and
// the Rule Skew.
func Sealed(r *evidence.Record, o Options) (worst Finding) {
	err := fault.Guard(func() error {
		worst = sealed(r, o)
		return nil
	})
	if err != nil {
		return Finding{Guarantee: Content, Status: NotProved, Record: recordName(r), Reason: err.Error()}
	}
	return worst
}

func sealed(r *evidence.Record, o Options) Finding {
	c := &check{Checker: newChecker(o), options: o, budget: timestamp.NewBudget()}
	c.openStamped("", nil)
	worst := Finding{Status: Proved}
	for _, f := range c.alone(r, c.budget.Turn()).findings {
		if f.Guarantee != Content && f.Guarantee != Authentication && f.Guarantee != Time {
			continue
		}
		if f.Rule == Skew {
			f.Status = Proved
		}
		if f.Status.worse(worst.Status) || worst.Rule == "" && f.Rule == Skew {
			worst = f
		}
	}
	return worst
}

// take keeps what was found of the next record. A record that was examined before those in front of it were taken may have had another
// share of the budget than it had to have: it is examined again.
func (c *check) take(e examined) {
	if !c.budget.Settle(e.share) {
		e = c.examineWith(c.budget.Turn(), e.whole)
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
	c.findings = c.keep(c.findings, e.found...)
	c.placed = c.keep(c.placed, e.placed...)
	c.times = append(c.times, e.times...)
	c.Unasked = c.Unasked || e.unasked
	maps.Copy(c.vouched, e.vouched)
}

// count counts what is kept of a record, and keeps less of it where that is too much.
func (c *check) count(e examined) {
	if c.volume.take(e.whole) {
		for _, r := range c.all {
			drop(r)
		}
	}
	if c.volume.exceeded != "" {
		drop(e.record)
	}
}

// slim is what other records' rules may ask of a record: who, when, which, what it follows. Texts are left behind, and a trial's
// acts keep theirs, as the trial is conducted again from them. Of a review stays the position that it may give a verdict.
func slim(r *evidence.Record) *evidence.Record {
	s := &evidence.Record{Payload: r.Payload, Digest: r.Digest}
	if r.Log != nil {
		s.Log = &evidence.LogProof{LogCounts: r.Log.LogCounts, Checkpoint: r.Log.Checkpoint, Index: r.Log.Index}
	}
	p := &s.Payload
	p.Schema = evidence.Schema
	given := jury.PositionGiven(r)
	if p.ActionType.InTrial() {
		return s
	}
	withoutTexts(s)
	for _, value := range []*jsontext.Value{&p.Parameters, &p.ModifiedResponse} {
		if len(*value) > 0 {
			*value = there
		}
	}
	for _, name := range []*string{&p.Model, &p.ModelVersion} {
		if *name != "" {
			*name = string(there)
		}
	}
	if given != "" {
		p.ModifiedResponse = jury.ModifiedVerdict(given)
	}
	return s
}

// there stands for a value of which only that it is there is asked.
var there = jsontext.Value("null")

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

// begin opens the checkpoint, which stands before the records, and asks what its time stamps prove.
func (c *check) begin(checkpoint string, stamps []evidence.Timestamp) {
	c.Share = c.budget.Turn()
	c.openStamped(checkpoint, stamps)
	c.budget.Settle(c.Share)
	if c.log = c.checkpoint.tree; c.log != nil {
		c.witnessed(checkpoint)
		return
	}
	status := NotProved
	if errors.Is(c.checkpoint.err, trust.ErrForged) || errors.Is(c.checkpoint.err, trust.ErrNoCheckpoint) {
		status = Refuted
	}
	c.placed = []Finding{{Guarantee: Order, Status: status, Rule: "checkpoint", Reason: c.checkpoint.err.Error()}}
}

// end sums up what the records say alone, and puts them together.
func (c *check) end() {
	c.notes[Content] = "every signature is valid over the canonical payload"
	c.notes[Authentication] = "every signature was made with the key that the trust file gives for the actor in this role"
	c.notes[NonRepudiation] = "the actors keep their keys themselves"
	if len(c.all) == 0 {
		for _, g := range []Guarantee{Content, Authentication, NonRepudiation, Time, Order} {
			c.doubt(g, "empty", nil, "there is no record in the file")
		}
	}
	c.noteVouched()
	c.noteTimes()
	c.findings = append(c.findings, c.placed...) // which were counted when they were found
	c.placed = nil
	c.noteOrder()
	c.graph = new(graph.Graph)
	if c.volume.exceeded == "" && (c.kind != OneRecord || slices.ContainsFunc(c.all, graph.Decides)) { // else nothing is asked of it
		c.graph = graph.New(c.all)
	}
	c.byDigest = c.graph.ByDigest
	c.knownLog()
}
