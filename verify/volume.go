package verify

import (
	"fmt"
	"slices"

	"jurat/evidence"
	"jurat/verify/graph"
)

// Bounds of what the check keeps of a bundle. docs/format.md has the same numbers, because two verifiers must agree.
const (
	linksOfRecord = 64        // digests that each record may name
	linksOfFile   = 1 << 20   // further digests that all records together may name
	textsOfFile   = 128 << 20 // bytes of payloads of a trial's acts
)

// A volume counts what is kept of a bundle's records.
type volume struct {
	links, texts int
	exceeded     string // which bound was exceeded; "" if none was
}

// take counts the next record. It reports whether that record is the first beyond a bound.
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

// drop removes what only the rules over several records need, after a bound was exceeded.
func drop(r *evidence.Record) {
	r.Payload.Saw = nil
	withoutTexts(r)
}

// withoutTexts removes a record's texts.
func withoutTexts(r *evidence.Record) {
	p := &r.Payload
	p.SealedApart, p.Prompt, p.Context, p.Response, p.ToolsUsed, p.Metadata, p.Changes = nil, nil, nil, nil, nil, nil, nil
}

// tooMuch doubts the guarantees about several records if a bundle exceeds a bound.
func (c *check) tooMuch() {
	c.decided = slices.ContainsFunc(c.all, graph.Decides)
	for _, g := range []Guarantee{Configuration, Order, Chain, HumanReview, Completeness, Simultaneity, Verdict} {
		if c.applies(g) {
			c.doubt(g, "volume", nil, "%s: what the records of such a file say of each other is not checked", c.volume.exceeded)
		}
	}
}
