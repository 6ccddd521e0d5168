package trust

import (
	"slices"
	"time"

	"jurat/evidence"
)

// A Proof says by when something existed, as far as authorities prove it.
type Proof struct {
	Earliest    *ProvedTime // by any authority that the reader trusts; nil: no time is proved
	Independent *ProvedTime // by an authority whose clock is not the operator's; nil: none
	Checked     *ProvedTime // likewise, whose certificates were checked for revocation; nil: none

	Demanded bool // the reader's questions are answered by Independent alone

	Qualified   *Qualified   // the earliest time that a qualified service has stamped; nil: none
	Unqualified *Unqualified // why a time by an authority of the trusted lists is not qualified; nil: there is none
}

// Proved reports whether any time is proved.
func (p Proof) Proved() bool { return p.Earliest != nil }

// Add adds another proved time. The earliest counts.
func (p *Proof) Add(t Stamped) {
	if p.Earliest == nil || t.Time.Before(p.Earliest.Time) {
		p.Earliest = &t.ProvedTime
	}
	if t.Clock == Independent && (p.Independent == nil || t.Time.Before(p.Independent.Time)) {
		p.Independent = &t.ProvedTime
	}
	if t.Clock == Independent && t.Asked && (p.Checked == nil || t.Time.Before(p.Checked.Time)) {
		p.Checked = &t.ProvedTime
	}
	if q := t.Qualified; q != nil && (p.Qualified == nil || q.Time.Before(p.Qualified.Time)) {
		p.Qualified = q
	}
	if u := t.Unqualified; u != nil && (p.Unqualified == nil || u.step() > p.Unqualified.step()) {
		p.Unqualified = u
	}
}

// By returns the time by which something is shown to have existed: whatever asks whether it existed before a moment asks this. nil: none.
func (p Proof) By() *ProvedTime {
	if p.Demanded {
		return p.Independent
	}
	return p.Earliest
}

// Before reports whether something existed before a moment, and whether only the operator's clock says so.
func (p Proof) Before(moment time.Time) (existed, ownWord bool) {
	by := p.By()
	existed = by != nil && by.Time.Before(moment)
	return existed, existed && !p.IndependentlyBefore(moment)
}

// Within is Before for a moment that is the last at which something was valid.
func (p Proof) Within(last time.Time) (existed, ownWord bool) { return p.Before(last.Add(1)) }

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
	// Qualified is the earliest time that a qualified service has stamped. It is absent if none has, or if the trust file has no services.
	Qualified *Qualified `json:"qualified,omitempty"`
}

// ProvedTime is the latest moment at which something can have come into being, by the word of an authority.
type ProvedTime struct {
	Time      time.Time `json:"time"`
	Authority string    `json:"authority"` // as the trust file names it
	Clock     Clock     `json:"clock"`
	Asked     bool      `json:"-"` // the authority's certificates were checked for revocation
}

// Stamped is a time that a token proves, and what the trusted lists say of it.
type Stamped struct {
	ProvedTime
	Qualified   *Qualified   // nil: it is not qualified
	Unqualified *Unqualified // why not; nil: it is, or no authority of the lists has stamped it
}

// Anchor returns the times that the tokens of a stamped checkpoint prove: what the checkpoint covers existed by then. Each later generation of
// tokens shows that the earlier ones existed by its time. doubts says which tokens prove nothing; err is that of a forgery.
func (c *Checker) Anchor(a *evidence.Anchor) (proved []Stamped, doubts []error, err error) {
	imprints, err := a.Imprints()
	if err != nil {
		return nil, nil, err
	}
	shown := Proof{}
	for generation, tokens := range slices.Backward(a.Timestamps) {
		from := len(proved)
		for _, token := range tokens {
			t, err := c.Token(token, imprints[generation], shown)
			switch {
			case err == nil:
				proved = append(proved, t)
			case Uncheckable(err):
				doubts = append(doubts, err)
			default:
				return nil, nil, err
			}
		}
		for _, t := range proved[from:] {
			shown.Add(t)
		}
	}
	return proved, doubts, nil
}
