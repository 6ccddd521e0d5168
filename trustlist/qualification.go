package trustlist

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCriteria says that a list tells certificates of a service apart in a way that this package does not know.
var ErrCriteria = errors.New("the list tells the service's certificates apart in a way that is not known here")

// A Qualification says more of some of the certificates that a service issues (ETSI TS 119 612, 5.5.9.2).
type Qualification struct {
	Qualifiers []string // URIs
	Criteria   Criteria // which certificates it is about
	Unknown    string   // an element that this package does not know, or that is not in its form; empty: none
}

// Criteria are conditions on a certificate, and how many of them must hold.
type Criteria struct {
	Assert    string            // all, atLeastOne or none
	KeyUsages []map[string]bool // each: the bits that must be set, and those that must not
	Policies  [][]string        // each: object identifiers in dotted form, all of which the certificate must have
	Lists     []Criteria        //
}

// readQualifications reads the extension. What it cannot read does not invalidate the list, which also lists services of other kinds: the
// Qualification says so, and State.Qualifiers then returns ErrCriteria.
func readQualifications(e *element) (list []Qualification) {
	r := &reader{}
	for _, one := range r.elements(e) {
		q := r.qualification(one)
		if r.err != nil {
			q, r.err = Qualification{Unknown: one.local}, nil
		}
		list = append(list, q)
	}
	if r.err != nil {
		list = append(list, Qualification{Unknown: e.local})
	}
	return list
}

func (r *reader) qualification(e *element) (q Qualification) {
	if !e.is(qualifications, "QualificationElement") {
		r.fail(e, "it is no QualificationElement")
	}
	parts := r.exactly(e, qualifications, "Qualifiers", "CriteriaList")
	for _, one := range r.elements(parts[0]) {
		if !one.is(qualifications, "Qualifier") {
			r.fail(one, "it is no Qualifier")
		}
		q.Qualifiers = append(q.Qualifiers, r.attributeOf(one, "uri"))
	}
	q.Criteria = r.criteria(parts[1])
	return q
}

func (r *reader) criteria(e *element) (c Criteria) {
	c.Assert = r.attributeOf(e, "assert")
	for _, one := range r.elements(e) {
		switch {
		case one.is(qualifications, "KeyUsage"):
			c.KeyUsages = append(c.KeyUsages, r.keyUsage(one))
		case one.is(qualifications, "PolicySet"):
			c.Policies = append(c.Policies, r.policies(one))
		case one.is(qualifications, "CriteriaList"):
			c.Lists = append(c.Lists, r.criteria(one))
		case one.is(qualifications, "Description"):
		default:
			r.fail(one, "it is not known here")
		}
	}
	if !slices.Contains([]string{"all", "atLeastOne", "none"}, c.Assert) || len(c.KeyUsages)+len(c.Policies)+len(c.Lists) == 0 {
		r.fail(e, "it has no condition, or does not say how many must hold")
	}
	return c
}

func (r *reader) keyUsage(e *element) map[string]bool {
	bits := map[string]bool{}
	for _, one := range r.elements(e) {
		name, value := r.attributeOf(one, "name"), r.value(one)
		if _, twice := bits[name]; twice || !one.is(qualifications, "KeyUsageBit") || keyUsageBits[name] == 0 || value != "true" && value != "false" {
			r.fail(one, "it is no bit of a key usage")
		}
		bits[name] = value == "true"
	}
	if len(bits) == 0 {
		r.fail(e, "it names no bit")
	}
	return bits
}

const xadesSpace = "http://uri.etsi.org/01903/v1.3.2#"

func (r *reader) policies(e *element) (list []string) {
	for _, one := range r.all(e, qualifications, "PolicyIdentifier") {
		list = append(list, strings.TrimPrefix(r.value(r.only(one, xadesSpace, "Identifier")), "urn:oid:"))
	}
	if len(list) == 0 || len(list) != len(r.elements(e)) {
		r.fail(e, "it names no policy, or something else")
	}
	return list
}

var keyUsageBits = map[string]x509.KeyUsage{
	"digitalSignature": x509.KeyUsageDigitalSignature, "nonRepudiation": x509.KeyUsageContentCommitment,
	"keyEncipherment": x509.KeyUsageKeyEncipherment, "dataEncipherment": x509.KeyUsageDataEncipherment,
	"keyAgreement": x509.KeyUsageKeyAgreement, "keyCertSign": x509.KeyUsageCertSign, "crlSign": x509.KeyUsageCRLSign,
	"encipherOnly": x509.KeyUsageEncipherOnly, "decipherOnly": x509.KeyUsageDecipherOnly,
}

// Qualifiers returns what the list says in this state of the service about one of the certificates that it issues: URIs, sorted. It returns
// ErrCriteria if it cannot tell.
func (s *State) Qualifiers(certificate *x509.Certificate) (list []string, err error) {
	for _, q := range s.Qualifications {
		if q.Unknown != "" {
			return nil, fmt.Errorf("%w: %s", ErrCriteria, q.Unknown)
		}
		if q.Criteria.hold(certificate) {
			list = append(list, q.Qualifiers...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func (c *Criteria) hold(certificate *x509.Certificate) bool {
	held, all := 0, 0
	count := func(holds bool) {
		all++
		if holds {
			held++
		}
	}
	for _, bits := range c.KeyUsages {
		holds := true
		for name, set := range bits {
			holds = holds && (certificate.KeyUsage&keyUsageBits[name] != 0) == set
		}
		count(holds)
	}
	for _, policies := range c.Policies {
		count(!slices.ContainsFunc(policies, func(text string) bool {
			return !slices.ContainsFunc(certificate.Policies, func(p x509.OID) bool { return p.String() == text })
		}))
	}
	for _, list := range c.Lists {
		count(list.hold(certificate))
	}
	switch c.Assert {
	case "all":
		return held == all
	case "atLeastOne":
		return held > 0
	}
	return held == 0
}
