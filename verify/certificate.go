package verify

import (
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/verify/trust"
)

// certified checks whether a CA of the trust file vouches for a signer whose key the trust file does not list.
func (c *check) certified(r *evidence.Record, i int, at trust.Proof) {
	p, signer := &r.Payload, r.Payload.Signers[i]
	given, err := trust.ReadCertificates(r, signer.KeyID)
	if err == nil && len(given.Signers) == 0 {
		c.unknownKey(r, signer)
		return
	}
	if err == nil {
		// The key has the id that the payload names. So it can refute the signature, even if the reader does not
		// trust it.
		if err := r.CheckSignature(i, given.Key); err != nil {
			c.falseSignature(r, i, err)
			return
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
		return
	case "actor":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.refute(g, found.Rule, r, "it names %s %q as its actor: %v", p.Role(), p.Actor(), found.Err)
		}
	case "revoked", "revocation":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.doubt(g, found.Rule, r, "signed with the key %s: %v", signer.KeyID, found.Err)
		}
	default:
		c.vouched[found.CA.Name] = found.CA.Asked()
	}
	if found.CA.Custody != trust.ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the trust file says that the operator keeps the keys that %s certifies: the operator could have signed in place of %s %q",
			found.CA.Name, p.Role(), p.Actor())
	}
}

// noteVouched adds to the report which CAs the proof of authorship rests on.
func (c *check) noteVouched() {
	var asked, unasked []string
	for name, revocation := range c.vouched {
		if revocation {
			asked = append(asked, name)
		} else {
			unasked = append(unasked, name)
		}
	}
	slices.Sort(asked)
	slices.Sort(unasked)
	if len(asked)+len(unasked) > 0 {
		c.notes[Authentication] += ", or by certificates of " + strings.Join(append(asked, unasked...), ", ")
	}
	if len(unasked) > 0 {
		c.notes[Authentication] += "; the revocation status of these CAs' certificates was not checked: " + strings.Join(unasked, ", ")
	}
}
