package trust

import (
	"bytes"
	"crypto"
	"crypto/sha1" // names keys and certificates in RFC 6960, and proves nothing
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	tags "golang.org/x/crypto/cryptobyte/asn1"

	"jurat/evidence"
	"jurat/timestamp"
)

// A Response is an OCSP response (RFC 6960) about one or several certificates. It is safe for concurrent use.
type Response struct {
	raw       []byte
	digest    [sha256.Size]byte
	tbs       []byte // what is signed
	algorithm x509.SignatureAlgorithm
	signature []byte

	name     []byte    // of the responder, in DER; nil: it is named by its key
	keyHash  []byte    // SHA-1 of the responder's key
	produced time.Time // when it was signed
	answers  []answer
	critical bool // it has a critical extension

	certificates [][]byte // DER, of responders; unverified
	signed       signatures
}

// An answer is what a response says of one certificate.
type answer struct {
	hash        crypto.Hash // of issuerName and issuerKey
	issuerName  []byte
	issuerKey   []byte
	serial      *big.Int
	entry       *entry // nil: good, or unknown
	unknown     bool
	from, until time.Time
	archive     time.Time // what expired from then on is still known; zero: it does not say
	extension   error     // why its extensions make it unusable
}

var (
	oidBasicOCSP     = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}
	oidNoCheck       = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 5}
	oidArchiveCutoff = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 6}
)

// certificateHashes are the digests by which a response may name an issuer. They only name it: who else has such a digest has not signed.
var certificateHashes = map[string]crypto.Hash{
	"1.3.14.3.2.26":          crypto.SHA1,
	"2.16.840.1.101.3.4.2.1": crypto.SHA256,
	"2.16.840.1.101.3.4.2.2": crypto.SHA384,
	"2.16.840.1.101.3.4.2.3": crypto.SHA512,
}

var responseSignatures = map[string]x509.SignatureAlgorithm{
	"1.2.840.113549.1.1.11": x509.SHA256WithRSA,
	"1.2.840.113549.1.1.12": x509.SHA384WithRSA,
	"1.2.840.113549.1.1.13": x509.SHA512WithRSA,
	"1.2.840.10045.4.3.2":   x509.ECDSAWithSHA256,
	"1.2.840.10045.4.3.3":   x509.ECDSAWithSHA384,
	"1.2.840.10045.4.3.4":   x509.ECDSAWithSHA512,
	"1.3.101.112":           x509.PureEd25519,
}

var (
	context0 = tags.Tag(0).ContextSpecific()
	context1 = tags.Tag(1).ContextSpecific()
	context2 = tags.Tag(2).ContextSpecific()
)

// maxResponders is how many certificates of a response are looked at.
const maxResponders = 16

// ParseOCSP reads an OCSP response in DER. It does not check the signature; a Checker does. It returns an error for a response that says
// no more than that there is none, and for one of more than evidence.MaxRevocation bytes.
func ParseOCSP(der []byte) (*Response, error) {
	r, err := parseOCSP(der)
	if err != nil {
		return nil, fmt.Errorf("reading OCSP response: %w", err)
	}
	return r, nil
}

var errOCSP = errors.New("it is not an OCSP response in DER (RFC 6960)")

func parseOCSP(der []byte) (*Response, error) {
	if len(der) > evidence.MaxRevocation {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(der), evidence.MaxRevocation)
	}
	in, outer, wrapped, body := cryptobyte.String(der), cryptobyte.String(nil), cryptobyte.String(nil), cryptobyte.String(nil)
	var status int
	if !in.ReadASN1(&outer, tags.SEQUENCE) || !in.Empty() || !outer.ReadASN1Enum(&status) {
		return nil, errOCSP
	}
	if status != 0 {
		return nil, fmt.Errorf("the responder did not answer: status %d", status)
	}
	var kind asn1.ObjectIdentifier
	if !outer.ReadASN1(&wrapped, context0.Constructed()) || !outer.Empty() || !wrapped.ReadASN1(&body, tags.SEQUENCE) || !wrapped.Empty() ||
		!body.ReadASN1ObjectIdentifier(&kind) || !kind.Equal(oidBasicOCSP) {
		return nil, errOCSP
	}
	var basic, response cryptobyte.String
	if !body.ReadASN1(&basic, tags.OCTET_STRING) || !body.Empty() || !basic.ReadASN1(&response, tags.SEQUENCE) || !basic.Empty() {
		return nil, errOCSP
	}
	r := &Response{raw: der, digest: sha256.Sum256(der)}
	if !r.readBasic(response) {
		return nil, errOCSP
	}
	return r, nil
}

// readBasic reads a BasicOCSPResponse.
func (r *Response) readBasic(in cryptobyte.String) bool {
	var data, algorithm, wrapped cryptobyte.String
	var signature asn1.BitString
	var there bool
	if !in.ReadASN1Element(&data, tags.SEQUENCE) || !in.ReadASN1(&algorithm, tags.SEQUENCE) || !in.ReadASN1BitString(&signature) ||
		!in.ReadOptionalASN1(&wrapped, &there, context0.Constructed()) || !in.Empty() || signature.BitLength%8 != 0 {
		return false
	}
	name, read := readAlgorithm(algorithm)
	r.tbs, r.algorithm, r.signature = data, responseSignatures[name], signature.Bytes
	return read && (!there || r.readCertificates(wrapped)) && r.readData(data)
}

// readAlgorithm reads the inside of an AlgorithmIdentifier. Its name is empty if it has parameters other than NULL.
func readAlgorithm(in cryptobyte.String) (name string, read bool) {
	var oid asn1.ObjectIdentifier
	if !in.ReadASN1ObjectIdentifier(&oid) {
		return "", false
	}
	if in.Empty() || bytes.Equal(in, null) {
		return oid.String(), true
	}
	var parameters cryptobyte.String
	var tag tags.Tag
	return "", in.ReadAnyASN1(&parameters, &tag) && in.Empty()
}

func (r *Response) readCertificates(wrapped cryptobyte.String) bool {
	var list, certificate cryptobyte.String
	if !wrapped.ReadASN1(&list, tags.SEQUENCE) || !wrapped.Empty() {
		return false
	}
	for !list.Empty() {
		if !list.ReadASN1Element(&certificate, tags.SEQUENCE) {
			return false
		}
		if len(r.certificates) < maxResponders {
			r.certificates = append(r.certificates, certificate)
		}
	}
	return true
}

// readData reads a ResponseData.
func (r *Response) readData(element cryptobyte.String) bool {
	var in, responder, list, single cryptobyte.String
	if !element.ReadASN1(&in, tags.SEQUENCE) || in.PeekASN1Tag(context0.Constructed()) { // v1 is the only version, and DER leaves it out
		return false
	}
	switch { // a failed read takes the value away, too
	case in.PeekASN1Tag(context1.Constructed()):
		var name cryptobyte.String
		if !in.ReadASN1(&responder, context1.Constructed()) || !responder.ReadASN1Element(&name, tags.SEQUENCE) || !responder.Empty() {
			return false
		}
		r.name = name
	case in.PeekASN1Tag(context2.Constructed()):
		var hash cryptobyte.String
		if !in.ReadASN1(&responder, context2.Constructed()) || !responder.ReadASN1(&hash, tags.OCTET_STRING) || !responder.Empty() || len(hash) != sha1.Size {
			return false
		}
		r.keyHash = hash
	default:
		return false
	}
	if !readMoment(&in, &r.produced) || !in.ReadASN1(&list, tags.SEQUENCE) || list.Empty() {
		return false
	}
	for !list.Empty() {
		var a answer
		if !list.ReadASN1(&single, tags.SEQUENCE) || !a.read(single) {
			return false
		}
		r.answers = append(r.answers, a)
	}
	critical, read := readExtensions(&in, context1, func(asn1.ObjectIdentifier, []byte) error { return nil })
	r.critical = critical != nil
	return read && in.Empty()
}

// read reads a SingleResponse.
func (a *answer) read(in cryptobyte.String) bool {
	var id, algorithm, name, key, status, next cryptobyte.String
	var there bool
	a.serial = new(big.Int)
	if !in.ReadASN1(&id, tags.SEQUENCE) || !id.ReadASN1(&algorithm, tags.SEQUENCE) || !id.ReadASN1(&name, tags.OCTET_STRING) ||
		!id.ReadASN1(&key, tags.OCTET_STRING) || !id.ReadASN1Integer(a.serial) || !id.Empty() {
		return false
	}
	hash, read := readAlgorithm(algorithm)
	if !read {
		return false
	}
	a.hash, a.issuerName, a.issuerKey = certificateHashes[hash], name, key
	switch {
	case in.PeekASN1Tag(context0): // good
		if !in.ReadASN1(&status, context0) || !status.Empty() {
			return false
		}
	case in.PeekASN1Tag(context1.Constructed()):
		if !in.ReadASN1(&status, context1.Constructed()) {
			return false
		}
		if a.entry = readRevoked(status); a.entry == nil {
			return false
		}
	case in.PeekASN1Tag(context2):
		if a.unknown = true; !in.ReadASN1(&status, context2) || !status.Empty() {
			return false
		}
	default:
		return false
	}
	if !readMoment(&in, &a.from) || !in.ReadOptionalASN1(&next, &there, context0.Constructed()) || there && (!readMoment(&next, &a.until) || !next.Empty()) {
		return false
	}
	a.extension, read = readExtensions(&in, context1, a.readExtension)
	return read && in.Empty()
}

// readRevoked reads the inside of a RevokedInfo; nil if it is not one.
func readRevoked(in cryptobyte.String) *entry {
	e := &entry{reason: noReason}
	var wrapped cryptobyte.String
	var there bool
	if !readMoment(&in, &e.since) || !in.ReadOptionalASN1(&wrapped, &there, context0.Constructed()) || !in.Empty() {
		return nil
	}
	e.on = e.since
	if there && (!wrapped.ReadASN1Enum(&e.reason) || !wrapped.Empty() || e.reason < 0) {
		return nil
	}
	return e
}

// readExtension takes in what changes the answer. Entries of revocation lists have the same extensions (RFC 6960, section 4.4.5).
func (a *answer) readExtension(oid asn1.ObjectIdentifier, value []byte) (err error) {
	switch {
	case oid.Equal(oidArchiveCutoff):
		a.archive, err = generalizedTime(value)
	case oid.Equal(oidInvalidityDate) && a.entry != nil:
		var since time.Time
		if since, err = generalizedTime(value); err == nil && since.Before(a.entry.since) {
			a.entry.since = since
		}
	case oid.Equal(oidCertificateIssuer):
		err = errors.New("it is about a certificate of another issuer")
	}
	return err
}

// readExtensions reads optional extensions. found is why they make what has them unusable: one is critical, is there twice, or take says so.
func readExtensions(in *cryptobyte.String, tag tags.Tag, take func(oid asn1.ObjectIdentifier, value []byte) error) (found error, read bool) {
	var wrapped, list cryptobyte.String
	var there bool
	if !in.ReadOptionalASN1(&wrapped, &there, tag.Constructed()) {
		return nil, false
	}
	if !there {
		return nil, true
	}
	if !wrapped.ReadASN1(&list, tags.SEQUENCE) || !wrapped.Empty() || list.Empty() {
		return nil, false
	}
	var before extensions
	for !list.Empty() {
		var extension, value cryptobyte.String
		var oid asn1.ObjectIdentifier
		critical := false
		if !list.ReadASN1(&extension, tags.SEQUENCE) || !extension.ReadASN1ObjectIdentifier(&oid) ||
			extension.PeekASN1Tag(tags.BOOLEAN) && (!extension.ReadASN1Boolean(&critical) || !critical) ||
			!extension.ReadASN1(&value, tags.OCTET_STRING) || !extension.Empty() {
			return nil, false
		}
		if before.has(oid) || critical {
			found = fmt.Errorf("it has the extension %s, critical and unknown here, or twice", oid)
		} else if err := take(oid, value); err != nil {
			found = err
		}
	}
	return found, true
}

// readMoment reads a GeneralizedTime in whole seconds of UTC, as RFC 5280 has it.
func readMoment(in *cryptobyte.String, t *time.Time) bool {
	var text cryptobyte.String
	if !in.ReadASN1(&text, tags.GeneralizedTime) {
		return false
	}
	const form = "20060102150405Z"
	parsed, err := time.Parse(form, string(text))
	*t = parsed
	return err == nil && parsed.Format(form) == string(text)
}

// Raw returns the response in DER. The caller must not change it.
func (r *Response) Raw() []byte { return r.raw }

func (r *Response) sum() [sha256.Size]byte { return r.digest }

// about returns what the response says of a certificate, if it names that.
func (r *Response) about(certificate, issuer *x509.Certificate) (claim, bool) {
	var found *answer
	twice, wanted := false, naming{certificate: certificate, issuer: issuer}
	for i := range r.answers {
		if wanted.by(&r.answers[i]) {
			found, twice = &r.answers[i], found != nil
		}
	}
	if found == nil {
		return claim{}, false
	}
	c := claim{name: fmt.Sprintf("the OCSP response of %s", utc(found.from)), from: found.from, until: found.until, entry: found.entry}
	because := func(reason string) { c.err = fmt.Errorf("%s cannot be used: %s", c.name, reason) }
	switch expired := certificate.NotAfter.Before(found.from); {
	case twice:
		because("it names a certificate twice")
	case r.critical:
		because("it has a critical extension, or one twice")
	case found.extension != nil:
		because(found.extension.Error())
	case found.unknown:
		because("the responder does not know the certificate")
	case found.from.Sub(r.produced) > MaxSkew: // some responders write producedAt in whole minutes
		because("it was signed before the time from which it counts")
	case found.entry != nil && found.entry.reason == removeFromCRL:
		because("it says removeFromCRL, which is allowed only in delta lists")
	case found.entry == nil && expired && (found.archive.IsZero() || found.archive.After(certificate.NotAfter)):
		because(fmt.Sprintf("the certificate of %q had expired on %s, and a responder need not know any longer whether it was revoked", certificate.Subject, utc(certificate.NotAfter)))
	}
	return c, true
}

// A naming is a certificate that answers may be about.
type naming struct {
	certificate, issuer *x509.Certificate // issuer: nil if its name alone counts
	digests             map[crypto.Hash][2][]byte
}

// by reports whether an answer is about the certificate. Each digest is computed once, as anyone can send a response with very many answers.
func (n *naming) by(a *answer) bool {
	if a.hash == 0 || a.serial.Cmp(n.certificate.SerialNumber) != 0 {
		return false
	}
	sums, known := n.digests[a.hash]
	if !known {
		sums[0] = digest(a.hash, n.certificate.RawIssuer)
		if n.issuer != nil {
			sums[1] = digest(a.hash, keyBits(n.issuer))
		}
		if n.digests == nil {
			n.digests = map[crypto.Hash][2][]byte{}
		}
		n.digests[a.hash] = sums
	}
	return bytes.Equal(a.issuerName, sums[0]) && (n.issuer == nil || bytes.Equal(a.issuerKey, sums[1]))
}

func digest(h crypto.Hash, of []byte) []byte {
	sum := h.New()
	sum.Write(of)
	return sum.Sum(nil)
}

// keyBits returns the bits of a certificate's key without its algorithm, of which responses have a hash.
func keyBits(c *x509.Certificate) []byte {
	in, inner := cryptobyte.String(c.RawSubjectPublicKeyInfo), cryptobyte.String(nil)
	var bits asn1.BitString
	if !in.ReadASN1(&inner, tags.SEQUENCE) || !inner.SkipASN1(tags.SEQUENCE) || !inner.ReadASN1BitString(&bits) {
		return nil
	}
	return bits.Bytes
}

// signedBy checks the response's signature once for each issuer.
func (r *Response) signedBy(issuer *x509.Certificate) error {
	return r.signed.of(issuer, func() error {
		signer, err := r.responder(issuer)
		if err != nil {
			return err
		}
		if r.algorithm == x509.UnknownSignatureAlgorithm {
			return errors.New("its signature algorithm is not accepted")
		}
		return signer.CheckSignature(r.algorithm, r.tbs, r.signature)
	})
}

// responder returns the certificate of the key that must have signed: the issuer's, or one that the issuer made for this purpose.
func (r *Response) responder(issuer *x509.Certificate) (*x509.Certificate, error) {
	if r.isBy(issuer) {
		return issuer, nil
	}
	for _, der := range r.certificates {
		if c, err := x509.ParseCertificate(der); err == nil && r.isBy(c) {
			return c, r.delegated(c, issuer)
		}
	}
	return nil, errors.New("the responder's certificate is not in it")
}

// isBy reports whether a certificate is that of the named responder.
func (r *Response) isBy(c *x509.Certificate) bool {
	if r.name != nil {
		return bytes.Equal(r.name, c.RawSubject)
	}
	return bytes.Equal(r.keyHash, digest(crypto.SHA1, keyBits(c)))
}

// delegated returns an error unless an issuer itself certified a responder as one, without asking whether that certificate is revoked.
func (r *Response) delegated(c, issuer *x509.Certificate) error {
	switch {
	case !bytes.Equal(c.RawIssuer, issuer.RawSubject):
		return errors.New("the responder was not certified by the issuer itself")
	case !slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
		return errors.New("the responder's certificate is not for OCSP (extended key usage id-kp-OCSPSigning)")
	case !bytes.Equal(extensionOf(c, oidNoCheck), null):
		return errors.New("whether the responder's certificate was revoked would have to be asked (it has no id-pkix-ocsp-nocheck)")
	case has(c, oidKeyUsage) && c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return errors.New("the responder's certificate is not for digital signatures (key usage)")
	case len(c.UnhandledCriticalExtensions) > 0:
		return fmt.Errorf("the responder's certificate has the critical extension %s, which is unknown here", c.UnhandledCriticalExtensions[0])
	case r.produced.Before(c.NotBefore) || r.produced.After(c.NotAfter):
		return fmt.Errorf("the responder's certificate was not valid when it signed, on %s", utc(r.produced))
	case len(timestamp.Between([]*x509.Certificate{c})) == 0:
		return errors.New("the responder's key would take too long to compute with")
	}
	return c.CheckSignatureFrom(issuer)
}
