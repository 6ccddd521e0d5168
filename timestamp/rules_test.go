package timestamp

import (
	"crypto"
	"crypto/sha1"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
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
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) != (sentinel == want) {
			t.Fatalf("error %v, want exactly %v", err, want)
		}
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
	if !errors.As(err, &syntax) {
		t.Fatalf("error %v is no SyntaxError", err)
	}
	if string(der[syntax.Offset:syntax.Offset+len(f.genTime)]) != string(f.genTime) {
		t.Errorf("%v: offset does not point at genTime", err)
	}
}
