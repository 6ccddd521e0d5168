package timestamp

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	stdasn1 "encoding/asn1"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

// The dates of the tests' certificates, and a time between them.
var (
	testNotBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	testNotAfter  = time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC)
	testTime      = time.Date(2026, 6, 1, 12, 30, 15, 123456789, time.UTC)
	testImprint   = sha256.Sum256([]byte("what was said"))
)

// testKey returns the same P-256 key for the same name in every run.
func testKey(name string) crypto.Signer {
	scalar := sha256.Sum256([]byte(name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	if err != nil {
		panic(err)
	}
	return deterministic{key}
}

// rsaKey makes one key for each size, because making one is slow.
func rsaKey(bits int) *rsa.PrivateKey {
	key, err := rsaKeys[bits]()
	if err != nil {
		panic(err)
	}
	return key
}

var rsaKeys = map[int]func() (*rsa.PrivateKey, error){
	1024: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 1024) }),
	2048: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }),
}

func testRoot(t testing.TB) *x509.Certificate {
	return must.Get(NewRoot(CertificateConfig{
		Key: testKey("root"), Serial: big.NewInt(1), NotBefore: testNotBefore, NotAfter: testNotAfter, Operator: "Test",
	}))(t)
}

func testCertificate(t testing.TB) *x509.Certificate {
	return must.Get(NewCertificate(CertificateConfig{
		Key: testKey("tsa"), Serial: big.NewInt(2), NotBefore: testNotBefore, NotAfter: testNotAfter, Operator: "Test",
	}, testRoot(t), testKey("root")))(t)
}

func testAuthority(t testing.TB) *Authority {
	return must.Get(NewAuthority(AuthorityConfig{
		Key: testKey("tsa"), Certificate: testCertificate(t), Chain: []*x509.Certificate{testRoot(t)},
		Now: func() time.Time { return testTime },
	}))(t)
}

// leaf is a template for certificates that NewCertificate would not make.
func leaf() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(77), Subject: pkix.Name{CommonName: "TSA of the tests"},
		NotBefore: testNotBefore, NotAfter: testNotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		SubjectKeyId:    []byte("the key's identifier"),
		ExtraExtensions: []pkix.Extension{usage(true, timeStamping)},
	}
}

var (
	timeStamping = stdasn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 8}
	codeSigning  = stdasn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 3}
)

func usage(critical bool, purposes ...stdasn1.ObjectIdentifier) pkix.Extension {
	value, err := stdasn1.Marshal(purposes)
	if err != nil {
		panic(err)
	}
	return pkix.Extension{Id: stdasn1.ObjectIdentifier{2, 5, 29, 37}, Critical: critical, Value: value}
}

// issueTest signs a template with a key and certificate of the tests.
func issueTest(t testing.TB, template *x509.Certificate, key crypto.PublicKey, parent *x509.Certificate, parentKey crypto.Signer) *x509.Certificate {
	t.Helper()
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, key, parentKey))(t)
	return must.Get(x509.ParseCertificate(der))(t)
}

// authorityCA is a root that may have certification authorities under it.
func authorityCA(t testing.TB, name string, parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, crypto.Signer) {
	t.Helper()
	key := testKey(name)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(5), Subject: pkix.Name{CommonName: name}, NotBefore: testNotBefore, NotAfter: testNotAfter,
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	return issueTest(t, template, key.Public(), parent, parentKey), key
}

// draft is a token under construction, in which a test can replace any element. Each []byte is a whole element; nil
// leaves it out.
type draft struct {
	// TSTInfo
	tstVersion, policy, imprint, serial, genTime, accuracy, ordering, nonce, tsa, extensions, tstTail []byte
	// SignedData
	contentType, sdVersion, digestAlgorithms, eContentType, certificates, revocations, sdTail, tail []byte
	// SignerInfo
	siVersion, sid, digestAlgorithm, signatureAlgorithm, unsigned, siTail []byte
	signerInfos                                                           int
	// signed attributes; messageDigest is made when digest is nil
	contentTypeAttribute, digestAttribute, certificateAttribute []byte
	moreAttributes                                              [][]byte
	unsorted                                                    bool

	hash    crypto.Hash
	key     crypto.Signer
	options crypto.SignerOpts // nil: hash
	spoil   func(signature []byte) []byte
}

func null() []byte { return []byte{5, 0} }

func issuerSerial(c *x509.Certificate, serial int64) []byte {
	return seq(seq(tlv(context4Constructed, c.RawIssuer)), integer(serial))
}

// ess writes SigningCertificate or SigningCertificateV2 with one identifier of these members.
func ess(kind string, members ...[]byte) []byte { return attribute(kind, seq(seq(seq(members...)))) }

// newDraft returns a correct token of the tests' authority, with a nonce of 42.
func newDraft(t testing.TB) *draft { return draftBy(testCertificate(t), testKey("tsa")) }

func draftBy(c *x509.Certificate, key crypto.Signer) *draft {
	return &draft{
		tstVersion: integer(1),
		policy:     oid("\x2a\x03\x04"),
		imprint:    imprintElement(seq(oid(oidSHA256)), testImprint[:]),
		serial:     integer(4711),
		genTime:    tlv(asn1.GeneralizedTime, []byte("20260601123015.123Z")),
		nonce:      integer(42),

		contentType:      oid(oidSignedData),
		sdVersion:        integer(3),
		digestAlgorithms: set(seq(oid(oidSHA256))),
		eContentType:     oid(oidTSTInfo),
		certificates:     tlv(context0Constructed, c.Raw),

		siVersion:          integer(1),
		sid:                seq(c.RawIssuer, bigInteger(c.SerialNumber)),
		digestAlgorithm:    seq(oid(oidSHA256)),
		signatureAlgorithm: seq(oid(oidECDSAWithSHA256)),
		signerInfos:        1,

		contentTypeAttribute: attribute(oidContentType, oid(oidTSTInfo)),
		certificateAttribute: ess(oidSigningCertificateV2, octets(sum(crypto.SHA256, c.Raw))),

		hash: crypto.SHA256,
		key:  key,
	}
}

// digests makes the draft use another digest for everything.
func (f *draft) digests(hash crypto.Hash, oidDigest, oidSignature string) {
	f.hash = hash
	f.digestAlgorithms = set(seq(oid(oidDigest)))
	f.digestAlgorithm = seq(oid(oidDigest))
	f.signatureAlgorithm = seq(oid(oidSignature))
}

func (f *draft) tstInfo() []byte {
	return seq(f.tstVersion, f.policy, f.imprint, f.serial, f.genTime, f.accuracy, f.ordering, f.nonce, f.tsa, f.extensions, f.tstTail)
}

func (f *draft) attributes(content []byte) [][]byte {
	if f.digestAttribute == nil {
		f.digestAttribute = attribute(oidMessageDigest, octets(sum(f.hash, content)))
	}
	attributes := slices.DeleteFunc(append([][]byte{f.contentTypeAttribute, f.digestAttribute, f.certificateAttribute}, f.moreAttributes...),
		func(a []byte) bool { return len(a) == 0 })
	slices.SortFunc(attributes, bytes.Compare)
	if f.unsorted {
		slices.Reverse(attributes)
	}
	return attributes
}

func (f *draft) build(t testing.TB) []byte {
	t.Helper()
	content := f.tstInfo()
	attributes := f.attributes(content)
	options := f.options
	if options == nil {
		options = f.hash
	}
	signature := must.Get(f.key.Sign(rand.Reader, sum(f.hash, set(attributes...)), options))(t)
	if f.spoil != nil {
		signature = f.spoil(signature)
	}
	signerInfo := seq(f.siVersion, f.sid, f.digestAlgorithm, tlv(context0Constructed, attributes...), f.signatureAlgorithm, octets(signature), f.unsigned, f.siTail)
	return append(seq(f.contentType, tlv(context0Constructed, seq(
		f.sdVersion, f.digestAlgorithms,
		seq(f.eContentType, tlv(context0Constructed, octets(content))),
		f.certificates, f.revocations,
		set(bytes.Repeat(signerInfo, f.signerInfos)),
		f.sdTail,
	))), f.tail...)
}

// verifyToken parses and verifies, as every reader of a token does.
func verifyToken(der []byte, opts Options) (*Token, error) {
	u, err := Parse(der)
	if err != nil {
		return nil, err
	}
	return u.Verify(testImprint, opts)
}
