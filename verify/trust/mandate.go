package trust

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
)

// A Mandate says for whom an organisation lets a CA certify keys. The reader's own program derived it from the organisation's signed mandate
// and from trusted lists. It only limits what the CA vouches for.
type Mandate struct {
	Organisation string          `json:"organisation"` // as its certificate names it
	Country      string          `json:"country"`
	Identifier   string          `json:"identifier,omitempty"` // of the organisation, by ETSI EN 319 412-1: VATBE-0876866142
	Digest       evidence.Digest `json:"digest"`               // of the signed mandate, as a file
	At           time.Time       `json:"at"`                   // by when it existed, by an independent authority
	Roles        []evidence.Role `json:"roles"`
	Names        []string        `json:"names,omitempty"` // empty: every name
	From         time.Time       `json:"from"`
	To           time.Time       `json:"to"`
	Service      MandateService  `json:"service"`
}

// A MandateService is the service that issued the certificate of the organisation's seal, by a trusted list.
type MandateService struct {
	Territory string            `json:"territory"`
	TSP       string            `json:"tsp"`
	Name      string            `json:"name"`
	List      ServiceList       `json:"list"`
	LOTL      ListVersion       `json:"lotl"`
	Journal   []evidence.Digest `json:"oj"` // the certificates in the Official Journal with which the reader began
}

// maxMandated bounds the names of a mandate.
const maxMandated = 1000

// Check returns an error unless the mandate is in the form that trust files have.
func (m *Mandate) Check() error {
	switch {
	case m.Organisation == "":
		return errors.New("organisation is empty")
	case !isTerritory(m.Country):
		return fmt.Errorf("country %q is not two capital letters", m.Country)
	case m.Digest.IsZero():
		return errors.New("digest is missing")
	case m.At.IsZero():
		return errors.New("at is left out")
	case !isTerritory(m.Service.Territory):
		return fmt.Errorf("service: territory %q is not two capital letters", m.Service.Territory)
	case m.Service.TSP == "" || m.Service.Name == "":
		return errors.New("service: tsp or name is empty")
	case m.Service.List.Issued.IsZero():
		return errors.New("service: list: issued is left out")
	case len(m.Service.Journal) == 0 || slices.Contains(m.Service.Journal, evidence.Digest{}) || !rising(m.Service.Journal, func(a, b evidence.Digest) int { return bytes.Compare(a[:], b[:]) }):
		return errors.New("service: oj is empty, not sorted, or has a digest twice")
	}
	if err := errors.Join(m.Service.List.check("service: list"), m.Service.LOTL.check("service: lotl")); err != nil {
		return err
	}
	return CheckScope(m.Roles, m.Names, m.From, m.To)
}

// CheckScope returns an error unless these can be the roles, names and times of a mandate: at least one role, sorted, none twice; names that
// actors can have, sorted, none twice, at most 1,000; and a beginning before the end.
func CheckScope(roles []evidence.Role, names []string, from, to time.Time) error {
	switch {
	case len(roles) == 0:
		return errors.New("roles is empty")
	case slices.ContainsFunc(roles, func(r evidence.Role) bool { return !slices.Contains(evidence.Roles(), r) }):
		return fmt.Errorf("roles: want of %v", evidence.Roles())
	case !rising(roles, func(a, b evidence.Role) int { return strings.Compare(string(a), string(b)) }):
		return errors.New("roles are not sorted, or one is there twice")
	case len(names) > maxMandated:
		return fmt.Errorf("%d names: want at most %d", len(names), maxMandated)
	case !rising(names, strings.Compare):
		return errors.New("names are not sorted, or one is there twice")
	case from.IsZero() || to.IsZero() || !from.Before(to):
		return errors.New("from is not before to")
	}
	for _, name := range names {
		if err := evidence.CheckName(name); err != nil {
			return fmt.Errorf("names: %w", err)
		}
	}
	return nil
}

// covers returns an error if the mandate says nothing of a role at a time.
func (m *Mandate) covers(role evidence.Role, at time.Time) error {
	switch {
	case m == nil:
	case !slices.Contains(m.Roles, role):
		return fmt.Errorf("%s mandated the CA for other roles than %s", m.Organisation, role)
	case at.Before(m.From) || at.After(m.To):
		return fmt.Errorf("%s mandated the CA from %s to %s, and the record's time is %s", m.Organisation, utc(m.From), utc(m.To), utc(at))
	}
	return nil
}

// coversName returns an error if the mandate says nothing of a name.
func (m *Mandate) coversName(name string) error {
	if m == nil || len(m.Names) == 0 || slices.Contains(m.Names, name) {
		return nil
	}
	return fmt.Errorf("%s mandated the CA for other names than %q", m.Organisation, name)
}

// Unrevoked returns an error if a certificate of a path, but the last, is revoked and not shown to have been used before ("revoked"), or if the
// reader's lists do not show that ("revocation"). The rule is the word in brackets.
func (c *Checker) Unrevoked(path []*x509.Certificate, at Proof) (rule string, err error) {
	found := c.unrevoked(new(CA), path, at)
	return found.Rule, found.Err
}
