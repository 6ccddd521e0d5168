package timestamp

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// tokenParts are the parts that all tokens of an authority share.
type tokenParts struct {
	policy       []byte // the contents of its object identifier
	certificates []byte // the [0] certificates element
	signer       []byte // the IssuerAndSerialNumber element
	contentType  []byte // the attribute elements, contentType
	certificate  []byte // and SigningCertificateV2
}

func newTokenParts(c *x509.Certificate, policy x509.OID) (p tokenParts, err error) {
	if p.policy, err = policy.MarshalBinary(); err != nil {
		return p, fmt.Errorf("encoding policy: %w", err)
	}
	write := func(add func(b *cryptobyte.Builder)) (part []byte) {
		if err != nil {
			return nil
		}
		var b cryptobyte.Builder
		add(&b)
		part, err = b.Bytes()
		return part
	}
	p.certificates = write(func(b *cryptobyte.Builder) {
		b.AddASN1(context0Constructed, func(b *cryptobyte.Builder) { b.AddBytes(c.Raw) })
	})
	p.signer = write(func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(c.RawIssuer)
			b.AddASN1BigInt(c.SerialNumber)
		})
	})
	p.contentType = write(func(b *cryptobyte.Builder) {
		addAttribute(b, oidContentType, func(b *cryptobyte.Builder) { addOID(b, oidTSTInfo) })
	})
	p.certificate = write(func(b *cryptobyte.Builder) {
		addAttribute(b, oidSigningCertificateV2, func(b *cryptobyte.Builder) { addSigningCertificate(b, c) })
	})
	return p, err
}

func addAttribute(b *cryptobyte.Builder, oid string, value cryptobyte.BuilderContinuation) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addOID(b, oid)
		b.AddASN1(asn1.SET, value)
	})
}

// addSigningCertificate writes SigningCertificateV2 with one ESSCertIDv2 under the default SHA-256, and the
// issuerSerial that RFC 5035, 4 recommends.
func addSigningCertificate(b *cryptobyte.Builder, c *x509.Certificate) {
	hash := sha256.Sum256(c.Raw)
	sequence := func(b *cryptobyte.Builder, f cryptobyte.BuilderContinuation) { b.AddASN1(asn1.SEQUENCE, f) }
	sequence(b, func(b *cryptobyte.Builder) { // SigningCertificateV2
		sequence(b, func(b *cryptobyte.Builder) { // certs
			sequence(b, func(b *cryptobyte.Builder) { // ESSCertIDv2
				b.AddASN1OctetString(hash[:])
				sequence(b, func(b *cryptobyte.Builder) { // IssuerSerial
					sequence(b, func(b *cryptobyte.Builder) { // GeneralNames
						b.AddASN1(context4Constructed, func(b *cryptobyte.Builder) { b.AddBytes(c.RawIssuer) })
					})
					b.AddASN1BigInt(c.SerialNumber)
				})
			})
		})
	})
}

// sign writes and signs a token. Each record has one, so its parts are written from their ends, without moving bytes. It has no signingTime attribute, because genTime says the same more exactly.
func (p *tokenParts) sign(key crypto.Signer, r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	content, err := p.tstInfo(r, serial, genTime)
	if err != nil {
		return nil, err
	}
	attributes := p.attributes(content)
	// Signed as SET OF, sent as [0] (RFC 5652, 5.4).
	digest := sha256.Sum256(attributes)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	attributes[0] = byte(context0Constructed)
	token := p.token(content, attributes, signature, r.CertReq)
	if len(token) > MaxTokenSize {
		return nil, &SyntaxError{MaxTokenSize, "token would be larger than accepted"}
	}
	return token, nil
}

// tstInfo writes TSTInfo (RFC 3161, 2.4.2).
func (p *tokenParts) tstInfo(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	imprint := r.stamped()
	if err := imprint.check(); err != nil {
		return nil, err
	}
	w := newBackward(256)
	if r.Nonce != nil {
		w.addInteger(r.Nonce)
	}
	w.addElement(asn1.GeneralizedTime, []byte(formatGenTime(genTime)))
	w.addInteger(serial)
	w.addImprint(imprint)
	w.addElement(asn1.OBJECT_IDENTIFIER, p.policy)
	w.addElement(asn1.INTEGER, []byte{tstInfoVersion})
	w.wrap(asn1.SEQUENCE, 0)
	return w.bytes(), nil
}

// attributes writes the signed attributes as a SET OF, in DER order: each begins 30 LENGTH, contentType and
// messageDigest have fixed lengths 1a and 2f, and the hash and name in SigningCertificateV2 make it longer than both.
func (p *tokenParts) attributes(content []byte) []byte {
	digest := sha256.Sum256(content)
	w := newBackward(len(p.certificate) + 128)
	w.add(p.certificate)
	end := w.end()
	w.addElement(asn1.OCTET_STRING, digest[:])
	w.wrap(asn1.SET, end)
	w.addElement(asn1.OBJECT_IDENTIFIER, []byte(oidMessageDigest))
	w.wrap(asn1.SEQUENCE, end)
	w.add(p.contentType)
	w.wrap(asn1.SET, 0)
	return w.bytes()
}

// token writes ContentInfo around SignedData (RFC 5652, 3 and 5.1).
func (p *tokenParts) token(content, attributes, signature []byte, withCertificate bool) []byte {
	w := newBackward(len(content) + len(attributes) + len(signature) + len(p.certificates) + len(p.signer) + 192)
	w.addSignerInfo(p.signer, attributes, signature)
	w.wrap(asn1.SET, 0)
	if withCertificate {
		w.add(p.certificates)
	}
	encapsulated := w.end()
	w.addElement(asn1.OCTET_STRING, content)
	w.wrap(context0Constructed, encapsulated)
	w.addElement(asn1.OBJECT_IDENTIFIER, []byte(oidTSTInfo))
	w.wrap(asn1.SEQUENCE, encapsulated)
	algorithms := w.end()
	w.addAlgorithm(asn1.SEQUENCE, oidSHA256)
	w.wrap(asn1.SET, algorithms)
	w.addElement(asn1.INTEGER, []byte{signedDataVersion})
	w.wrap(asn1.SEQUENCE, 0)
	w.wrap(context0Constructed, 0)
	w.addElement(asn1.OBJECT_IDENTIFIER, []byte(oidSignedData))
	w.wrap(asn1.SEQUENCE, 0)
	return w.bytes()
}

// addSignerInfo writes SignerInfo (RFC 5652, 5.3).
func (w *backward) addSignerInfo(signer, attributes, signature []byte) {
	end := w.end()
	w.addElement(asn1.OCTET_STRING, signature)
	w.addAlgorithm(asn1.SEQUENCE, oidECDSAWithSHA256)
	w.add(attributes)
	w.addAlgorithm(asn1.SEQUENCE, oidSHA256)
	w.add(signer)
	w.addElement(asn1.INTEGER, []byte{signerInfoVersionIssuer})
	w.wrap(asn1.SEQUENCE, end)
}
