package timestamp

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/test/must"
)

func TestIssue(t *testing.T) {
	authority, root := testAuthority(t), testRoot(t)
	request := &Request{Imprint: testImprint, Nonce: big.NewInt(42), CertReq: true}
	token := must.Get(authority.Issue(request))(t)
	got := must.Get(verifyToken(token, Options{
		Roots: []*x509.Certificate{root}, Nonce: request.Nonce, Policies: []x509.OID{BuiltInPolicy()},
	}))(t)
	want := testTime.Truncate(time.Millisecond)
	must.Hold(t, got.GenTime.Equal(want) && got.GenTime.Location() == time.UTC, "genTime %v, want %v", got.GenTime, want)
	must.Hold(t, got.Accuracy == 0 && got.Nonce.Cmp(request.Nonce) == 0 && got.Policy.Equal(BuiltInPolicy()), "token %+v", got)
	must.Hold(t, got.Signer.Equal(authority.Certificates()[0]) && got.Chain[len(got.Chain)-1].Equal(root),
		"the token's signer or chain is not the authority's")
	must.Hold(t, got.Serial.Sign() > 0 && got.Serial.BitLen() <= 8*serialBytes && got.Serial.BitLen() >= 64, "serial %x", got.Serial)
	again := must.Get(verifyToken(must.Get(authority.Issue(request))(t), Options{Roots: []*x509.Certificate{root}}))(t)
	must.Hold(t, again.Serial.Cmp(got.Serial) != 0, "two tokens have the same serial number")
}

func TestCertificateOnlyOnRequest(t *testing.T) {
	authority := testAuthority(t)
	for _, certReq := range []bool{true, false} {
		token := must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: certReq}))(t)
		info := must.Get(Parse(token))(t).UnverifiedInfo()
		must.Hold(t, len(info.Certificates) == 1 == certReq, "certReq %v: %d certificates", certReq, len(info.Certificates))
		must.Hold(t, info.Imprint == testImprint, "info %+v", info)
		t.Logf("certReq %v: %d bytes", certReq, len(token))
	}
}

func TestGenTimeIsWrittenInMilliseconds(t *testing.T) {
	for nanoseconds, want := range map[int]string{
		0:         "20260601123015Z",
		999_999:   "20260601123015Z", // fractions are cut, not rounded
		1_000_000: "20260601123015.001Z",
		120000000: "20260601123015.12Z", // no trailing zero
		999999999: "20260601123015.999Z",
	} {
		authority := testAuthority(t)
		zone := time.FixedZone("elsewhere", 3600)
		authority.now = func() time.Time { return time.Date(2026, 6, 1, 13, 30, 15, nanoseconds, zone) }
		token := must.Get(authority.Issue(&Request{}))(t)
		must.Hold(t, bytes.Contains(token, genTime(want)), "%d ns is not written as %s", nanoseconds, want)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (failing) Public() crypto.PublicKey { return testKey("tsa").Public() }
func (failing) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, io.ErrClosedPipe
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestIssueRefuses(t *testing.T) {
	request := &Request{Imprint: testImprint}
	for _, test := range []struct {
		name   string
		change func(c *AuthorityConfig)
		want   error // nil: any
	}{
		{"before its certificate", func(c *AuthorityConfig) { c.Now = func() time.Time { return testNotBefore.Add(-1) } }, ErrValidity},
		{"after its certificate", func(c *AuthorityConfig) { c.Now = func() time.Time { return testNotAfter.Add(time.Second) } }, ErrValidity},
		{"without randomness", func(c *AuthorityConfig) { c.Rand = failing{} }, io.ErrUnexpectedEOF},
		{"with zeros for randomness", func(c *AuthorityConfig) { c.Rand = zeros{} }, nil},
		{"without a signature", func(c *AuthorityConfig) { c.Key = failing{} }, io.ErrClosedPipe},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := AuthorityConfig{Key: testKey("tsa"), Certificate: testCertificate(t), Now: func() time.Time { return testTime }}
			test.change(&config)
			authority := must.Get(NewAuthority(config))(t)
			_, err := authority.Issue(request)
			must.Hold(t, err != nil && (test.want == nil || errors.Is(err, test.want)), "error %v, want %v", err, test.want)
		})
	}
	authority := testAuthority(t)
	must.Fail(t, ErrPolicy)(authority.Issue(&Request{Policy: MockPolicy()}))
	must.Fail(t, nil, "its own policy")(authority.Issue(&Request{Policy: BuiltInPolicy()}))
	must.Fail(t, ErrMalformed)(authority.Issue(&Request{Nonce: new(big.Int).Lsh(big.NewInt(1), 8*MaxTokenSize)}))
}

func TestNewAuthorityRefuses(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	key := testKey("leaf")
	made := func(key crypto.Signer, change func(c *x509.Certificate)) *x509.Certificate {
		template := leaf()
		change(template)
		return issueTest(t, template, key.Public(), root, rootKey)
	}
	good := made(key, func(*x509.Certificate) {})
	p384 := scalarKey(t, elliptic.P384(), 48)
	must.Get(NewAuthority(AuthorityConfig{Key: key, Certificate: good, Chain: []*x509.Certificate{root}}))(t)
	for name, config := range map[string]AuthorityConfig{
		"no key":             {Certificate: good},
		"no certificate":     {Key: key},
		"another key":        {Key: testKey("other"), Certificate: good},
		"P-384":              {Key: p384, Certificate: made(p384, func(*x509.Certificate) {})},
		"RSA":                {Key: rsaKey(2048), Certificate: made(rsaKey(2048), func(*x509.Certificate) {})},
		"no usage":           {Key: key, Certificate: made(key, func(c *x509.Certificate) { c.ExtraExtensions = nil })},
		"usage not critical": {Key: key, Certificate: made(key, func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = false })},
		"extended key usage with a second purpose": {Key: key, Certificate: made(key, func(c *x509.Certificate) { c.ExtraExtensions[0] = usage(true, timeStamping, codeSigning) })},
		"chain of another CA":                      {Key: key, Certificate: good, Chain: []*x509.Certificate{testRoot(t)}},
	} {
		must.Refuse(t, "", name)(NewAuthority(config))
	}
}

func TestBuiltInCertificates(t *testing.T) {
	root, certificate := testRoot(t), testCertificate(t)
	must.Hold(t, bytes.Equal(certificate.Raw, testCertificate(t).Raw), "the same inputs gave other bytes")
	for _, c := range []*x509.Certificate{root, certificate} {
		name := c.Subject.CommonName
		must.Hold(t, strings.Contains(name, "own clock") && len(name) <= 64, "name %q", name) // RFC 5280, ub-common-name
	}
	err := certificate.CheckSignatureFrom(root)
	must.Hold(t, err == nil && !certificate.IsCA && root.IsCA, "the root did not issue the certificate: %v", err)
	good := CertificateConfig{Key: testKey("x"), Serial: big.NewInt(9), NotBefore: testNotBefore, NotAfter: testNotAfter}
	for name, change := range map[string]func(c *CertificateConfig){
		"no key":                         func(c *CertificateConfig) { c.Key = nil },
		"RSA":                            func(c *CertificateConfig) { c.Key = rsaKey(2048) },
		"no serial":                      func(c *CertificateConfig) { c.Serial = nil },
		"serial zero":                    func(c *CertificateConfig) { c.Serial = new(big.Int) },
		"serial too long":                func(c *CertificateConfig) { c.Serial = new(big.Int).Lsh(big.NewInt(1), 160) },
		"no dates":                       func(c *CertificateConfig) { c.NotBefore, c.NotAfter = time.Time{}, time.Time{} },
		"dates swapped":                  func(c *CertificateConfig) { c.NotBefore, c.NotAfter = c.NotAfter, c.NotBefore },
		"valid for longer than its root": func(c *CertificateConfig) { c.NotAfter = testNotAfter.Add(time.Second) },
		"valid from before its root":     func(c *CertificateConfig) { c.NotBefore = testNotBefore.Add(-time.Second) },
	} {
		config := good
		change(&config)
		must.Refuse(t, "", name)(NewCertificate(config, root, testKey("root")))
		_, err := NewRoot(config)
		must.Hold(t, err != nil || strings.HasSuffix(name, "its root"), "%s: accepted as root", name)
	}
	for name, err := range map[string]error{
		"no root":     second(NewCertificate(good, nil, nil)),
		"another key": second(NewCertificate(good, root, testKey("tsa"))),
		"not a root":  second(NewCertificate(good, certificate, testKey("tsa"))),
	} {
		must.Hold(t, err != nil, "%s: accepted", name)
	}
}

// TestAuthorityConcurrently is for the race detector: many callers share one Rand that is not safe for concurrent use.
// The authority's lock must protect it.
func TestAuthorityConcurrently(t *testing.T) {
	var counter byte
	authority := must.Get(NewAuthority(AuthorityConfig{
		Key: testKey("tsa"), Certificate: testCertificate(t), Now: func() time.Time { return testTime },
		Rand: readerFunc(func(b []byte) (int, error) {
			counter++
			b[0] = counter
			return len(b), nil
		}),
	}))(t)
	opts := Options{Roots: []*x509.Certificate{testRoot(t)}}
	request := &Request{Imprint: testImprint, CertReq: true}
	const callers, each = 8, 10
	serials := make(chan string, callers*each)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				token, err := authority.Issue(request)
				if err != nil {
					t.Error(err)
					return
				}
				verified, err := verifyToken(token, opts)
				if err != nil {
					t.Error(err)
					return
				}
				serials <- verified.Serial.String()
			}
		})
	}
	wg.Wait()
	close(serials)
	seen := map[string]bool{}
	for serial := range serials {
		seen[serial] = true
	}
	must.Equal(t, len(seen), callers*each)
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

var (
	compareInts = cmp.Comparer(func(a, b *big.Int) bool { return a == b || a != nil && b != nil && a.Cmp(b) == 0 })
	compareOIDs = cmp.Comparer(func(a, b x509.OID) bool { return a.Equal(b) })
)

func TestRequestIsBounded(t *testing.T) {
	must.Fail(t, ErrMalformed)((&Request{Nonce: new(big.Int).Lsh(big.NewInt(1), MaxRequestSize*8)}).Marshal())
}

func TestParseResponse(t *testing.T) {
	token := newDraft(t).build(t)
	response := must.Get(MarshalResponse(token))(t)
	got := must.Get(ParseResponse(response))(t)
	must.Hold(t, bytes.Equal(got, token), "token differs")
	for i := range response {
		_, err := ParseResponse(response[:i])
		must.Need(t, errors.Is(err, ErrMalformed), "cut at %d: %v", i, err)
	}
	text := func(s string) []byte { return seq(tlv(asn1.UTF8String, []byte(s))) }
	bits := func(b ...byte) []byte { return tlv(asn1.BIT_STRING, b) }

	for _, test := range []struct {
		name     string
		response []byte
		want     error // nil: granted, a StatusError: refused, ErrMalformed
	}{
		{"granted with modifications", seq(seq(integer(1)), token), nil},
		{"granted with text", seq(seq(integer(0), text("welcome")), token), nil},
		{"granted without a token", seq(seq(integer(0))), ErrMalformed},
		{"granted with a failure", seq(seq(integer(0), bits(7, 0x80)), token), ErrMalformed},
		{"rejected with a token", seq(seq(integer(2)), token), ErrMalformed},
		{"rejected", seq(seq(integer(2), text("no"), bits(7, 0x80))), &StatusError{2, []string{"badAlg"}, []string{"no"}}},
		{"rejected for reasons unknown", seq(seq(integer(2), bits(0, 0x20, 0x01))), &StatusError{2, []string{"badRequest", "unacceptedPolicy"}, nil}},
		{"rejected for a reason without a name", seq(seq(integer(2), bits(6, 0x40))), &StatusError{2, []string{"bit 1"}, nil}},
		{"waiting", seq(seq(integer(3))), &StatusError{3, nil, nil}},
		{"unknown status", seq(seq(integer(77))), &StatusError{77, nil, nil}},
		{"status beyond 32 bits", seq(seq(integer(1 << 40))), ErrMalformed},
		{"text empty", seq(seq(integer(2), seq())), ErrMalformed},
		{"text not UTF-8", seq(seq(integer(2), text("\xff"))), ErrMalformed},
		{"failure with trailing zeros", seq(seq(integer(2), bits(0, 0x80))), ErrMalformed},
		{"failure with set padding", seq(seq(integer(2), bits(7, 0x81))), ErrMalformed},
		{"trailing data", append(bytes.Clone(response), 0), ErrMalformed},
		{"trailing member", seq(seq(integer(0)), token, null()), ErrMalformed},
		{"token of another kind", seq(seq(integer(0)), octets(nil)), ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ParseResponse(test.response)
			var want *StatusError
			if !errors.As(test.want, &want) {
				checkError(t, err, test.want)
				return
			}
			var got *StatusError
			must.Need(t, errors.As(err, &got), "error %v is no StatusError", err)
			must.Equal(t, cmp.Diff(want, got), "")
		})
	}
	must.Equal(t, (&StatusError{2, []string{"badAlg"}, []string{"no"}}).Error(), `authority refused: status 2 (rejection): badAlg: "no"`)
}

// TestIdentifiers compares the object identifiers with their dotted form.
func TestIdentifiers(t *testing.T) {
	for contents, dotted := range map[string]string{
		oidSignedData: "1.2.840.113549.1.7.2", oidTSTInfo: "1.2.840.113549.1.9.16.1.4",
		oidContentType: "1.2.840.113549.1.9.3", oidMessageDigest: "1.2.840.113549.1.9.4",
		oidSigningCertificate: "1.2.840.113549.1.9.16.2.12", oidSigningCertificateV2: "1.2.840.113549.1.9.16.2.47",
		oidSHA256: "2.16.840.1.101.3.4.2.1", oidSHA384: "2.16.840.1.101.3.4.2.2", oidSHA512: "2.16.840.1.101.3.4.2.3",
		oidRSA: "1.2.840.113549.1.1.1", oidMGF1: "1.2.840.113549.1.1.8", oidRSAPSS: "1.2.840.113549.1.1.10",
		oidSHA256WithRSA: "1.2.840.113549.1.1.11", oidSHA384WithRSA: "1.2.840.113549.1.1.12", oidSHA512WithRSA: "1.2.840.113549.1.1.13",
		oidECDSAWithSHA256: "1.2.840.10045.4.3.2", oidECDSAWithSHA384: "1.2.840.10045.4.3.3", oidECDSAWithSHA512: "1.2.840.10045.4.3.4",
	} {
		want := must.Get(x509.ParseOID(dotted))(t)
		got := must.Get(want.MarshalBinary())(t)
		must.Hold(t, string(got) == contents, "%s is %x, not %x", dotted, got, contents)
	}
}

var update = flag.Bool("update", false, "write the golden vectors of the mock authority anew")

const vectorsFile = "testdata/vectors.json"

// vector is a request and the mock's answer. The files are beside the manifest.
type vector struct {
	Name     string `json:"name"`
	Data     string `json:"data"`       // what is stamped, as text
	Nonce    string `json:"nonce_hex"`  // its magnitude; empty for no nonce
	Negative bool   `json:"negative"`   // of the nonce
	Policy   string `json:"policy"`     // requested; empty for none
	CertReq  bool   `json:"cert_req"`   //
	Imprint  string `json:"imprint"`    // SHA-256 of data
	Serial   string `json:"serial_hex"` // of the token
	GenTime  string `json:"gen_time"`
	Request  string `json:"request_sha256"` // of NAME.tsq
	Token    string `json:"token_sha256"`   // of NAME.tst
	Response string `json:"response_sha256"`
}

func (v *vector) path(kind string) string { return filepath.Join("testdata", v.Name+kind) }

func (v *vector) request(t testing.TB) *Request {
	r := &Request{Imprint: sha256.Sum256([]byte(v.Data)), CertReq: v.CertReq}
	if v.Nonce != "" {
		r.Nonce = new(big.Int).SetBytes(must.Get(hex.DecodeString(v.Nonce))(t))
		if v.Negative {
			r.Nonce.Neg(r.Nonce)
		}
	}
	if v.Policy != "" {
		r.Policy = must.Get(x509.ParseOID(v.Policy))(t)
	}
	return r
}

// loadVectors fails if there are no vectors: otherwise a test would pass without checking anything.
func loadVectors(t testing.TB) []*vector {
	t.Helper()
	data := must.Get(os.ReadFile(vectorsFile))(t)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var vectors []*vector
	must.Do(t, d.Decode(&vectors))
	must.Need(t, len(vectors) != 0, "%s holds no vectors", vectorsFile)
	return vectors
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestGoldenVectors(t *testing.T) {
	mock := NewMock()
	vectors := loadVectors(t)
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			r := v.request(t)
			files := map[string][]byte{".tsq": must.Get(r.Marshal())(t), ".tst": must.Get(mock.Issue(r))(t)}
			files[".tsr"] = must.Get(MarshalResponse(files[".tst"]))(t)
			token := must.Get(must.Get(Parse(files[".tst"]))(t).Verify(r.Imprint, Options{
				Roots: mock.Certificates()[1:], Intermediates: mock.Certificates()[:1], Nonce: r.Nonce, UnsafeAllowMock: true,
			}))(t)
			want := *v
			want.Imprint, want.Serial, want.GenTime = hex.EncodeToString(r.Imprint[:]), token.Serial.Text(16), token.GenTime.Format(time.RFC3339Nano)
			want.Request, want.Token, want.Response = digest(files[".tsq"]), digest(files[".tst"]), digest(files[".tsr"])
			if *update {
				*v = want
			}
			must.Equal(t, cmp.Diff(*v, want), "", "manifest differs (-committed +made)")
			for kind, made := range files {
				if *update {
					must.Do(t, os.WriteFile(v.path(kind), made, 0o644))
				}
				if committed := must.Get(os.ReadFile(v.path(kind)))(t); !bytes.Equal(committed, made) {
					t.Errorf("%s differs from what the mock makes", v.path(kind))
				}
			}
			checkVectorByHand(t, v, r)
		})
	}
	if *update && !t.Failed() {
		data := must.Get(json.MarshalIndent(vectors, "", "\t"))(t)
		must.Do(t, os.WriteFile(vectorsFile, append(data, '\n'), 0o644))
	}
}

// checkVectorByHand computes the documented values again, without the mock's code.
func checkVectorByHand(t *testing.T, v *vector, r *Request) {
	t.Helper()
	imprint := sha256.Sum256([]byte(v.Data))
	input := imprint[:]
	if r.Nonce != nil {
		input = append(input, new(big.Int).Abs(r.Nonce).Bytes()...)
	}
	sum := sha256.Sum256(input)
	want := new(big.Int).SetUint64(binary.BigEndian.Uint64(sum[:8]))
	must.Hold(t, v.Serial == want.Text(16), "serial %s, want %x", v.Serial, want)
	must.Equal(t, v.GenTime, "2026-01-01T00:00:00Z")
}

func TestMockIsRefused(t *testing.T) {
	mock := NewMock()
	root := mock.Certificates()[1]
	token := must.Get(mock.Issue(&Request{Imprint: testImprint, CertReq: true}))(t)
	otherRoot, otherKey := authorityCA(t, "ca", nil, nil)
	rootKey := mockKey(mockRootKeyWORTHLESS)
	key := mockKey(mockKeyWORTHLESS)
	ownLeaf := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	ownCertificate := issueTest(t, leaf(), key.Public(), otherRoot, otherKey)

	for _, test := range []struct {
		name   string
		token  []byte
		opts   Options
		want   error // without UnsafeAllowMock
		unsafe error // with it
	}{
		{"its root listed", token, Options{Roots: []*x509.Certificate{root}}, ErrMock, nil},
		{"its certificate listed", token, Options{Roots: mock.Certificates()[:1]}, ErrMock, nil},
		{"not listed", token, Options{Roots: []*x509.Certificate{testRoot(t)}}, ErrMock, ErrUntrusted},
		{"another authority under its root", draftBy(ownLeaf, testKey("leaf")).build(t), Options{Roots: []*x509.Certificate{root}}, ErrMock, nil},
		{"its key under another root", draftBy(ownCertificate, key).build(t), Options{Roots: []*x509.Certificate{otherRoot}}, ErrMock, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := verifyToken(test.token, test.opts)
			checkError(t, err, test.want)
			test.opts.UnsafeAllowMock = true
			_, err = verifyToken(test.token, test.opts)
			checkError(t, err, test.unsafe)
		})
	}
}

func TestMockConstants(t *testing.T) {
	certificates := NewMock().Certificates()
	must.Need(t, len(certificates) == 2, "%d certificates", len(certificates))
	for i, want := range []struct{ scalar, keyDigest string }{
		{mockKeyWORTHLESS, mockKeyDigest}, {mockRootKeyWORTHLESS, mockRootKeyDigest},
	} {
		raw := must.Get(hex.DecodeString(want.scalar))(t)
		key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), raw))(t)
		must.Hold(t, key.PublicKey.Equal(certificates[i].PublicKey), "certificate %d does not have its public key", i)
		must.Hold(t, digest(certificates[i].RawSubjectPublicKeyInfo) == want.keyDigest, "verifiers would not recognise certificate %d as the mock's", i)
	}
}

func TestSameRequestSameBytes(t *testing.T) {
	r := &Request{Imprint: testImprint, Nonce: big.NewInt(7), CertReq: true}
	first := must.Get(NewMock().Issue(r))(t)
	must.Hold(t, bytes.Equal(first, must.Get(NewMock().Issue(r))(t)), "the same request gave other bytes")
	r.Nonce = big.NewInt(8)
	must.Hold(t, !bytes.Equal(first, must.Get(NewMock().Issue(r))(t)), "another nonce gave the same bytes")
}

// publicTokens are tokens of public authorities. Their roots are identified by the hashes that the authorities publish,
// not by what the tokens contain.
var publicTokens = []struct {
	file, imprint string
	genTime       string
	policy        string
	anchor        string // SHA-256 of the certificate that the path must end in
	embedded      int    // certificates in the token
}{
	{"globalsign.token", "8326f4709d401dfabfa78302fb1cdea0f18048a44040c212bd8e28da6bc651c7", "2021-09-17T14:09:10Z", "1.3.6.1.4.1.4146.2.3",
		"cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b", 4},
	{"globalsign-without-certificate.token", "8326f4709d401dfabfa78302fb1cdea0f18048a44040c212bd8e28da6bc651c7", "2021-09-17T14:09:10Z", "1.3.6.1.4.1.4146.2.3",
		"cbb522d7b7f127ad6a0113865bdf1cd4102e7d0759af635a7cf4720dc963c53b", 0},
	{"microsoft.token", "24b787b4819f46f90027e72c1e944e59ebbb4d4c758e056aa309f0527475a4a2", "2024-06-21T07:12:05.884Z", "1.3.6.1.4.1.601.10.3.1",
		"36e731cfa9bfd69dafb643809f6dec500902f7197daeaad86ea0159a2268a2b8", 2}, // the hash of the CA's certificate: the token does not contain its root
}

// TestPublicAuthorities verifies tokens of public authorities: some contain their certificates, some do not, and of some
// the root is missing. A token whose signer's certificate is missing cannot be checked, but is not refuted.
func TestPublicAuthorities(t *testing.T) {
	pool := publicCertificates(t)
	for _, test := range publicTokens {
		t.Run(test.file, func(t *testing.T) {
			u := must.Get(Parse(publicFile(t, test.file)))(t)
			info := u.UnverifiedInfo()
			must.Equal(t, len(info.Certificates), test.embedded)
			got := hex.EncodeToString(info.Imprint[:])
			must.Need(t, got == test.imprint, "imprint %s", got)
			anchor := pool[test.anchor]
			must.Need(t, anchor != nil, "no token contains the anchor")
			var others []*x509.Certificate
			for _, c := range pool {
				others = append(others, c)
			}
			token, err := u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}, Intermediates: others})
			must.Do(t, err)
			got = token.GenTime.Format(time.RFC3339Nano)
			must.Hold(t, got == test.genTime && token.Policy.String() == test.policy, "genTime %s, policy %s", got, token.Policy)
			must.Fail(t, ErrImprint)(u.Verify(sha256.Sum256(nil), Options{Roots: []*x509.Certificate{anchor}, Intermediates: others}))
			_, err = u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}})
			must.Hold(t, (err == nil) == (test.embedded > 0) && (err == nil || errors.Is(err, ErrNoCertificate)),
				"with the embedded certificates alone: %v", err)
		})
	}
}

// publicCertificates returns the certificates of all tokens, by their SHA-256.
func publicCertificates(t *testing.T) map[string]*x509.Certificate {
	t.Helper()
	pool := map[string]*x509.Certificate{}
	for _, test := range publicTokens {
		u := must.Get(Parse(publicFile(t, test.file)))(t)
		for _, c := range u.UnverifiedInfo().Certificates {
			hash := sha256.Sum256(c.Raw)
			pool[hex.EncodeToString(hash[:])] = c
		}
	}
	return pool
}

// TestPublicAuthorityWithAnotherHash reads a response whose token stamps a SHA-512 imprint and names its signer by
// SHA-1. The token verifies over that imprint, and is refused as a token over a record.
func TestPublicAuthorityWithAnotherHash(t *testing.T) {
	token := must.Get(ParseResponse(publicFile(t, "freetsa.response")))(t)
	u := must.Get(Parse(token))(t)
	info := u.UnverifiedInfo()
	got := info.GenTime.Format(time.RFC3339)
	must.Hold(t, got == "2024-04-09T05:29:39Z" && len(info.Certificates) == 2, "genTime %s, %d certificates", got, len(info.Certificates))
	root := info.Certificates[1]
	hash := sha256.Sum256(root.Raw)
	must.Need(t, bytes.HasPrefix(hash[:], []byte{0xa6, 0x37, 0x9e, 0x7c}), "the root is %x", hash)
	must.Fail(t, ErrImprint)(u.Verify(sha256.Sum256([]byte("test")), Options{Roots: []*x509.Certificate{root}}))
}

func publicFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", "public", name)))(t)
}
