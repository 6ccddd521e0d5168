package verify

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/jury"
)

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
		s.Log = &evidence.LogProof{LogCounts: r.Log.LogCounts, Checkpoint: r.Log.Checkpoint, Index: r.Log.Index}
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

// said is the value of a member of a payload, as far as the file shows it.
type said struct {
	value    jsontext.Value // canonical; nil: absent or withheld
	Withheld bool           // sealed apart and not disclosed, or disclosed wrongly
}

// saidIn reads a member that may be sealed apart. A disclosed value counts only if the payload commits to it.
func saidIn(r *evidence.Record, pointer string, value jsontext.Value) said {
	shown, withheld := r.Said(pointer, value)
	return said{value: shown, Withheld: withheld}
}

func response(r *evidence.Record) said { return saidIn(r, "/response", r.Payload.Response) }

func modified(r *evidence.Record) said {
	return saidIn(r, "/modified_response", r.Payload.ModifiedResponse)
}

// spoken holds digests of what a record gave out, for comparison.
type spoken struct {
	Response, Modified spokenText
	Names              evidence.Digest // the tag of the actor that its own text names as judged; zero: none
}

// A Text is a value that a record gave out, known by its digest only.
type spokenText struct {
	digest   evidence.Digest // of the canonical value; zero: absent or withheld
	Withheld bool
}

// spokenIn reads what a record gave out, as far as the file shows it.
func spokenIn(r *evidence.Record) spoken {
	return spoken{Response: response(r).digested(), Modified: modified(r).digested()}
}

func (s said) digested() spokenText {
	if s.value == nil {
		return spokenText{Withheld: s.Withheld}
	}
	return spokenText{digest: evidence.DigestOf(s.value)}
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
	c.byDigest = c.graph.ByDigest
	c.reviews()
	c.chain()
	for _, f := range c.findings {
		if f.Status == Refuted && (f.Guarantee == Chain || f.Guarantee == HumanReview) {
			found = append(found, f)
		}
	}
	return found
}
