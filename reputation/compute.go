package reputation

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// View computes the result. Its error says that the facts contradict themselves: they have one record twice.
func (f *Facts) View() (*View, error) {
	c := &computation{facts: f, policy: f.Policy, records: map[evidence.Digest]*RecordFact{}, classes: map[classKey]*class{}, rests: map[evidence.Digest]bool{},
		logged: map[evidence.Digest]bool{}, judging: map[evidence.Digest]bool{}, aside: map[evidence.Digest]bool{}, heeded: map[evidence.Digest]bool{}}
	seen := map[evidence.Digest]bool{}
	for _, r := range f.all() {
		if seen[r.Digest] {
			return nil, fmt.Errorf("reading facts: record %s is there twice", r.Digest)
		}
		seen[r.Digest] = true
		if r.what == TheTrial || r.what == TheDecision || r.what == TheReview {
			c.judging[r.Digest] = true
		}
	}
	for i := range f.Logs {
		for _, d := range f.Logs[i].Actor {
			c.logged[d] = true
		}
	}
	fingerprint, err := f.Policy.Fingerprint()
	if err != nil {
		return nil, fmt.Errorf("fingerprint of the policy: %w", err)
	}
	c.view = &View{Format: Format, Formula: Formula, At: rfc3339(f.At), Identity: f.Identity.view(), Trust: f.Trust, Policy: fingerprint,
		Minimum: f.Policy.Minimum, Incidents: []Incident{}, Allegations: []Allegation{}, LeftOut: []Omission{}}
	c.takeRecords()
	c.takeTrials()
	c.takeReviews()
	c.incidents()
	c.completeness()
	c.score()
	c.coverage()
	c.sort()
	return c.view, nil
}

// computation is one View in the making.
type computation struct {
	facts   *Facts
	policy  *Policy
	view    *View
	records map[evidence.Digest]*RecordFact // that count
	classes map[classKey]*class
	rests   map[evidence.Digest]bool

	unproved bool // judgments are at hand whose place in the log is not proved, so no class has a number

	logged  map[evidence.Digest]bool // the agent's records, by the logs' entries
	judging map[evidence.Digest]bool // what is at hand and judges: judgments, decisions, reviews
	aside   map[evidence.Digest]bool // records that a rule of the reader sets aside, and no lack of proof
	heeded  map[evidence.Digest]bool // judgments that count, or that a rule of the reader sets aside
}

type classKey struct {
	name  ClassName
	panel evidence.Digest
}

// class is a Class in the making.
type class struct {
	panel    *Panel
	verdicts []*verdict
}

// verdict is one on all records that it is over.
type verdict struct {
	place     Place
	at        int64
	position  jury.Position
	caseSeq   int64
	exhibits  []evidence.Digest // that count
	shared    int64
	raters    []Rater
	overturns *int64 // the place of the decision that overturned it; nil: none did
}

func (c *computation) leave(what What, p Place, rule, actor string) {
	c.view.LeftOut = append(c.view.LeftOut, Omission{What: what, Record: p.Digest, ID: p.ID, Rule: rule, Actor: actor})
}

// stands returns the rule by which something does not count: it is not proved, or not by a time that counts; "": it counts.
func (c *computation) stands(s Standing) string {
	switch at := c.policy.when(s); {
	case !s.Proved:
		return cmp.Or(s.Rule, "unproved")
	case at == 0:
		return "time"
	case at > c.facts.At:
		return ruleLater
	}
	return ""
}

// ruleLater is for what is later than the moment of asking.
const ruleLater = "later"

func (c *computation) takeRecords() {
	for i := range c.facts.Records {
		r := &c.facts.Records[i]
		rule := ""
		if r.Proved && (!c.facts.Identity.is(r) || !c.mayTell(r)) {
			rule = "identity"
		} else if rule = c.stands(r.Standing); rule == "" && c.revoked(r) {
			rule = "revoked"
		}
		if rule != "" {
			c.leave(TheRecord, r.Place, rule, "")
			c.aside[r.Digest] = rule == "identity" || rule == "revoked" || rule == ruleLater
			continue
		}
		c.records[r.Digest] = r
	}
}

// revoked reports whether an act of the log, which the reader's trust file may not know yet, revoked a key of a record that nothing shows to be older.
func (c *computation) revoked(r *RecordFact) bool {
	return slices.ContainsFunc(c.facts.Revocations, func(v RevocationFact) bool {
		return v.Proved && slices.Contains(r.Keys, v.KeyID) && (r.Independent == 0 || r.Independent >= v.From)
	})
}

func (c *computation) takeTrials() {
	for i := range c.facts.Trials {
		t := &c.facts.Trials[i]
		own := c.own(t.Raters)
		exhibits := c.exhibits(t.Exhibits)
		switch {
		case !t.Proved:
			c.leave(TheTrial, t.Place, cmp.Or(t.Rule, "unproved"), "")
		case t.Transcript:
			c.allege(t)
			c.heedTrial(t)
		case own != "":
			c.leave(TheTrial, t.Place, "own-side", own)
			c.heedTrial(t)
		case len(exhibits) == 0:
			c.leave(TheTrial, t.Place, "exhibits", "")
			if !c.lacks(t) {
				c.heedTrial(t)
			}
		default:
			decision := c.last(t, c.leave)
			c.heedStanding(t)
			c.juryVerdict(t, exhibits, decision)
			c.peopleVerdict(t, exhibits, decision)
		}
	}
}

// heedTrial notes that a trial, with all that people decided on it, is taken into account or set aside by a rule of the reader.
func (c *computation) heedTrial(t *TrialFact) {
	c.heeded[t.Digest] = true
	for i := range t.Decisions {
		c.heeded[t.Decisions[i].Digest] = true
	}
}

// heedStanding notes it of what in a trial is proved, unless a record that the trial judged could count and does not.
func (c *computation) heedStanding(t *TrialFact) {
	if c.lacks(t) {
		return
	}
	c.heeded[t.Digest] = c.known(t.Standing)
	for i := range t.Decisions {
		c.heeded[t.Decisions[i].Digest] = c.known(t.Decisions[i].Standing)
	}
}

// known reports whether something is proved by a time that counts, or is later than the moment of asking.
func (c *computation) known(s Standing) bool {
	rule := c.stands(s)
	return rule == "" || rule == ruleLater
}

// lacks reports whether an exhibit, by the submission or the logs' entries a record of the agent, is not at hand or not proved: it could hide a verdict.
func (c *computation) lacks(t *TrialFact) bool {
	missing := func(d evidence.Digest) bool { return c.records[d] == nil && !c.aside[d] }
	return slices.ContainsFunc(t.Own, missing) || slices.ContainsFunc(t.Exhibits, func(d evidence.Digest) bool { return c.logged[d] && missing(d) })
}

// about reports whether a review is of a record that counts or is set aside, of what was done in a trial, of another review, or names no digest.
func (c *computation) about(r *ReviewFact) bool {
	return len(r.Names) == 0 || slices.ContainsFunc(r.Names, func(d evidence.Digest) bool { return c.records[d] != nil || c.aside[d] || c.judging[d] })
}

// own returns the first of these raters, by name, that is of the agent's own organisation; "": none is.
func (c *computation) own(raters []Rater) (first string) {
	for _, r := range raters {
		if text := r.text(); c.ownSide(r) && (first == "" || text < first) {
			first = text
		}
	}
	return first
}

func (c *computation) exhibits(all []evidence.Digest) (counting []evidence.Digest) {
	for _, d := range all {
		if c.records[d] != nil {
			counting = append(counting, d)
		}
	}
	slices.SortFunc(counting, compareDigests)
	return slices.Compact(counting)
}

func (c *computation) allege(t *TrialFact) {
	a := Allegation{Record: t.Digest, ID: t.ID, At: rfc3339(c.policy.when(t.Standing)), Position: t.Position, CaseSeq: t.CaseSeq}
	for _, r := range t.Raters {
		if r.Role == evidence.RoleSubmitter && (a.Submitter == "" || r.Name < a.Submitter) {
			a.Submitter = r.Name
		}
	}
	if last := c.last(t, func(What, Place, string, string) {}); last != nil { // of a transcript's trial nothing is left out: nothing counts
		a.Decided, a.Reviewer = cmp.Or(last.Position, jury.NeedsReview), last.Reviewer.Name
	}
	c.view.Allegations = append(c.view.Allegations, a)
}

// last returns the last decision on a trial that counts, or nil, and names those that do not.
func (c *computation) last(t *TrialFact, leave func(What, Place, string, string)) (last *DecisionFact) {
	for i := range t.Decisions {
		d := &t.Decisions[i]
		switch rule := c.stands(d.Standing); {
		case rule != "":
			leave(TheDecision, d.Place, rule, "")
		case c.ownSide(d.Reviewer):
			leave(TheDecision, d.Place, "own-side", d.Reviewer.text())
		case last == nil || cmp.Or(cmp.Compare(d.Index, last.Index), compareDigests(d.Digest, last.Digest)) > 0:
			last = d
		}
	}
	return last
}

func (c *computation) juryVerdict(t *TrialFact, exhibits []evidence.Digest, decision *DecisionFact) {
	rule := c.stands(t.Standing)
	switch {
	case rule != "":
	case t.Inconclusive:
		rule = "inconclusive"
	case t.Degraded && t.Position != jury.UnsafeFail:
		rule = "degraded"
	case t.Review && t.Position == jury.SafePass && (decision == nil || decision.Position != jury.SafePass):
		rule = "review" // it passes nobody before a person has seen it and passed the agent, too
	case !t.Panel.Rules && len(c.policy.Panels) > 0 && !slices.Contains(c.policy.Panels, t.Panel.Digest):
		rule = "panel"
	}
	if rule != "" {
		c.leave(TheVerdict, t.Place, rule, "")
		return
	}
	key := classKey{Models, t.Panel.Digest}
	if t.Panel.Rules {
		key.name = Rules
	}
	v := &verdict{place: t.Place, at: c.policy.when(t.Standing), position: t.Position, caseSeq: t.CaseSeq, exhibits: exhibits, shared: share(t.Exhibits), raters: t.Raters}
	if decision != nil && decision.Position != "" && decision.Position != t.Position {
		v.overturns = &decision.Index
	}
	c.add(key, &t.Panel, v)
}

func (c *computation) peopleVerdict(t *TrialFact, exhibits []evidence.Digest, decision *DecisionFact) {
	switch {
	case decision == nil:
	case decision.Position == "":
		c.leave(TheDecision, decision.Place, "open", "")
	default:
		c.add(classKey{name: People}, nil, &verdict{place: decision.Place, at: c.policy.when(decision.Standing), position: decision.Position, caseSeq: t.CaseSeq,
			exhibits: exhibits, shared: share(t.Exhibits), raters: []Rater{decision.Reviewer}})
	}
}

// share returns s, with 2^s at least the number of exhibits.
func share(exhibits []evidence.Digest) int64 {
	return int64(bits.Len(uint(max(len(exhibits), 1) - 1)))
}

// takeReviews takes what people rejected outside of trials. What they approved does not count: in some houses that is every day's work.
func (c *computation) takeReviews() {
	for i := range c.facts.Reviews {
		r := &c.facts.Reviews[i]
		rule, actor := c.stands(r.Standing), ""
		if rule == "" && c.ownSide(r.Reviewer) {
			rule, actor = "own-side", r.Reviewer.text()
		}
		original := c.original(r)
		if rule == "" && original == nil {
			rule = "original"
		}
		c.heeded[r.Digest] = c.known(r.Standing) && (r.Status != evidence.Rejected || rule == "own-side" || c.about(r))
		switch {
		case rule != "":
			c.leave(TheReview, r.Place, rule, actor)
		case r.Status != evidence.Rejected:
			c.view.Approvals++
		default:
			c.add(classKey{name: People}, nil, &verdict{place: r.Place, at: c.policy.when(r.Standing), position: jury.UnsafeFail,
				exhibits: []evidence.Digest{original.Digest}, raters: []Rater{r.Reviewer}})
		}
	}
}

// original returns the record that counts which a review is about, or nil.
func (c *computation) original(r *ReviewFact) (found *RecordFact) {
	for _, d := range r.Names {
		if one := c.records[d]; one != nil && one.ID == r.Original && (found == nil || compareDigests(d, found.Digest) < 0) {
			found = one
		}
	}
	return found
}

func (c *computation) add(key classKey, panel *Panel, v *verdict) {
	if c.classes[key] == nil {
		c.classes[key] = &class{panel: panel}
	}
	c.classes[key].verdicts = append(c.classes[key].verdicts, v)
}

// ownSide reports whether an actor belongs to the agent's own organisation, as far as the trust file and the policy say.
func (c *computation) ownSide(r Rater) bool {
	me := c.facts.Identity
	switch {
	case r.Name == me.Name:
		return true
	case r.By == byCAs && me.By == byCAs && r.CA == me.CA && !slices.Contains(c.policy.SharedCAs, r.CA):
		return true
	}
	return slices.ContainsFunc(c.policy.Organisations, func(o Organisation) bool {
		return o.has(Actor{evidence.RoleAgent, me.Name}, me.CA) && o.has(Actor{r.Role, r.Name}, r.CA)
	})
}

// mayTell reports whether the policy lets a recorder say what the agent did. A recorder that the policy puts into an organisation tells of the agents of that
// one alone. One that a shared CA certified tells of nobody else: the CA vouches for who the recorder is, and not for whose agents it records.
func (c *computation) mayTell(r *RecordFact) bool {
	if r.Recorder == "" {
		return true
	}
	me, listed := c.facts.Identity, false
	for i := range c.policy.Organisations {
		o := &c.policy.Organisations[i]
		if !slices.Contains(o.Actors, Actor{evidence.RoleRecorder, r.Recorder}) {
			continue
		}
		if o.has(Actor{evidence.RoleAgent, me.Name}, me.CA) {
			return true
		}
		listed = true
	}
	return !listed && !(me.By == byCAs && slices.Contains(c.policy.SharedCAs, me.CA))
}

func (o *Organisation) has(a Actor, ca string) bool {
	return slices.Contains(o.Actors, a) || ca != "" && slices.Contains(o.CAs, ca)
}

func (r *Rater) text() string { return string(r.Role) + " " + r.Name }

func (c *computation) incidents() {
	for _, k := range c.facts.Identity.Keys {
		if k.Revoked != 0 {
			c.view.Incidents = append(c.view.Incidents, Incident{KeyID: k.KeyID, From: rfc3339(k.Revoked), Source: "trust"})
		}
	}
	for i := range c.facts.Revocations {
		r := &c.facts.Revocations[i]
		if !r.Proved {
			c.leave(TheRevocation, r.Place, cmp.Or(r.Rule, "unproved"), "")
			continue
		}
		c.heeded[r.Digest] = true
		c.view.Incidents = append(c.view.Incidents, Incident{KeyID: r.KeyID, From: rfc3339(r.From), Source: "log", Record: r.Digest.String()})
	}
}

func (c *computation) coverage() {
	judged, known := map[evidence.Digest]bool{}, int64(0)
	for _, r := range c.records {
		if r.Recorder == "" { // the log counts for nobody what a recorder saw an agent do
			known++
		}
	}
	for _, one := range c.view.Classes {
		for _, u := range one.Units {
			if c.records[u.Digest].Recorder == "" {
				judged[u.Digest] = true
			}
		}
	}
	v := Coverage{Judged: int64(len(judged)), Known: known}
	whole := len(c.view.Completeness) > 0
	for _, l := range c.view.Completeness {
		v.Total += l.Records.Total
		whole = whole && l.Records.Status == verify.Proved
	}
	if !whole || v.Total < v.Known {
		v.Total = 0
	}
	if of := cmp.Or(v.Total, v.Known); of > 0 {
		v.PerMyri = v.Judged * 10_000 / of
	}
	c.view.Coverage = v
}

// sort gives each list its one order.
func (c *computation) sort() {
	v := c.view
	slices.SortFunc(v.Incidents, func(a, b Incident) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.KeyID.String(), b.KeyID.String()), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Record, b.Record))
	})
	slices.SortFunc(v.Allegations, func(a, b Allegation) int { return compareDigests(a.Record, b.Record) })
	slices.SortFunc(v.LeftOut, func(a, b Omission) int {
		return cmp.Or(cmp.Compare(a.What, b.What), compareDigests(a.Record, b.Record), cmp.Compare(a.Rule, b.Rule))
	})
	v.RestsOn = filled(slices.SortedFunc(maps.Keys(c.rests), compareDigests))
}

func compareDigests(a, b evidence.Digest) int { return bytes.Compare(a[:], b[:]) }

// rfc3339 writes a time; "" for none.
func rfc3339(unix int64) string {
	if unix == 0 {
		return ""
	}
	return time.Unix(unix, 0).UTC().Format(time.RFC3339)
}

func (i *Identity) view() Identified {
	v := Identified{Name: i.Name, By: i.By, CA: i.CA, Keys: []KeySpan{}}
	for _, k := range i.Keys {
		v.Keys = append(v.Keys, KeySpan{KeyID: k.KeyID, From: rfc3339(k.From), To: rfc3339(k.To), Revoked: rfc3339(k.Revoked)})
	}
	slices.SortFunc(v.Keys, func(a, b KeySpan) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.KeyID.String(), b.KeyID.String()))
	})
	return v
}
