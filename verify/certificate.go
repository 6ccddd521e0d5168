package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/verify/trust"
)

// certified checks whether a CA of the trust file vouches for a signer whose key the trust file does not list.
func (c *check) certified(r *evidence.Record, i int, at trust.Proof) *trust.Identified {
	p, signer := &r.Payload, r.Payload.Signers[i]
	given, err := trust.ReadCertificates(r, signer.KeyID)
	if err == nil && len(given.Signers) == 0 {
		c.unknownKey(r, signer)
		return nil
	}
	if err == nil {
		// The key has the id that the payload names. So it can refute the signature, even if the reader does not
		// trust it.
		if err := r.CheckSignature(i, given.Key); err != nil {
			c.falseSignature(r, i, err)
			return nil
		}
	}
	found := trust.Vouching{Rule: "certificate", Err: err}
	if err == nil {
		found = c.Vouch(r, given, at)
	}
	switch found.Rule {
	case "certificate", "effort":
		for _, g := range []Guarantee{Content, Authentication, NonRepudiation} {
			c.doubt(g, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		}
		return nil
	case "actor":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.refute(g, found.Rule, r, "it names %s %q as its actor: %v", p.Role(), p.Actor(), found.Err)
		}
	case "revoked", "revocation":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.doubt(g, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		}
	default:
		c.vouched[found.CA.Name] = vouched{asked: found.CA.Asked(), asOf: found.AsOf, revoked: found.Revoked}.and(c.vouched[found.CA.Name])
		if c.options.Policy == Strict && !found.CA.Asked() {
			c.doubt(Authentication, "policy", r, "whether the certificates by which %s vouches were revoked was not asked", found.CA.Name)
		}
	}
	if found.OwnWord {
		c.onWord(Authentication)
	}
	if found.CA.Custody != trust.ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the trust file says that the operator keeps the keys that %s certifies: the operator could have signed in place of %s %q",
			found.CA.Name, p.Role(), p.Actor())
	}
	by := found.CA.Identified(p.Role(), p.Actor(), signer.KeyID)
	by.Revoked = found.Revoked
	return by
}

// vouched says how sure it is that the certificates by which a CA vouched were not revoked.
type vouched struct {
	asked bool
	asOf  time.Time // up to then none is known to be revoked; zero: none was asked about

	revoked *trust.Revoked // one that was revoked later; nil: none
}

// and joins what is known of two signers' certificates: the earlier moment counts.
func (v vouched) and(other vouched) vouched {
	v.asked = v.asked || other.asked
	if v.asOf.IsZero() || !other.asOf.IsZero() && other.asOf.Before(v.asOf) {
		v.asOf = other.asOf
	}
	v.revoked = v.revoked.Later(other.revoked)
	return v
}

// noteVouched adds to the report which CAs the proof of authorship rests on.
func (c *check) noteVouched() {
	var asked, unasked []string
	for _, name := range slices.Sorted(maps.Keys(c.vouched)) {
		switch by := c.vouched[name]; {
		case !by.asked:
			unasked = append(unasked, name)
		case by.revoked != nil:
			asked = append(asked, fmt.Sprintf("%s (the certificate of %q was revoked on %s for %s; what it signed existed before, by the stamp of %s)",
				name, by.revoked.Certificate, utc(by.revoked.On), cmp.Or(by.revoked.Reason, "a reason that is not stated"), utc(by.revoked.Existed.Time)))
		case by.asOf.IsZero():
			asked = append(asked, name)
		default:
			asked = append(asked, fmt.Sprintf("%s (not revoked as of %s)", name, utc(by.asOf)))
		}
	}
	if len(asked)+len(unasked) > 0 {
		c.notes[Authentication] += ", or by certificates of " + strings.Join(append(asked, unasked...), ", ")
	}
	if len(unasked) > 0 {
		c.notes[Authentication] += "; the revocation status of these CAs' certificates was not checked: " + strings.Join(unasked, ", ")
	}
}
