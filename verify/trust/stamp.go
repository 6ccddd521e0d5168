package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

var (
	// errFuture: the clock of the authority is wrong, or the reader gave a wrong moment.
	errFuture = errors.New("its time is after the moment of checking")
	// errLost: the present holder of the authority's key can have made the token.
	errLost = errors.New("its authority is no longer trusted, and no trusted proof shows that it is older than that")
)

// Uncheckable reports whether a reader with other trust, with more knowledge or at another moment might accept the token of this error.
// Otherwise no reader should. A token that cannot be read is uncheckable, too: it may be badly encoded, and it contradicts nothing signed.
func Uncheckable(err error) bool {
	return slices.ContainsFunc([]error{timestamp.ErrMalformed, timestamp.ErrUntrusted, timestamp.ErrEffort, timestamp.ErrNoCertificate, timestamp.ErrPolicy,
		timestamp.ErrMock, timestamp.ErrAlgorithm, timestamp.ErrExtension, errFuture, errLost, errRevoked, errRevocation}, func(reason error) bool { return errors.Is(err, reason) })
}

// Doubtful returns the rule by which uncheckable time stamps prove nothing: the first that applies to any of them.
func Doubtful(err error) string {
	for _, rule := range []struct {
		name   string
		reason error
	}{{"revoked", errRevoked}, {"revocation", errRevocation}, {"future", errFuture}, {"renewal", errLost}, {"effort", timestamp.ErrEffort}} {
		if errors.Is(err, rule.reason) {
			return rule.name
		}
	}
	return "authority"
}

// Token verifies a token over a SHA-256. shown is what else proves the token's age. Uncheckable tells a doubtful error from that of a
// forgery.
func (c *Checker) Token(der []byte, imprint [sha256.Size]byte, shown Proof) (Stamped, error) {
	token, err := c.Memory.Parse(der)
	if err != nil {
		return Stamped{}, err
	}
	return c.attributed(token, imprint, shown)
}

// Verify is Token for a token that was parsed, and that nothing else shows. Its errors are those of Token.
func (c *Checker) Verify(token *timestamp.Unverified, imprint [sha256.Size]byte) (Stamped, error) {
	return c.attributed(token, imprint, Proof{})
}

// clockOf returns whose clock a token of an authority rests on, and whether it is believed: by itself, or because the
// token is proved to be older than the end of the trust, at a time at which its certificates were still valid. If only the operator's word proves
// that, everything that follows is the operator's word, too: with a stolen key and their own clock, the operator could have made the token
// at any time.
func (c *Checker) clockOf(a *Authority, shown Proof, valid func(time.Time) bool) (clock Clock, believed bool) {
	inTime := func(t *ProvedTime) bool { return t != nil && !t.Time.After(a.NotAfter) && valid(t.Time) }
	switch {
	case a.NotAfter.IsZero(), !c.At.IsZero() && !c.At.After(a.NotAfter), inTime(shown.Independent): // if the trust has an end, a moment must be given
		return a.Clock, true
	case inTime(shown.Earliest):
		return OperatorClock, true
	}
	return "", false
}

// attributed tries each authority of the trust file, until it finds one that made the token and is believed.
func (c *Checker) attributed(token *timestamp.Unverified, imprint [sha256.Size]byte, shown Proof) (Stamped, error) {
	l := link{token, imprint}
	t, err := c.proved(l, shown)
	if err != nil {
		return Stamped{}, err
	}
	stamped := Stamped{ProvedTime: t}
	stamped.Qualified, stamped.Unqualified = c.qualified(l, shown)
	return stamped, nil
}

// A link is a token and what it must be over.
type link struct {
	*timestamp.Unverified
	imprint [sha256.Size]byte
}

func (l link) verify(o timestamp.Options) (*timestamp.Token, error) {
	return l.Verify(l.imprint, o)
}

// proved is attributed without what the trusted lists say.
func (c *Checker) proved(l link, shown Proof) (ProvedTime, error) {
	options := timestamp.Options{Roots: []*x509.Certificate{}, Memory: c.Memory, Share: c.Share, UnsafeAllowMock: c.UnsafeAllowMock}
	if len(c.Trust.Authorities) == 0 {
		// Even without trust, a token that stamps something else is refuted.
		_, err := l.verify(options)
		if err == nil || Uncheckable(err) {
			err = fmt.Errorf("%w: the reader trusts no time-stamping authority", timestamp.ErrUntrusted)
		}
		return ProvedTime{}, err
	}
	var first error
	var told []error // reasons that say more than "by another authority"
	var strangers [][]x509.OID
	options.Intermediates = l.SignerAmong(c.Trust.roots())
	for i := range c.Trust.Authorities {
		a := &c.Trust.Authorities[i]
		if !l.Concerns(a.root, options.Intermediates...) { // one such authority speaks for all with its policies: there may be hundreds
			if slices.ContainsFunc(strangers, func(policies []x509.OID) bool { return slices.EqualFunc(policies, a.policies, x509.OID.Equal) }) {
				continue
			}
			strangers = append(strangers, a.policies)
		}
		options.Roots, options.Policies = []*x509.Certificate{a.root}, a.policies
		token, err := l.verify(options)
		var t ProvedTime
		if err == nil {
			t, err = c.by(a, token, shown, validUntil(l, options))
		}
		switch {
		case err == nil:
			return t, nil
		case !Uncheckable(err):
			return ProvedTime{}, err
		case Doubtful(err) != "authority":
			told = append(told, err)
		case first == nil:
			first = err
		}
	}
	if len(told) > 0 {
		first = errors.Join(told...)
	}
	return ProvedTime{}, first
}

// validUntil returns whether a token's certificates were valid until a time after its own.
func validUntil(l link, options timestamp.Options) func(time.Time) bool {
	return func(until time.Time) bool {
		options.Until = until
		_, err := l.verify(options)
		return err == nil
	}
}

// by returns what an authority's token proves: something existed at the token's time plus its accuracy.
func (c *Checker) by(a *Authority, token *timestamp.Token, shown Proof, valid func(time.Time) bool) (ProvedTime, error) {
	at := token.GenTime.Add(token.Accuracy)
	clock, believed := c.clockOf(a, shown, valid)
	if !believed {
		return ProvedTime{}, fmt.Errorf("%w: %s, %s", errLost, a.Name, utc(a.NotAfter))
	}
	if !c.At.IsZero() && at.Sub(c.At) > MaxSkew {
		return ProvedTime{}, fmt.Errorf("%w: %s, by %s", errFuture, utc(at), a.Name)
	}
	ownWord, err := c.stands(a, token.Chain, at, shown)
	if ownWord {
		clock = OperatorClock
	}
	return ProvedTime{Time: at, Authority: a.Name, Clock: clock, Asked: a.Asked() && c.checked(a, token, at, shown, valid)}, err
}

// checked reports whether a token proves its time also if only tokens show its age whose certificates were checked for revocation.
func (c *Checker) checked(a *Authority, token *timestamp.Token, at time.Time, shown Proof, valid func(time.Time) bool) bool {
	shown.Earliest, shown.Independent = shown.Checked, shown.Checked
	_, believed := c.clockOf(a, shown, valid)
	_, err := c.stands(a, token.Chain, at, shown)
	return believed && err == nil
}

// A Checker answers questions of a Trust at a moment, with what the reader knows of revoked certificates: for whom certificates
// vouch, and what times tokens prove. One goroutine may use it at a time.
type Checker struct {
	Trust *Trust        // never nil; empty if the reader gave none
	At    time.Time     // the moment of checking; zero: none is given
	Lists []*List       // the reader's revocation lists
	Grace time.Duration // how long after a record's proved time a list must have been made to count as of its time; zero: DefaultGrace

	Memory *timestamp.Memory
	Share  *timestamp.Share // what the record may spend on searches

	// UnsafeAllowMock accepts the mock time-stamping authority, whose key is public. For tests.
	UnsafeAllowMock bool

	Unasked bool // whether a time rests on an authority whose revocation was not checked
}

// Alone returns a Checker for one record, with its own share of the work budget. It reads no field that a check of other records
// changes, so it may run beside one.
func (c *Checker) Alone(share *timestamp.Share) Checker {
	return Checker{Trust: c.Trust, At: c.At, Lists: c.Lists, Grace: c.Grace, Memory: c.Memory, Share: share,
		UnsafeAllowMock: c.UnsafeAllowMock}
}

// MaxSkew is how far the clocks of an authority, an actor and a reader may differ without contradicting each other.
const MaxSkew = 5 * time.Minute

func utc(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

var (
	// errRevoked: the token cannot be told from a token by a thief of the authority's key.
	errRevoked = errors.New("revoked")
	// errRevocation: the reader's lists do not show whether it was revoked.
	errRevocation = errors.New("whether it was revoked is not known")
)

// gone are the reasons for revocation that leave the key in the authority's hands. Earlier tokens stay valid (RFC
// 3161, section 4).
var gone = []int{unspecified, affiliationChanged, superseded, cessationOfOperation}

// stands checks whether a token still counts if the reader demands a revocation check. A thief of the authority's key
// can backdate tokens. Then a token's own time does not count, unless something proves that the token is older than
// the theft. ownWord reports that only the operator's clock proves it.
func (c *Checker) stands(a *Authority, path []*x509.Certificate, at time.Time, shown Proof) (ownWord bool, err error) {
	if !a.Asked() {
		c.Unasked = true
		return false, nil
	}
	var unknown error
	for i, certificate := range path[:len(path)-1] {
		known, err := c.revoked(certificate, path[i+1], time.Time{}) // what came with the file is about signers' certificates
		switch {
		case err != nil:
			unknown = fmt.Errorf("%w: %s: %w", errRevocation, a.Name, err)
		case known.entry == nil:
		case !slices.Contains(gone, known.entry.reason):
			if !shown.Proved() || !shown.Earliest.Time.Before(known.entry.since) {
				return false, fmt.Errorf("%w: the certificate of %q, for a reason that makes all its tokens worthless", errRevoked, certificate.Subject)
			}
			ownWord = ownWord || !shown.IndependentlyBefore(known.entry.since)
		case !at.Before(known.entry.since):
			return false, fmt.Errorf("%w: the certificate of %q, from %s on, and the token is of %s", errRevoked, certificate.Subject, utc(known.entry.since), utc(at))
		}
	}
	return ownWord, unknown
}

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
