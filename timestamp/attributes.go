package timestamp

import (
	"crypto"
	_ "crypto/sha1" // ESSCertID identifies a certificate with it
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// signedAttributes holds the attributes that verification uses. It leaves out others, such as signingTime; the
// signature covers them, too.
type signedAttributes struct {
	signed        []byte // what the signature is over
	messageDigest []byte
	certificateV2 *certificateID // SigningCertificateV2 (RFC 5035)
	certificateV1 *certificateID // SigningCertificate (RFC 2634)
}

// signedAttributes reads the attributes, each known one at most once and with
// one value (RFC 5652, 11.1, 11.2; RFC 5035, 3).
func (d *decoder) signedAttributes(s *cryptobyte.String) (a signedAttributes) {
	at := *s
	raw := d.element(s, context0Constructed, "signed attributes")
	if d.err != nil {
		return a
	}
	// "A separate encoding of the signedAttrs field is performed for message
	// digest calculation. The IMPLICIT [0] tag in the signedAttrs is not used
	// for the DER encoding, rather an EXPLICIT SET OF tag is used" (RFC 5652, 5.4).
	a.signed = append([]byte{byte(asn1.SET)}, raw[1:]...)

	set := d.read(&raw, context0Constructed, "signed attributes")
	seen := make(map[string]bool, 3)
	var last cryptobyte.String
	for d.more(set) {
		element := d.element(&set, asn1.SEQUENCE, "signed attribute")
		d.sorted(last, element, "signed attributes")
		last = element
		oid, values := d.attribute(element)
		if !knownAttribute(oid) {
			continue
		}
		if seen[oid] {
			d.fail(element, "signed attribute is there twice")
		}
		seen[oid] = true
		d.knownAttribute(&a, oid, values)
	}
	if d.err == nil && !(seen[oidContentType] && seen[oidMessageDigest]) {
		d.fail(at, "content type or message digest attribute is missing")
	}
	return a
}

func knownAttribute(oid string) bool {
	switch oid {
	case oidContentType, oidMessageDigest, oidSigningCertificate, oidSigningCertificateV2:
		return true
	}
	return false
}

func (d *decoder) knownAttribute(a *signedAttributes, oid string, values cryptobyte.String) {
	switch oid {
	case oidContentType:
		d.exactOID(&values, oidTSTInfo, "content type attribute is not TSTInfo")
	case oidMessageDigest:
		a.messageDigest = d.octets(&values, "message digest")
	case oidSigningCertificateV2:
		a.certificateV2 = d.signingCertificate(&values, d.certificateIDV2)
	case oidSigningCertificate:
		a.certificateV1 = d.signingCertificate(&values, d.certificateIDV1)
	}
	d.end(values, "the only value of a signed attribute")
}

// attribute reads Attribute (RFC 5652, 5.3) and returns the contents of its
// SET OF values, which has at least one member.
func (d *decoder) attribute(element cryptobyte.String) (oid string, values cryptobyte.String) {
	contents := d.read(&element, asn1.SEQUENCE, "attribute")
	oid = d.oid(&contents, "attribute type")
	values = d.read(&contents, asn1.SET, "attribute values")
	d.end(contents, "attribute")
	if d.err == nil && values.Empty() {
		d.fail(values, "attribute without a value")
	}
	return oid, values
}

// unsignedAttributes checks only the form: no signature covers them.
func (d *decoder) unsignedAttributes(set cryptobyte.String) {
	if set.Empty() {
		d.fail(set, "unsigned attributes without a member")
	}
	for d.more(set) {
		_, values := d.attribute(d.element(&set, asn1.SEQUENCE, "unsigned attribute"))
		for d.more(values) {
			d.anyElement(&values, "unsigned attribute value")
		}
	}
}

// certificateID is an ESSCertID or ESSCertIDv2: which certificate signed.
type certificateID struct {
	sha1      bool      // ESSCertID, of the one algorithm
	algorithm algorithm // ESSCertIDv2
	hash      []byte
	issuer    cryptobyte.String // the Name element; nil when issuerSerial is left out
	serial    *big.Int
}

// signingCertificate reads SigningCertificate or SigningCertificateV2. The first member names the signer's
// certificate. The others, which name its path, are checked only for their form: Verify searches the path from the
// reader's roots.
func (d *decoder) signingCertificate(s *cryptobyte.String, member func(*cryptobyte.String) *certificateID) *certificateID {
	contents := d.read(s, asn1.SEQUENCE, "signing certificate attribute")
	ids := d.read(&contents, asn1.SEQUENCE, "certificate identifiers")
	first := member(&ids)
	for d.more(ids) {
		member(&ids)
	}
	if policies, present := d.optional(&contents, asn1.SEQUENCE, "certificate policies"); present {
		for d.more(policies) {
			d.element(&policies, asn1.SEQUENCE, "certificate policy")
		}
	}
	d.end(contents, "signing certificate attribute")
	return first
}

// certificateIDV2 reads ESSCertIDv2 (RFC 5035, 4). It also accepts the default, SHA-256, if it is written out:
// authorities do so, and the signature covers it.
func (d *decoder) certificateIDV2(s *cryptobyte.String) *certificateID {
	contents := d.read(s, asn1.SEQUENCE, "ESSCertIDv2")
	id := &certificateID{algorithm: algorithm{oid: oidSHA256}}
	if contents.PeekASN1Tag(asn1.SEQUENCE) {
		id.algorithm = d.algorithm(&contents, "certificate hash algorithm")
	}
	d.certificateHash(id, contents)
	return id
}

// certificateIDV1 reads ESSCertID (RFC 2634, 5.4.1), whose hash is SHA-1.
func (d *decoder) certificateIDV1(s *cryptobyte.String) *certificateID {
	contents := d.read(s, asn1.SEQUENCE, "ESSCertID")
	id := &certificateID{sha1: true}
	d.certificateHash(id, contents)
	return id
}

// certificateHash reads the members at the end of both forms.
func (d *decoder) certificateHash(id *certificateID, s cryptobyte.String) {
	id.hash = d.octets(&s, "certificate hash")
	if issuerSerial, present := d.optional(&s, asn1.SEQUENCE, "issuerSerial"); present {
		// GeneralNames "MUST contain only the directoryName choice" with the
		// issuer's name (RFC 5035, 4).
		names := d.read(&issuerSerial, asn1.SEQUENCE, "issuer's general names")
		directory := d.read(&names, context4Constructed, "issuer's directory name")
		d.end(names, "the only general name")
		id.issuer = d.element(&directory, asn1.SEQUENCE, "issuer's name")
		d.end(directory, "issuer's name")
		id.serial = d.integer(&issuerSerial, "issuer's serial number")
		d.end(issuerSerial, "issuerSerial")
	}
	d.end(s, "certificate identifier")
}

// sum hashes a certificate as the identifier does. It uses SHA-1 only where RFC 2634 demands it. The authority's
// signature covers the hash, so an attacker with a collision would need both certificates from an issuer under the
// roots.
func (id *certificateID) sum(certificate []byte) ([]byte, error) {
	if id.sha1 {
		return sum(crypto.SHA1, certificate), nil
	}
	hash, err := id.algorithm.digest()
	if err != nil {
		return nil, err
	}
	return sum(hash, certificate), nil
}
