package verify

import (
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/jury"
)

// trial asks what only a whole trial can answer. The law of a trial stands in one place, jury.Replay, by which trials
// are conducted too; here its answer is brought under the guarantee that it concerns.
func (c *check) trial() {
	c.notes[Completeness] = "every act from the submission to the closing is there, once and in its place"
	c.notes[Simultaneity] = "everybody was asked before anybody of the round answered, and was shown only what had been said before"
	c.notes[Verdict] = "consensus, threshold and method, run again on the sealed votes, give the sealed judgment"
	defer c.restOnSignatures()
	acts, whole := c.acts()
	if !whole {
		return
	}
	c.oneTrial()
	c.evidenceOfCase()
	c.onlyThisTrial()
	c.withoutGaps()
	if acts[0].Type != evidence.Submission { // without the evidence's digest no request can be rebuilt
		c.allDoubt("submission", "the submission is not there, so the trial cannot be followed from its beginning")
		return
	}
	c.replay(acts)
}

// trialGuarantees are those that rest on all acts together.
var trialGuarantees = []Guarantee{Completeness, Simultaneity, Verdict}

// restOnSignatures: what acts say together counts as proved only if each is proved to be its actor's.
func (c *check) restOnSignatures() {
	for _, g := range []Guarantee{Content, Authentication} {
		if f := c.worst(g); f != nil {
			c.allDoubt("signatures", "it rests on acts whose %s is %s", g, f.Status)
			return
		}
	}
}

// allDoubt notes why the guarantees of a trial that nothing refutes are not proved.
func (c *check) allDoubt(rule, format string, args ...any) {
	for _, g := range trialGuarantees {
		if c.worst(g) == nil {
			c.doubt(g, rule, nil, format, args...)
		}
	}
}

// acts reads the acts. Records that are no acts of a trial (a review of the verdict, say) stand for themselves.
func (c *check) acts() (acts []jury.Act, whole bool) {
	whole = true
	for _, r := range c.all {
		if !r.Payload.ActionType.InTrial() {
			continue
		}
		a, err := jury.ReadAct(r)
		if err != nil {
			c.refute(Completeness, jury.RuleBody, r, "%s: %v", r.Payload.ActionType, err)
			whole = false
		}
		acts = append(acts, a)
	}
	if !whole {
		c.allDoubt(jury.RuleBody, "an act cannot be read")
	}
	return acts, whole
}

// oneTrial refuses acts of two trials, and of two clerks, in one bundle.
func (c *check) oneTrial() {
	var first *evidence.Payload
	clerk := ""
	for _, r := range c.all {
		p := &r.Payload
		if !p.ActionType.InTrial() {
			continue
		}
		if first == nil {
			first = p
			if p.ActionType != evidence.Submission {
				c.refute(Completeness, "submission", r, "the first act in the file is not the submission, with which every trial begins")
			}
		}
		if p.ChainID != first.ChainID || p.Case != first.Case {
			c.refute(Completeness, "one-trial", r, "it is of another trial: chain %q, case %s", p.ChainID, p.Case)
		}
		if p.Role() != evidence.RoleClerk {
			continue
		}
		if clerk == "" {
			clerk = p.AgentID
		}
		if clerk != p.AgentID {
			c.refute(Completeness, "one-clerk", r, "conducted by clerk %q, and the acts before by %q", p.AgentID, clerk)
		}
	}
}

// onlyThisTrial refuses what does not belong: beside its acts, a case file holds only what people decided on the trial.
func (c *check) onlyThisTrial() {
	var first *evidence.Record
	for _, r := range c.all {
		p := &r.Payload
		if first == nil && p.ActionType.InTrial() {
			first = r
		}
		if p.ActionType.InTrial() {
			continue
		}
		if first == nil || p.ChainID != first.Payload.ChainID || !p.Case.IsZero() && p.Case != first.Payload.Case {
			c.refute(Completeness, "foreign", r, "it is no part of this trial")
		}
	}
}

// withoutGaps holds the records of the trial's chain, its acts and the decisions on it, against the log's own count of
// them. What the log counted and the file leaves out was said too: in another branch of the trial, say, that ended less
// well.
func (c *check) withoutGaps() {
	first := slices.IndexFunc(c.all, func(r *evidence.Record) bool { return r.Payload.ActionType.InTrial() })
	want, chain := int64(0), c.all[first].Payload.ChainID
	for _, r := range c.all {
		if r.Payload.ChainID != chain || r.Log == nil {
			continue
		}
		if want++; r.Log.ChainSeq != want {
			c.refute(Completeness, "gap", r, "the log counts it as record %d of the trial, and it is number %d in the file: something was left out", r.Log.ChainSeq, want)
			return
		}
	}
}

// evidenceOfCase holds the submitted evidence against the digest that every act names. Where the evidence is sealed
// apart, the digest is that of the commitment, so this needs no disclosure.
func (c *check) evidenceOfCase() {
	for _, r := range c.all {
		p := &r.Payload
		if p.ActionType != evidence.Submission {
			continue
		}
		if digest := evidence.DigestOf(p.Response); digest != p.Case {
			c.refute(Completeness, "case", r, "the evidence has the digest %s; the acts judge %s", digest, p.Case)
		}
	}
}

// guaranteeOf says which guarantee each rule of a trial stands under.
var guaranteeOf = map[string]Guarantee{
	jury.RuleSequence:   Completeness,
	jury.RuleBody:       Completeness,
	jury.RulePrevious:   Completeness,
	jury.RulePosition:   Completeness,
	jury.RuleCompletion: Completeness,
	jury.RuleSaw:        Simultaneity,
	jury.RuleRequest:    Simultaneity,
	jury.RuleSettings:   Verdict,
	jury.RuleAnswer:     Verdict,
	jury.RuleConsensus:  Verdict,
	jury.RuleVerdict:    Verdict,
}

// replay conducts the trial again from its acts.
func (c *check) replay(acts []jury.Act) {
	replayed, err := jury.ReplayOn(c.caseDigest(), acts)
	var wrong *jury.Discrepancy
	switch {
	case errors.As(err, &wrong):
		r := c.byDigest[wrong.Act]
		c.refute(guaranteeOf[wrong.Rule], wrong.Rule, r, "%s", wrong.Reason)
		c.allDoubt(wrong.Rule, "the trial could be followed only to record %s", recordName(r))
	case err != nil:
		c.refute(Completeness, "replay", nil, "%v", err)
		c.allDoubt("replay", "the trial cannot be followed")
	case !replayed.Finished:
		c.allDoubt("closing", "the trial is not closed: it is still under way, was broken off, or its end was cut away")
	default:
		c.closed = true
		c.noteTrial(replayed)
	}
}

func (c *check) caseDigest() evidence.Digest {
	for _, r := range c.all {
		if r.Payload.ActionType == evidence.Submission {
			return r.Payload.Case
		}
	}
	return evidence.Digest{}
}

// noteTrial says what even a proved trial rests on.
func (c *check) noteTrial(replayed *jury.Replayed) {
	result := &replayed.Result
	c.notes[Verdict] += fmt.Sprintf(": %s, %d of 100 points, by %s", result.FinalVerdict, result.FinalScore, result.Phase3Judgment.Method)
	if result.Inconclusive {
		c.notes[Verdict] += "; inconclusive"
	}
	if result.Degraded {
		c.notes[Verdict] += "; degraded"
	}
	if n := len(result.Absences); n > 0 {
		c.notes[Verdict] += fmt.Sprintf("; that a seat gave no valid answer %s is the clerk's word", plural.Of(n, "time"))
	}
	for _, r := range c.all {
		if r.Log != nil && r.Log.CaseSeq > 0 {
			c.notes[Completeness] += fmt.Sprintf("; by the log it is submission %d of this evidence", r.Log.CaseSeq)
		}
	}
	c.notes[Simultaneity] += "; what was sent to each seat is as its record and the clerk's declare it"
}

// trialOutcome is what the trial came to by the records in the file, if they are all there and its verdict is proved. A decision
// of which anything is not proved leaves it open.
func (c *check) trialOutcome() *jury.TrialOutcome {
	if c.kind != Trial || c.worst(Verdict) != nil || c.worst(Completeness) != nil {
		return nil
	}
	doubted := map[string]bool{}
	for _, f := range c.findings {
		if f.Guarantee == HumanReview {
			doubted[f.Record] = true // "": of all
		}
	}
	k := new(jury.Reckoning)
	for _, r := range c.all {
		if r.Payload.ActionType == evidence.HumanReview && (doubted[recordName(r)] || doubted[""]) {
			k.Doubt(r)
			continue
		}
		if err := k.Add(r); err != nil {
			return nil // the replay has found more against it
		}
	}
	return k.Outcome()
}
