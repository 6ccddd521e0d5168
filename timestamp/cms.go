package timestamp

import (
	"bytes"
	"crypto"
	_ "crypto/sha1" // ESSCertID identifies a certificate with it
	"crypto/x509"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

const (
	// The version that RFC 5652, 5.1 demands of a token depends on what is embedded. Version 1 is never right, but is
	// accepted, because authorities send it. It changes nothing in how the token is read, and no signature covers it.
	signedDataVersion           = 3
	signedDataVersionAttributes = 4 // with attribute certificates
	signedDataVersionOther      = 5 // with certificates or revocation information of other kinds
	signedDataVersionWrong      = 1
	// RFC 5652, 5.3: the version depends on the kind of signer identifier.
	signerInfoVersionIssuer = 1
	signerInfoVersionKeyID  = 3
)

// signedData is the SignedData of a token (RFC 5652, 5.1), not authenticated.
type signedData struct {
	content      cryptobyte.String   // eContent: a TSTInfo
	certificates []cryptobyte.String // each one an element
	signer       signerInfo

	attributes1, attributes2, other bool // which attribute certificates are embedded, and whether other kinds are
}

// signedData reads the whole token.
func (d *decoder) signedData(s cryptobyte.String) (sd signedData) {
	contentInfo := d.read(&s, asn1.SEQUENCE, "ContentInfo")
	d.end(s, "token")
	d.exactOID(&contentInfo, oidSignedData, "content type SignedData")
	explicit := d.read(&contentInfo, context0Constructed, "content")
	d.end(contentInfo, "ContentInfo")
	data := d.read(&explicit, asn1.SEQUENCE, "SignedData")
	d.end(explicit, "SignedData")

	at := data
	version := d.integer(&data, "SignedData version")
	digests := d.digestAlgorithms(&data)
	sd.content = d.encapsulated(&data)
	d.certificates(&data, &sd)
	d.revocations(&data, &sd)
	if d.err == nil && !sd.mayHave(version) {
		d.fail(at, "SignedData version is not that of what is embedded")
	}
	at = data
	// "The time-stamp token MUST NOT contain any signatures other than the signature of the TSA" (RFC 3161, 2.4.2).
	set := d.read(&data, asn1.SET, "signerInfos")
	signer := d.read(&set, asn1.SEQUENCE, "signerInfo")
	d.end(set, "the only signerInfo")
	sd.signer = d.signerInfo(signer)
	d.end(data, "SignedData members")
	// RFC 5652, 5.1 lets a verifier demand this. So no byte of the set is unchecked if, as always, it has one member.
	if d.err == nil && !digests[sd.signer.digest.oid] {
		d.fail(at, "signer's digest algorithm is not among digestAlgorithms")
	}
	return sd
}

func (d *decoder) exactOID(s *cryptobyte.String, want, what string) {
	at := *s
	if got := d.oid(s, what); d.err == nil && got != want {
		d.fail(at, what)
	}
}

func (d *decoder) digestAlgorithms(s *cryptobyte.String) map[string]bool {
	set := d.read(s, asn1.SET, "digestAlgorithms")
	found := make(map[string]bool, 1)
	var last cryptobyte.String
	for d.more(set) {
		element := d.element(&set, asn1.SEQUENCE, "digest algorithm")
		d.sorted(last, element, "digestAlgorithms")
		last = element
		digest := d.algorithm(&element, "digest algorithm")
		if !digest.plain() { // no later check looks at them
			d.fail(last, "digest algorithm with parameters")
		}
		found[digest.oid] = true
	}
	return found
}

// encapsulated reads EncapsulatedContentInfo. It must contain a TSTInfo.
func (d *decoder) encapsulated(s *cryptobyte.String) cryptobyte.String {
	encapsulated := d.read(s, asn1.SEQUENCE, "encapsulated content")
	d.exactOID(&encapsulated, oidTSTInfo, "content type TSTInfo")
	explicit := d.read(&encapsulated, context0Constructed, "eContent")
	d.end(encapsulated, "encapsulated content")
	content := d.octets(&explicit, "eContent")
	d.end(explicit, "eContent")
	return content
}

// mayHave reports whether SignedData may have a version: the one of RFC 5652, 5.1, or 1. Authorities also send
// attribute certificates of version 1 with the version for those of version 2.
func (sd *signedData) mayHave(version *big.Int) bool {
	want := int64(signedDataVersion)
	switch {
	case sd.other:
		want = signedDataVersionOther
	case sd.attributes2:
		want = signedDataVersionAttributes
	}
	if !version.IsInt64() {
		return false
	}
	got := version.Int64()
	return got == want || got == signedDataVersionWrong || sd.attributes1 && want == signedDataVersion && got == signedDataVersionAttributes
}

// certificates reads the embedded ones unchanged (CertificateSet: RFC 5652, 10.2.3). Their order is free: RFC 5652
// demands DER only of signed parts, and authorities put the signer first. Certificates that are not X.509 are not
// parsed.
func (d *decoder) certificates(s *cryptobyte.String, sd *signedData) {
	set, _ := d.optional(s, context0Constructed, "certificates")
	for d.more(set) {
		switch tag := asn1.Tag(set[0]); tag {
		case context0Constructed, context1Constructed, context2Constructed, context3Constructed: // the first are extended certificates, obsolete
			d.element(&set, tag, "certificate")
			sd.attributes1 = sd.attributes1 || tag == context1Constructed
			sd.attributes2 = sd.attributes2 || tag == context2Constructed
			sd.other = sd.other || tag == context3Constructed
		default:
			sd.certificates = append(sd.certificates, d.element(&set, asn1.SEQUENCE, "certificate"))
		}
	}
}

// revocations skips embedded revocation lists and other revocation information, such as OCSP responses (RFC 5652,
// 10.2.1). Readers use a fresher source.
func (d *decoder) revocations(s *cryptobyte.String, sd *signedData) {
	set, _ := d.optional(s, context1Constructed, "revocation information")
	for d.more(set) {
		if set.PeekASN1Tag(context1Constructed) {
			d.element(&set, context1Constructed, "revocation information")
			sd.other = true
			continue
		}
		d.element(&set, asn1.SEQUENCE, "revocation list")
	}
}

// signerInfo is the SignerInfo of a token (RFC 5652, 5.3).
type signerInfo struct {
	issuer cryptobyte.String // the Name element, with serial; nil if keyID is there
	serial *big.Int
	keyID  []byte

	digest     algorithm
	attributes signedAttributes
	algorithm  algorithm
	signature  []byte
}

func (d *decoder) signerInfo(s cryptobyte.String) (si signerInfo) {
	version := s
	n := d.integer(&s, "signerInfo version")
	want := int64(signerInfoVersionIssuer)
	if s.PeekASN1Tag(context0) {
		want = signerInfoVersionKeyID
		si.keyID = d.read(&s, context0, "signer's key identifier")
	} else {
		sid := d.read(&s, asn1.SEQUENCE, "signer identifier")
		si.issuer = d.element(&sid, asn1.SEQUENCE, "signer's issuer")
		si.serial = d.integer(&sid, "signer's serial number")
		d.end(sid, "signer identifier")
	}
	if d.err == nil && n.Cmp(big.NewInt(want)) != 0 {
		d.fail(version, "signerInfo version is not that of its signer identifier")
	}
	si.digest = d.algorithm(&s, "signer's digest algorithm")
	si.attributes = d.signedAttributes(&s)
	si.algorithm = d.algorithm(&s, "signature algorithm")
	si.signature = d.octets(&s, "signature")
	if unsigned, present := d.optional(&s, context1Constructed, "unsigned attributes"); present {
		d.unsignedAttributes(unsigned)
	}
	d.end(s, "signerInfo")
	return si
}

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
	// "A separate encoding of the signedAttrs field is performed for message digest calculation. The IMPLICIT [0] tag in the
	// signedAttrs is not used for the DER encoding, rather an EXPLICIT SET OF tag is used" (RFC 5652, 5.4).
	a.signed = append([]byte{byte(asn1.SET)}, raw[1:]...)

	known := map[string]func(values *cryptobyte.String){
		oidContentType: func(values *cryptobyte.String) {
			d.exactOID(values, oidTSTInfo, "content type attribute is not TSTInfo")
		},
		oidMessageDigest:        func(values *cryptobyte.String) { a.messageDigest = d.octets(values, "message digest") },
		oidSigningCertificateV2: func(values *cryptobyte.String) { a.certificateV2 = d.signingCertificate(values, false) },
		oidSigningCertificate:   func(values *cryptobyte.String) { a.certificateV1 = d.signingCertificate(values, true) },
	}
	set := d.read(&raw, context0Constructed, "signed attributes")
	seen := make(map[string]bool, 3)
	var last cryptobyte.String
	for d.more(set) {
		element := d.element(&set, asn1.SEQUENCE, "signed attribute")
		d.sorted(last, element, "signed attributes")
		last = element
		oid, values := d.attribute(element)
		if known[oid] == nil {
			continue
		}
		if seen[oid] {
			d.fail(element, "signed attribute is there twice")
		}
		seen[oid] = true
		known[oid](&values)
		d.end(values, "the only value of a signed attribute")
	}
	if d.err == nil && !(seen[oidContentType] && seen[oidMessageDigest]) {
		d.fail(at, "content type or message digest attribute is missing")
	}
	return a
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
func (d *decoder) signingCertificate(s *cryptobyte.String, old bool) *certificateID {
	contents := d.read(s, asn1.SEQUENCE, "signing certificate attribute")
	ids := d.read(&contents, asn1.SEQUENCE, "certificate identifiers")
	first := d.certificateID(&ids, old)
	for d.more(ids) {
		d.certificateID(&ids, old)
	}
	if policies, present := d.optional(&contents, asn1.SEQUENCE, "certificate policies"); present {
		for d.more(policies) {
			d.element(&policies, asn1.SEQUENCE, "certificate policy")
		}
	}
	d.end(contents, "signing certificate attribute")
	return first
}

// certificateID reads ESSCertIDv2 (RFC 5035, 4) or the old ESSCertID (RFC 2634, 5.4.1), whose hash is SHA-1. It also accepts the default of the new one,
// SHA-256, if it is written out: authorities do so, and the signature covers it.
func (d *decoder) certificateID(from *cryptobyte.String, old bool) *certificateID {
	s := d.read(from, asn1.SEQUENCE, map[bool]string{true: "ESSCertID", false: "ESSCertIDv2"}[old])
	id := &certificateID{sha1: old, algorithm: algorithm{oid: oidSHA256}}
	if !old && s.PeekASN1Tag(asn1.SEQUENCE) {
		id.algorithm = d.algorithm(&s, "certificate hash algorithm")
	}
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
	return id
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

// Context-specific tags of the structures read and written here.
const (
	context0            asn1.Tag = 0x80
	context1            asn1.Tag = 0x81
	context0Constructed asn1.Tag = 0xa0
	context1Constructed asn1.Tag = 0xa1
	context2Constructed asn1.Tag = 0xa2
	context3Constructed asn1.Tag = 0xa3
	context4Constructed asn1.Tag = 0xa4
)

// decoder reads strict DER. After its first failure every method returns nothing, so a structure can be read as a
// list of its members, and the caller checks the error once. It never recurses: the depth of the code bounds the
// depth of reading, however deep the input nests.
type decoder struct {
	capacity int // of the whole input; see offset
	err      error
}

// decode starts a decoder on a copy of input, so that results stay unchanged when the caller reuses the buffer.
func decode(input []byte, limit int, what string) (*decoder, cryptobyte.String) {
	d := &decoder{}
	if len(input) > limit {
		d.err = &SyntaxError{Offset: limit, What: what + " is larger than accepted"}
		return d, nil
	}
	s := cryptobyte.String(bytes.Clone(input))
	d.capacity = cap(s)
	return d, s
}

// offset returns where s starts in the input. Every part is a slice of the same array, and slicing keeps the capacity
// up to the array's end.
func (d *decoder) offset(s cryptobyte.String) int { return d.capacity - cap(s) }

func (d *decoder) fail(at cryptobyte.String, what string) {
	d.failWith(&SyntaxError{Offset: d.offset(at), What: what})
}

func (d *decoder) failWith(err error) {
	if d.err == nil {
		d.err = err
	}
}

// next reads a part of s, unless reading has failed before, and fails at its place if it is not there.
func (d *decoder) next(s *cryptobyte.String, what string, read func() bool) bool {
	at := *s
	if d.err == nil && !read() {
		d.fail(at, what)
	}
	return d.err == nil
}

// read returns the contents of the next element, which must have this tag.
func (d *decoder) read(s *cryptobyte.String, tag asn1.Tag, what string) (contents cryptobyte.String) {
	if !d.next(s, what, func() bool { return s.ReadASN1(&contents, tag) }) {
		return nil
	}
	return contents
}

// element returns the next element with its header.
func (d *decoder) element(s *cryptobyte.String, tag asn1.Tag, what string) (element cryptobyte.String) {
	if !d.next(s, what, func() bool { return s.ReadASN1Element(&element, tag) }) {
		return nil
	}
	return element
}

// anyElement returns the next element with its header, of any tag.
func (d *decoder) anyElement(s *cryptobyte.String, what string) (element cryptobyte.String) {
	var tag asn1.Tag
	if !d.next(s, what, func() bool { return s.ReadAnyASN1Element(&element, &tag) }) {
		return nil
	}
	return element
}

// optional reads an element that may be left out.
func (d *decoder) optional(s *cryptobyte.String, tag asn1.Tag, what string) (contents cryptobyte.String, present bool) {
	if d.err != nil || !s.PeekASN1Tag(tag) {
		return nil, false
	}
	contents = d.read(s, tag, what)
	return contents, d.err == nil
}

// end refuses data after the last member of a structure.
func (d *decoder) end(s cryptobyte.String, what string) {
	if d.err == nil && !s.Empty() {
		d.fail(s, "trailing data after "+what)
	}
}

// more reports whether a SEQUENCE OF or SET OF has another member.
func (d *decoder) more(s cryptobyte.String) bool { return d.err == nil && !s.Empty() }

func (d *decoder) octets(s *cryptobyte.String, what string) []byte {
	return d.read(s, asn1.OCTET_STRING, what)
}

// oid reads an object identifier's contents. Identifiers are compared as bytes.
func (d *decoder) oid(s *cryptobyte.String, what string) string {
	at := *s
	contents := d.read(s, asn1.OBJECT_IDENTIFIER, what)
	if d.err == nil && !validOID(contents) {
		d.fail(at, what+" is not an object identifier")
	}
	return string(contents)
}

// validOID checks the arcs: each in the fewest octets, the last one complete (X.690, 8.19.2).
func validOID(contents []byte) bool {
	start := true
	for _, c := range contents {
		if start && c == 0x80 {
			return false
		}
		start = c&0x80 == 0
	}
	return start && len(contents) > 0
}

func (d *decoder) integer(s *cryptobyte.String, what string) *big.Int {
	n := new(big.Int)
	if !d.next(s, what, func() bool { return s.ReadASN1Integer(n) }) {
		return nil
	}
	return n
}

// optionalInteger reads an INTEGER that may be left out; nil if it is.
func (d *decoder) optionalInteger(s *cryptobyte.String, what string) *big.Int {
	if d.err != nil || !s.PeekASN1Tag(asn1.INTEGER) {
		return nil
	}
	return d.integer(s, what)
}

// version reads an INTEGER that must have this value.
func (d *decoder) version(s *cryptobyte.String, want int64, what string) {
	at := *s
	if n := d.integer(s, what); d.err == nil && n.Cmp(big.NewInt(want)) != 0 {
		d.fail(at, what+" is not the one defined")
	}
}

// optionalBoolean reads BOOLEAN DEFAULT FALSE in a signed part, where FALSE may be written out. Authorities do so.
// The signature covers the bytes as they are, so no other party can add or remove it.
func (d *decoder) optionalBoolean(s *cryptobyte.String, what string) (value bool) {
	return s.PeekASN1Tag(asn1.BOOLEAN) && d.next(s, what, func() bool { return s.ReadASN1Boolean(&value) }) && value
}

// sorted refuses a member of a SET OF that sorts before the previous one (X.690, 11.6).
func (d *decoder) sorted(last, next cryptobyte.String, what string) {
	if d.err == nil && bytes.Compare(last, next) > 0 {
		d.fail(next, what+" not in DER order")
	}
}

// extensions reads the members of an Extensions structure (RFC 5280, 4.1) and reports whether one is critical.
func (d *decoder) extensions(s cryptobyte.String) (critical bool) {
	if s.Empty() {
		d.fail(s, "extensions without a member")
	}
	for d.more(s) {
		extension := d.read(&s, asn1.SEQUENCE, "extension")
		d.oid(&extension, "extension identifier")
		critical = d.optionalBoolean(&extension, "extension criticality") || critical
		d.octets(&extension, "extension value")
		d.end(extension, "extension")
	}
	return critical
}

// unset reports whether oid is the zero value, which means none.
func unset(oid x509.OID) bool { return oid.Equal(x509.OID{}) }
