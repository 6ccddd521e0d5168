package trust

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/timestamp"
)

// DefaultGrace is how long after a record's proved time a list must have been made to say of itself what was revoked when the record existed,
// if the reader does not say otherwise. It gives the owner of a stolen key the time to report the theft, and the CA the time to publish it.
const DefaultGrace = 24 * time.Hour

// A claim is what a list says of one certificate.
type claim struct {
	name  string    // of the list, for people
	from  time.Time // thisUpdate
	until time.Time // nextUpdate; zero: it does not say
	entry *entry    // nil: not revoked
	err   error     // why it does not tell; nil: it does
	by    *List
}

// An entry is what a list says of a revoked certificate.
type entry struct {
	on     time.Time // when it was revoked
	since  time.Time // revoked then, or known to be compromised since this earlier time
	reason int       // CRLReason; noReason if none is stated
}

// reasons are the names of CRLReason in RFC 5280, section 5.3.1.
var reasons = []string{"unspecified", "keyCompromise", "cACompromise", "affiliationChanged", "superseded", "cessationOfOperation", "certificateHold", "", "removeFromCRL",
	"privilegeWithdrawn", "aACompromise"}

// after says that it revoked a certificate after what that signed existed.
func (e *entry) after(certificate *x509.Certificate, existed ProvedTime) *Revoked {
	r := &Revoked{Certificate: cmp.Or(certificate.Subject.String(), "serial number "+certificate.SerialNumber.String()), On: e.on.UTC(), Existed: existed}
	if e.since.Before(e.on) {
		r.Since = e.since.UTC()
	}
	if e.reason >= 0 && e.reason < len(reasons) {
		r.Reason = reasons[e.reason]
	}
	return r
}

// A standing is what is known of the revocation of a certificate.
type standing struct {
	entry *entry    // nil: not revoked
	asOf  time.Time // thisUpdate of the list that says so
}

// revoked looks up in the reader's lists whether an issuer revoked its certificate. A list counts while it is good, and later as of its own time, if
// that is after a moment; the zero moment means that it does not. The error says why the lists do not tell. The newest usable list counts.
func (c *Checker) revoked(certificate, issuer *x509.Certificate, after time.Time) (standing, error) {
	if c.At.IsZero() {
		return standing{}, errors.New("no moment of checking was given, so no revocation list can be fresh")
	}
	var newest *claim
	why := fmt.Errorf("no revocation list of %q was given", issuer.Subject)
	for i, found := range c.claims(certificate) {
		if newest != nil && found.from.Before(newest.from) {
			break
		}
		switch err := c.usable(&found, issuer, after); {
		case errors.Is(err, timestamp.ErrEffort): // an older one must not count in its place: the sender of the file controls what is left
			return standing{}, err
		case err != nil && newest == nil && i == 0:
			why = err
		case err != nil:
		case newest == nil:
			newest = &found
		case !same(newest.entry, found.entry):
			return standing{}, fmt.Errorf("%s contradicts %s about the certificate of %q", found.name, newest.name, certificate.Subject)
		}
	}
	if newest == nil {
		return standing{}, why
	}
	return standing{newest.entry, newest.from}, nil
}

func same(a, b *entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.since.Equal(b.since) && a.reason == b.reason
}

// claims returns what all lists claim of a certificate, the newest first, and those of equal age in the order in which they were given.
func (c *Checker) claims(certificate *x509.Certificate) (list []claim) {
	for _, l := range c.Lists {
		if found, speaks := l.about(certificate); speaks {
			list = append(list, found)
		}
	}
	slices.SortStableFunc(list, func(a, b claim) int { return b.from.Compare(a.from) })
	return list
}

// usable returns an error if a claim does not count. The signature is checked last, because that costs most.
func (c *Checker) usable(s *claim, issuer *x509.Certificate, after time.Time) error {
	if err := cmp.Or(s.err, s.counts(c.At, after)); err != nil {
		return err
	}
	key := sha256.Sum256(slices.Concat([]byte("revocation"), s.by.digest[:], issuer.Raw))
	err := c.Share.Once(c.Memory, key, func() error { return s.by.signedBy(issuer) })
	switch {
	case errors.Is(err, timestamp.ErrEffort):
		return fmt.Errorf("%s was not checked: %w", s.name, err)
	case err != nil:
		return fmt.Errorf("%s in its issuer's name is not signed by the issuer: %w", s.name, err)
	}
	return nil
}

// counts returns an error unless a list is good at the moment of checking, or was made after a moment. One that is neither hides every
// revocation that came between it and the record.
func (s *claim) counts(at, after time.Time) error {
	var late string
	if !after.IsZero() {
		late = fmt.Sprintf("; only one of after %s still shows what was revoked when the record existed, or soon after", utc(after))
	}
	switch {
	case s.from.After(at):
		return fmt.Errorf("%s begins after the moment of checking, %s", s.name, utc(at))
	case late != "" && s.from.After(after):
		return nil
	case s.until.IsZero():
		return fmt.Errorf("%s does not say how long it is valid%s", s.name, late)
	case s.until.Before(at):
		return fmt.Errorf("%s is stale: a newer one was due by %s, and the moment of checking is %s%s", s.name, utc(s.until), utc(at), late)
	}
	return nil
}

// signatures remembers by which issuers a list is signed.
type signatures struct {
	mu    sync.Mutex                  // guards known
	known map[[sha256.Size]byte]error // by digest of the issuer's certificate; a bounded cache
}

// maxIssuers bounds the cache. The sender of a file controls how many issuers there are.
const maxIssuers = 64

func (s *signatures) of(issuer *x509.Certificate, check func() error) error {
	key := sha256.Sum256(issuer.Raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	err, asked := s.known[key]
	if asked {
		return err
	}
	err = check()
	if s.known == nil {
		s.known = map[[sha256.Size]byte]error{}
	}
	if len(s.known) < maxIssuers {
		s.known[key] = err
	}
	return err
}
