package timestamp

import (
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
	sd.signer = d.onlySigner(&data)
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
		switch {
		case set.PeekASN1Tag(context0Constructed): // extended certificates, obsolete
			d.element(&set, context0Constructed, "certificate")
		case set.PeekASN1Tag(context1Constructed):
			d.element(&set, context1Constructed, "certificate")
			sd.attributes1 = true
		case set.PeekASN1Tag(context2Constructed):
			d.element(&set, context2Constructed, "certificate")
			sd.attributes2 = true
		case set.PeekASN1Tag(context3Constructed):
			d.element(&set, context3Constructed, "certificate")
			sd.other = true
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

// onlySigner reads the set of signers: "The time-stamp token MUST NOT contain
// any signatures other than the signature of the TSA" (RFC 3161, 2.4.2).
func (d *decoder) onlySigner(s *cryptobyte.String) signerInfo {
	set := d.read(s, asn1.SET, "signerInfos")
	info := d.read(&set, asn1.SEQUENCE, "signerInfo")
	d.end(set, "the only signerInfo")
	return d.signerInfo(info)
}

func (d *decoder) signerInfo(s cryptobyte.String) (si signerInfo) {
	version := s
	n := d.integer(&s, "signerInfo version")
	want := int64(signerInfoVersionIssuer)
	if s.PeekASN1Tag(context0) {
		want = signerInfoVersionKeyID
		si.keyID = d.read(&s, context0, "signer's key identifier")
	} else {
		si.issuer, si.serial = d.issuerAndSerial(&s)
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

func (d *decoder) issuerAndSerial(s *cryptobyte.String) (issuer cryptobyte.String, serial *big.Int) {
	sid := d.read(s, asn1.SEQUENCE, "signer identifier")
	issuer = d.element(&sid, asn1.SEQUENCE, "signer's issuer")
	serial = d.integer(&sid, "signer's serial number")
	d.end(sid, "signer identifier")
	return issuer, serial
}
