package timestamp

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/must"
)

func TestIssue(t *testing.T) {
	authority, root := testAuthority(t), testRoot(t)
	request := &Request{Imprint: testImprint, Nonce: big.NewInt(42), CertReq: true}
	token := must.Get(authority.Issue(request))(t)
	got := must.Get(verifyToken(token, Options{
		Roots: []*x509.Certificate{root}, Nonce: request.Nonce, Policies: []x509.OID{BuiltInPolicy()},
	}))(t)
	if want := testTime.Truncate(time.Millisecond); !got.GenTime.Equal(want) || got.GenTime.Location() != time.UTC {
		t.Errorf("genTime %v, want %v", got.GenTime, want)
	}
	if got.Accuracy != 0 || got.Nonce.Cmp(request.Nonce) != 0 || !got.Policy.Equal(BuiltInPolicy()) {
		t.Errorf("token %+v", got)
	}
	if !got.Signer.Equal(authority.Certificates()[0]) || !got.Chain[len(got.Chain)-1].Equal(root) {
		t.Error("the token's signer or chain is not the authority's")
	}
	if got.Serial.Sign() <= 0 || got.Serial.BitLen() > 8*serialBytes || got.Serial.BitLen() < 64 {
		t.Errorf("serial %x", got.Serial)
	}
	again := must.Get(verifyToken(must.Get(authority.Issue(request))(t), Options{Roots: []*x509.Certificate{root}}))(t)
	if again.Serial.Cmp(got.Serial) == 0 {
		t.Error("two tokens have the same serial number")
	}
}

func TestCertificateOnlyOnRequest(t *testing.T) {
	authority := testAuthority(t)
	for _, certReq := range []bool{true, false} {
		token := must.Get(authority.Issue(&Request{Imprint: testImprint, CertReq: certReq}))(t)
		info := must.Get(Parse(token))(t).UnverifiedInfo()
		if len(info.Certificates) == 1 != certReq {
			t.Errorf("certReq %v: %d certificates", certReq, len(info.Certificates))
		}
		if info.Imprint != testImprint {
			t.Errorf("info %+v", info)
		}
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
		if token := must.Get(authority.Issue(&Request{}))(t); !bytes.Contains(token, genTime(want)) {
			t.Errorf("%d ns is not written as %s", nanoseconds, want)
		}
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
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
	authority := testAuthority(t)
	must.Fail(t, ErrPolicy)(authority.Issue(&Request{Policy: MockPolicy()}))
	if _, err := authority.Issue(&Request{Policy: BuiltInPolicy()}); err != nil {
		t.Errorf("its own policy: %v", err)
	}
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
	if _, err := NewAuthority(AuthorityConfig{Key: key, Certificate: good, Chain: []*x509.Certificate{root}}); err != nil {
		t.Fatal(err)
	}
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
		if _, err := NewAuthority(config); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestBuiltInCertificates(t *testing.T) {
	root, certificate := testRoot(t), testCertificate(t)
	if !bytes.Equal(certificate.Raw, testCertificate(t).Raw) {
		t.Error("the same inputs gave other bytes")
	}
	for _, c := range []*x509.Certificate{root, certificate} {
		name := c.Subject.CommonName
		if !strings.Contains(name, "own clock") || len(name) > 64 { // RFC 5280, ub-common-name
			t.Errorf("name %q", name)
		}
	}
	if err := certificate.CheckSignatureFrom(root); err != nil || certificate.IsCA || !root.IsCA {
		t.Errorf("the root did not issue the certificate: %v", err)
	}
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
		if _, err := NewCertificate(config, root, testKey("root")); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := NewRoot(config); err == nil && !strings.HasSuffix(name, "its root") {
			t.Errorf("%s: accepted as root", name)
		}
	}
	for name, err := range map[string]error{
		"no root":     second(NewCertificate(good, nil, nil)),
		"another key": second(NewCertificate(good, root, testKey("tsa"))),
		"not a root":  second(NewCertificate(good, certificate, testKey("tsa"))),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
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
	if got := must.Get(ParseResponse(response))(t); !bytes.Equal(got, token) {
		t.Error("token differs")
	}
	for i := range response {
		if _, err := ParseResponse(response[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("cut at %d: %v", i, err)
		}
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
			if !errors.As(err, &got) {
				t.Fatalf("error %v is no StatusError", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := (&StatusError{2, []string{"badAlg"}, []string{"no"}}).Error(); err != `authority refused: status 2 (rejection): badAlg: "no"` {
		t.Error(err)
	}
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
		if got := must.Get(want.MarshalBinary())(t); string(got) != contents {
			t.Errorf("%s is %x, not %x", dotted, got, contents)
		}
	}
}
