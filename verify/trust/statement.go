package trust

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/timestamp"
)

// DefaultGrace is how long after a record's proved time a carried statement must have been made, if the reader does not say otherwise.
// It gives the owner of a stolen key the time to report the theft, and the CA the time to publish it.
const DefaultGrace = 24 * time.Hour

// A statement is what a CA said about the revocation of its certificates: a List or a Response. It is safe for concurrent use.
type statement interface {
	// about returns what it says of a certificate, and false if it says nothing of it. Without an issuer it goes by the issuer's name alone.
	about(certificate, issuer *x509.Certificate) (claim, bool)
	// signedBy returns an error unless the issuer said it. The second call for an issuer costs nothing.
	signedBy(issuer *x509.Certificate) error
	// sum is the digest of its bytes.
	sum() [sha256.Size]byte
}

// A claim is what a statement says of one certificate.
type claim struct {
	name  string    // of the statement, for people
	from  time.Time // thisUpdate
	until time.Time // nextUpdate; zero: it does not say
	entry *entry    // nil: not revoked
	err   error     // why it does not tell; nil: it does
}

// An entry is what a statement says of a revoked certificate.
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
	asOf  time.Time // thisUpdate of the statement that says so
}

// A candidate is a claim that may count.
type candidate struct {
	claim
	by      statement
	carried bool // it came with the file
}

// revoked looks up whether an issuer revoked its certificate: in the reader's statements, and in those of the file that were made after
// a moment. The zero moment means none of these. The error says why they do not tell. The newest usable statement counts.
func (c *Checker) revoked(certificate, issuer *x509.Certificate, after time.Time) (standing, error) {
	if c.At.IsZero() {
		return standing{}, errors.New("no moment of checking was given, so no revocation list can be fresh")
	}
	var newest *candidate
	why := fmt.Errorf("no revocation list of %q was given", issuer.Subject)
	for i, candidate := range c.candidates(certificate, issuer, after) {
		if newest != nil && candidate.from.Before(newest.from) {
			break
		}
		switch err := c.usable(&candidate, issuer, after); {
		case errors.Is(err, timestamp.ErrEffort): // an older one must not count in its place: the sender of the file controls what is left
			return standing{}, err
		case err != nil && newest == nil && i == 0:
			why = err
		case err != nil:
		case newest == nil:
			newest = &candidate
		case !same(newest.entry, candidate.entry):
			return standing{}, fmt.Errorf("%s contradicts %s about the certificate of %q", candidate.name, newest.name, certificate.Subject)
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

// candidates returns what all statements claim of a certificate, the newest first. Of equal age the reader's come first, and then they
// are in the order in which they were given.
func (c *Checker) candidates(certificate, issuer *x509.Certificate, after time.Time) (list []candidate) {
	add := func(s statement, carried bool) {
		if found, speaks := s.about(certificate, issuer); speaks {
			list = append(list, candidate{found, s, carried})
		}
	}
	for _, l := range c.Lists {
		add(l, false)
	}
	for _, r := range c.Responses {
		add(r, false)
	}
	if !after.IsZero() {
		c.Consulted = true
		for _, s := range c.Carried.all() {
			add(s, true)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return b.from.Compare(a.from) })
	return list
}

// usable returns an error if a claim does not count. The signature is checked last, because that costs most.
func (c *Checker) usable(s *candidate, issuer *x509.Certificate, after time.Time) error {
	err := s.err
	if err == nil && s.carried {
		err = s.carriedAt(c.At, after)
	} else if err == nil {
		err = s.ownAt(c.At)
	}
	if err != nil {
		return err
	}
	sum := s.by.sum()
	key := sha256.Sum256(slices.Concat([]byte("revocation"), sum[:], issuer.Raw))
	err = c.Share.Once(key, func() error { return s.by.signedBy(issuer) })
	switch {
	case errors.Is(err, timestamp.ErrEffort):
		return fmt.Errorf("%s was not checked: %w", s.name, err)
	case err != nil:
		return fmt.Errorf("%s in its issuer's name is not signed by the issuer: %w", s.name, err)
	}
	return nil
}

// ownAt returns an error unless a reader's statement is valid at the moment of checking.
func (s *claim) ownAt(at time.Time) error {
	switch {
	case s.from.After(at):
		return fmt.Errorf("%s begins after the moment of checking, %s", s.name, utc(at))
	case s.until.IsZero():
		return fmt.Errorf("%s does not say how long it is valid", s.name)
	case s.until.Before(at):
		return fmt.Errorf("%s is stale: a newer one was due by %s, and the moment of checking is %s", s.name, utc(s.until), utc(at))
	}
	return nil
}

// carriedAt returns an error unless a statement of the file is later than a moment. One from before the record hides every revocation
// that came between.
func (s *claim) carriedAt(at, after time.Time) error {
	switch {
	case s.from.Sub(at) > MaxSkew:
		return fmt.Errorf("%s, which came with the file, begins after the moment of checking, %s", s.name, utc(at))
	case !s.from.After(after):
		return fmt.Errorf("%s, which came with the file, is too old: only one of after %s shows what was revoked when the record existed, or soon after", s.name, utc(after))
	}
	return nil
}

// signatures remembers by which issuers a statement is signed.
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

// Bounds of what is kept of the statements in a file. docs/format.md has the same numbers, because two verifiers must agree.
const (
	maxCarried      = 1024     // statements
	maxCarriedBytes = 16 << 20 // bytes of all of them
)

// Carried holds the statements on revocation that came with a file. It is unverified: anyone can have added them. It does not change,
// so it is safe for concurrent use. The nil Carried is empty.
type Carried struct {
	statements []*Statement
	seen       map[[sha256.Size]byte]bool
	size       int
	full       bool
}

// With returns a Carried that also has the statements of the next record, as far as there is room. It returns c itself if the
// record brings nothing new.
func (c *Carried) With(list []evidence.Revocation) *Carried {
	known := cmp.Or(c, new(Carried))
	more := *known
	for _, r := range list {
		sum := sha256.Sum256(r.Value)
		if more.full || more.seen[sum] {
			continue
		}
		if len(more.seen) == len(known.seen) { // the first new one: what others read stays as it is
			more.statements, more.seen = slices.Clip(more.statements), maps.Clone(more.seen)
		}
		if more.seen == nil {
			more.seen = map[[sha256.Size]byte]bool{}
		}
		more.full = len(more.statements) == maxCarried || more.size+len(r.Value) > maxCarriedBytes
		if more.full {
			break
		}
		more.seen[sum] = true
		more.size += len(r.Value)
		more.statements = append(more.statements, &Statement{Revocation: r})
	}
	if len(more.seen) == len(known.seen) && more.full == known.full {
		return c
	}
	return &more
}

// all returns the statements that can be read.
func (c *Carried) all() (list []statement) {
	if c == nil {
		return nil
	}
	for _, s := range c.statements {
		if read := s.read(); read != nil {
			list = append(list, read)
		}
	}
	return list
}

// A Statement is what a CA said about revocation, as a file carries it. It is read when it is first asked, and is safe for concurrent use.
type Statement struct {
	evidence.Revocation
	once  sync.Once
	found statement // nil: it cannot be read
}

// ErrSilent says that a statement is not about a certificate.
var ErrSilent = errors.New("it says nothing about the certificate")

// Of returns from when on a statement counts for a certificate (thisUpdate). It goes by the names of issuers and the numbers of certificates;
// only a Checker finds whether the issuer signed it. The error is ErrSilent, or says why it cannot be used for the certificate.
func (s *Statement) Of(certificate *x509.Certificate) (from time.Time, err error) {
	read := s.read()
	if read == nil {
		return from, fmt.Errorf("a statement of the kind %q cannot be read", s.Kind)
	}
	found, speaks := read.about(certificate, nil)
	if !speaks {
		return from, ErrSilent
	}
	return found.from, found.err
}

func (s *Statement) read() statement {
	s.once.Do(func() {
		switch s.Kind {
		case evidence.CRL:
			if list, err := parseList(s.Value); err == nil {
				s.found = NewList(list)
			}
		case evidence.OCSP:
			if response, err := ParseOCSP(s.Value); err == nil {
				s.found = response
			}
		}
	})
	return s.found
}
