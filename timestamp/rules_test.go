package timestamp

import (
	"bytes"
	"crypto"
	"crypto/sha1"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/test/must"
)

var sentinels = []error{
	ErrMalformed, ErrAlgorithm, ErrExtension, ErrImprint, ErrNonce, ErrPolicy, ErrSignature,
	ErrUsage, ErrCertificateID, ErrUntrusted, ErrNoCertificate, ErrMock, ErrValidity,
	ErrExpired,
}

// checkError requires that err wraps want and no other sentinel.
func checkError(t *testing.T, err, want error) {
	t.Helper()
	if want == nil {
		must.Need(t, err == nil, "refused: %v", err)
		return
	}
	for _, sentinel := range sentinels {
		must.Need(t, errors.Is(err, sentinel) == (sentinel == want), "error %v, want exactly %v", err, want)
	}
}

// revocationList returns a revocation list of the tests' root.
func revocationList(t *testing.T) []byte {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: testNotBefore, NextUpdate: testNotAfter}
	return must.Get(x509.CreateRevocationList(nil, list, testRoot(t), testKey("root")))(t)
}

func genTime(text string) []byte { return tlv(asn1.GeneralizedTime, []byte(text)) }

func extension(critical bool) []byte {
	var flag []byte
	if critical {
		flag = tlv(asn1.BOOLEAN, []byte{0xff})
	}
	return tlv(context1Constructed, seq(oid("\x2a\x03"), flag, octets(nil)))
}

// embedded sets the certificates and the version of a token.
func embedded(version int64, certificates ...[]byte) func(f *draft) {
	return func(f *draft) {
		f.sdVersion, f.certificates = integer(version), tlv(context0Constructed, certificates...)
	}
}

// A tokenRule breaks one rule about a token's form or content. Tokens of rules without an error are close to a rule and
// must be accepted.
type tokenRule struct {
	name   string
	change func(f *draft)
	want   error
}

func tokenRules(t *testing.T) []tokenRule {
	c := testCertificate(t)
	signingTime := attribute("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x05", tlv(asn1.UTCTime, []byte("260601123015Z")))
	sha1Hash := sha1.Sum(c.Raw)
	sha384Hash := sha512.Sum384(c.Raw)
	sha256Hash := sum(crypto.SHA256, c.Raw)
	ocsp := tlv(context1Constructed, oid("\x2b\x06\x01\x05\x05\x07\x10\x02"), seq(null())) // id-ri-ocsp-response (RFC 5940)
	wrongHash := append([]byte{sha256Hash[0] ^ 1}, sha256Hash[1:]...)

	return []tokenRule{
		{"correct", func(f *draft) {}, nil},

		{"content is not SignedData", func(f *draft) { f.contentType = oid(oidTSTInfo) }, ErrMalformed},
		{"SignedData version 0", func(f *draft) { f.sdVersion = integer(0) }, ErrMalformed},
		{"SignedData version 1, which is wrong and harmless", func(f *draft) { f.sdVersion = integer(1) }, nil},
		{"SignedData version 2", func(f *draft) { f.sdVersion = integer(2) }, ErrMalformed},
		{"SignedData version 4 of nothing else", func(f *draft) { f.sdVersion = integer(4) }, ErrMalformed},
		{"SignedData version 5 of nothing else", func(f *draft) { f.sdVersion = integer(5) }, ErrMalformed},
		{"SignedData version beyond 64 bits", func(f *draft) { f.sdVersion = bigInteger(new(big.Int).Lsh(big.NewInt(1), 64)) }, ErrMalformed},
		{"SignedData without a version", func(f *draft) { f.sdVersion = nil }, ErrMalformed},
		{"no digest algorithms", func(f *draft) { f.digestAlgorithms = set() }, ErrMalformed},
		{"signer's digest not among them", func(f *draft) { f.digestAlgorithms = set(seq(oid(oidSHA512))) }, ErrMalformed},
		{"two digest algorithms", func(f *draft) { f.digestAlgorithms = set(seq(oid(oidSHA256)), seq(oid(oidSHA512))) }, nil},
		{"digest algorithms with NULL parameters", func(f *draft) { f.digestAlgorithms = set(seq(oid(oidSHA256), null())) }, nil},
		{"digest algorithms with other parameters", func(f *draft) { f.digestAlgorithms = set(seq(oid(oidSHA256), integer(0))) }, ErrMalformed},
		{"digest algorithms out of order", func(f *draft) { f.digestAlgorithms = set(seq(oid(oidSHA512)), seq(oid(oidSHA256))) }, ErrMalformed},
		{"eContentType is data", func(f *draft) { f.eContentType = oid("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01") }, ErrMalformed},
		{"attribute certificate of version 1 embedded", embedded(3, c.Raw, tlv(context1Constructed, []byte("opaque"))), nil},
		{"attribute certificate of version 1 embedded, version 4", embedded(4, tlv(context1Constructed, []byte("opaque")), c.Raw), nil},
		{"attribute certificate of version 1 embedded, version 5", embedded(5, c.Raw, tlv(context1Constructed)), ErrMalformed},
		{"attribute certificate of version 2 embedded", embedded(4, c.Raw, tlv(context2Constructed, []byte("opaque"))), nil},
		{"attribute certificate of version 2 embedded, version 1", embedded(1, c.Raw, tlv(context2Constructed, []byte("opaque"))), nil},
		{"attribute certificate of version 2 embedded, version 3", embedded(3, c.Raw, tlv(context2Constructed, []byte("opaque"))), ErrMalformed},
		{"certificate of another kind embedded", embedded(5, c.Raw, tlv(context3Constructed, oid("\x2a\x03"), null())), nil},
		{"certificate of another kind embedded, version 4", embedded(4, c.Raw, tlv(context3Constructed, oid("\x2a\x03"), null())), ErrMalformed},
		{"extended certificate embedded", embedded(3, tlv(context0Constructed, []byte("opaque")), c.Raw), nil},
		{"certificate of no kind embedded", embedded(3, c.Raw, tlv(context4Constructed)), ErrMalformed},
		{"certificate primitive", embedded(3, c.Raw, tlv(context1)), ErrMalformed},
		{"the signer's certificate as an attribute certificate alone", embedded(4, tlv(context2Constructed, c.Raw)), ErrNoCertificate},
		{"embedded certificate unreadable, and not the signer's", func(f *draft) { f.certificates = tlv(context0Constructed, c.Raw, seq()) }, nil},
		{"revocation list embedded", func(f *draft) { f.revocations = tlv(context1Constructed, revocationList(t)) }, nil},
		{"OCSP response embedded", func(f *draft) {
			f.sdVersion, f.revocations = integer(5), tlv(context1Constructed, revocationList(t), ocsp)
		}, nil},
		{"OCSP response embedded, version 1", func(f *draft) {
			f.sdVersion, f.revocations = integer(1), tlv(context1Constructed, ocsp)
		}, nil},
		{"OCSP response embedded, version 3", func(f *draft) { f.revocations = tlv(context1Constructed, ocsp) }, ErrMalformed},
		{"OCSP response and attribute certificate embedded", func(f *draft) {
			f.sdVersion, f.revocations = integer(5), tlv(context1Constructed, ocsp)
			f.certificates = tlv(context0Constructed, c.Raw, tlv(context2Constructed))
		}, nil},
		{"revocation information of no kind", func(f *draft) { f.revocations = tlv(context1Constructed, tlv(context2Constructed)) }, ErrMalformed},
		{"no signer", func(f *draft) { f.signerInfos = 0 }, ErrMalformed},
		{"two signers", func(f *draft) { f.signerInfos = 2 }, ErrMalformed},
		{"trailing data in SignedData", func(f *draft) { f.sdTail = null() }, ErrMalformed},
		{"trailing data after the token", func(f *draft) { f.tail = null() }, ErrMalformed},

		{"signerInfo version 3 with issuer", func(f *draft) { f.siVersion = integer(3) }, ErrMalformed},
		{"signerInfo by key identifier", func(f *draft) { f.siVersion, f.sid = integer(3), tlv(context0, c.SubjectKeyId) }, nil},
		{"signerInfo version 1 with key identifier", func(f *draft) { f.sid = tlv(context0, c.SubjectKeyId) }, ErrMalformed},
		{"another key identifier", func(f *draft) { f.siVersion, f.sid = integer(3), tlv(context0, []byte("other")) }, ErrNoCertificate},
		{"empty key identifier", func(f *draft) { f.siVersion, f.sid = integer(3), tlv(context0) }, ErrNoCertificate},
		{"another serial number of the signer", func(f *draft) { f.sid = seq(c.RawIssuer, integer(3)) }, ErrNoCertificate},
		{"another issuer of the signer", func(f *draft) { f.sid = seq(c.RawSubject, integer(2)) }, ErrNoCertificate},
		{"no certificate embedded", func(f *draft) { f.certificates = nil }, ErrNoCertificate},
		{"unsigned attribute", func(f *draft) { f.unsigned = tlv(context1Constructed, signingTime) }, nil},
		{"unsigned attributes empty", func(f *draft) { f.unsigned = tlv(context1Constructed) }, ErrMalformed},
		{"trailing data in signerInfo", func(f *draft) { f.siTail = null() }, ErrMalformed},

		{"signingTime attribute", func(f *draft) { f.moreAttributes = [][]byte{signingTime} }, nil},
		{"attribute without a value", func(f *draft) { f.moreAttributes = [][]byte{attribute("\x2a\x03")} }, ErrMalformed},
		{"attributes out of order", func(f *draft) { f.unsorted = true }, ErrMalformed},
		{"content type attribute missing", func(f *draft) { f.contentTypeAttribute = nil }, ErrMalformed},
		{"content type attribute twice", func(f *draft) { f.moreAttributes = [][]byte{f.contentTypeAttribute} }, ErrMalformed},
		{"content type attribute with two values", func(f *draft) {
			f.contentTypeAttribute = attribute(oidContentType, oid(oidTSTInfo), oid(oidTSTInfo))
		}, ErrMalformed},
		{"content type attribute is another", func(f *draft) { f.contentTypeAttribute = attribute(oidContentType, oid(oidSignedData)) }, ErrMalformed},
		{"message digest attribute missing", func(f *draft) { f.digestAttribute = []byte{} }, ErrMalformed},
		{"message digest attribute twice", func(f *draft) {
			f.moreAttributes = [][]byte{attribute(oidMessageDigest, octets(nil))}
		}, ErrMalformed},
		{"message digest of something else", func(f *draft) {
			f.digestAttribute = attribute(oidMessageDigest, octets(make([]byte, 32)))
		}, ErrSignature},
		{"signature spoilt", func(f *draft) { f.spoil = func(s []byte) []byte { s[len(s)-1] ^= 1; return s } }, ErrSignature},
		{"signature empty", func(f *draft) { f.spoil = func([]byte) []byte { return nil } }, ErrSignature},
		{"signed by another key", func(f *draft) { f.key = testKey("somebody") }, ErrSignature},

		{"SHA-384", func(f *draft) { f.digests(crypto.SHA384, oidSHA384, oidECDSAWithSHA384) }, nil},
		{"SHA-512", func(f *draft) { f.digests(crypto.SHA512, oidSHA512, oidECDSAWithSHA512) }, nil},
		{"SHA-1", func(f *draft) { f.digests(crypto.SHA1, "\x2b\x0e\x03\x02\x1a", "\x2a\x86\x48\xce\x3d\x04\x01") }, ErrAlgorithm},
		{"digest parameters NULL", func(f *draft) { f.digestAlgorithm = seq(oid(oidSHA256), null()) }, nil},
		{"digest parameters of another kind", func(f *draft) { f.digestAlgorithm = seq(oid(oidSHA256), integer(0)) }, ErrAlgorithm},
		{"signature algorithm of another digest", func(f *draft) { f.signatureAlgorithm = seq(oid(oidECDSAWithSHA384)) }, ErrAlgorithm},
		{"signature algorithm with parameters", func(f *draft) { f.signatureAlgorithm = seq(oid(oidECDSAWithSHA256), null()) }, ErrAlgorithm},
		{"signature algorithm of another key", func(f *draft) { f.signatureAlgorithm = seq(oid(oidSHA256WithRSA)) }, ErrAlgorithm},

		{"no certificate identifier", func(f *draft) { f.certificateAttribute = nil }, ErrCertificateID},
		{"certificate identifier twice", func(f *draft) { f.moreAttributes = [][]byte{f.certificateAttribute} }, ErrMalformed},
		{"certificate identifier, hash of another", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(wrongHash))
		}, ErrNoCertificate},
		{"certificate identifier, hash of another, issuerSerial right", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(wrongHash), issuerSerial(c, 2))
		}, ErrNoCertificate},
		{"certificate identifier with issuerSerial", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(sha256Hash), issuerSerial(c, 2))
		}, nil},
		{"certificate identifier with another serial number", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(sha256Hash), issuerSerial(c, 3))
		}, ErrCertificateID},
		{"certificate identifier with another issuer", func(f *draft) {
			other := seq(seq(tlv(context4Constructed, c.RawSubject)), integer(2))
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(sha256Hash), other)
		}, ErrCertificateID},
		{"certificate identifier with two issuers", func(f *draft) {
			name := tlv(context4Constructed, c.RawIssuer)
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(sha256Hash), seq(seq(name, name), integer(2)))
		}, ErrMalformed},
		{"certificate identifier, SHA-256 written out", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, seq(oid(oidSHA256)), octets(sha256Hash))
		}, nil},
		{"certificate identifier by SHA-384", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, seq(oid(oidSHA384)), octets(sha384Hash[:]))
		}, nil},
		{"certificate identifier v2 by SHA-1", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, seq(oid("\x2b\x0e\x03\x02\x1a")), octets(sha1Hash[:]))
		}, ErrAlgorithm},
		{"certificate identifier of version 1", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificate, octets(sha1Hash[:]))
		}, nil},
		{"certificate identifier of version 1, another hash", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificate, octets(make([]byte, 20)))
		}, ErrNoCertificate},
		{"version 1 right, version 2 wrong", func(f *draft) {
			f.certificateAttribute = ess(oidSigningCertificateV2, octets(wrongHash))
			f.moreAttributes = [][]byte{ess(oidSigningCertificate, octets(sha1Hash[:]))}
		}, ErrNoCertificate},
		{"certificate identifiers empty", func(f *draft) {
			f.certificateAttribute = attribute(oidSigningCertificateV2, seq(seq()))
		}, ErrMalformed},
		{"certificate identifiers, signer's not first", func(f *draft) {
			f.certificateAttribute = attribute(oidSigningCertificateV2, seq(seq(seq(octets(wrongHash)), seq(octets(sha256Hash)))))
		}, ErrNoCertificate},
		{"certificate identifiers, path after the signer's, and policies", func(f *draft) {
			f.certificateAttribute = attribute(oidSigningCertificateV2, seq(seq(seq(octets(sha256Hash)), seq(octets(wrongHash))), seq(seq(oid("\x2a\x03")))))
		}, nil},

		{"TSTInfo version 2", func(f *draft) { f.tstVersion = integer(2) }, ErrMalformed},
		{"policy missing", func(f *draft) { f.policy = nil }, ErrMalformed},
		{"policy not minimal", func(f *draft) { f.policy = oid("\x2a\x80\x04") }, ErrMalformed},
		{"policy cut", func(f *draft) { f.policy = oid("\x2a\x83") }, ErrMalformed},
		{"imprint parameters NULL", func(f *draft) { f.imprint = imprintElement(seq(oid(oidSHA256), null()), testImprint[:]) }, nil},
		{"imprint of other data", func(f *draft) { f.imprint = imprintElement(seq(oid(oidSHA256)), make([]byte, 32)) }, ErrImprint},
		{"imprint by SHA-512", func(f *draft) { f.imprint = imprintElement(seq(oid(oidSHA512)), make([]byte, 64)) }, ErrImprint},
		{"imprint by SHA-512, too short", func(f *draft) { f.imprint = imprintElement(seq(oid(oidSHA512)), testImprint[:]) }, ErrMalformed},
		{"imprint too short", func(f *draft) { f.imprint = imprintElement(seq(oid(oidSHA256)), testImprint[:31]) }, ErrMalformed},
		{"serial number missing", func(f *draft) { f.serial = nil }, ErrMalformed},
		{"serial number not minimal", func(f *draft) { f.serial = tlv(asn1.INTEGER, []byte{0, 1}) }, ErrMalformed},

		{"genTime in seconds", func(f *draft) { f.genTime = genTime("20260601123015Z") }, nil},
		{"genTime in nanoseconds", func(f *draft) { f.genTime = genTime("20260601123015.123456789Z") }, nil},
		{"genTime without Z", func(f *draft) { f.genTime = genTime("20260601123015") }, ErrMalformed},
		{"genTime with an offset", func(f *draft) { f.genTime = genTime("20260601123015+0000") }, ErrMalformed},
		{"genTime without seconds", func(f *draft) { f.genTime = genTime("202606011230Z") }, ErrMalformed},
		{"genTime with a trailing zero", func(f *draft) { f.genTime = genTime("20260601123015.120Z") }, ErrMalformed},
		{"genTime with an empty fraction", func(f *draft) { f.genTime = genTime("20260601123015.Z") }, ErrMalformed},
		{"genTime with a comma", func(f *draft) { f.genTime = genTime("20260601123015,5Z") }, ErrMalformed},
		{"genTime below nanoseconds", func(f *draft) { f.genTime = genTime("20260601123015.1234567891Z") }, ErrMalformed},
		{"genTime that is not a date", func(f *draft) { f.genTime = genTime("20260230123015Z") }, ErrMalformed},
		{"genTime as UTCTime", func(f *draft) { f.genTime = tlv(asn1.UTCTime, []byte("260601123015Z")) }, ErrMalformed},
		{"genTime before the certificate", func(f *draft) { f.genTime = genTime("20191231235959.999Z") }, ErrUntrusted},
		{"genTime after the certificate", func(f *draft) { f.genTime = genTime("20600101000000.001Z") }, ErrUntrusted},

		{"accuracy", func(f *draft) {
			f.accuracy = seq(integer(1), tlv(context0, []byte{5}), tlv(context1, []byte{7}))
		}, nil},
		{"accuracy of no seconds", func(f *draft) { f.accuracy = seq(tlv(context1, []byte{7})) }, nil},
		{"accuracy below zero", func(f *draft) { f.accuracy = seq(integer(-1)) }, ErrMalformed},
		{"accuracy beyond 32 bits", func(f *draft) { f.accuracy = seq(integer(1 << 40)) }, ErrMalformed},
		{"accuracy of 0 milliseconds", func(f *draft) { f.accuracy = seq(tlv(context0, []byte{0})) }, ErrMalformed},
		{"accuracy of 1000 microseconds", func(f *draft) { f.accuracy = seq(tlv(context1, []byte{3, 0xe8})) }, ErrMalformed},
		{"ordering", func(f *draft) { f.ordering = tlv(asn1.BOOLEAN, []byte{0xff}) }, nil},
		{"ordering writes its default", func(f *draft) { f.ordering = tlv(asn1.BOOLEAN, []byte{0}) }, nil},
		{"ordering is neither true nor false", func(f *draft) { f.ordering = tlv(asn1.BOOLEAN, []byte{1}) }, ErrMalformed},
		{"ordering is empty", func(f *draft) { f.ordering = tlv(asn1.BOOLEAN) }, ErrMalformed},
		{"tsa name", func(f *draft) { f.tsa = tlv(context0Constructed, tlv(context4Constructed, c.RawSubject)) }, nil},
		{"tsa names", func(f *draft) { f.tsa = tlv(context0Constructed, null(), null()) }, ErrMalformed},
		{"extension", func(f *draft) { f.extensions = extension(false) }, nil},
		{"critical extension", func(f *draft) { f.extensions = extension(true) }, ErrExtension},
		{"extension that says that it is not critical", func(f *draft) {
			f.extensions = tlv(context1Constructed, seq(oid("\x2a\x03"), tlv(asn1.BOOLEAN, []byte{0}), octets(nil)))
		}, nil},
		{"extension that is perhaps critical", func(f *draft) {
			f.extensions = tlv(context1Constructed, seq(oid("\x2a\x03"), tlv(asn1.BOOLEAN, []byte{1}), octets(nil)))
		}, ErrMalformed},
		{"extensions empty", func(f *draft) { f.extensions = tlv(context1Constructed) }, ErrMalformed},
		{"trailing data in TSTInfo", func(f *draft) { f.tstTail = null() }, ErrMalformed},
	}
}

func TestTokenRules(t *testing.T) {
	for _, rule := range tokenRules(t) {
		t.Run(rule.name, func(t *testing.T) {
			f := newDraft(t)
			rule.change(f)
			_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{testRoot(t)}})
			checkError(t, err, rule.want)
		})
	}
}

// TestOptionRules verifies one correct token with different options.
func TestOptionRules(t *testing.T) {
	policy := func(text string) x509.OID { return must.Get(x509.ParseOID(text))(t) }
	root, certificate := testRoot(t), testCertificate(t)
	otherRoot, _ := authorityCA(t, "other root", nil, nil)
	roots := []*x509.Certificate{root}

	for _, rule := range []struct {
		name string
		opts Options
		want error
	}{
		{"root", Options{Roots: roots}, nil},
		{"no roots", Options{}, ErrUntrusted},
		{"another root", Options{Roots: []*x509.Certificate{otherRoot}}, ErrUntrusted},
		{"the root as intermediate only", Options{Intermediates: roots}, ErrUntrusted},
		{"the authority's own certificate as root", Options{Roots: []*x509.Certificate{certificate}}, nil},
		{"nonce", Options{Roots: roots, Nonce: big.NewInt(42)}, nil},
		{"another nonce", Options{Roots: roots, Nonce: big.NewInt(43)}, ErrNonce},
		{"policy", Options{Roots: roots, Policies: []x509.OID{policy("1.2.3"), policy("1.2.3.4")}}, nil},
		{"another policy", Options{Roots: roots, Policies: []x509.OID{policy("1.2.3"), policy("1.2.3.4.5")}}, ErrPolicy},
		{"renewed in the last second", Options{Roots: roots, Until: testNotAfter}, nil},
		{"renewed too late", Options{Roots: roots, Until: testNotAfter.Add(time.Second)}, ErrExpired},
	} {
		t.Run(rule.name, func(t *testing.T) {
			_, err := verifyToken(newDraft(t).build(t), rule.opts)
			checkError(t, err, rule.want)
		})
	}
	t.Run("nonce missing", func(t *testing.T) {
		f := newDraft(t)
		f.nonce = nil
		_, err := verifyToken(f.build(t), Options{Roots: roots, Nonce: big.NewInt(42)})
		checkError(t, err, ErrNonce)
	})
	t.Run("other data", func(t *testing.T) {
		u := must.Get(Parse(newDraft(t).build(t)))(t)
		_, err := u.Verify([32]byte{1}, Options{Roots: roots})
		checkError(t, err, ErrImprint)
	})
	t.Run("certificate given", func(t *testing.T) {
		f := newDraft(t)
		f.certificates = nil
		_, err := verifyToken(f.build(t), Options{Roots: roots, Intermediates: []*x509.Certificate{certificate}})
		checkError(t, err, nil)
	})
}

func TestErrorsSayWhere(t *testing.T) {
	f := newDraft(t)
	f.genTime = genTime("20260601123015.120Z")
	der := f.build(t)
	_, err := Parse(der)
	var syntax *SyntaxError
	must.Need(t, errors.As(err, &syntax), "error %v is no SyntaxError", err)
	must.Hold(t, string(der[syntax.Offset:syntax.Offset+len(f.genTime)]) == string(f.genTime), "%v: offset does not point at genTime", err)
}

// region is a range of bytes of a token.
type region struct{ start, end int }

func find(t *testing.T, der, part []byte) region {
	t.Helper()
	i := bytes.Index(der, part)
	must.Need(t, i >= 0 && bytes.Count(der, part) == 1, "the token does not contain the part exactly once")
	return region{i, i + len(part)}
}

// survivors flips every single bit of der, and all bits of every byte, and returns the positions at which a changed
// token still verifies.
func survivors(der []byte, opts Options) (positions []int) {
	mutant := bytes.Clone(der)
	for i := range der {
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			mutant[i] ^= flip
			if _, err := verifyToken(mutant, opts); err == nil && !slices.Contains(positions, i) {
				positions = append(positions, i)
			}
			mutant[i] ^= flip
		}
	}
	return positions
}

// TestEveryByteCounts: a token with a changed bit or byte does not verify, except in the parts that the package
// documentation lists as not covered.
func TestEveryByteCounts(t *testing.T) {
	root, certificate := testRoot(t), testCertificate(t)
	opts := Options{Roots: []*x509.Certificate{root}}
	given := Options{Roots: opts.Roots, Intermediates: []*x509.Certificate{certificate}}
	authority := testAuthority(t)
	issue := func(certReq bool) []byte {
		return must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: certReq}))(t)
	}
	other, _ := authorityCA(t, "not needed", nil, nil)
	unsigned := attribute("\x2a\x03", octets([]byte("unsigned")))
	revocations := seq(octets([]byte("revocations")))

	draftWith := func(change func(f *draft)) []byte {
		f := newDraft(t)
		f.imprint = imprintElement(seq(oid(oidSHA256), null()), testImprint[:])
		f.digestAlgorithm = seq(oid(oidSHA256), null())
		f.digestAlgorithms = set(f.digestAlgorithm)
		change(f)
		return f.build(t)
	}
	for _, test := range []struct {
		name      string
		token     []byte
		opts      Options
		uncovered []byte // the one part in which changes may survive
	}{
		{"certificate embedded", issue(true), opts, nil},
		{"certificate given", issue(false), given, nil},
		{"NULL parameters", draftWith(func(f *draft) {}), opts, nil},
		// With the certificate given by the caller, Verify does not need the embedded one. Even its tag may change to
		// that of revocation lists.
		{"certificate embedded and given", issue(true), given, tlv(context0Constructed, certificate.Raw)},
		{"further certificate embedded", draftWith(func(f *draft) {
			f.certificates = tlv(context0Constructed, certificate.Raw, other.Raw)
		}), opts, other.Raw},
		{"unsigned attributes", draftWith(func(f *draft) { f.unsigned = tlv(context1Constructed, unsigned) }), opts, unsigned},
		{"revocation lists", draftWith(func(f *draft) { f.revocations = tlv(context1Constructed, revocations) }), opts, revocations},
	} {
		t.Run(test.name, func(t *testing.T) {
			must.Get(verifyToken(test.token, test.opts))(t)
			// Nothing covers the version, and versions 1 and 3 are read in the same way.
			version := find(t, test.token, slices.Concat(integer(3), set(digestAlgorithm(test.token)))).start + 2
			got := slices.DeleteFunc(survivors(test.token, test.opts), func(i int) bool { return i == version })
			if test.uncovered == nil {
				must.Hold(t, len(got) == 0, "changes survive at %v", got)
				return
			}
			must.Hold(t, len(got) != 0, "no change survives: the part is covered, and the package documentation is wrong")
			free := find(t, test.token, test.uncovered)
			for _, i := range got {
				must.Hold(t, i >= free.start && i < free.end, "a change survives at %d, outside %v", i, free)
			}
		})
	}
}

// digestAlgorithm returns the digest algorithm of SignedData.
func digestAlgorithm(token []byte) []byte {
	if bytes.Contains(token, set(seq(oid(oidSHA256), null()))) {
		return seq(oid(oidSHA256), null())
	}
	return seq(oid(oidSHA256))
}

func TestTruncatedAndExtended(t *testing.T) {
	token := newDraft(t).build(t)
	for n := range token {
		_, err := Parse(token[:n])
		must.Need(t, errors.Is(err, ErrMalformed), "%d bytes of %d: %v", n, len(token), err)
	}
	for i := range 256 {
		_, err := Parse(append(bytes.Clone(token), byte(i)))
		must.Need(t, errors.Is(err, ErrMalformed), "with %#x after it: %v", i, err)
	}
}

// TestDroppedAndDoubledStretches removes parts of a token, and puts parts in twice.
func TestDroppedAndDoubledStretches(t *testing.T) {
	token := newDraft(t).build(t)
	opts := Options{Roots: []*x509.Certificate{testRoot(t)}}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		i := random.IntN(len(token))
		j := min(i+1+random.IntN(64), len(token))
		for _, mutant := range [][]byte{
			slices.Concat(token[:i], token[j:]),
			slices.Concat(token[:j], token[i:]),
		} {
			_, err := verifyToken(mutant, opts)
			must.Need(t, err != nil, "survives a change at %d to %d", i, j)
		}
	}
}

func TestSizeCaps(t *testing.T) {
	f := newDraft(t)
	f.unsigned = tlv(context1Constructed, attribute("\x2a\x03", octets(make([]byte, 60<<10))))
	opts := Options{Roots: []*x509.Certificate{testRoot(t)}}
	must.Fail(t, nil, "below the cap")(verifyToken(f.build(t), opts))
	f.unsigned = tlv(context1Constructed, attribute("\x2a\x03", octets(make([]byte, 64<<10))))
	large := f.build(t)
	for name, err := range map[string]error{
		"token":            second(Parse(large)),
		"response":         second(ParseResponse(make([]byte, MaxResponseSize+1))),
		"token to wrap":    second(MarshalResponse(large)),
		"token in between": second(ParseResponse(seq(seq(integer(0)), tlv(0x30, make([]byte, MaxTokenSize))))),
	} {
		must.Hold(t, errors.Is(err, ErrMalformed), "%s above the cap: %v", name, err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestNesting gives the parsers deeply nested data, on which a recursive parser runs out of stack.
func TestNesting(t *testing.T) {
	indefinite, _ := hex.DecodeString("3080")
	var definite []byte
	for len(definite) < MaxRequestSize-8 {
		definite = tlv(0x30, definite)
	}
	for name, bomb := range map[string][]byte{
		"indefinite, small": bytes.Repeat(indefinite, MaxRequestSize/2),
		"indefinite":        bytes.Repeat(indefinite, MaxTokenSize/2),
		"indefinite, large": bytes.Repeat(indefinite, 5<<20),
		"definite":          definite,
	} {
		for _, err := range []error{second(Parse(bomb)), second(ParseResponse(bomb))} {
			must.Hold(t, errors.Is(err, ErrMalformed), "%s: %v", name, err)
		}
	}
}

// TestIndefiniteLengthsRefused: the same content in BER with indefinite lengths is refused.
func TestIndefiniteLengthsRefused(t *testing.T) {
	token := newDraft(t).build(t)
	header := len(token) - len(contentsOf(token))
	ber := slices.Concat([]byte{0x30, 0x80}, token[header:], []byte{0, 0})
	must.Fail(t, ErrMalformed)(Parse(ber))
	long := slices.Concat([]byte{0x30, 0x83, 0}, token[2:])
	must.Fail(t, ErrMalformed)(Parse(long))
}

func contentsOf(der []byte) []byte {
	d, s := decode(der, len(der), "element")
	return d.read(&s, 0x30, "element")
}

// seed adds the golden vectors of one kind as seeds. testdata/fuzz has further seeds.
func seed(f *testing.F, kind string) {
	for _, v := range loadVectors(f) {
		data := must.Get(os.ReadFile(v.path(kind)))(f)
		f.Add(data)
	}
	f.Add(bytes.Repeat([]byte{0x30, 0x80}, 100))
}

// FuzzParseResponse: a token that is taken out of a response and wrapped again is the same token.
func FuzzParseResponse(f *testing.F) {
	seed(f, ".tsr")
	f.Add(seq(seq(integer(2), seq(tlv(asn1.UTF8String, []byte("no"))), tlv(asn1.BIT_STRING, []byte{7, 0x80}))))
	f.Fuzz(func(t *testing.T, data []byte) {
		token, err := ParseResponse(data)
		if err != nil {
			return
		}
		again := must.Get(ParseResponse(must.Get(MarshalResponse(token))(t)))(t)
		must.Hold(t, bytes.Equal(again, token) && bytes.Contains(data, token), "%x became %x", token, again)
	})
}

// FuzzParse: a token that parses gives the same result when parsed again, and a token that verifies was signed by the
// mock.
func FuzzParse(f *testing.F) {
	seed(f, ".tst")
	mock := NewMock()
	opts := Options{Roots: mock.Certificates()[1:], Intermediates: mock.Certificates()[:1], UnsafeAllowMock: true}
	signed := map[string]bool{}
	for _, v := range loadVectors(f) {
		signed[v.Imprint+v.Serial] = true
	}
	compareCertificates := cmp.Comparer(func(a, b *x509.Certificate) bool { return a.Equal(b) })
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := Parse(data)
		if err != nil {
			return
		}
		info := u.UnverifiedInfo()
		again := must.Get(Parse(data))(t).UnverifiedInfo()
		must.Equal(t, cmp.Diff(info, again, compareInts, compareOIDs, compareCertificates), "")
		must.Hold(t, bytes.Contains(data, genTime(formatGenTime(info.GenTime))), "genTime %v does not occur in the token in this form", info.GenTime)
		token, err := u.Verify(info.Imprint, opts)
		must.Hold(t, err != nil || signed[hex.EncodeToString(info.Imprint[:])+token.Serial.Text(16)], "%x verifies", data)
	})
}
