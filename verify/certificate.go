package verify

import (
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/timestamp"
)

// maxCertificates of a record are looked at, or none: a path is looked for among all of them, and whoever hands over the record chooses
// how many there are.
const maxCertificates = 16

var (
	oidKeyUsage       = asn1.ObjectIdentifier{2, 5, 29, 15}
	oidSubjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidExtKeyUsage    = asn1.ObjectIdentifier{2, 5, 29, 37}
	// oidDocumentSigning is id-kp-documentSigning of RFC 9336: for signing what people read.
	oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36}
)

// A vouching is what the CAs of the trust file say of a signer's key: rule and err are what speaks against it.
type vouching struct {
	ca   *CA
	rule string // "" if nothing does
	err  error
}

// vouchingOrder: of what several CAs or certificates give, the one that comes furthest counts. A certificate that
// somebody put beside a good one takes nothing away from it.
var vouchingOrder = []string{"", "revoked", "revocation", "effort", "actor", "certificate"}

func (v vouching) better(than vouching) bool {
	return slices.Index(vouchingOrder, v.rule) < slices.Index(vouchingOrder, than.rule)
}

// certified asks whether a CA of the trust file vouches for a signer whose key is not listed there.
func (c *check) certified(r *evidence.Record, i int, at proof) {
	p, signer := &r.Payload, r.Payload.Signers[i]
	given, err := readCertificates(r, signer.KeyID)
	if err == nil && len(given.signers) == 0 {
		c.unknownKey(r, signer)
		return
	}
	if err == nil {
		// The key has the id that the payload names, so that it need not be trusted to refute.
		if err := r.CheckSignature(i, given.key); err != nil {
			c.falseSignature(r, i, err)
			return
		}
	}
	found := vouching{rule: "certificate", err: err}
	if err == nil {
		found = c.vouch(r, given, at)
	}
	switch found.rule {
	case "certificate", "effort":
		for _, g := range []Guarantee{Content, Authentication, NonRepudiation} {
			c.doubt(g, found.rule, r, "signed with the key %s: %v", signer.KeyID, found.err)
		}
		return
	case "actor":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.refute(g, found.rule, r, "it names %s %q as its actor: %v", p.Role(), p.Actor(), found.err)
		}
	case "revoked", "revocation":
		for _, g := range []Guarantee{Authentication, NonRepudiation} {
			c.doubt(g, found.rule, r, "signed with the key %s: %v", signer.KeyID, found.err)
		}
	default:
		c.vouched[found.ca.Name] = found.ca.asked()
	}
	if found.ca.Custody != ByOwner {
		c.doubt(NonRepudiation, "custody", r, "the trust file has it that the operator keeps the keys that %s certifies, and could have signed in place of %s %q",
			found.ca.Name, p.Role(), p.Actor())
	}
}

// certificates are those of a record, as far as they can be read. All of them are anybody's.
type certificates struct {
	key     crypto.PublicKey    // the signer's
	signers []*x509.Certificate // of the signer's key
	between []*x509.Certificate // of CAs
}

func readCertificates(r *evidence.Record, id evidence.KeyID) (*certificates, error) {
	if n := len(r.Certificates); n > maxCertificates {
		return nil, fmt.Errorf("the record has %d certificates: no more than %d are looked at", n, maxCertificates)
	}
	given := new(certificates)
	for _, der := range r.Certificates {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			continue // what cannot be read vouches for nothing, and is no reason against what does
		}
		if evidence.DigestOf(certificate.RawSubjectPublicKeyInfo) == id {
			given.signers = append(given.signers, certificate)
		}
		if mayCertify(certificate) {
			given.between = append(given.between, certificate)
		}
	}
	given.between = timestamp.Between(given.between)
	if len(given.signers) == 0 {
		return given, nil
	}
	key, err := evidence.ParsePublicKey(given.signers[0].RawSubjectPublicKeyInfo)
	if err != nil {
		return nil, err
	}
	given.key = key
	switch algorithm, _ := evidence.AlgorithmOf(key); algorithm {
	case evidence.RS256, evidence.ES256, evidence.Ed25519:
		return given, nil
	default:
		return nil, fmt.Errorf("a certificate for a key that signs %s: such keys have to stand in the trust file", algorithm)
	}
}

// vouch holds every certificate of the signer's key against every CA that may speak of this role.
func (c *check) vouch(r *evidence.Record, given *certificates, at proof) vouching {
	role := r.Payload.Role()
	best := vouching{rule: "certificate", err: fmt.Errorf("the trust file has neither this key nor a CA that may vouch for the role %s", role)}
	if !at.proved() || at.earliest.Time.IsZero() { // crypto/x509 takes the zero time for now
		best.err = errors.New("its time is not proved, so no certificate can be shown to have been valid")
		return best
	}
	first := true
	for i := range c.trust.CAs {
		ca := &c.trust.CAs[i]
		if !slices.Contains(ca.Roles, role) {
			continue
		}
		for _, certificate := range given.signers {
			found := c.vouchBy(ca, certificate, given.between, r, at)
			if first || found.better(best) {
				best, first = found, false
			}
		}
	}
	return best
}

// vouchBy asks one CA about one certificate: is there a path, is it for signing documents, whom does it name, was it
// revoked.
func (c *check) vouchBy(ca *CA, signer *x509.Certificate, between []*x509.Certificate, r *evidence.Record, at proof) vouching {
	paths, err := c.share.Find(timestamp.Search{From: signer, Between: between, Roots: []*x509.Certificate{ca.certificate},
		At: at.earliest.Time, Usage: x509.ExtKeyUsageAny, Memory: c.memory}) // purposes are asked below: crypto/x509 does not know this one
	if errors.Is(err, timestamp.ErrEffort) {
		return vouching{ca, "effort", fmt.Errorf("asking %s for it: %w", ca.Name, err)}
	}
	if err != nil {
		return vouching{ca, "certificate", fmt.Errorf("no certificate path to %s that was valid at %s: %w", ca.Name, utc(at.earliest.Time), err)}
	}
	if err := forSigning(signer); err != nil {
		return vouching{ca, "certificate", err}
	}
	if rule, err := names(signer, r.Payload.Role(), r.Payload.Actor()); err != nil {
		return vouching{ca, rule, err}
	}
	best := vouching{ca, "certificate", fmt.Errorf("the CAs on the path to %s do not certify keys that sign documents (extended key usage)", ca.Name)}
	for _, path := range paths {
		if !slices.ContainsFunc(path[1:], excludesSigning) {
			if found := c.unrevoked(ca, path, at); found.better(best) {
				best = found
			}
		}
	}
	return best
}

// forSigning asks what a signer's certificate is for. Only one that says so is for what records are.
func forSigning(c *x509.Certificate) error {
	switch {
	case c.IsCA:
		return errors.New("its certificate is that of a CA, which signs nothing else")
	case has(c, oidKeyUsage) && c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("its certificate is not for digital signatures (key usage)")
	case !slices.ContainsFunc(c.UnknownExtKeyUsage, oidDocumentSigning.Equal):
		return errors.New("its certificate is not for signing documents (extended key usage id-kp-documentSigning)")
	}
	return nil
}

// excludesSigning reports whether a CA was itself certified for other purposes only.
func excludesSigning(ca *x509.Certificate) bool {
	return has(ca, oidExtKeyUsage) && !slices.Contains(ca.ExtKeyUsage, x509.ExtKeyUsageAny) &&
		!slices.ContainsFunc(ca.UnknownExtKeyUsage, oidDocumentSigning.Equal)
}

func has(c *x509.Certificate, extension asn1.ObjectIdentifier) bool {
	return extensionOf(c, extension) != nil
}

func extensionOf(c *x509.Certificate, id asn1.ObjectIdentifier) []byte {
	for _, extension := range c.Extensions {
		if extension.Id.Equal(id) {
			return extension.Value
		}
	}
	return nil
}

// unrevoked asks about every certificate of a path but the CA's own, which the reader has taken upon himself. That one is
// revoked says more than that of another it is not known.
func (c *check) unrevoked(ca *CA, path []*x509.Certificate, at proof) vouching {
	best := vouching{ca: ca}
	if !ca.asked() {
		return best
	}
	for i, certificate := range path[:len(path)-1] {
		entry, err := c.revoked(certificate, path[i+1])
		switch {
		case err != nil:
			best = vouching{ca, "revocation", err}
		case entry != nil && !at.independentlyBefore(entry.since):
			// Whoever has the key might have the operator's clock too, and with both could date back.
			return vouching{ca, "revoked", fmt.Errorf("the certificate of %q is revoked from %s on, and no independent authority proves that it existed before",
				certificate.Subject, utc(entry.since))}
		}
	}
	return best
}

// noteVouched says which CAs the proof of authorship rests on.
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
		c.notes[Authentication] += "; that none of these was revoked was not asked of " + strings.Join(unasked, ", ")
	}
}
