package ca

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/names"
	"jurat/verify/trust"
)

// The lives of certificates.
const (
	Day         = 24 * time.Hour
	DefaultLife = 30 * Day
	MaxLife     = 398 * Day
	ShortLife   = 7 * Day // the longest of a certificate that has noRevAvail
)

// An Order says which certificate to issue.
type Order struct {
	Request *Request
	Life    time.Duration // 0: DefaultLife, or ShortLife if Short
	Short   bool          // with noRevAvail, for at most ShortLife
	By      string
	Reason  string

	// Over says of another key that has a certificate for the name whether the log's key events let this one take its place. nil: none may.
	// It is asked when the certificate is made, so that of two keys that ask at once for a free name one is refused.
	Over func(other evidence.KeyID) bool
}

// Issue issues the certificate that a request asks for. The errors include ErrTaken, ErrExpired, and an *evidence.FieldError for a name
// that is refused.
func (a *CA) Issue(ctx context.Context, o Order) (*Issued, error) {
	life, err := o.life()
	if err != nil {
		return nil, fmt.Errorf("issuing certificate: %w", err)
	}
	r := o.Request
	return a.issue(ctx, func(now time.Time) (*wish, error) {
		if err := a.mayName(r.Role, r.Name, r.KeyID, now, o.Over); err != nil {
			return nil, err
		}
		return &wish{r.Role, r.Name, r.Public, life, o.Short, o.By, o.Reason}, nil
	})
}

// Check returns an error for a life that certificates cannot have.
func (o *Order) Check() error {
	_, err := o.life()
	return err
}

func (o *Order) life() (time.Duration, error) {
	most, life := MaxLife, o.Life
	if o.Short {
		most = ShortLife
	}
	if life == 0 {
		life = min(DefaultLife, most)
	}
	if life < time.Hour || life > most {
		return 0, fmt.Errorf("a life of %s: want one hour to %d days", life, most/Day)
	}
	return life, nil
}

// A wish is the content of a certificate that is to be made.
type wish struct {
	role       evidence.Role
	name       string
	public     crypto.PublicKey
	life       time.Duration
	short      bool
	by, reason string
}

// issue issues the certificate that decide wants in the present state.
func (a *CA) issue(ctx context.Context, decide func(now time.Time) (*wish, error)) (*Issued, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var made *x509.Certificate
	err := a.do(ctx, func(now time.Time) (*Act, error) {
		w, err := decide(now)
		if err != nil {
			return nil, err
		}
		if made, err = a.make(ctx, w, now); err != nil {
			return nil, err
		}
		return &Act{Certificate: made.Raw, By: w.by, Reason: w.reason}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("issuing certificate: %w", err)
	}
	return a.find(made.SerialNumber.Text(16))
}

// make makes a certificate, and checks it as a verifier will.
func (a *CA) make(ctx context.Context, w *wish, now time.Time) (*x509.Certificate, error) {
	template, err := a.template(w, now)
	if err != nil {
		return nil, err
	}
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	c, err := certify(template, a.Certificate, w.public, key)
	if err != nil {
		return nil, err
	}
	if err := trust.CheckCertificate(c, w.role, w.name); err != nil {
		return nil, fmt.Errorf("the new certificate proves nothing: %w", err)
	}
	return c, nil
}

// template is a certificate without its key. It ends with the CA's own at the latest.
func (a *CA) template(w *wish, now time.Time) (*x509.Certificate, error) {
	if err := a.alive(now); err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	name, err := alternativeName(trust.Identity(w.role, w.name))
	if err != nil {
		return nil, err
	}
	from := latest(now.Add(-keys.Skew), a.Certificate.NotBefore)
	to := earliest(from.Add(w.life).Add(-time.Second), a.Certificate.NotAfter) // the last second is within (RFC 5280, section 4.1.2.5)
	if !to.After(now) {
		return nil, fmt.Errorf("%w: at %s", ErrExpired, a.Certificate.NotAfter.Format(time.RFC3339))
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: subject(w), NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}, BasicConstraintsValid: true, ExtraExtensions: []pkix.Extension{name}}
	switch {
	case w.short:
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{Id: oidNoRevAvail, Value: asn1.NullBytes})
	case a.Settings.CRL != "":
		template.CRLDistributionPoints = []string{a.Settings.CRL}
	}
	return template, nil
}

// subject is what people are shown. Only the alternative name counts.
func subject(w *wish) pkix.Name {
	if utf8.RuneCountInString(w.name) <= maxCommonName {
		return pkix.Name{CommonName: w.name}
	}
	return pkix.Name{CommonName: string([]rune(w.name)[:maxCommonName-1]) + "…"}
}

var oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// tagURI is uniformResourceIdentifier (RFC 5280, section 4.2.1.6).
const tagURI = 6

// alternativeName is the extension with one URI, byte for byte: crypto/x509 would write it through package url.
func alternativeName(uri string) (pkix.Extension, error) {
	value, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: tagURI, Bytes: []byte(uri)}})
	return pkix.Extension{Id: oidSubjectAltName, Value: value}, err
}

// mayName returns an error if a name is another key's. The caller holds the lock.
func (a *CA) mayName(role evidence.Role, name string, key evidence.KeyID, now time.Time, over func(evidence.KeyID) bool) error {
	if !keys.MayOwn(role) {
		return &evidence.FieldError{Field: "subjectAltName", Reason: fmt.Sprintf("the operator holds the key of the %s; only agents and reviewers have certificates here", role)}
	}
	for _, one := range a.issued {
		if one.Role != role || !names.Same(one.Name, name) {
			continue
		}
		if one.Name != name {
			return fmt.Errorf("%w: %q is the same to readers as %q, which has a certificate", ErrTaken, name, one.Name)
		}
		if one.KeyID != key && one.live(now) && (over == nil || !over(one.KeyID)) {
			return fmt.Errorf("%w: %s %q has certificate %s for the key %s until %s", ErrTaken, role, name, one.Serial, one.KeyID, one.Certificate.NotAfter.Format(time.RFC3339))
		}
	}
	if slices.ContainsFunc(a.issued, func(one *Issued) bool { return one.Role == role && one.Name == name }) {
		return nil // an actor that has a name may keep it
	}
	if err := names.Check(name); err != nil {
		return &evidence.FieldError{Field: "subjectAltName", Reason: err.Error()}
	}
	return nil
}

// live reports whether a certificate still vouches for its key.
func (i *Issued) live(now time.Time) bool {
	return i.Revoked == nil && !now.After(i.Certificate.NotAfter)
}

// DueAt is when a certificate is to be renewed: after two thirds of its life.
func (i *Issued) DueAt() time.Time {
	c := i.Certificate
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// State says in a few words what became of a certificate.
func (i *Issued) State(now time.Time) string {
	switch {
	case i.Revoked != nil:
		return "revoked"
	case now.After(i.Certificate.NotAfter):
		return "expired"
	case !now.Before(i.DueAt()):
		return "due"
	}
	return "valid"
}

var (
	// ErrNotLatest says that there is a later certificate for the same key and name.
	ErrNotLatest = errors.New("there is a later certificate for this key and name")
	// ErrEnded says that a certificate has expired: its owner asks for another with a new request.
	ErrEnded = errors.New("the certificate has expired")
)

// Renew issues another certificate for the key and the name of one that has neither expired nor been revoked, for a life as long. The
// errors include ErrUnknown, ErrRevoked, ErrEnded and ErrNotLatest.
func (a *CA) Renew(ctx context.Context, serial, by, reason string) (*Issued, error) {
	return a.issue(ctx, func(now time.Time) (*wish, error) {
		one, err := a.find(serial)
		if err != nil {
			return nil, err
		}
		c := one.Certificate
		switch {
		case one.Revoked != nil:
			return nil, fmt.Errorf("%w: serial number %s", ErrRevoked, serial)
		case !one.live(now):
			return nil, fmt.Errorf("%w: serial number %s, at %s", ErrEnded, serial, c.NotAfter.Format(time.RFC3339))
		case a.latest(one).Serial != serial:
			return nil, fmt.Errorf("%w: serial number %s", ErrNotLatest, a.latest(one).Serial)
		}
		public, err := evidence.ParsePublicKey(c.RawSubjectPublicKeyInfo)
		if err != nil {
			return nil, err
		}
		life := c.NotAfter.Sub(c.NotBefore) + time.Second
		return &wish{one.Role, one.Name, public, life, one.Short, by, reason}, nil
	})
}

// latest is the last certificate for the key and the name of another that is not revoked. The caller holds the lock.
func (a *CA) latest(of *Issued) *Issued {
	for _, one := range slices.Backward(a.issued) {
		if one.Role == of.Role && one.Name == of.Name && one.KeyID == of.KeyID && one.Revoked == nil {
			return one
		}
	}
	return of
}

// Due returns the certificates that Renew would renew and whose time for it has come.
func (a *CA) Due(ctx context.Context) ([]Issued, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	now, err := a.now()
	if err != nil {
		return nil, err
	}
	type holder struct {
		role evidence.Role
		name string
		key  evidence.KeyID
	}
	var due []Issued
	seen := map[holder]bool{}
	for _, one := range slices.Backward(a.issued) {
		who := holder{one.Role, one.Name, one.KeyID}
		if one.Revoked != nil || seen[who] {
			continue
		}
		seen[who] = true
		if one.live(now) && !now.Before(one.DueAt()) {
			due = append(due, *one)
		}
	}
	slices.Reverse(due)
	return due, nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
