package installation

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
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

// Token names the hardware token on which a new installation makes the keys of its time-stamping authority.
type Token struct {
	URI    string // names the token only, without a key
	Helper string // the program that reaches it: see token.Helper.Use
}

// firstFiles returns the files of a new installation: the root certificate, which readers trust, the certificate of the time-stamping key, which
// the root issues, the keys of both, and the log's key.
func firstFiles(ctx context.Context, c Config, helper *token.Helper) ([]filestore.File, error) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	id := hex.EncodeToString(random[:])
	now := clock(c)().UTC().Truncate(time.Second)
	rootSigner, rootText, err := newKey(ctx, c.Token, helper, "jurat-root-"+id)
	if err != nil {
		return nil, fmt.Errorf("making the authority's root key: %w", err)
	}
	root, err := certify(rootSigner, now, rootYears, timestamp.NewRoot)
	if err != nil {
		return nil, err
	}
	leafSigner, leafText, err := newKey(ctx, c.Token, helper, "jurat-authority-"+id)
	if err != nil {
		return nil, fmt.Errorf("making the authority's key: %w", err)
	}
	leaf, err := certify(leafSigner, now, authorityYears, func(c timestamp.CertificateConfig) (*x509.Certificate, error) {
		return timestamp.NewCertificate(c, root, rootSigner)
	})
	if err != nil {
		return nil, err
	}
	// The log's key is never on a token: checkpoints demand Ed25519, and helpers sign with ES256 and RS256.
	private, public, err := note.GenerateKey(nil, logName+id)
	if err != nil {
		return nil, fmt.Errorf("making the log's key: %w", err)
	}
	certificate := func(c *x509.Certificate) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return []filestore.File{
		{Name: path.Join(AuthorityFolder, rootCertificate), Content: certificate(root)}, {Name: path.Join(AuthorityFolder, rootKey), Content: rootText},
		{Name: path.Join(AuthorityFolder, authorityCertificate), Content: certificate(leaf)}, {Name: path.Join(AuthorityFolder, authorityKey), Content: leafText},
		{Name: LogKeyFile, Content: []byte(private + "\n" + public + "\n")}}, nil
}

// newKey makes a P-256 key, in a file, or on a token under a name. It returns the PEM block for its file: the private key, or a reference to
// the key on the token.
func newKey(ctx context.Context, on *Token, helper *token.Helper, name string) (crypto.Signer, []byte, error) {
	if on == nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
	}
	helper.Use(on.Helper)
	reference, err := helper.FindOrGenerate(ctx, token.Named(on.URI, name), evidence.ES256)
	if err != nil {
		return nil, nil, err
	}
	key, err := helper.Signer(reference)
	if err != nil {
		return nil, nil, err
	}
	text, err := reference.PEM()
	return key, text, err
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

// A logKey signs checkpoints.
type logKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string // the verifier key in package note's form
}

// logName begins the origin of a log. An id follows it, because every log needs an origin of its own.
const logName = "jurat/log/"

func openLogKey(ctx context.Context, files filestore.Store) (logKey, error) {
	text, err := files.Read(ctx, LogKeyFile)
	if err != nil {
		return logKey{}, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 3 || lines[2] != "" {
		return logKey{}, fmt.Errorf("reading %s: want two lines, the signer and the verifier key", files.Where(LogKeyFile))
	}
	k := logKey{public: lines[1]}
	var signerErr, verifierErr error
	k.signer, signerErr = note.NewSigner(lines[0])
	k.verifier, verifierErr = note.NewVerifier(k.public)
	if err := errors.Join(signerErr, verifierErr); err != nil {
		return logKey{}, fmt.Errorf("reading %s: %w", files.Where(LogKeyFile), err)
	}
	return k, nil
}

// LogVerifier returns the verifier of the checkpoints of an installation's log. It returns an error if the log's key
// is missing or cannot be read.
func LogVerifier(ctx context.Context, files filestore.Store) (note.Verifier, error) {
	log, err := openLogKey(ctx, files)
	return log.verifier, err
}
