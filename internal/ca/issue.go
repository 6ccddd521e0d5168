package ca

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/names"
	"jurat/verify/trust"
)

// The lives of certificates, in days.
const (
	DefaultDays = 30
	MaxDays     = 398
)

// A Request asks for a certificate for the key that signed it.
type Request struct {
	Role   evidence.Role
	Name   string
	Public crypto.PublicKey
}

// ParseRequest reads a certificate request (PKCS #10, RFC 2986), PEM or DER, and checks its signature. The request names one actor and asks for
// nothing else: what the CA does not give is refused, and not silently left out.
func ParseRequest(doc []byte) (*Request, error) {
	if block, rest := pem.Decode(doc); block != nil {
		if block.Type != "CERTIFICATE REQUEST" || strings.TrimSpace(string(rest)) != "" {
			return nil, fmt.Errorf("the PEM block is a %q, or there is more after it: want one certificate request", block.Type)
		}
		doc = block.Bytes
	}
	r, err := x509.ParseCertificateRequest(doc)
	if err != nil {
		return nil, fmt.Errorf("want a certificate request (PKCS #10), PEM or DER: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("it is not signed with its key: %w", err)
	}
	for _, e := range r.Extensions {
		if !e.Id.Equal(oidSubjectAltName) {
			return nil, fmt.Errorf("it asks for the extension %s: want a subject alternative name alone", e.Id)
		}
	}
	if len(r.Extensions) != 1 || len(r.URIs) != 1 || len(r.DNSNames)+len(r.EmailAddresses)+len(r.IPAddresses) > 0 {
		return nil, errors.New("want one subject alternative name, the URI urn:jurat:ROLE:NAME")
	}
	public, err := evidence.ParsePublicKey(r.RawSubjectPublicKeyInfo)
	if err != nil {
		return nil, err
	}
	role, name, err := trust.Named(&x509.Certificate{Extensions: r.Extensions})
	if err == nil && !keys.MayOwn(role) {
		err = fmt.Errorf("the operator holds the key of the %s; only agents and reviewers have certificates here", role)
	}
	if err == nil {
		err = names.Check(name)
	}
	if err != nil {
		return nil, fmt.Errorf("its subject alternative name: %w", err)
	}
	return &Request{role, name, public}, nil
}

var oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// Issue issues the certificate that a request asks for. The errors include ErrTaken, ErrAlike and ErrExpired.
func (a *CA) Issue(ctx context.Context, r *Request, days int) (made *x509.Certificate, err error) {
	if days < 1 || days > MaxDays {
		return nil, fmt.Errorf("issuing certificate: a life of %d days: want 1 to %d", days, MaxDays)
	}
	err = a.exclusively(ctx, func() error {
		if err := a.mayName(ctx, r); err != nil {
			return err
		}
		if made, err = a.make(ctx, r, days); err != nil {
			return err
		}
		return a.files.Create(ctx, fileOf(made), PEM(made))
	})
	if err != nil {
		return nil, fmt.Errorf("issuing certificate: %w", err)
	}
	return made, nil
}

// make makes a certificate, and checks it as a verifier will.
func (a *CA) make(ctx context.Context, r *Request, days int) (*x509.Certificate, error) {
	key, err := a.signer(ctx)
	if err != nil {
		return nil, err
	}
	from := a.now().Add(-keys.Skew)
	if from.Before(a.Certificate.NotBefore) {
		from = a.Certificate.NotBefore
	}
	to := from.AddDate(0, 0, days).Add(-time.Second) // the last second is within (RFC 5280, section 4.1.2.5)
	if to.After(a.Certificate.NotAfter) {
		to = a.Certificate.NotAfter
	}
	identity := strings.TrimPrefix(trust.Identity(r.Role, r.Name), "urn:")
	template := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: shown(r.Name)}, NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning}, BasicConstraintsValid: true, URIs: []*url.URL{{Scheme: "urn", Opaque: identity}}}
	c, err := certify(template, a.Certificate, r.Public, key)
	if err != nil {
		return nil, err
	}
	if err := trust.CheckCertificate(c, r.Role, r.Name); err != nil {
		return nil, fmt.Errorf("the new certificate proves nothing: %w", err)
	}
	return c, nil
}

// shown is what people are shown of a name. Only the alternative name counts.
func shown(name string) string {
	if utf8.RuneCountInString(name) <= maxCommonName {
		return name
	}
	return string([]rune(name)[:maxCommonName-1]) + "…"
}

// mayName returns an error if a name is another key's, or looks like one that is.
func (a *CA) mayName(ctx context.Context, r *Request) error {
	public, err := evidence.MarshalPublicKey(r.Public)
	if err != nil {
		return err
	}
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	list, err := a.issued(ctx)
	if err != nil {
		return err
	}
	for _, c := range list {
		role, name, err := trust.Named(c)
		if err != nil {
			return err
		}
		if role != r.Role || !names.Same(name, r.Name) {
			continue
		}
		if name != r.Name {
			return fmt.Errorf("%w: %q, and %q has or had a certificate", ErrAlike, r.Name, name)
		}
		live := s.revocation(serialOf(c)) == nil && !a.now().After(c.NotAfter)
		if live && string(c.RawSubjectPublicKeyInfo) != string(public) {
			return fmt.Errorf("%w: %s, until %s", ErrTaken, a.files.Where(fileOf(c)), c.NotAfter.Format(time.RFC3339))
		}
	}
	return nil
}
