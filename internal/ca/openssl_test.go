package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
)

func p384Key(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// weakRSAKey is of 1024 bits, which crypto/rsa makes only if it is told to.
func weakRSAKey(t *testing.T) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// openssl runs the command, and returns what it prints. It skips the test where there is none.
func openssl(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl")
	}
	said, err := exec.Command(program, arguments...).CombinedOutput()
	return string(said), err
}

func write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if kind != "" {
		der = pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	if err := os.WriteFile(file, der, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOpenSSLReadsRequests: OpenSSL finds the signature valid, and the challenge and the name in the request.
func TestOpenSSLReadsRequests(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"ES256": testKey(t), "RS256": rsaKey(t), "Ed25519": ed25519Key(t)} {
		challenge := testChallenge(t)
		der, err := MakeRequest(key, evidence.RoleAgent, "order desk", challenge)
		if err != nil {
			t.Fatal(err)
		}
		said, err := openssl(t, "req", "-verify", "-noout", "-text", "-in", write(t, "mia.csr", PEMRequest, der))
		if err != nil || !strings.Contains(said, "verify OK") || !strings.Contains(said, challenge.String()) || !strings.Contains(said, "URI:urn:jurat:agent:order%20desk") {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// TestOpenSSLReadsLists: OpenSSL verifies a list and an OCSP response, and reads in them what the CA meant.
func TestOpenSSLReadsLists(t *testing.T) {
	for _, algorithm := range []evidence.Algorithm{evidence.ES256, evidence.RS256} {
		plan := testPlan
		plan.Algorithm = algorithm
		a, err := Create(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "ca")}, plan) // openssl ocsp knows no other time than now
		if err != nil {
			t.Fatal(err)
		}
		mia, ben := mustIssue(t, a, order(t, "mia")), mustIssue(t, a, order(t, "ben"))
		since := time.Now().Add(-time.Hour)
		list, err := a.Revoke(t.Context(), []string{mia.Serial}, "keyCompromise", since, "b", "r")
		if err != nil {
			t.Fatal(err)
		}
		root := write(t, "ca.pem", "CERTIFICATE", a.Certificate.Raw)
		said, err := openssl(t, "crl", "-CAfile", root, "-noout", "-text", "-in", write(t, "list.pem", "X509 CRL", list.DER))
		for _, want := range []string{"verify OK", "X509v3 CRL Number: \n                2", "Key Compromise", "Invalidity Date: \n                " + since.UTC().Format("Jan _2 15:04:05 2006 GMT"),
			strings.ToUpper(mia.Serial), "2.5.29.60"} {
			if err != nil || !strings.Contains(said, want) {
				t.Errorf("%s: %v: no %q in %s", algorithm, err, want, said)
			}
		}
		for _, test := range []struct {
			of   *Issued
			says []string
		}{{mia, []string{"Response verify OK", ": revoked", "keyCompromise"}}, {ben, []string{"Response verify OK", ": good"}}} {
			der, err := a.Answer(t.Context(), test.of.Serial, "b", "r")
			if err != nil {
				t.Fatal(err)
			}
			said, err := openssl(t, "ocsp", "-respin", write(t, "answer.der", "", der), "-sha256", "-issuer", root, "-CAfile", root, "-cert", write(t, "leaf.pem", "CERTIFICATE", test.of.Certificate.Raw), "-no_nonce")
			for _, want := range test.says {
				if err != nil || !strings.Contains(said, want) {
					t.Errorf("%s: %v: no %q in %s", algorithm, err, want, said)
				}
			}
		}
	}
}

// TestOpenSSLAgrees makes many certificates of several CAs, revokes some, and asks OpenSSL about each at moments before, in and after its
// life, with the list in force: it must say what the CA says.
func TestOpenSSLAgrees(t *testing.T) {
	const cas, leaves = 4, 50 // 200 paths
	random := mathrand.New(mathrand.NewPCG(1, 2))
	for n := range cas {
		plan := testPlan
		plan.Name = fmt.Sprintf("Agents %d", n)
		plan.Algorithm = []evidence.Algorithm{evidence.ES256, evidence.RS256}[n%2]
		a, now := newCA(t, plan)
		var all []*Issued
		for i := range leaves {
			o := order(t, fmt.Sprintf("agent-%d", i))
			o.Life = time.Duration(1+random.IntN(20)) * Day
			all = append(all, mustIssue(t, a, o))
		}
		now.add(time.Hour)
		revoked := map[string]bool{}
		for _, one := range all {
			if random.IntN(3) == 0 {
				revoked[one.Serial] = true
				if _, err := a.Revoke(t.Context(), []string{one.Serial}, Causes()[random.IntN(len(Causes()))], time.Time{}, "b", "r"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(revoked) == 0 || len(revoked) == leaves {
			t.Fatalf("%d are revoked", len(revoked))
		}
		now.add(time.Minute)
		list, err := a.List(t.Context(), true, "b", "r")
		if err != nil {
			t.Fatal(err)
		}
		root, crl := write(t, "ca.pem", "CERTIFICATE", a.Certificate.Raw), write(t, "list.pem", "X509 CRL", list.DER)
		for _, one := range all {
			c := one.Certificate
			moments := []time.Time{list.ThisUpdate.Add(time.Hour), c.NotAfter.Add(2 * time.Second)}
			at := moments[random.IntN(len(moments))]
			if at.After(list.NextTime) {
				at = list.NextTime.Add(-time.Second)
			}
			says := !revoked[one.Serial] && !at.After(c.NotAfter)
			said, err := openssl(t, "verify", "-x509_strict", "-crl_check", "-purpose", "any", "-attime", strconv.FormatInt(at.Unix(), 10), "-CAfile", root, "-CRLfile", crl,
				write(t, "leaf.pem", "CERTIFICATE", c.Raw))
			if (err == nil) != says {
				t.Errorf("%s at %v: the CA says %v, OpenSSL %v: %s", one.Name, at, says, err == nil, said)
			}
			if revoked[one.Serial] && !at.After(c.NotAfter) && !strings.Contains(said, "certificate revoked") {
				t.Errorf("%s: %s", one.Name, said)
			}
		}
	}
}

// TestOpenSSLMakesRequests: a request that OpenSSL made, with the configuration of docs/certificates.md, is taken.
func TestOpenSSLMakesRequests(t *testing.T) {
	challenge := testChallenge(t).String()
	config := write(t, "request.cnf", "", []byte(`[req]
prompt = no
distinguished_name = name
req_extensions = extensions
attributes = challenge
[name]
CN = mia
[extensions]
subjectAltName = URI:urn:jurat:agent:mia
keyUsage = digitalSignature
extendedKeyUsage = 1.3.6.1.5.5.7.3.36
basicConstraints = CA:FALSE
[challenge]
challengePassword = `+challenge+`
`))
	dir := t.TempDir()
	file := filepath.Join(dir, "mia.csr")
	if said, err := openssl(t, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", filepath.Join(dir, "key.pem"), "-config", config, "-out", file); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRequest(doc)
	if err != nil || r.Name != "mia" || r.Challenge == nil || r.Challenge.String() != challenge {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ParseRequest(bytes.Replace(doc, []byte("REQUEST"), []byte("REQUESTS"), 2)); err == nil {
		t.Error("another kind of PEM is read")
	}
}
