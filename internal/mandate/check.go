package mandate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/eutrust"
	"jurat/timestamp"
	"jurat/trustlist"
	"jurat/verify"
	"jurat/verify/trust"
)

// Grounds are what a reader checks a mandate by. All but CRLs and Unasked is required.
type Grounds struct {
	Trust   *trust.Trust      // has the authorities that prove the mandate's time
	Lists   *eutrust.Verified // trusted lists
	Journal trustlist.Signers // the certificates with which the lists began
	At      time.Time         // the moment of checking
	CRLs    []*x509.RevocationList
	Unasked bool // do not ask whether the seal's certificate was revoked
}

// A Finding says why a mandate is not proved, or is refuted.
type Finding struct {
	Status verify.Status `json:"status"`
	Rule   string        `json:"rule,omitzero"`
	Reason string        `json:"reason"`
}

func (f *Finding) Error() string { return f.Reason }

func not(rule, format string, args ...any) error {
	return &Finding{verify.NotProved, rule, fmt.Sprintf(format, args...)}
}

// Check proves that a qualified seal of an organisation is over the mandate, and returns what a trust file says of it. Its error is a *Finding:
// refuted if the signature is not by the key of the certificate that it names; otherwise not proved.
func (f *File) Check(g Grounds) (*trust.Mandate, error) {
	if err := f.signed(); err != nil {
		return nil, &Finding{verify.Refuted, "signature", "the signature is not by the key of the first certificate: " + err.Error()}
	}
	seal := f.Certificates[0]
	if err := seals(seal); err != nil {
		return nil, not("certificate", "the certificate of the seal: %v", err)
	}
	name, country, identifier, err := organisation(seal)
	if err != nil {
		return nil, not("certificate", "the certificate of the seal: %v", err)
	}
	checker := trust.Checker{Trust: g.Trust, At: g.At, Memory: timestamp.NewMemory(), Share: timestamp.NewBudget().Turn()}
	for _, list := range g.CRLs {
		checker.Lists = append(checker.Lists, trust.NewList(list))
	}
	at, err := f.provedTime(&checker)
	if err != nil {
		return nil, err
	}
	service, err := f.service(&checker, g, at)
	if err != nil {
		return nil, err
	}
	digest, err := f.Digest()
	if err != nil {
		return nil, not("form", "%v", err)
	}
	made := &trust.Mandate{Organisation: name, Country: country, Identifier: identifier, Digest: digest, At: at.Independent.Time,
		Roles: f.Mandate.Roles, Names: f.Mandate.Names, From: f.Mandate.From, To: f.Mandate.To, Service: *service}
	if err := made.Check(); err != nil {
		return nil, not("form", "%v", err)
	}
	return made, nil
}

// provedTime returns by when the mandate existed. Only an independent clock counts: the operator gains by an earlier time.
func (f *File) provedTime(c *trust.Checker) (at trust.Proof, err error) {
	doubts := errors.New("it has no time stamp: 'jurat mandate stamp' adds one")
	for i, token := range f.Tokens {
		proved, err := c.Token(token, f.Imprint(), trust.Proof{})
		if err != nil { // anyone can add a time stamp that fits nothing, so it only proves nothing
			doubts = fmt.Errorf("time stamp %d: %w", i+1, err)
			continue
		}
		if at.Add(proved); at.Independent == nil {
			doubts = errors.New("only the operator's own clock vouches for its time")
		}
	}
	if at.Independent == nil {
		return at, not("time", "by when the mandate existed is not proved: %v", doubts)
	}
	return at, nil
}

// An issuer is a service of a trusted list that issued the certificate of the seal.
type issuer struct {
	list    *trustlist.List
	service trustlist.Service
	paths   timestamp.Paths
	length  int // of the shortest path
}

// issuers returns the services for qualified certificates that issued the certificate of the seal: those nearest to it, as lists name root CAs beside
// the CAs below them.
func (f *File) issuers(c *trust.Checker, g Grounds, when time.Time) (nearest []issuer, err error) {
	for _, list := range g.Lists.National {
		for _, s := range list.Of(trustlist.QualifiedCertificates) {
			for _, der := range s.Certificates {
				ca, err := x509.ParseCertificate(der)
				if err != nil {
					continue // one bad certificate says nothing of the others
				}
				paths, err := c.Share.Find(timestamp.Search{From: f.Certificates[0], Between: timestamp.Between(f.Certificates[1:]), Roots: []*x509.Certificate{ca}, At: when,
					Usage: x509.ExtKeyUsageAny, Memory: c.Memory})
				if errors.Is(err, timestamp.ErrEffort) {
					return nil, not("effort", "%v", err)
				}
				if err != nil || len(paths) == 0 {
					continue
				}
				found := issuer{list, s, paths, len(slices.MinFunc(paths, func(a, b []*x509.Certificate) int { return len(a) - len(b) }))}
				if len(nearest) > 0 && found.length < nearest[0].length {
					nearest = nil
				}
				if len(nearest) == 0 || found.length == nearest[0].length {
					nearest = append(nearest, found)
				}
			}
		}
	}
	if len(nearest) == 0 {
		return nil, not("service", "no trusted list has a service for qualified certificates (CA/QC) that issued the certificate of the seal")
	}
	return nearest, nil
}

// service returns the service of a trusted list that issued the certificate of the seal. If there are several, all must have been granted, and
// call it a certificate for qualified seals.
func (f *File) service(c *trust.Checker, g Grounds, at trust.Proof) (made *trust.MandateService, err error) {
	nearest, err := f.issuers(c, g, at.Independent.Time)
	if err != nil {
		return nil, err
	}
	for _, found := range nearest {
		if made, err = f.issued(found, g, at.Independent.Time); err != nil {
			return nil, err
		}
	}
	if g.Unasked {
		return made, nil
	}
	for _, path := range nearest[0].paths {
		rule, failed := c.Unrevoked(path, at)
		if failed == nil {
			return made, nil
		}
		err = not(rule, "the certificate of the seal: %v", failed)
	}
	return nil, err
}

// issued checks what a list says of the service, when it issued the certificate and when the mandate existed.
func (f *File) issued(by issuer, g Grounds, when time.Time) (*trust.MandateService, error) {
	list, seal := by.list, f.Certificates[0]
	where := fmt.Sprintf("the list %s %d of %s", list.Territory, list.Sequence, list.Issued.Format(time.DateOnly))
	for _, moment := range []time.Time{seal.NotBefore, when} {
		if err := grantedForSeals(&by.service, seal, moment); err != nil {
			rule := "status"
			if errors.Is(err, errQualifier) {
				rule = "qualifier"
			}
			return nil, not(rule, "by %s: %v", where, err)
		}
	}
	switch {
	case list.NextUpdate.IsZero() && when.After(list.Issued):
		return nil, not("list", "%s is the last of its territory, and older than the mandate", where)
	case g.At.IsZero() || !list.NextUpdate.IsZero() && g.At.After(list.NextUpdate):
		return nil, not("list", "%s is out of date: it speaks until %s", where, list.NextUpdate.Format(time.DateOnly))
	}
	state, err := by.service.At(when)
	if err != nil {
		return nil, not("status", "by %s: %v", where, err)
	}
	return &trust.MandateService{Territory: list.Territory, TSP: first(by.service.Providers), Name: first(state.Names),
		List: trust.ServiceList{ListVersion: eutrust.Version(list), Issued: list.Issued, NextUpdate: list.NextUpdate},
		LOTL: eutrust.Version(g.Lists.LOTL), Journal: eutrust.JournalDigests(g.Journal)}, nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// errQualifier says that the service was granted, and the certificate is not one of its qualified certificates for seals.
var errQualifier = errors.New("the certificate is not for qualified seals")

// grantedForSeals returns an error unless a service was qualified at a moment to issue certificates for seals, and the certificate is one.
func grantedForSeals(s *trustlist.Service, seal *x509.Certificate, moment time.Time) error {
	at := evidence.FormatTime(moment)
	granted, err := s.QualifiedAt(trustlist.QualifiedCertificates, moment)
	if err != nil {
		return err
	}
	if !granted {
		return fmt.Errorf("the service was not granted at %s", at)
	}
	state, err := s.At(moment)
	if err != nil {
		return err
	}
	if !slices.Contains(state.Information, forSeals) {
		return fmt.Errorf("the service was not one for seals at %s (ForeSeals)", at)
	}
	if err := qualifiedSeal(seal, &state); err != nil {
		return fmt.Errorf("%w: %w", errQualifier, err)
	}
	return nil
}
