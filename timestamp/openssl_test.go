package timestamp

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jurat/internal/must"
)

// sslDir is a directory in which a test runs openssl.
type sslDir struct {
	t   *testing.T
	dir string
}

func newSSL(t *testing.T) sslDir {
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("openssl is not installed, and CI must run this test")
		}
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
			if got.Accuracy != 1500*time.Millisecond+100*time.Microsecond || len(got.Chain) != 3 || time.Since(got.GenTime) > time.Hour {
				t.Errorf("token %+v", got)
			}
			checkOpenSSLMutants(t, token, opts)

			other, otherResponse := ask("1.2.3.4.1")
			otherToken := must.Get(ParseResponse(otherResponse))(t)
			_, err := verifyToken(otherToken, opts)
			checkError(t, err, ErrNonce)
			_, err = must.Get(Parse(otherToken))(t).Verify([32]byte{9}, Options{Roots: opts.Roots, Nonce: other.Nonce})
			checkError(t, err, ErrImprint)

			_, response = ask("1.2.3.4.99")
			var status *StatusError
			if _, err := ParseResponse(response); !errors.As(err, &status) || status.Failures[0] != "unacceptedPolicy" {
				t.Errorf("unknown policy: %v", err)
			}
		})
	}
}

// checkOpenSSLMutants flips every byte of a token of OpenSSL. Every byte is covered, because the token contains each
// needed certificate once.
func checkOpenSSLMutants(t *testing.T, token []byte, opts Options) {
	t.Helper()
	for i := range token {
		if _, err := verifyToken(flipped(token, i), opts); err == nil {
			t.Errorf("a change at %d of %d survives", i, len(token))
		}
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
