package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/internal/kit/plural"
)

// decided is a review or a delivery, and what it is about.
type decided struct {
	link
	named    []evidence.Digest // what it names by digest, of a delivery without the reviews in the file
	original *evidence.Record  // with the id that it names; nil: not in the file
	here     int               // how many of those that it names are in the file
	basis                      // of a delivery

	against      *evidence.Record // with which its text is compared: what it reviews, or the last review that it names; nil: none
	equal, known bool             // the texts are equal; both are known
}

func (f *file) decidedOn(r *evidence.Record) *decided {
	d := &decided{link: link{f, r}, named: digestsIn(r), original: f.ByID[r.Payload.OriginalResponseID]}
	text := f.said[r].Modified
	if r.Payload.ActionType == evidence.Delivery {
		d.basis, text = f.basisOf(r), f.said[r].Response
		d.named = d.others
	}
	for _, other := range d.named {
		if f.ByDigest[other] != nil {
			d.here++
		}
	}
	switch p := &r.Payload; {
	case len(d.reviews) > 0:
		d.against = d.reviews[len(d.reviews)-1]
	case p.ModifiedResponse != nil && p.ApprovalStatus != evidence.Rejected && !d.astray():
		d.against = d.original
	}
	if d.against != nil {
		d.equal, d.known = text.Same(f.output(d.against))
	}
	return d
}

// reviews checks whether people decided on what the file says, and whether the delivered text is the approved one.
func (c *check) reviews() {
	reviews, deliveries, givenOn := 0, 0, 0
	for _, r := range c.all {
		switch r.Payload.ActionType {
		case evidence.HumanReview:
			reviews++
			ask(&c.findings, rulesOfReview, r, c.decidedOn(r))
		case evidence.Delivery:
			d := c.decidedOn(r)
			if d.givesOn() {
				givenOn++
				continue
			}
			deliveries++
			ask(&c.findings, rulesOfDelivery, r, d)
		}
	}
	c.decided, c.givenOn = reviews+deliveries > 0, givenOn > 0
	c.notes[HumanReview] = fmt.Sprintf("%s, %sbound by digest to what it reviews; %s, %sof what was approved",
		plural.Of(reviews, "review"), plural.Or(reviews, "", "each "), plural.Of(deliveries, "delivery"), plural.Or(deliveries, "", "each "))
	c.notes[GivenOn] = fmt.Sprintf("%s on unchanged what %s; none says that a person decided on it",
		plural.Of(givenOn, "delivery")+plural.Or(givenOn, " gives", " give"), plural.Or(givenOn, "it names", "they name"))
	ask(&c.findings, rulesOfRest[HumanReview], nil, &c.findings)
	ask(&c.findings, rulesOfRest[GivenOn], nil, &c.findings)
}

// astray reports whether it names other records by digest than that which it names by id. The id is for people. The digest binds it to one version: without
// it, a review would still match a changed original. Ids are unique in a log, so a contradiction to a record that is named by id alone counts.
func (d *decided) astray() bool {
	return !d.byGoods() && len(d.named) > 0 && (d.original == nil || !slices.Contains(d.named, d.original.Digest))
}

// byGoods reports whether it is to name an original: a delivery need not.
func (d *decided) byGoods() bool {
	return d.Payload.ActionType == evidence.Delivery && d.Payload.OriginalResponseID == ""
}

// isOwn: a review by the author of the reviewed record, by name or by key.
func (d *decided) isOwn(a *asked) {
	if d.original == nil || d.astray() {
		return
	}
	who := d.original.Payload.Actor()
	if d.Payload.Actor() == who {
		a.refute("%q reviews what %q made: a reviewer must be another person or agent", who, who)
		return
	}
	for _, s := range d.Payload.Signers {
		if slices.ContainsFunc(d.original.Payload.Signers, func(o evidence.SignerInfo) bool { return o.KeyID == s.KeyID }) {
			a.refute("it is signed with the key %s, which also signed record %s: a reviewer must be another person or agent", s.KeyID, recordName(d.original))
			return
		}
	}
}

// isOfOtherCase: a decision on a trial names the same trial.
func (d *decided) isOfOtherCase(a *asked) {
	if d.original == nil || d.astray() {
		return
	}
	p, o := &d.Payload, &d.original.Payload
	switch {
	case !p.Case.IsZero() && p.Case != o.Case:
		a.refute("it is on the case %s, and record %s, which it reviews, is on another", p.Case, recordName(d.original))
	case o.ActionType.InTrial() && p.ChainID != "" && p.ChainID != o.ChainID:
		a.refute("it is in the chain %q, and record %s, which it reviews, is in the trial %q", p.ChainID, recordName(d.original), o.ChainID)
	}
}

// output returns what a record gave out: its response or, for a review, the text that it approved. It follows reviews
// of reviews, and remembers each answer.
func (c *file) output(r *evidence.Record) spokenText {
	var asked []*evidence.Record
	found, known := c.outputs[r]
	for !known {
		asked = append(asked, r)
		original := c.ByID[r.Payload.OriginalResponseID]
		switch {
		case r.Payload.ActionType != evidence.HumanReview:
			found, known = c.said[r].Response, true
		case r.Payload.ApprovalStatus == evidence.ApprovedWithModifications:
			found, known = c.said[r].Modified, true
		case r.Payload.ApprovalStatus != evidence.Approved: // a rejection approves no text
			found, known = spokenText{}, true
		case original == nil || c.Place[original] >= c.Place[r]: // ids alone can form a cycle
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

// basis is what a delivery says it rests on.
type basis struct {
	reviews []*evidence.Record // the reviews that it names, in the order of the file
	others  []evidence.Digest  // its other links: the original and further inputs
	ids     []string           // ids of the records that it may deliver
	missing bool               // the file lacks a record that it names
}

func (c *file) basisOf(r *evidence.Record) basis {
	var b basis
	if id := r.Payload.OriginalResponseID; id != "" {
		b.ids = append(b.ids, id)
	}
	for _, d := range digestsIn(r) {
		other := c.ByDigest[d]
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
	slices.SortFunc(b.reviews, func(x, y *evidence.Record) int { return c.Place[x] - c.Place[y] })
	return b
}

// givesOn reports whether a delivery passes on one record unchanged and without a person. It names no review, the
// file has all records that it names, and the file has no earlier review of the delivered record.
func (d *decided) givesOn() bool {
	if d.missing || len(d.reviews) > 0 {
		return false
	}
	original := d.original
	if d.byGoods() && len(d.others) == 1 {
		original = d.ByDigest[d.others[0]]
	}
	if original == nil || !slices.Contains(d.others, original.Digest) || d.lastDecision(recordName(original), d.Record) != nil {
		return false
	}
	equal, known := d.said[d.Record].Response.Same(d.output(original))
	return equal && known
}

// contradicts is the status of a contradiction. If the file lacks a record that the delivery names, it is only doubted, because the missing record could
// explain it.
func (d *decided) contradicts() Status {
	if d.missing {
		return NotProved
	}
	return Refuted
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

// isRejected: a person rejected what is delivered, and did not approve it later. Rejections that the delivery does not name count, too.
func (d *decided) isRejected(a *asked) {
	for _, id := range subjects(d.Record, d.basis) {
		last := d.lastDecision(id, d.Record)
		if last == nil || last.Payload.ApprovalStatus != evidence.Rejected {
			continue
		}
		status := d.contradicts()
		if d.kind == SeveralFiles && !slices.Contains(d.reviews, last) { // a later approval may be missing
			status = NotProved
		}
		a.add(status, "it delivers what %q rejected in record %s", last.Payload.ReviewerID, recordName(last))
		return
	}
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
func (c *file) lastDecision(id string, before *evidence.Record) *evidence.Record {
	decisions := c.decisionsOn(id)
	n, _ := slices.BinarySearchFunc(decisions, c.Place[before], func(r *evidence.Record, place int) int { return c.Place[r] - place })
	if n == 0 {
		return nil
	}
	return decisions[n-1]
}

// decisionsOn lists the reviews of this version of a record, in the order of the file. It remembers each list,
// because a file can have as many deliveries as reviews.
func (c *file) decisionsOn(id string) []*evidence.Record {
	if known, ok := c.decisions[id]; ok {
		return known
	}
	original := c.ByID[id]
	var list []*evidence.Record
	for _, review := range c.Reviews[id] {
		named := digestsIn(review)
		if original == nil || len(named) == 0 || slices.Contains(named, original.Digest) {
			list = append(list, review)
		}
	}
	c.decisions[id] = list
	return list
}
