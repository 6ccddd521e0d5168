package verify

import (
	"bytes"
	"fmt"
	"slices"

	"jurat/evidence"
)

// Exchanges says which exchanges of messages between agents the files show from both sides, and which from one. It is nil unless both sides are among
// the files. It decides nothing about a file.
func (t *Together) Exchanges() *Exchanges {
	r := t.exchanges.Report()
	if r != nil {
		r.Trust = t.options.fingerprint()
	}
	return r
}

// exchange hands on what a recorder saw of an exchange. Only a record that is its recorder's takes part.
func (c *check) exchange(e examined, against *sightFinding) {
	if c.options.Together == nil {
		return
	}
	s := SightingOf(e.whole)
	if s == nil {
		return
	}
	if c.log != nil && len(e.placed) == 0 {
		s.Log = c.log.Origin
	}
	for _, t := range e.times {
		if s.Existed = &t.ProvedTime; t.Independent != nil {
			s.Existed = t.Independent
		}
	}
	for _, by := range e.whole.Payload.Signers {
		s.Keys = append(s.Keys, by.KeyID)
	}
	slices.SortFunc(s.Keys, func(a, b evidence.KeyID) int { return bytes.Compare(a[:], b[:]) })
	s.Owners = e.identified
	c.options.Together.exchanges.Take(s, whyNot(e.found, against))
}

// whyNot says why the record of an exchange proves nothing; "": it proves something.
func whyNot(found []Finding, against *sightFinding) string {
	for _, f := range found {
		if f.Guarantee == Content || f.Guarantee == Authentication {
			return fmt.Sprintf("%s is %s: %s", f.Guarantee, f.Status, f.Reason)
		}
	}
	if against != nil && against.Refuted {
		return fmt.Sprintf("%s is %s: %s", Vantage, Refuted, against.Reason)
	}
	return ""
}
