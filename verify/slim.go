package verify

import (
	"fmt"

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
