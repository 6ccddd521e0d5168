package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/plural"
)

// reviews checks whether people decided on what the file says, and whether the delivered text is the approved one.
func (c *check) reviews() {
	reviews, deliveries, givenOn := 0, 0, 0
	for _, r := range c.all {
		switch r.Payload.ActionType {
		case evidence.HumanReview:
			reviews++
			c.review(r)
		case evidence.Delivery:
			b := c.basisOf(r)
			if c.givesOn(r, &b) {
				givenOn++
				continue
			}
			deliveries++
			c.delivery(r, b)
		}
	}
	c.decided, c.givenOn = reviews+deliveries > 0, givenOn > 0
	c.notes[HumanReview] = fmt.Sprintf("%s, %sbound by digest to what it reviews; %s, %sof what was approved",
		plural.Of(reviews, "review"), plural.Or(reviews, "", "each "), plural.Of(deliveries, "delivery"), plural.Or(deliveries, "", "each "))
	c.notes[GivenOn] = fmt.Sprintf("%s on unchanged what %s; none says that a person decided on it",
		plural.Of(givenOn, "delivery")+plural.Or(givenOn, " gives", " give"), plural.Or(givenOn, "it names", "they name"))
	c.restOn(HumanReview, Content, Authentication)
	c.restOn(GivenOn, Content, Authentication)
}

// review checks what a decision is on, whether it agrees with itself, and who made it.
func (c *check) review(r *evidence.Record) {
	original := c.original(r, digestsIn(r))
	c.decision(r, original)
	if original != nil {
		c.ownOutput(r, original)
		c.caseOf(r, original)
	}
}

// original finds the record that a review or delivery is about, and reports errors in how it is named. The id is for
// people. The digest binds the review to one version: without it, a review would still match a changed original.
func (c *check) original(r *evidence.Record, named []evidence.Digest) *evidence.Record {
	id := r.Payload.OriginalResponseID
	original := c.graph.ByID[id]
	here := 0
	for _, d := range named {
		if c.byDigest[d] != nil {
			here++
		}
	}
	switch {
	case original != nil && slices.Contains(named, original.Digest):
		return original
	case len(named) == 0:
		c.doubt(HumanReview, "binding", r, "it names record %s by id only, not by digest, so it is not bound to what that record says", id)
		return original // ids are unique in a log, so a contradiction to this record counts
	case original != nil && here < len(named):
		c.refute(HumanReview, "version", r, "it is about another version: record %s in the file has the digest %s, which it does not name", id, original.Digest)
	case here == len(named):
		c.refute(HumanReview, "original", r, "by id it is about record %s, and by digest about another", id)
	default:
		c.doubt(HumanReview, "missing", r, "the file lacks record %s, which it is about", id)
	}
	return nil
}

// decision compares the decision with the text that comes with it.
func (c *check) decision(r, original *evidence.Record) {
	p := &r.Payload
	if p.ModifiedResponse == nil {
		return // the format demands a text where one is needed
	}
	if p.ApprovalStatus == evidence.Rejected {
		c.refute(HumanReview, "rejection", r, "it rejects, and comes with a response: a rejection must have none")
		return
	}
	if original == nil {
		return
	}
	equal, known := c.said[r].Modified.Same(c.output(original))
	switch {
	case !known:
		c.doubt(HumanReview, "withheld", r, "its response or that of record %s is withheld, so they cannot be compared", recordName(original))
	case p.ApprovalStatus == evidence.Approved && !equal:
		c.refute(HumanReview, "approval", r, "it approves record %s unchanged, and comes with another response", recordName(original))
	case p.ApprovalStatus == evidence.ApprovedWithModifications && equal:
		c.refute(HumanReview, "modification", r, "it says that the response was modified, but its response is that of record %s unchanged", recordName(original))
	}
}

// output returns what a record gave out: its response or, for a review, the text that it approved. It follows reviews
// of reviews, and remembers each answer.
func (c *check) output(r *evidence.Record) spokenText {
	var asked []*evidence.Record
	found, known := c.outputs[r]
	for !known {
		asked = append(asked, r)
		original := c.graph.ByID[r.Payload.OriginalResponseID]
		switch {
		case r.Payload.ActionType != evidence.HumanReview:
			found, known = c.said[r].Response, true
		case r.Payload.ApprovalStatus == evidence.ApprovedWithModifications:
			found, known = c.said[r].Modified, true
		case r.Payload.ApprovalStatus != evidence.Approved: // a rejection approves no text
			found, known = spokenText{}, true
		case original == nil || c.graph.Place[original] >= c.graph.Place[r]: // ids alone can form a cycle
			found, known = spokenText{Withheld: true}, true
		default:
			r = original
			found, known = c.outputs[r]
		}
	}
	for _, r := range asked {
		c.outputs[r] = found
	}
	return found
}

// ownOutput refutes a review by the author of the reviewed record, by name or by key.
func (c *check) ownOutput(r, original *evidence.Record) {
	who := original.Payload.Actor()
	if r.Payload.Actor() == who {
		c.refute(HumanReview, "own-output", r, "%q reviews what %q made: a reviewer must be another person or agent", who, who)
		return
	}
	for _, s := range r.Payload.Signers {
		if slices.ContainsFunc(original.Payload.Signers, func(o evidence.SignerInfo) bool { return o.KeyID == s.KeyID }) {
			c.refute(HumanReview, "own-output", r, "it is signed with the key %s, which also signed record %s: a reviewer must be another person or agent", s.KeyID, recordName(original))
			return
		}
	}
}

// caseOf requires that a decision on a trial names the same trial.
func (c *check) caseOf(r, original *evidence.Record) {
	p, o := &r.Payload, &original.Payload
	switch {
	case !p.Case.IsZero() && p.Case != o.Case:
		c.refute(HumanReview, "case", r, "it is on the case %s, and record %s, which it reviews, is on another", p.Case, recordName(original))
	case o.ActionType.InTrial() && p.ChainID != "" && p.ChainID != o.ChainID:
		c.refute(HumanReview, "case", r, "it is in the chain %q, and record %s, which it reviews, is in the trial %q", p.ChainID, recordName(original), o.ChainID)
	}
}
