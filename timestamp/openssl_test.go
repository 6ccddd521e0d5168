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
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/test/must"
)

// sslDir is a directory in which a test runs openssl.
type sslDir struct {
	t   *testing.T
	dir string
}

func newSSL(t *testing.T) sslDir {
	if _, err := exec.LookPath("openssl"); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "openssl is not installed, and CI must run this test")
		t.Skip("openssl is not installed; this test compares tokens with it")
	}
	return sslDir{t, t.TempDir()}
}

func (s sslDir) run(args ...string) (string, error) {
	cmd := exec.Command("openssl", args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s sslDir) must(args ...string) {
	s.t.Helper()
	if out, err := s.run(args...); err != nil {
		s.t.Fatalf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// mustFail requires that openssl fails with this reason.
func (s sslDir) mustFail(reason string, args ...string) {
	s.t.Helper()
	out, err := s.run(args...)
	if err == nil || !strings.Contains(out, reason) {
		s.t.Errorf("openssl %s: %v, want refusal with %q\n%s", strings.Join(args, " "), err, reason, out)
	}
}

func (s sslDir) write(name string, data []byte) {
	s.t.Helper()
	must.Do(s.t, os.WriteFile(filepath.Join(s.dir, name), data, 0o600))
}

func (s sslDir) read(name string) []byte {
	s.t.Helper()
	return must.Get(os.ReadFile(filepath.Join(s.dir, name)))(s.t)
}

func (s sslDir) certificates(name string, certificates ...*x509.Certificate) {
	s.t.Helper()
	var out bytes.Buffer
	for _, c := range certificates {
		must.Do(s.t, pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	s.write(name, out.Bytes())
}

func (s sslDir) key(name string, key crypto.Signer) {
	s.t.Helper()
	var private any = key
	if d, ok := key.(deterministic); ok {
		private = d.key
	}
	der := must.Get(x509.MarshalPKCS8PrivateKey(private))(s.t)
	s.write(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

const sslData = "what an agent said\n"

// TestOpenSSLVerifiesOurs has OpenSSL verify tokens made by this package.
func TestOpenSSLVerifiesOurs(t *testing.T) {
	authorities := map[string]*Authority{"built-in": testAuthority(t), "mock": NewMock()}
	for name, authority := range authorities {
		t.Run(name, func(t *testing.T) {
			s := newSSL(t)
			s.write("data", []byte(sslData))
			s.certificates("root.pem", authority.Certificates()[1])
			s.certificates("tsa.pem", authority.Certificates()[0])
			at := strconv.FormatInt(authority.now().Unix(), 10)
			verify := func(args ...string) []string {
				return append([]string{"ts", "-verify", "-data", "data", "-CAfile", "root.pem", "-attime", at, "-in"}, args...)
			}
			for _, certReq := range []bool{true, false} {
				request := &Request{Imprint: sha256.Sum256([]byte(sslData)), Nonce: big.NewInt(1 << 40), CertReq: certReq}
				query := must.Get(request.Marshal())(t)
				response := must.Get(MarshalResponse(must.Get(authority.Issue(request))(t)))(t)
				token := must.Get(ParseResponse(response))(t)
				s.write("query.tsq", query)
				s.write("response.tsr", response)
				s.write("token.tst", token)
				s.write("flipped.tst", flipped(token, len(token)-1))

				untrusted := []string{"-untrusted", "tsa.pem"}
				s.must(append(verify("response.tsr"), untrusted...)...)
				s.must(append(verify("token.tst", "-token_in"), untrusted...)...)
				s.must(append([]string{"ts", "-verify", "-queryfile", "query.tsq", "-CAfile", "root.pem", "-attime", at, "-in", "response.tsr"}, untrusted...)...)
				s.mustFail("signature failure", append(verify("flipped.tst", "-token_in"), untrusted...)...)
				if certReq {
					s.must(verify("response.tsr")...)
					s.must(verify("token.tst", "-token_in")...)
				} else {
					s.mustFail("signer certificate not found", verify("response.tsr")...)
				}
			}
			s.write("data", []byte("what it did not say\n"))
			s.mustFail("message imprint mismatch", verify("response.tsr", "-untrusted", "tsa.pem")...)
		})
	}
}

func flipped(der []byte, i int) []byte {
	mutant := bytes.Clone(der)
	mutant[i] ^= 1
	return mutant
}

// TestOpenSSLReplies verifies tokens that OpenSSL issued.
func TestOpenSSLReplies(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	middle, middleKey := authorityCA(t, "middle", root, rootKey)
	keys := map[string]crypto.Signer{"rsa": rsaKey(2048), "p256": testKey("leaf")}
	for _, test := range []struct {
		key, signerDigest, certificateID string
		embedded                         bool
	}{
		{"rsa", "sha256", "sha256", true},
		{"rsa", "sha512", "sha1", true},
		{"rsa", "sha256", "sha512", false},
		{"p256", "sha256", "sha256", true},
		{"p256", "sha384", "sha1", false},
	} {
		name := fmt.Sprintf("%s %s id %s embedded %v", test.key, test.signerDigest, test.certificateID, test.embedded)
		t.Run(name, func(t *testing.T) {
			s, key := newSSL(t), keys[test.key]
			c := issueTest(t, leaf(), key.Public(), middle, middleKey)
			s.certificates("tsa.pem", c)
			s.certificates("chain.pem", middle)
			s.key("tsa.key", key)
			s.write("serial", []byte("1000\n"))
			s.write("ts.cnf", fmt.Appendf(nil, sslConfig, test.signerDigest, test.certificateID))

			ask := func(policy string) (*Request, []byte) {
				oid := must.Get(x509.ParseOID(policy))(t)
				r := &Request{Imprint: testImprint, Nonce: big.NewInt(time.Now().UnixNano()), Policy: oid, CertReq: test.embedded}
				s.write("query.tsq", must.Get(r.Marshal())(t))
				s.must("ts", "-reply", "-config", "ts.cnf", "-queryfile", "query.tsq", "-inkey", "tsa.key", "-signer", "tsa.pem", "-chain", "chain.pem", "-out", "response.tsr")
				return r, s.read("response.tsr")
			}
			request, response := ask("1.2.3.4.1")
			token := must.Get(ParseResponse(response))(t)
			opts := Options{Roots: []*x509.Certificate{root}, Nonce: request.Nonce, Policies: []x509.OID{request.Policy}}
			if !test.embedded {
				_, err := verifyToken(token, opts)
				checkError(t, err, ErrNoCertificate)
				opts.Intermediates = []*x509.Certificate{middle, c}
			}
			got := must.Get(verifyToken(token, opts))(t)
			must.Hold(t, got.Accuracy == 1500*time.Millisecond+100*time.Microsecond && len(got.Chain) == 3 && time.Since(got.GenTime) <= time.Hour,
				"token %+v", got)
			checkOpenSSLMutants(t, token, opts)

			other, otherResponse := ask("1.2.3.4.1")
			otherToken := must.Get(ParseResponse(otherResponse))(t)
			_, err := verifyToken(otherToken, opts)
			checkError(t, err, ErrNonce)
			_, err = must.Get(Parse(otherToken))(t).Verify([32]byte{9}, Options{Roots: opts.Roots, Nonce: other.Nonce})
			checkError(t, err, ErrImprint)

			_, response = ask("1.2.3.4.99")
			var status *StatusError
			_, err = ParseResponse(response)
			must.Hold(t, errors.As(err, &status) && status.Failures[0] == "unacceptedPolicy", "unknown policy: %v", err)
		})
	}
}

// checkOpenSSLMutants flips every byte of a token of OpenSSL. Every byte is covered, because the token contains each
// needed certificate once.
func checkOpenSSLMutants(t *testing.T, token []byte, opts Options) {
	t.Helper()
	for i := range token {
		must.Refuse(t, "", "a change at", i, "of", len(token))(verifyToken(flipped(token, i), opts))
	}
}

const sslConfig = `
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_digest = %s
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
accuracy = secs:1, millisecs:500, microsecs:100
clock_precision_digits = 3
ordering = yes
tsa_name = yes
ess_cert_id_chain = yes
ess_cert_id_alg = %s
`

// TestOpenSSLOnTokenRules asks OpenSSL about each token that the rules accept. OpenSSL must accept it as a time stamp
// or, because its time stamps know only PKCS #7, as CMS. One token is left out: OpenSSL refuses any embedded certificate
// that it cannot read. The rules refuse it only if it is the signer's.
func TestOpenSSLOnTokenRules(t *testing.T) {
	s := newSSL(t)
	s.certificates("root.pem", testRoot(t))
	with := []string{"-in", "token.tst", "-CAfile", "root.pem", "-attime", strconv.FormatInt(testTime.Unix(), 10)}
	asTimeStamp := append([]string{"ts", "-verify", "-sha256", "-digest", hex.EncodeToString(testImprint[:]), "-token_in"}, with...)
	asCMS := append([]string{"cms", "-verify", "-inform", "DER", "-purpose", "timestampsign", "-out", "content"}, with...)
	for _, rule := range tokenRules(t) {
		if rule.want != nil || rule.name == "embedded certificate unreadable, and not the signer's" {
			continue
		}
		f := newDraft(t)
		rule.change(f)
		s.write("token.tst", f.build(t))
		if _, err := s.run(asTimeStamp...); err != nil {
			t.Run(rule.name, func(t *testing.T) { sslDir{t, s.dir}.must(asCMS...) })
		}
	}
}

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
