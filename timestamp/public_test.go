package timestamp

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/internal/must"
)

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
			if len(info.Certificates) != test.embedded {
				t.Errorf("%d certificates are embedded, want %d", len(info.Certificates), test.embedded)
			}
			if got := hex.EncodeToString(info.Imprint[:]); got != test.imprint {
				t.Fatalf("imprint %s", got)
			}
			anchor := pool[test.anchor]
			if anchor == nil {
				t.Fatal("no token contains the anchor")
			}
			var others []*x509.Certificate
			for _, c := range pool {
				others = append(others, c)
			}
			token, err := u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}, Intermediates: others})
			if err != nil {
				t.Fatal(err)
			}
			if got := token.GenTime.Format(time.RFC3339Nano); got != test.genTime || token.Policy.String() != test.policy {
				t.Errorf("genTime %s, policy %s", got, token.Policy)
			}
			if _, err := u.Verify(sha256.Sum256(nil), Options{Roots: []*x509.Certificate{anchor}, Intermediates: others}); !errors.Is(err, ErrImprint) {
				t.Errorf("over something else: %v", err)
			}
			_, err = u.Verify(info.Imprint, Options{Roots: []*x509.Certificate{anchor}})
			if (err == nil) != (test.embedded > 0) || err != nil && !errors.Is(err, ErrNoCertificate) {
				t.Errorf("with the embedded certificates alone: %v", err)
			}
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
	if got := info.GenTime.Format(time.RFC3339); got != "2024-04-09T05:29:39Z" || len(info.Certificates) != 2 {
		t.Errorf("genTime %s, %d certificates", got, len(info.Certificates))
	}
	root := info.Certificates[1]
	if hash := sha256.Sum256(root.Raw); !bytes.HasPrefix(hash[:], []byte{0xa6, 0x37, 0x9e, 0x7c}) {
		t.Fatalf("the root is %x", hash)
	}
	if _, err := u.Verify(sha256.Sum256([]byte("test")), Options{Roots: []*x509.Certificate{root}}); !errors.Is(err, ErrImprint) {
		t.Errorf("over SHA-256: %v", err)
	}
}

func publicFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", "public", name)))(t)
}
