package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/verify/graph"
)

// Bounds of what is kept of a bundle to judge what its records say of each other. docs/format.md has the same numbers, as two verifiers
// must agree.
const (
	linksOfRecord = 64        // digests that each record may name
	linksOfFile   = 1 << 20   // digests that all records may name beyond that
	textsOfFile   = 128 << 20 // bytes of payloads of a trial's acts
)

// A volume counts what is kept of a bundle's records.
type volume struct {
	links, texts int
	exceeded     string // what of it was more than is kept; "" if nothing was
}

// take counts the next record, and reports whether that is the first beyond a bound.
func (v *volume) take(r *evidence.Record) bool {
	if v.exceeded != "" {
		return false
	}
	p := &r.Payload
	links := len(p.Saw)
	if !p.PreviousRecord.IsZero() {
		links++
	}
	v.links += max(0, links-linksOfRecord)
	if p.ActionType.InTrial() {
		v.texts += len(r.Canonical())
	}
	switch {
	case v.links > linksOfFile:
		v.exceeded = fmt.Sprintf("its records name more than %d others by digest, beyond %d each", linksOfFile, linksOfRecord)
	case v.texts > textsOfFile:
		v.exceeded = fmt.Sprintf("its acts of a trial have more than %d bytes", textsOfFile)
	}
	return v.exceeded != ""
}

// drop forgets what only the rules over several records need, after a bound was exceeded.
func drop(r *evidence.Record) {
	r.Payload.Saw = nil
	withoutTexts(r)
}

// withoutTexts forgets what a record says.
func withoutTexts(r *evidence.Record) {
	p := &r.Payload
	p.SealedApart, p.Prompt, p.Context, p.Response, p.ToolsUsed, p.Metadata, p.Changes = nil, nil, nil, nil, nil, nil, nil
}

// tooMuch says of a bundle with more than is kept that nothing is proved of what its records say of each other.
func (c *check) tooMuch() {
	c.decided = slices.ContainsFunc(c.all, graph.Decides)
	for _, g := range []Guarantee{Configuration, Order, Chain, HumanReview, Completeness, Simultaneity, Verdict} {
		if c.applies(g) {
			c.doubt(g, "volume", nil, "%s: what the records of such a file say of each other is not looked at", c.volume.exceeded)
		}
	}
}
