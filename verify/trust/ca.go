package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
)

// A CA is a certification authority that may vouch for keys of actors.
type CA struct {
	Name        string          `json:"name"`
	Certificate []byte          `json:"certificate"` // DER of the root, or of the issuing CA
	Roles       []evidence.Role `json:"roles"`       // of the actors for whom it may vouch
	Custody     Custody         `json:"custody"`     // what the reader believes about the keys that it certifies
	Revocation  Revocation      `json:"revocation,omitzero"`

	certificate *x509.Certificate
}

// Revocation says how a Checker finds out whether a certificate was revoked.
type Revocation string

const (
	ByCRL      Revocation = "crl"   // by revocation lists; what they do not show is not proved
	ShortLived Revocation = "short" // the same, but certificates that end too soon to be revoked are not asked about; only of a CA
	NotAsked   Revocation = "none"  // not at all
)

// check refuses every other word.
func (r Revocation) check(words ...Revocation) error {
	if r != "" && !slices.Contains(words, r) {
		return fmt.Errorf("revocation %q: want one of %q", r, words)
	}
	return nil
}

// Asked reports whether the revocation of certificates is checked. The default is yes.
func (ca *CA) Asked() bool { return ca.Revocation != NotAsked }

// Asked reports whether the revocation of the authority's certificates is checked. The default is no.
func (a *Authority) Asked() bool { return a.Revocation == ByCRL }

func (ca *CA) prepare() (err error) {
	if ca.Name == "" {
		return errors.New("name is empty")
	}
	if ca.Custody != ByOwner && ca.Custody != ByOperator {
		return fmt.Errorf("custody %q: want %q or %q", ca.Custody, ByOwner, ByOperator)
	}
	if err := ca.Revocation.check(ByCRL, ShortLived, NotAsked); err != nil {
		return err
	}
	if len(ca.Roles) == 0 {
		return errors.New("roles is empty: name the roles for which it may vouch")
	}
	for i, role := range ca.Roles {
		if !slices.Contains(evidence.Roles(), role) {
			return fmt.Errorf("roles: unknown role %q: expected one of %v", role, evidence.Roles())
		}
		if slices.Contains(ca.Roles[:i], role) {
			return fmt.Errorf("roles: %q is there twice", role)
		}
	}
	if ca.certificate, err = x509.ParseCertificate(ca.Certificate); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if !mayCertify(ca.certificate) {
		return errors.New("certificate: it is not that of a CA")
	}
	return nil
}

// mayCertify reports whether a certificate says that its key signs certificates.
func mayCertify(c *x509.Certificate) bool {
	return c.BasicConstraintsValid && c.IsCA && (!has(c, oidKeyUsage) || c.KeyUsage&x509.KeyUsageCertSign != 0)
}

// prepareCAs checks the trust file's CAs.
func (t *Trust) prepareCAs() error {
	for i := range t.CAs {
		if err := t.CAs[i].prepare(); err != nil {
			return fmt.Errorf("reading trust file: cas/%d: %w", i, err)
		}
		if slices.ContainsFunc(t.CAs[:i], func(ca CA) bool { return ca.certificate.Equal(t.CAs[i].certificate) }) {
			return fmt.Errorf("reading trust file: cas/%d: the certificate is there twice", i)
		}
	}
	return nil
}

// maxShort is the longest validity of a certificate that a reader takes without asking whether it was revoked.
const maxShort = 7 * 24 * time.Hour

var (
	oidNoRevAvail         = asn1.ObjectIdentifier{2, 5, 29, 56} // RFC 9608
	oidDistributionPoints = asn1.ObjectIdentifier{2, 5, 29, 31}
	oidFreshestCRL        = asn1.ObjectIdentifier{2, 5, 29, 46}
	null                  = []byte{5, 0}
)

// shortLived reports whether a certificate says that its CA will never say whether it was revoked (noRevAvail), and is valid for a week at most.
// RFC 9608 forbids the extension in certificates of CAs, and in those that say where to ask.
func shortLived(c *x509.Certificate) bool {
	return bytes.Equal(extensionOf(c, oidNoRevAvail), null) && c.NotAfter.Sub(c.NotBefore) <= maxShort &&
		!c.IsCA && !has(c, oidDistributionPoints) && !has(c, oidFreshestCRL) && len(c.OCSPServer) == 0
}
