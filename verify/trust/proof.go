package trust

import (
	"time"
)

// A proof of when a record existed, as far as there is one.
type Proof struct {
	Earliest    *ProvedTime // by any authority that the reader trusts; nil: no time is proved
	Independent *ProvedTime // by one whose clock is not the operator's; nil: none
}

func (p Proof) Proved() bool { return p.Earliest != nil }

// Add takes in another proof: of several the earliest counts.
func (p *Proof) Add(t ProvedTime) {
	if p.Earliest == nil || t.Time.Before(p.Earliest.Time) {
		p.Earliest = &t
	}
	if t.Clock == Independent && (p.Independent == nil || t.Time.Before(p.Independent.Time)) {
		p.Independent = &t
	}
}

// independentlyBefore reports whether it is proved to have existed before a moment, by a clock that is not the operator's.
func (p Proof) IndependentlyBefore(moment time.Time) bool {
	return p.Independent != nil && p.Independent.Time.Before(moment)
}

// TimeOf is a record's time, as far as it is proved.
type TimeOf struct {
	Record string `json:"record"`
	ProvedTime
	// Independent is the earliest time proved by an authority whose clock is independent. Absent if there is none, or if
	// it is the time above.
	Independent *ProvedTime `json:"independent,omitempty"`
}

// ProvedTime is when something existed at the latest, by the word of an authority.
type ProvedTime struct {
	Time      time.Time `json:"time"`
	Authority string    `json:"authority"` // as the trust file names it
	Clock     Clock     `json:"clock"`
}
