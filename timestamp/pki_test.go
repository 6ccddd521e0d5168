package timestamp

import (
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
	"sync"
	"testing"
	"time"

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
