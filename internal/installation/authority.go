package installation

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path"
	"time"

	"jurat/internal/filestore"
	"jurat/internal/stamping"
	"jurat/internal/token"
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

// createAuthority makes the root certificate, which readers trust, and the certificate of the time-stamping key, which the root issues.
func createAuthority(ctx context.Context, files filestore.Store, m maker, now time.Time) error {
	now = now.UTC().Truncate(time.Second)
	rootSigner, rootText, err := m.make(ctx, "root")
	if err != nil {
		return fmt.Errorf("making the authority's root key: %w", err)
	}
	root, err := certify(rootSigner, now, rootYears, timestamp.NewRoot)
	if err != nil {
		return err
	}
	leafSigner, leafText, err := m.make(ctx, "authority")
	if err != nil {
		return fmt.Errorf("making the authority's key: %w", err)
	}
	leaf, err := certify(leafSigner, now, authorityYears, func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewCertificate(c, root, rootSigner)
	})
	if err != nil {
		return err
	}
	return errors.Join(
		writeCertificate(ctx, files, rootCertificate, root), writePrivate(ctx, files, rootKey, rootText),
		writeCertificate(ctx, files, authorityCertificate, leaf), writePrivate(ctx, files, authorityKey, leafText))
}

func certify(key crypto.Signer, now time.Time, years int, issue func(timestamp.CertificateConfig) (*x509.Certificate, error)) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	return issue(timestamp.CertificateConfig{Key: key, Serial: serial.Add(serial, big.NewInt(1)),
		NotBefore: now, NotAfter: now.AddDate(years, 0, 0)})
}

func openAuthority(ctx context.Context, files filestore.Store, helper *token.Helper, now func() time.Time) (*stamping.Own, error) {
	root, err := readCertificate(ctx, files, rootCertificate)
	if err != nil {
		return nil, err
	}
	leaf, err := readCertificate(ctx, files, authorityCertificate)
	if err != nil {
		return nil, err
	}
	file := path.Join(AuthorityFolder, authorityKey)
	text, err := files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	key, _, err := helper.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(file), err)
	}
	a, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root}, Now: now})
	if err != nil {
		return nil, fmt.Errorf("opening time-stamping authority in %s: %w", files.Where(AuthorityFolder), err)
	}
	return &stamping.Own{Authority: a, Root: root}, nil
}

func writeCertificate(ctx context.Context, files filestore.Store, name string, c *x509.Certificate) error {
	return files.Create(ctx, path.Join(AuthorityFolder, name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

func readCertificate(ctx context.Context, files filestore.Store, name string) (*x509.Certificate, error) {
	file := path.Join(AuthorityFolder, name)
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
