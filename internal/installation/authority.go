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
	"path"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/internal/filestore"
	"jurat/internal/stamping"
	"jurat/timestamp"
)

const (
	rootYears      = 30
	authorityYears = 10

	rootCertificate      = "root.pem"
	rootKey              = "root.key"
	authorityCertificate = "authority.pem"
	authorityKey         = "authority.key"
)

// createAuthority makes the root that readers are given, and the certificate that stamps in its name.
func createAuthority(ctx context.Context, files filestore.Store, now time.Time) error {
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
		writeCertificate(ctx, files, rootCertificate, root), writePrivate(ctx, files, rootKey, rootSigner),
		writeCertificate(ctx, files, authorityCertificate, leaf), writePrivate(ctx, files, authorityKey, leafSigner))
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

func openAuthority(ctx context.Context, files filestore.Store, now func() time.Time) (*stamping.Own, error) {
	root, err := readCertificate(ctx, files, rootCertificate)
	if err != nil {
		return nil, err
	}
	leaf, err := readCertificate(ctx, files, authorityCertificate)
	if err != nil {
		return nil, err
	}
	key, err := readPrivate(ctx, files, authorityKey)
	if err != nil {
		return nil, err
	}
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root}, Now: now})
	if err != nil {
		return nil, fmt.Errorf("opening time-stamping authority in %s: %w", files.Where(clockFolder), err)
	}
	return &stamping.Own{Authority: a, Root: root}, nil
}

func writeCertificate(ctx context.Context, files filestore.Store, name string, c *x509.Certificate) error {
	return files.Create(ctx, path.Join(clockFolder, name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

func readCertificate(ctx context.Context, files filestore.Store, name string) (*x509.Certificate, error) {
	file := path.Join(clockFolder, name)
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("reading %s: want a certificate in PEM", files.Where(file))
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	return c, nil
}

func writePrivate(ctx context.Context, files filestore.Store, name string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return files.Create(ctx, path.Join(clockFolder, name), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func readPrivate(ctx context.Context, files filestore.Store, name string) (crypto.Signer, error) {
	file := path.Join(clockFolder, name)
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("reading %s: want a private key in PEM", files.Where(file))
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s: a key of type %T cannot sign", files.Where(file), key)
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

func createLogKey(ctx context.Context, files filestore.Store) (logKey, error) {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return logKey{}, fmt.Errorf("naming the log: %w", err)
	}
	private, public, err := note.GenerateKey(rand.Reader, fmt.Sprintf("%s%x", logName, id))
	if err != nil {
		return logKey{}, fmt.Errorf("making the log's key: %w", err)
	}
	if err := files.Create(ctx, logKeyFile, []byte(private+"\n"+public+"\n")); err != nil {
		return logKey{}, err
	}
	return openLogKey(ctx, files)
}

func openLogKey(ctx context.Context, files filestore.Store) (logKey, error) {
	text, err := files.Read(ctx, logKeyFile)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", files.Where(logKeyFile))
	}
	k := logKey{public: lines[1]}
	var signerErr, verifierErr error
	k.signer, signerErr = note.NewSigner(lines[0])
	k.verifier, verifierErr = note.NewVerifier(lines[1])
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", files.Where(logKeyFile), err)
	}
	return k, nil
}
