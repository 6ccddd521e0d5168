package timestamp

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"math/bits"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// tlv writes an element that holds these parts. A token has some thirty of them, and a log as many tokens as records: this takes a fifth of the
// time of a cryptobyte.Builder for each.
func tlv(tag asn1.Tag, parts ...[]byte) []byte {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	out := append(make([]byte, 0, size+6), byte(tag))
	if n := (bits.Len(uint(size)) + 7) / 8; size < 0x80 {
		out = append(out, byte(size))
	} else {
		for out = append(out, 0x80|byte(n)); n > 0; n-- {
			out = append(out, byte(size>>(8*(n-1))))
		}
	}
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

func seq(parts ...[]byte) []byte    { return tlv(asn1.SEQUENCE, parts...) }
func set(parts ...[]byte) []byte    { return tlv(asn1.SET, parts...) }
func oid(contents string) []byte    { return tlv(asn1.OBJECT_IDENTIFIER, []byte(contents)) }
func octets(contents []byte) []byte { return tlv(asn1.OCTET_STRING, contents) }
func integer(n int64) []byte        { return bigInteger(big.NewInt(n)) }

func bigInteger(n *big.Int) []byte {
	var b cryptobyte.Builder
	b.AddASN1BigInt(n)
	return b.BytesOrPanic()
}

// policyElement writes an object identifier given by a caller.
func policyElement(policy x509.OID) ([]byte, error) {
	contents, err := policy.MarshalBinary()
	return oid(string(contents)), err
}

func attribute(kind string, values ...[]byte) []byte { return seq(oid(kind), set(values...)) }

// imprintElement writes a MessageImprint. The algorithm has no parameters, as RFC 5754 demands for SHA-2 and ECDSA.
func imprintElement(algorithm []byte, hash []byte) []byte { return seq(algorithm, octets(hash)) }

// signingCertificate writes SigningCertificateV2 with one ESSCertIDv2 under the default SHA-256, and the issuerSerial
// that RFC 5035, 4 recommends.
func signingCertificate(c *x509.Certificate) []byte {
	issuerSerial := seq(seq(tlv(context4Constructed, c.RawIssuer)), bigInteger(c.SerialNumber))
	return attribute(oidSigningCertificateV2, seq(seq(seq(octets(sum(crypto.SHA256, c.Raw)), issuerSerial))))
}

// sign writes and signs a token. It has no signingTime attribute, because genTime says the same more exactly.
func (a *Authority) sign(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	content, err := a.tstInfo(r, serial, genTime)
	if err != nil {
		return nil, err
	}
	// In DER order: each begins 30 LENGTH, contentType and messageDigest have fixed lengths 1a and 2f, and the hash and
	// name in SigningCertificateV2 make it longer than both.
	attributes := set(attribute(oidContentType, oid(oidTSTInfo)), attribute(oidMessageDigest, octets(sum(crypto.SHA256, content))), a.names)
	// Signed as SET OF, sent as [0] (RFC 5652, 5.4).
	digest := sha256.Sum256(attributes)
	signature, err := a.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	attributes[0] = byte(context0Constructed)
	token := a.contentInfo(content, attributes, signature, r.CertReq)
	if len(token) > MaxTokenSize {
		return nil, &SyntaxError{MaxTokenSize, "token would be larger than accepted"}
	}
	return token, nil
}

// tstInfo writes TSTInfo (RFC 3161, 2.4.2).
func (a *Authority) tstInfo(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	policy, err := policyElement(a.policy)
	var nonce []byte
	if r.Nonce != nil {
		nonce = bigInteger(r.Nonce)
	}
	return seq(integer(tstInfoVersion), policy, imprintElement(seq(oid(oidSHA256)), r.Imprint[:]), bigInteger(serial),
		tlv(asn1.GeneralizedTime, []byte(formatGenTime(genTime))), nonce), err
}

// contentInfo writes ContentInfo around SignedData and SignerInfo (RFC 5652, 3, 5.1 and 5.3).
func (a *Authority) contentInfo(content, attributes, signature []byte, withCertificate bool) []byte {
	c, digest := a.chain[0], seq(oid(oidSHA256))
	signer := seq(integer(signerInfoVersionIssuer), seq(c.RawIssuer, bigInteger(c.SerialNumber)), digest, attributes,
		seq(oid(oidECDSAWithSHA256)), octets(signature))
	var certificates []byte
	if withCertificate {
		certificates = tlv(context0Constructed, c.Raw)
	}
	encapsulated := seq(oid(oidTSTInfo), tlv(context0Constructed, octets(content)))
	return seq(oid(oidSignedData), tlv(context0Constructed,
		seq(integer(signedDataVersion), set(digest), encapsulated, certificates, set(signer))))
}
