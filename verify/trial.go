package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/plural"
	"jurat/jury"
)

// trial checks what only a whole trial can answer. jury.Replay states the rules of a trial; trials are conducted by
// it, too. Here its answer is reported under the guarantee that it concerns.
func (c *check) trial() {
	c.notes[Completeness] = "every act from the submission to the closing is there, once and in its place"
	c.notes[Simultaneity] = "every juror was asked before any answer of the round, and was shown only what had been said before"
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
	if acts[0].Type != evidence.Submission { // requests cannot be rebuilt without the evidence's digest
		c.allDoubt("submission", "the file lacks the submission, so the trial cannot be followed from its beginning")
		return
	}
	c.replay(acts)
}

// trialGuarantees rest on all acts together.
var trialGuarantees = []Guarantee{Completeness, Simultaneity, Verdict}

// restOnSignatures doubts the trial's guarantees unless each act is proved to be its actor's.
func (c *check) restOnSignatures() {
	for _, g := range []Guarantee{Content, Authentication} {
		if f := c.worst(g); f != nil {
			c.allDoubt("signatures", "it rests on acts whose %s is %s", g, f.Status)
			return
		}
	}
}

// allDoubt doubts those guarantees of a trial that nothing refutes.
func (c *check) allDoubt(rule, format string, args ...any) {
	for _, g := range trialGuarantees {
		if c.worst(g) == nil {
			c.doubt(g, rule, nil, format, args...)
		}
	}
}

// acts reads the acts. It skips records that are not acts of a trial, such as a review of the verdict.
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

// oneTrial refutes a bundle with acts of two trials or two clerks.
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
				c.refute(Completeness, "submission", r, "the first act in the file is not the submission; every trial begins with it")
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
			c.refute(Completeness, "one-clerk", r, "it is by clerk %q, and the acts before it by %q", p.AgentID, clerk)
		}
	}
}

// onlyThisTrial refutes foreign records. A case file may hold only the trial's acts and people's decisions on the
// trial.
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
			c.refute(Completeness, "foreign", r, "it does not belong to this trial")
		}
	}
}

// withoutGaps compares the records of the trial's chain (acts and decisions) with the log's own count of them. A
// record that the log counted and the file lacks was left out: another branch of the trial, for example, that ended
// less well. A record without its count could hide one: anybody can take it away.
func (c *check) withoutGaps() {
	first := slices.IndexFunc(c.all, func(r *evidence.Record) bool { return r.Payload.ActionType.InTrial() })
	want, chain := int64(0), c.all[first].Payload.ChainID
	var uncounted *evidence.Record
	for _, r := range c.all {
		if r.Payload.ChainID != chain {
			continue
		}
		if r.Log == nil {
			uncounted = cmp.Or(uncounted, r)
			continue
		}
		if want++; r.Log.ChainSeq != want {
			c.refute(Completeness, "gap", r, "the log counts it as record %d of the trial, and it is number %d in the file: a record was left out", r.Log.ChainSeq, want)
			return
		}
	}
	if uncounted != nil {
		c.doubt(Completeness, "inclusion", uncounted, "nothing says as which record of the trial the log counts it, so another could have been left out")
	}
}

// evidenceOfCase compares the submitted evidence with the digest that every act names. If the evidence is sealed
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

// guaranteeOf maps each rule of a trial to the guarantee that it concerns.
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
	jury.RuleLevels:     Verdict,
	jury.RuleConsensus:  Verdict,
	jury.RuleVerdict:    Verdict,
}

// replay conducts the trial again from its acts.
func (c *check) replay(acts []jury.Act) {
	replayed, err := jury.Replay(c.caseDigest(), acts)
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
		made, act := findInvented(c.all[slices.IndexFunc(c.all, isSubmission)], acts)
		c.found(c.byDigest[act], made)
		c.noteTrial(replayed)
	}
}

func isSubmission(r *evidence.Record) bool { return r.Payload.ActionType == evidence.Submission }

func (c *check) caseDigest() evidence.Digest {
	if i := slices.IndexFunc(c.all, isSubmission); i >= 0 {
		return c.all[i].Payload.Case
	}
	return evidence.Digest{}
}

// noteTrial reports what even a proved trial rests on.
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
			c.notes[Completeness] += fmt.Sprintf("; the log counts it as submission %d of this evidence", r.Log.CaseSeq)
		}
	}
	for _, r := range c.all {
		if r.Log != nil && r.Log.SubjectSeq > 0 && r.Payload.ActionType == evidence.FinalJudgment {
			c.notes[Completeness] += fmt.Sprintf("; the log counts its judgment as number %d about this agent", r.Log.SubjectSeq)
		}
	}
	c.notes[Simultaneity] += "; only the clerk's and the actors' records state what was sent to each seat"
}

// trialOutcome returns the outcome of the trial if the file has all its records and its verdict is proved. A decision
// that is not proved leaves the outcome open.
func (c *check) trialOutcome() *jury.TrialOutcome {
	if c.kind != Trial || c.worst(Verdict) != nil || c.worst(Completeness) != nil {
		return nil
	}
	doubted := map[string]bool{}
	for _, f := range c.findings {
		if f.Guarantee == HumanReview {
			doubted[f.Record] = true // "": about all records
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
