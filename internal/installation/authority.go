package installation

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/atomicfile"
	"jurat/internal/keyring"
	"jurat/timestamp"
	"jurat/verify"
)

const (
	rootYears      = 30
	authorityYears = 10

	rootCertificate      = "root.pem"
	rootKey              = "root.key"
	authorityCertificate = "authority.pem"
	authorityKey         = "authority.key"
)

// authority is the built-in time-stamping authority: the operator's own clock.
type authority struct {
	*timestamp.Authority
	root *x509.Certificate
}

// createAuthority makes the root that readers are given, and the certificate that stamps in its name.
func createAuthority(dir string, now time.Time) error {
	now = now.UTC().Truncate(time.Second)
	root, rootSigner, err := certify(now, rootYears, func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewRoot(c)
	})
	if err != nil {
		return err
	}
	leaf, leafSigner, err := certify(now, authorityYears, func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewCertificate(c, root, rootSigner)
	})
	if err != nil {
		return err
	}
	return errors.Join(
		writeCertificate(filepath.Join(dir, rootCertificate), root), writePrivate(filepath.Join(dir, rootKey), rootSigner),
		writeCertificate(filepath.Join(dir, authorityCertificate), leaf), writePrivate(filepath.Join(dir, authorityKey), leafSigner))
}

func certify(now time.Time, years int, issue func(timestamp.CertificateConfig) (*x509.Certificate, error)) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority's key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	certificate, err := issue(timestamp.CertificateConfig{Key: key, Serial: serial.Add(serial, big.NewInt(1)),
		NotBefore: now, NotAfter: now.AddDate(years, 0, 0)})
	return certificate, key, err
}

func openAuthority(dir string, now func() time.Time) (*authority, error) {
	root, err := readCertificate(filepath.Join(dir, rootCertificate))
	if err != nil {
		return nil, err
	}
	leaf, err := readCertificate(filepath.Join(dir, authorityCertificate))
	if err != nil {
		return nil, err
	}
	key, err := readPrivate(filepath.Join(dir, authorityKey))
	if err != nil {
		return nil, err
	}
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root}, Now: now})
	if err != nil {
		return nil, fmt.Errorf("opening time-stamping authority in %s: %w", dir, err)
	}
	return &authority{Authority: a, root: root}, nil
}

// stamp issues a token. The certificate goes into it, so that a record needs nothing but the root.
func (a *authority) stamp(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
}

// askImprint stamps an imprint that may be of another algorithm.
func (a *authority) askImprint(ctx context.Context, imprint timestamp.Imprint) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Wide: imprint, CertReq: true})
}

func (a *authority) trusted() verify.Authority {
	return verify.Authority{Name: "built-in authority", Certificate: a.root.Raw, Clock: verify.OperatorClock}
}

func writeCertificate(file string, c *x509.Certificate) error {
	return atomicfile.Create(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), 0o644)
}

func readCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("reading %s: want a certificate in PEM", file)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return c, nil
}

func writePrivate(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return atomicfile.Create(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

func readPrivate(file string) (crypto.Signer, error) {
	text, err := keyring.ReadPrivate(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("reading %s: want a private key in PEM", file)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s: a key of type %T cannot sign", file, key)
	}
	return signer, nil
}

// A logKey signs checkpoints.
type logKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string // the verifier, as package note writes it
}

// logName is the start of the origin of a log, which must differ from that of every other log.
const logName = "jurat/log/"

func createLogKey(file string) (logKey, error) {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return logKey{}, fmt.Errorf("naming the log: %w", err)
	}
	private, public, err := note.GenerateKey(rand.Reader, fmt.Sprintf("%s%x", logName, id))
	if err != nil {
		return logKey{}, fmt.Errorf("making the log's key: %w", err)
	}
	if err := atomicfile.Create(file, []byte(private+"\n"+public+"\n"), 0o600); err != nil {
		return logKey{}, err
	}
	return openLogKey(file)
}

func openLogKey(file string) (logKey, error) {
	text, err := keyring.ReadPrivate(file)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", file)
	}
	k := logKey{public: lines[1]}
	var signerErr, verifierErr error
	k.signer, signerErr = note.NewSigner(lines[0])
	k.verifier, verifierErr = note.NewVerifier(lines[1])
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return k, nil
}
