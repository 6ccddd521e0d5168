package trust

import (
	"time"
)

// A Proof says by when something existed, as far as authorities prove it.
type Proof struct {
	Earliest    *ProvedTime // by any authority that the reader trusts; nil: no time is proved
	Independent *ProvedTime // by an authority whose clock is not the operator's; nil: none
}

// Proved reports whether any time is proved.
func (p Proof) Proved() bool { return p.Earliest != nil }

// Add adds another proved time. The earliest counts.
func (p *Proof) Add(t ProvedTime) {
	if p.Earliest == nil || t.Time.Before(p.Earliest.Time) {
		p.Earliest = &t
	}
	if t.Clock == Independent && (p.Independent == nil || t.Time.Before(p.Independent.Time)) {
		p.Independent = &t
	}
}

// IndependentlyBefore reports whether a clock other than the operator's proves that it existed before a moment.
func (p Proof) IndependentlyBefore(moment time.Time) bool {
	return p.Independent != nil && p.Independent.Time.Before(moment)
}

// TimeOf is the proved time of a record.
type TimeOf struct {
	Record string `json:"record"`
	ProvedTime
	// Independent is the earliest time that an authority with an independent clock proves. It is absent if none does, or if it is the
	// time above.
	Independent *ProvedTime `json:"independent,omitempty"`
}

// ProvedTime is the latest moment at which something can have come into being, by the word of an authority.
type ProvedTime struct {
	Time      time.Time `json:"time"`
	Authority string    `json:"authority"` // as the trust file names it
	Clock     Clock     `json:"clock"`
}
