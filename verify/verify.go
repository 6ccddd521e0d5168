package verify

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/inorder"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// Options is what a reader brings to a verification.
type Options struct {
	Trust   *trust.Trust           // nil: nothing can be proved
	Policy  Policy                 // how much must be proved; "": Default
	Require []Guarantee            // count for the outcome besides those that always do; they are not proved if they do not apply
	Need    Need                   // what the proof must rest on; the level also says which guarantees count
	Demands []*Demand              // what proofs or values must show; with any, Property counts
	Before  time.Time              // also ask whether each record existed before this moment; zero: do not ask
	At      time.Time              // the moment of checking; zero: none is given
	CRLs    []*x509.RevocationList // the reader's revocation lists of CAs, unchecked; see ParseCRL
	Grace   time.Duration          // see trust.DefaultGrace, which zero stands for

	PolicyFile *PolicyFile // from which some of this was taken, for the report; nil: none

	// What the reader knows of the log from elsewhere. It shows whether the log has lost records or has two
	// histories.
	Checkpoint  string                // a signed note, from another time than the file; "": none
	Consistency *operator.Consistency // between that checkpoint and the file's; nil: none
	Entries     io.ReaderAt           // all entries that Checkpoint covers (without Checkpoint: those of the file's own); nil: none

	// Each is called with every opened record of a file, in the order of the file, by one goroutine at a time. It may
	// be called even if the rest of the file cannot be opened. nil: not called.
	Each func(*evidence.Record)

	// Together collects verified files, to check them together; nil: each file is checked alone.
	Together *Together

	// Memory saves work over many verifications with the same Trust; they may run at the same time. nil: each has its
	// own.
	Memory *timestamp.Memory

	// UnsafeAllowMock accepts the mock time-stamping authority, whose key is public. For tests.
	UnsafeAllowMock bool

	known struct { // by KeepFingerprint: a trust file with the lists of the whole EU takes 10 ms for a fingerprint
		trust       *trust.Trust
		fingerprint string
	}

	envelope *envelope // what the records came in; nil: nothing
	mended   bool      // the file was not in canonical form
}

// ErrNotOurs says that a file is of a kind that this package does not check. A damaged file of a known kind is not
// ErrNotOurs.
var ErrNotOurs = errors.New("neither a sealed record nor a bundle of records, a SCITT statement or a checkpoint")

// ErrFault says that the program itself failed on a file. It says nothing about the file.
var ErrFault = fault.ErrFault

// Record checks one record. If the program itself fails on it, nothing is proved, and the report says so.
func Record(r *evidence.Record, o Options) *Report {
	return guarded(OneRecord, o, func() *Report { return record(r, o) })
}

func record(r *evidence.Record, o Options) *Report {
	c := newCheck(o, OneRecord)
	var log evidence.LogProof
	if r.Log != nil {
		log = *r.Log
	}
	c.begin(log.Checkpoint, log.Anchors)
	c.take(c.examine(r))
	c.end()
	c.tags()
	c.configuration()
	if r.Payload.ActionType.InTrial() {
		c.kind = Trial
	}
	ask(&c.findings, rulesOfOneAct, nil, r)
	c.reviews()
	c.noteLog()
	o.Together.take(c)
	return c.report()
}

// Bundle checks records that were cut from one log, with their chains and reviews, and the trial if they are one. If
// the program itself fails on them, nothing is proved, and the report says so.
func Bundle(b *evidence.Bundle, o Options) *Report {
	return guarded(ManyRecords, o, func() *Report { return bundle(b, o) })
}

// guarded returns the report of make. If make panics, it returns a report in which nothing is proved or refuted.
func guarded(kind Kind, o Options, make func() *Report) *Report {
	r, err := answered(func() (*Report, error) { return make(), nil })
	if err != nil {
		r = damaged(kind, "", o, err)
		for i := range r.Guarantees {
			r.Guarantees[i] = Finding{Guarantee: r.Guarantees[i].Guarantee, Status: NotProved, Reason: err.Error()}
		}
		r.Outcome = NotProved
	}
	return r
}

func bundle(b *evidence.Bundle, o Options) *Report {
	c := newCheck(o, ManyRecords)
	c.begin(b.Checkpoint, b.Anchors)
	i := -1
	next := func() (*evidence.Record, error) {
		if i++; i == len(b.Records) {
			return nil, io.EOF
		}
		return b.Records[i], nil
	}
	take := func(e examined) error {
		c.take(e)
		return nil
	}
	if err := inorder.Do(next, func(*evidence.Record) int { return 0 }, c.examine, take); err != nil {
		panic(err) // neither reads a file, so this is no other error
	}
	return c.bundle()
}

// bundle checks all records together, after each was examined.
func (c *check) bundle() *Report {
	if slices.ContainsFunc(c.all, func(r *evidence.Record) bool { return r.Payload.ActionType.InTrial() }) {
		c.kind = Trial
	}
	c.end()
	if c.decided = slices.ContainsFunc(c.all, decides); c.volume.Exceeded == "" {
		c.joint()
	}
	ask(&c.findings, rulesOfVolume, nil, &c.volume)
	c.noteLog()
	c.options.Together.take(c)
	return c.report()
}

// joint checks what the records of a bundle say of each other.
func (c *check) joint() {
	c.configuration()
	for _, r := range c.all {
		for _, other := range c.Named(r) {
			ask(&c.findings, rulesOfNaming, r, naming{r, other})
		}
	}
	c.tags()
	c.reviews()
	c.chain()
	if c.kind == Trial {
		c.trial()
	}
}

// outcome is what was found of one record, or of a file.
type outcome struct {
	findings
	times      []trust.TimeOf
	identified []trust.Identified // the signers, see Report
	ownWord    []Guarantee        // those that only the operator's clock proves
	vouched    map[string]vouched // the CAs that vouched for signers, by name
}

// onWord notes that an answer is proved only as far as the operator's clock.
func (o *outcome) onWord(g Guarantee) {
	if !slices.Contains(o.ownWord, g) {
		o.ownWord = append(o.ownWord, g)
	}
}

// vouch notes that a CA vouched for a signer.
func (o *outcome) vouch(name string, by vouched) {
	if o.vouched == nil {
		o.vouched = map[string]vouched{}
	}
	o.vouched[name] = by.and(o.vouched[name])
}

// check is one verification in progress: what the reader brings, the file, and what was found of it. Rules read parts of it, and never all.
type check struct {
	trust.Checker
	options *Options
	file
	log   log
	place findings // about order, from the examination of single records; reported after all others
	intake
	outcome
	reported
}

// intake is what a check needs while records come in.
type intake struct {
	budget  *timestamp.Budget  // for the whole file
	volume  volume             // of all records
	names   map[string]string  // each name, once
	proofs  proofs             // those that records carry, and what became of demands
	sights  sights             // what recorders saw
	gaps    []*evidence.Record // those that tell of acts that no record has
	parties []Party            // of all signers
	mended  bool               // a part of the file was not in canonical form
}

// reported is what the report says besides findings.
type reported struct {
	known     *operator.Checkpoint // the reader's checkpoint of the same log; nil: not shown
	whole     string               // what the log's entries prove about the file's completeness; "": nothing
	closed    bool                 // the trial's end is there
	decided   bool                 // the file has a review, a delivery that rests on one, or a delivery of a changed text
	givenOn   bool                 // the file has a delivery that passes an answer on unchanged
	statement *Statement           // of SCITT, which the file is; nil: it is none
	notes     map[Guarantee]string // what to say about a guarantee that is proved
}

func newCheck(o Options, kind Kind) *check {
	room := &details{room: roomOfFile, reasons: map[string]string{}, worst: map[question]int{}}
	c := &check{Checker: newChecker(o), options: &o,
		file:     file{graph: new(graph), kind: kind, said: map[*evidence.Record]spoken{}, outputs: map[*evidence.Record]spokenText{}, decisions: map[string][]*evidence.Record{}},
		place:    findings{details: room},
		intake:   intake{budget: timestamp.NewBudget(), names: map[string]string{}, mended: o.mended},
		outcome:  outcome{findings: findings{details: room}, times: []trust.TimeOf{}},
		reported: reported{notes: map[Guarantee]string{Before: fmt.Sprintf("every record is proved to have existed before %s", utc(o.Before))}}}
	c.findings.applies = c.applies
	c.proofs.required = slices.Contains(o.Require, Property)
	prepared, err := c.Trust.Prepared()
	if err != nil {
		prepared = new(trust.Trust)
		ask(&c.findings, rulesOfTrust, nil, err)
	}
	c.Trust = prepared
	for _, d := range o.Demands {
		c.proofs.demands = append(c.proofs.demands, &demanded{Demand: d, byDigest: map[string]*pending{}})
	}
	return c
}

// newChecker makes a Checker from Options.
func newChecker(o Options) trust.Checker {
	c := trust.Checker{Trust: o.Trust, At: o.At, Grace: o.Grace, Memory: o.Memory, UnsafeAllowMock: o.UnsafeAllowMock}
	if c.Trust == nil {
		c.Trust = new(trust.Trust)
	}
	if c.Memory == nil {
		c.Memory = timestamp.NewMemory()
	}
	for _, list := range o.CRLs {
		c.Lists = append(c.Lists, trust.NewList(list))
	}
	return c
}

// report sums up: a guarantee is proved if there is no finding against it.
func (c *check) report() *Report {
	if c.options.envelope != nil {
		c.options.envelope.check(c)
	}
	demands := c.demands()
	r := &Report{Format: ReportFormat, Kind: c.kind, Records: len(c.all), Trust: c.options.fingerprint(),
		Policy: c.options.Policy, Demanded: c.options.demanded(), Identities: c.identified, Mended: c.mended, Outcome: Proved, Times: c.times,
		NotShown: c.notShown(), Properties: c.proofs.shown, Demands: demands, Seen: c.sights.seen, ToolsChanged: c.sights.changes, Statement: c.statement}
	if c.log.Checkpoint != nil {
		r.Log = &LogState{Origin: c.log.Origin, Size: c.log.Size}
	}
	for _, g := range Guarantees() {
		if !c.applies(g) {
			continue
		}
		f := Finding{Guarantee: g, Status: Proved, Reason: c.notes[g]}
		if slices.Contains(c.ownWord, g) {
			f.Rule = OperatorsClock
		}
		if worst := c.worst(g); worst != nil {
			f = *worst
		}
		r.Guarantees = append(r.Guarantees, f)
		// A refuted guarantee counts, even if it is not required.
		if (c.counts(g) || f.Status == Refuted) && f.Status.Worse(r.Outcome) {
			r.Outcome = f.Status
		}
	}
	for _, g := range c.asked() {
		if r.Of(g).Status.Worse(r.Outcome) {
			r.Outcome = r.Of(g).Status
		}
	}
	for _, f := range r.Guarantees {
		if f.Status == NotProved && !c.counts(f.Guarantee) && !slices.Contains(c.asked(), f.Guarantee) {
			r.Uncounted = append(r.Uncounted, f.Guarantee)
		}
	}
	r.Details, r.LeftOut = c.list, c.details.leftOut
	if r.Details == nil {
		r.Details = []Finding{}
	}
	r.TrialOutcome = c.trialOutcome()
	c.rate(r)
	return r
}

// notShown returns what even a pass of this file does not prove.
func (c *check) notShown() []string {
	if c.kind == ManyRecords && c.whole == "" || c.kind == Trial && len(c.all) > 1 && !c.closed {
		return slices.Insert(slices.Clone(notShown), 3, noTail)
	}
	return notShown
}

func (c *check) applies(g Guarantee) bool {
	if c.kind == OneCheckpoint {
		return g == Order || g == Completeness && c.options.knowsLog()
	}
	if c.kind == SeveralFiles && !slices.Contains(Required(SeveralFiles), g) {
		return false
	}
	switch g {
	case Before:
		return !c.options.Before.IsZero()
	case Qualified:
		return c.Trust.HasServices() || slices.Contains(c.options.Require, Qualified) || c.options.Need.Level == LevelQualified
	case Property:
		return c.proofs.carried > 0 || slices.Contains(c.options.required(), Property)
	case Configuration:
		return slices.ContainsFunc(c.all, statesModel)
	case Vantage:
		return slices.ContainsFunc(c.all, ByRecorder)
	case Completeness:
		return c.kind == Trial || c.kind == ManyRecords && c.options.knowsLog()
	case Simultaneity, Verdict:
		return c.kind == Trial
	case Chain:
		return c.kind != OneRecord && slices.ContainsFunc(c.all, chained)
	case Envelope:
		return c.options.envelope != nil
	case HumanReview:
		return c.decided
	case GivenOn:
		return c.givenOn
	}
	return true
}
