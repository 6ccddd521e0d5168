package verify

import (
	"slices"

	"jurat/evidence"
)

// basis is what a delivery says that it rests on.
type basis struct {
	reviews []*evidence.Record // those it names, in the order of the file
	others  []evidence.Digest  // what else it names: the original, and what more it was given
	ids     []string           // what it can be a delivery of
	missing bool               // something that it names is not in the file
}

func (c *check) basisOf(r *evidence.Record) basis {
	var b basis
	if id := r.Payload.OriginalResponseID; id != "" {
		b.ids = append(b.ids, id)
	}
	for _, d := range digests(r) {
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
	slices.SortFunc(b.reviews, func(x, y *evidence.Record) int { return c.graph.place[x] - c.graph.place[y] })
	return b
}

// delivery asks whether what was delivered is what a person approved.
func (c *check) delivery(r *evidence.Record) {
	b := c.basisOf(r)
	c.delivered(r, b)
	for _, review := range b.reviews {
		if !c.onDelivered(review, b) {
			c.refute(HumanReview, "delivery-review", r, "it names the review %s, which is of record %s and not of what it delivers",
				recordName(review), review.Payload.OriginalResponseID)
			return
		}
	}
	switch {
	case c.rejected(r, b):
	case len(b.reviews) > 0:
		c.asApproved(r, b.reviews[len(b.reviews)-1])
	case b.missing:
		c.doubt(HumanReview, "unreviewed", r, "the file has no review that it names, so nothing shows that a person approved it")
	default:
		c.doubt(HumanReview, "unreviewed", r, "it names no review, so nothing shows that a person approved it")
	}
}

// delivered asks whether the delivery names what it delivers, beside the review.
func (c *check) delivered(r *evidence.Record, b basis) {
	id := r.Payload.OriginalResponseID
	original := c.graph.byID[id]
	// As long as no review is found, the record that is missing can be the review.
	unclear := b.missing && len(b.reviews) == 0 && (original == nil || !slices.Contains(b.others, original.Digest))
	switch {
	case unclear, id == "" && b.missing:
		c.doubt(HumanReview, "missing", r, "the file does not have all that it names")
	case id != "":
		c.original(r, b.others)
	case len(b.others) == 0:
		c.doubt(HumanReview, "binding", r, "it names a review and not what was reviewed")
	}
}

// onDelivered reports whether a review is of what is delivered, or of another review of it. A delivery that names no
// original is of what its review is of.
func (c *check) onDelivered(review *evidence.Record, b basis) bool {
	of := review.Payload.OriginalResponseID
	return len(b.ids) == 0 || slices.Contains(b.ids, of) ||
		slices.ContainsFunc(b.reviews, func(other *evidence.Record) bool { return other != review && recordName(other) == of })
}

// rejected refutes a delivery of what a person had rejected, in a review that it names or not, unless it was approved
// after that.
func (c *check) rejected(r *evidence.Record, b basis) bool {
	for _, id := range subjects(r, b) {
		last := c.lastDecision(id, r)
		if last != nil && last.Payload.ApprovalStatus == evidence.Rejected {
			c.refute(HumanReview, "delivery-rejected", r, "it delivers what %q rejected in record %s", last.Payload.ReviewerID, recordName(last))
			return true
		}
	}
	return false
}

// subjects are the ids of which a rejection stands against the delivery: of what it delivers, not of all that it was
// given, and of the reviews that it rests on.
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

// lastDecision is the last review of a record before a place in the file. A review of another version decides nothing.
func (c *check) lastDecision(id string, before *evidence.Record) *evidence.Record {
	original := c.graph.byID[id]
	reviews := c.graph.reviews[id]
	for i := len(reviews) - 1; i >= 0; i-- {
		review := reviews[i]
		named := digests(review)
		elsewhere := original != nil && len(named) > 0 && !slices.Contains(named, original.Digest)
		if c.graph.place[review] < c.graph.place[before] && !elsewhere {
			return review
		}
	}
	return nil
}

// asApproved compares what was delivered with what the last review let pass.
func (c *check) asApproved(r, review *evidence.Record) {
	equal, known := c.said[r].response.same(c.output(review))
	switch {
	case !known:
		c.doubt(HumanReview, "withheld", r, "what it delivers or what review %s approved is withheld or not in the file, so they cannot be compared", recordName(review))
	case !equal:
		c.refute(HumanReview, "delivery", r, "it delivers something else than what review %s approved", recordName(review))
	}
}
