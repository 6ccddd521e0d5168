package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

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
	ByCRL    Revocation = "crl"  // by the reader's lists; what they do not show is not proved
	NotAsked Revocation = "none" // not at all
)

func (r Revocation) check() error {
	if r != "" && r != ByCRL && r != NotAsked {
		return fmt.Errorf("revocation %q: want %q or %q", r, ByCRL, NotAsked)
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
	if err := ca.Revocation.check(); err != nil {
		return err
	}
	if len(ca.Roles) == 0 {
		return errors.New("roles is empty: name the roles for which it may vouch")
	}
	for i, role := range ca.Roles {
		if !slices.Contains(evidence.Roles(), role) {
			return fmt.Errorf("roles: %q is none of %v", role, evidence.Roles())
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
