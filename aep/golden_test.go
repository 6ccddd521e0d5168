package aep_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"flag"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"jurat/aep"
	"jurat/evidence"
	"jurat/internal/aeptest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

var update = flag.Bool("update", false, "write testdata anew: the package and the trust file that proves it, with worthless keys")

// TestGolden: every later version of the program opens the committed package and proves it with the committed trust
// file.
func TestGolden(t *testing.T) {
	packageFile, trustFile := filepath.Join("testdata", "package.aep"), filepath.Join("testdata", "trust.json")
	if *update {
		file, trusted := golden(t)
		write(t, packageFile, file)
		write(t, trustFile, trusted)
	}
	file, trusted := read(t, packageFile), read(t, trustFile)
	p, err := aep.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(p.Canonical) != aeptest.Canonical || p.Binding() != aep.BindsText || len(file) > 4<<10 {
		t.Errorf("%d bytes, %q", len(file), p.Canonical)
	}
	parsed, err := trust.Parse(trusted)
	if err != nil {
		t.Fatal(err)
	}
	report, err := verify.File(file, verify.Options{Trust: parsed})
	if err != nil || report.Outcome != verify.Proved || report.Kind != verify.Package {
		t.Errorf("%v: %+v", err, report)
	}
}

// golden makes the package. The authority that stamps it has a fixed clock.
func golden(t *testing.T) (file, trusted []byte) {
	at := time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)
	root := certificate(t, "root", func(c timestamp.CertificateConfig) (*x509.Certificate, error) { return timestamp.NewRoot(c) })
	leaf := certificate(t, "authority", func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewCertificate(c, root, worthless(t, "root"))
	})
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: worthless(t, "authority"), Certificate: leaf,
		Chain: []*x509.Certificate{root}, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	public := aeptest.Public(t, aeptest.Key(t).Public())
	trusted, err = (&trust.Trust{Format: trust.Format,
		Keys: []trust.Key{{Name: "logistics-agent-v1", Role: evidence.RoleAgent, Algorithm: evidence.RS256,
			KeyID: evidence.DigestOf(public), PublicKey: public, Custody: trust.ByOperator, NotBefore: at}},
		Authorities: []trust.Authority{{Name: "a worthless authority", Certificate: root.Raw, Clock: trust.OperatorClock}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return aeptest.New(t, authority).Zip(t), trusted
}

func certificate(t *testing.T, whose string, create func(timestamp.CertificateConfig) (*x509.Certificate, error)) *x509.Certificate {
	t.Helper()
	c, err := create(timestamp.CertificateConfig{Key: worthless(t, whose), Serial: big.NewInt(1),
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC), Operator: "a worthless key"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// worthless returns a key that anyone can derive from its name.
func worthless(t *testing.T, whose string) crypto.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("aep: a worthless key of the " + whose))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return repeatable{key}
}

// repeatable signs without random bytes (RFC 6979).
type repeatable struct{ *ecdsa.PrivateKey }

func (r repeatable) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return r.PrivateKey.Sign(nil, digest, opts)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
