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
	policy       x509.OID
	certificates []byte // the [0] certificates element
	signer       []byte // the IssuerAndSerialNumber element
	contentType  []byte // the attribute elements, contentType
	certificate  []byte // and SigningCertificateV2
}

func newTokenParts(c *x509.Certificate, policy x509.OID) (p tokenParts, err error) {
	p.policy = policy
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

// sign writes and signs a token. It has no signingTime attribute, because genTime says the same more exactly.
func (p *tokenParts) sign(key crypto.Signer, r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	content, err := p.tstInfo(r, serial, genTime)
	if err != nil {
		return nil, err
	}
	attributes, err := p.attributes(content)
	if err != nil {
		return nil, err
	}
	// Signed as SET OF, sent as [0] (RFC 5652, 5.4).
	digest := sha256.Sum256(attributes)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	attributes[0] = byte(context0Constructed)
	token, err := p.token(content, attributes, signature, r.CertReq)
	if err != nil {
		return nil, err
	}
	if len(token) > MaxTokenSize {
		return nil, &SyntaxError{MaxTokenSize, "token would be larger than accepted"}
	}
	return token, nil
}

// tstInfo writes TSTInfo (RFC 3161, 2.4.2).
func (p *tokenParts) tstInfo(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	b := cryptobyte.NewBuilder(make([]byte, 0, 256))
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(tstInfoVersion)
		addPolicy(b, p.policy)
		addImprint(b, r.stamped())
		b.AddASN1BigInt(serial)
		b.AddASN1(asn1.GeneralizedTime, func(b *cryptobyte.Builder) { b.AddBytes([]byte(formatGenTime(genTime))) })
		if r.Nonce != nil {
			b.AddASN1BigInt(r.Nonce)
		}
	})
	return b.Bytes()
}

// attributes writes the signed attributes as a SET OF, in DER order: each begins 30 LENGTH, contentType and
// messageDigest have fixed lengths 1a and 2f, and the hash and name in SigningCertificateV2 make it longer than both.
func (p *tokenParts) attributes(content []byte) ([]byte, error) {
	digest := sha256.Sum256(content)
	b := cryptobyte.NewBuilder(make([]byte, 0, 512))
	b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) {
		b.AddBytes(p.contentType)
		addAttribute(b, oidMessageDigest, func(b *cryptobyte.Builder) { b.AddASN1OctetString(digest[:]) })
		b.AddBytes(p.certificate)
	})
	return b.Bytes()
}

// token writes ContentInfo around SignedData (RFC 5652, 3 and 5.1).
func (p *tokenParts) token(content, attributes, signature []byte, withCertificate bool) ([]byte, error) {
	b := cryptobyte.NewBuilder(make([]byte, 0, 1536))
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addOID(b, oidSignedData)
		b.AddASN1(context0Constructed, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1Int64(signedDataVersion)
				b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) { addAlgorithm(b, oidSHA256) })
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					addOID(b, oidTSTInfo)
					b.AddASN1(context0Constructed, func(b *cryptobyte.Builder) { b.AddASN1OctetString(content) })
				})
				if withCertificate {
					b.AddBytes(p.certificates)
				}
				b.AddASN1(asn1.SET, func(b *cryptobyte.Builder) { p.addSignerInfo(b, attributes, signature) })
			})
		})
	})
	return b.Bytes()
}

// addSignerInfo writes SignerInfo (RFC 5652, 5.3).
func (p *tokenParts) addSignerInfo(b *cryptobyte.Builder, attributes, signature []byte) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(signerInfoVersionIssuer)
		b.AddBytes(p.signer)
		addAlgorithm(b, oidSHA256)
		b.AddBytes(attributes)
		addAlgorithm(b, oidECDSAWithSHA256)
		b.AddASN1OctetString(signature)
	})
}
