package verify

import (
	"slices"

	"jurat/evidence"
)

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
		other := c.byDigest[d]
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
		original = c.byDigest[b.others[0]]
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
