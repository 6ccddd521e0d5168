package verify

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/kit/plural"
	"jurat/jury"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// An examined record was checked alone, with its whole payload. It keeps the small part that the rules over several
// records need, because a bundle can be larger than the memory.
type examined struct {
	share  *timestamp.Share // the share of the budget that the examination used
	whole  *evidence.Record // as opened
	record *evidence.Record // slim
	said   spoken
	proofs []carried
	shows  []member // of each demand
	look   *look    // nil: not a recorder's

	outcome
	place   findings // about its place in the log
	unasked bool     // as in trust.Checker
}

// examine checks everything that concerns one record alone. It changes nothing of the check, so that many
// records can be examined at once.
func (c *check) examine(r *evidence.Record) examined { return c.examineWith(timestamp.NewShare(), r) }

func (c *check) examineWith(share *timestamp.Share, r *evidence.Record) examined {
	checker := c.Checker.Alone(share)
	e := examined{share: share, whole: r, record: slim(r), said: spokenIn(r), proofs: proofsOf(r), look: lookAt(r)}
	for _, d := range c.options.Demands {
		e.shows = append(e.shows, find(r, d.pointer))
	}
	e.said.Names = NamedActor(&r.Payload)
	d, times := c.date(&checker, r)
	e.times = times
	ask(&e.findings, rulesOfTime, r, d)
	if _, ownWord := d.at.Before(c.options.Before); ownWord && !c.options.Before.IsZero() {
		e.onWord(Before)
	}
	for i := range r.Payload.Signers {
		e.asked(c.signature(&checker, r, i, d.at))
	}
	ask(&e.findings, rulesOfDisclosures, r, r.CheckDisclosures())
	ask(&e.place, rulesOfPlace, r, placed{r, c.log.Checkpoint})
	e.unasked = checker.Unasked
	return e
}

// unsure reports whether a finding is about who said what.
func unsure(f Finding) bool { return f.Guarantee == Content || f.Guarantee == Authentication }

// take keeps the findings about the next record. If the record was examined ahead of time and spent more than the file has left, take examines it
// again.
func (c *check) take(e examined) {
	if !c.budget.Settle(e.share) {
		e = c.examineWith(c.budget.Share(), e.whole)
		c.budget.Settle(e.share)
	}
	if c.options.Each != nil {
		c.options.Each(e.whole)
	}
	c.intern(e.record)
	c.all = append(c.all, e.record)
	c.said[e.record] = e.said
	c.count(e)
	c.details.room += roomOfRecord
	c.keep(e.list...)
	c.prove(e.whole, e.proofs, e.shows)
	c.sight(e)
	c.place.keep(e.place.list...)
	c.times = append(c.times, e.times...)
	c.identified = trust.AddIdentified(c.identified, e.identified...)
	c.party(e.identified)
	for _, g := range e.ownWord {
		c.onWord(g)
	}
	c.Unasked = c.Unasked || e.unasked
	for name, by := range e.vouched {
		c.vouch(name, by)
	}
}

// count counts what the check keeps of a record, and keeps less once a bound is exceeded.
func (c *check) count(e examined) {
	if c.volume.Take(e.whole) {
		for _, r := range c.all {
			dropLinks(r)
		}
	}
	if c.volume.Exceeded != "" {
		dropLinks(e.record)
	}
}

// intern keeps each name once, however many records have it.
func (c *check) intern(r *evidence.Record) {
	p := &r.Payload
	for _, name := range []*string{&p.AgentID, &p.ReviewerID, &p.ChainID, &p.PreviousAgent, &p.NextAgent, &p.Model, &p.ModelVersion,
		(*string)(&p.ActionType)} {
		if known, ok := c.names[*name]; ok {
			*name = known
		} else {
			c.names[*name] = *name
		}
	}
}

// begin opens the checkpoint and the anchors, which stand before the records, and checks what the anchors prove.
func (c *check) begin(checkpoint string, list []evidence.Anchor) {
	c.Share = c.budget.Share()
	c.openLog(checkpoint, list)
	c.budget.Settle(c.Share)
	ask(&c.place, rulesOfLog, nil, &c.log)
	ask(&c.findings, rulesOfAnchors, nil, &c.log)
}

// end sums up the findings about single records and checks the records together.
func (c *check) end() {
	c.notes[Content] = "every signature is valid over the canonical payload"
	c.notes[Authentication] = "every signature was made with the key that the trust file gives for the actor in this role"
	c.notes[NonRepudiation] = "the actors keep their keys themselves"
	ask(&c.findings, rulesOfNothing, nil, len(c.all))
	c.noteVouched()
	c.noteTimes()
	c.noteSights()
	c.list = append(c.list, c.place.list...) // counted when they were found
	if c.log.Checkpoint != nil {
		c.notes[Order] = fmt.Sprintf("every record stands at its place in the log %s, as its checkpoint of %s says", c.log.Origin, plural.Of(c.log.Size, "entry")) + c.log.witnesses
	}
	c.graph = new(graph)
	if c.volume.Exceeded == "" && (c.kind != OneRecord || slices.ContainsFunc(c.all, decides)) { // otherwise the guarantee does not apply
		c.graph = newGraph(c.all)
	}
	c.proven()
	c.knownLog()
	ask(&c.findings, rulesOfGaps, nil, c.gaps)
}

// Bounds of what the check keeps of a bundle. docs/format.md has the same numbers, because two verifiers must agree.
const (
	linksOfRecord = 64        // digests that each record may name
	linksOfFile   = 1 << 20   // further digests that all records together may name
	textsOfFile   = 128 << 20 // bytes of payloads of a trial's acts
)

// A Volume counts what is kept of a bundle's records.
type volume struct {
	links, texts int
	Exceeded     string // which bound was exceeded; "" if none was
}

// Take counts the next record. It reports whether that record is the first beyond a bound.
func (v *volume) Take(r *evidence.Record) bool {
	if v.Exceeded != "" {
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
		v.Exceeded = fmt.Sprintf("its records name more than %d others by digest, beyond %d each", linksOfFile, linksOfRecord)
	case v.texts > textsOfFile:
		v.Exceeded = fmt.Sprintf("its acts of a trial have more than %d bytes", textsOfFile)
	}
	return v.Exceeded != ""
}

// dropLinks removes what only the rules over several records need, after a bound was exceeded.
func dropLinks(r *evidence.Record) {
	r.Payload.Saw = nil
	withoutTexts(r)
}

// withoutTexts removes a record's texts.
func withoutTexts(r *evidence.Record) {
	p := &r.Payload
	p.SealedApart, p.Prompt, p.Context, p.Response, p.ToolsUsed, p.Metadata, p.Changes = nil, nil, nil, nil, nil, nil, nil
	p.Observed, p.RequestBody, p.ResponseBody = nil, nil, nil
}

// slim keeps what the rules of other records need: who, when, which record, and its links. It drops texts, except
// those of a trial's acts, because the trial is run again from them. Of a review it keeps the position, because that
// may give a verdict.
func slim(r *evidence.Record) *evidence.Record {
	s := &evidence.Record{Payload: r.Payload, Digest: r.Digest}
	if r.Log != nil {
		s.Log = r.Log.Counts().At(r.Log.Index)
		s.Log.Checkpoint = r.Log.Checkpoint
	}
	p := &s.Payload
	p.Schema = evidence.Schema
	given := jury.PositionGiven(r)
	if p.ActionType.InTrial() {
		return s
	}
	withoutTexts(s)
	for _, value := range []*jsontext.Value{&p.Parameters, &p.ModifiedResponse} {
		if len(*value) > 0 {
			*value = there
		}
	}
	for _, name := range []*string{&p.Model, &p.ModelVersion} {
		if *name != "" {
			*name = string(there)
		}
	}
	if given != "" {
		p.ModifiedResponse = jury.ModifiedVerdict(given)
	}
	return s
}

// there replaces a value when only its presence matters.
var there = jsontext.Value("null")

// spoken holds digests of what a record gave out, for comparison.
type spoken struct {
	Response, Modified spokenText
	Names              evidence.Digest // the tag of the actor that its own text names as judged; zero: none
}

// A Text is a value that a record gave out, known by its digest only.
type spokenText struct {
	digest   evidence.Digest // of the canonical value; zero: absent or withheld
	Withheld bool            // sealed apart and not disclosed, or disclosed wrongly
}

// spokenIn reads what a record gave out, as far as the file shows it. A disclosed value counts only if the payload commits to it.
func spokenIn(r *evidence.Record) spoken {
	p := &r.Payload
	return spoken{Response: textOf(r.Said("/response", p.Response)), Modified: textOf(r.Said("/modified_response", p.ModifiedResponse))}
}

func textOf(value jsontext.Value, withheld bool) spokenText {
	if value == nil {
		return spokenText{Withheld: withheld}
	}
	return spokenText{digest: evidence.DigestOf(value)}
}

// Same compares by canonical value. If a text is withheld, known is false.
func (s spokenText) Same(other spokenText) (equal, known bool) {
	return s.digest == other.digest, !s.Withheld && !other.Withheld
}

// Or returns the text from whichever of two files shows it.
func (s spokenText) Or(other spokenText) spokenText {
	if s.Withheld {
		return other
	}
	return s
}

// A Linked holds what the rules of chains and reviews need of a record: actor, time, ids, links, and the digests of
// its texts.
type Linked struct {
	record *evidence.Record
	said   spoken
}

// Link returns what the rules about links need of a record, without its texts.
func Link(r *evidence.Record) Linked {
	l := Linked{record: slim(r), said: spokenIn(r)}
	l.record.Log = nil
	p := &l.record.Payload
	p.Signers = slices.Clone(p.Signers)
	withoutTexts(l.record) // texts of a trial's acts, too
	return l
}

// Payload returns the record's payload without its texts. The caller must not change it.
func (l Linked) Payload() *evidence.Payload { return &l.record.Payload }

// Digest returns the digest of the record's payload.
func (l Linked) Digest() evidence.Digest { return l.record.Digest }

// Contradictions returns what the rules of chains and reviews would refute in a file of these records, in this order.
// A ledger calls it before it seals a record, because a contradiction in the log is permanent. It checks no
// signature, time stamp or place.
func Contradictions(file []Linked) (found []Finding) {
	c := newCheck(Options{}, ManyRecords)
	for _, l := range file {
		c.all = append(c.all, l.record)
		c.said[l.record] = l.said
	}
	c.graph = newGraph(c.all)
	c.reviews()
	c.chain()
	for _, f := range c.list {
		if f.Status == Refuted && (f.Guarantee == Chain || f.Guarantee == HumanReview) {
			found = append(found, f)
		}
	}
	return found
}
