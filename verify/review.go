package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/kit/plural"
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
		if c.graph.ByDigest[d] != nil {
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

// basis is what a delivery says it rests on.
type basis struct {
	reviews []*evidence.Record // the reviews that it names, in the order of the file
	others  []evidence.Digest  // its other links: the original and further inputs
	ids     []string           // ids of the records that it may deliver
	missing bool               // the file lacks a record that it names
}

func (c *check) basisOf(r *evidence.Record) basis {
	var b basis
	if id := r.Payload.OriginalResponseID; id != "" {
		b.ids = append(b.ids, id)
	}
	for _, d := range digestsIn(r) {
		other := c.graph.ByDigest[d]
		switch {
		case other == nil:
			b.missing, b.others = true, append(b.others, d)
		case other.Payload.ActionType == evidence.HumanReview:
			b.reviews = append(b.reviews, other)
		default:
			b.others = append(b.others, d)
			if r.Payload.OriginalResponseID == "" {
				b.ids = append(b.ids, recordName(other))
			}
		}
	}
	slices.SortFunc(b.reviews, func(x, y *evidence.Record) int { return c.graph.Place[x] - c.graph.Place[y] })
	return b
}

// givesOn reports whether a delivery passes on one record unchanged and without a person. It names no review, the
// file has all records that it names, and the file has no earlier review of the delivered record.
func (c *check) givesOn(r *evidence.Record, b *basis) bool {
	if b.missing || len(b.reviews) > 0 {
		return false
	}
	var original *evidence.Record
	switch id := r.Payload.OriginalResponseID; {
	case id != "":
		original = c.graph.ByID[id]
	case len(b.others) == 1:
		original = c.graph.ByDigest[b.others[0]]
	}
	if original == nil || !slices.Contains(b.others, original.Digest) || c.lastDecision(recordName(original), r) != nil {
		return false
	}
	equal, known := c.said[r].Response.Same(c.output(original))
	return equal && known
}

// delivery checks whether the delivered text is the text that a person approved. If the file lacks a record that the
// delivery names, a contradiction is only doubted, because the missing record could explain it.
func (c *check) delivery(r *evidence.Record, b basis) {
	contradicts := c.refute
	if b.missing {
		contradicts = c.doubt
	}
	c.delivered(r, b)
	if review := b.stray(); review != nil {
		contradicts(HumanReview, "delivery-review", r, "it names the review %s, which is a review of record %s and not of what it delivers",
			recordName(review), review.Payload.OriginalResponseID)
		return
	}
	switch {
	case c.rejected(r, b):
	case len(b.reviews) > 0:
		c.asApproved(r, b.reviews[len(b.reviews)-1], contradicts)
	case b.missing:
		c.doubt(HumanReview, "unreviewed", r, "the file lacks the review that it names, so nothing shows that a person approved it")
	default:
		c.doubt(HumanReview, "unreviewed", r, "it names no review, so nothing shows that a person approved it")
	}
}

// delivered checks whether the delivery names, besides the review, the record that it delivers.
func (c *check) delivered(r *evidence.Record, b basis) {
	id := r.Payload.OriginalResponseID
	original := c.graph.ByID[id]
	// If no review was found, the missing record can be the review.
	unclear := b.missing && len(b.reviews) == 0 && (original == nil || !slices.Contains(b.others, original.Digest))
	switch {
	case unclear, id == "" && b.missing:
		c.doubt(HumanReview, "missing", r, "the file lacks a record that it names")
	case id != "":
		c.original(r, b.others)
	case len(b.others) == 0:
		c.doubt(HumanReview, "binding", r, "it names a review and does not name the reviewed record")
	}
}

// stray finds a review that belongs neither to the delivered record nor to another review of it. A delivery that
// names no original delivers what its review is about.
func (b *basis) stray() *evidence.Record {
	if len(b.ids) == 0 {
		return nil
	}
	ids, reviews := map[string]bool{}, map[string]bool{}
	for _, id := range b.ids {
		ids[id] = true
	}
	for _, review := range b.reviews {
		reviews[recordName(review)] = true
	}
	for _, review := range b.reviews {
		of := review.Payload.OriginalResponseID
		if !ids[of] && (!reviews[of] || of == recordName(review)) {
			return review
		}
	}
	return nil
}

// rejected refutes a delivery of a record that a person rejected and did not approve later. It counts rejections that
// the delivery does not name, too.
func (c *check) rejected(r *evidence.Record, b basis) bool {
	for _, id := range subjects(r, b) {
		last := c.lastDecision(id, r)
		if last != nil && last.Payload.ApprovalStatus == evidence.Rejected {
			status := Refuted
			if b.missing || c.kind == SeveralFiles && !slices.Contains(b.reviews, last) { // a later approval may be missing
				status = NotProved
			}
			c.add(HumanReview, status, "delivery-rejected", r, "it delivers what %q rejected in record %s", last.Payload.ReviewerID, recordName(last))
			return true
		}
	}
	return false
}

// subjects returns the ids of the records whose rejection contradicts the delivery: the delivered record and the
// reviews that the delivery rests on. Further inputs do not count.
func subjects(r *evidence.Record, b basis) []string {
	var ids []string
	for _, review := range b.reviews {
		ids = append(ids, recordName(review), review.Payload.OriginalResponseID)
	}
	if id := r.Payload.OriginalResponseID; id != "" || len(b.reviews) > 0 {
		return append(ids, id)
	}
	return b.ids
}

// lastDecision returns the last review of a record before a place in the file. It skips reviews of another version.
func (c *check) lastDecision(id string, before *evidence.Record) *evidence.Record {
	decisions := c.decisionsOn(id)
	n, _ := slices.BinarySearchFunc(decisions, c.graph.Place[before], func(r *evidence.Record, place int) int { return c.graph.Place[r] - place })
	if n == 0 {
		return nil
	}
	return decisions[n-1]
}

// decisionsOn lists the reviews of this version of a record, in the order of the file. It remembers each list,
// because a file can have as many deliveries as reviews.
func (c *check) decisionsOn(id string) []*evidence.Record {
	if known, ok := c.decisions[id]; ok {
		return known
	}
	original := c.graph.ByID[id]
	var list []*evidence.Record
	for _, review := range c.graph.Reviews[id] {
		named := digestsIn(review)
		if original == nil || len(named) == 0 || slices.Contains(named, original.Digest) {
			list = append(list, review)
		}
	}
	c.decisions[id] = list
	return list
}

// asApproved compares the delivered text with the text that the last review approved.
func (c *check) asApproved(r, review *evidence.Record, contradicts func(Guarantee, string, *evidence.Record, string, ...any)) {
	equal, known := c.said[r].Response.Same(c.output(review))
	switch {
	case !known:
		c.doubt(HumanReview, "withheld", r, "what it delivers or what review %s approved is withheld or not in the file, so they cannot be compared", recordName(review))
	case !equal:
		contradicts(HumanReview, "delivery", r, "what it delivers differs from what review %s approved", recordName(review))
	}
}
