package ca

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"time"
	"unicode/utf8"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/names"
	"jurat/internal/token"
)

type pkixExtension = pkix.Extension

var (
	oidDocumentSigning = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 36} // id-kp-documentSigning, RFC 9336
	oidInvalidityDate  = asn1.ObjectIdentifier{2, 5, 29, 24}
	oidNoRevAvail      = asn1.ObjectIdentifier{2, 5, 29, 56} // RFC 9608
	oidExpiredCerts    = asn1.ObjectIdentifier{2, 5, 29, 60} // expiredCertsOnCRL, X.509
)

// A Plan says how a CA is made.
type Plan struct {
	Name      string             // the common name of its certificate
	Algorithm evidence.Algorithm // of a new key in a file, ES256 or RS256; "": ES256
	On        *token.Reference   // a key on a token instead; nil: in a file
	Years     int                // how long it lasts; 0: DefaultYears
	CRL       string             // see Settings
	By        string
	Reason    string
}

// DefaultYears is how long a CA lasts.
const DefaultYears = 10

// Create makes a CA: its key, its certificate and its first list, which names nothing. It returns ErrExists if there is one. If it was
// interrupted before, it goes on with the key that is there.
func Create(ctx context.Context, c Config, p Plan) (*CA, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("making CA: %w", err)
	}
	a := prepare(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.create(ctx, p); err != nil {
		return nil, fmt.Errorf("making CA %s: %w", c.Dir, err)
	}
	return a, nil
}

func (p *Plan) check() error {
	if err := names.Check(p.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if utf8.RuneCountInString(p.Name) > maxCommonName {
		return fmt.Errorf("name: want at most %d characters", maxCommonName)
	}
	if p.Years == 0 {
		p.Years = DefaultYears
	}
	const most = 30
	if p.Years < 1 || p.Years > most {
		return fmt.Errorf("a CA for %d years: want 1 to %d", p.Years, most)
	}
	if p.CRL == "" {
		return nil
	}
	if u, err := url.Parse(p.CRL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("address of the list: %q is not a URL of http or https", p.CRL)
	}
	return nil
}

// maxCommonName is ub-common-name of RFC 5280, appendix A, in characters.
const maxCommonName = 64

// create makes the key, and then the first act, with which the CA exists. The caller holds the lock.
func (a *CA) create(ctx context.Context, p Plan) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	if a.Certificate != nil {
		return ErrExists
	}
	key, err := a.makeKey(ctx, p)
	if err != nil {
		return err
	}
	return a.do(ctx, func(now time.Time) (*Act, error) {
		if a.Certificate != nil {
			return nil, ErrExists
		}
		own, err := root(p, key, now)
		if err != nil {
			return nil, err
		}
		list, err := sealList(own, key, big.NewInt(1), now, nil)
		if err != nil {
			return nil, err
		}
		return &Act{Certificate: own.Raw, CRL: list, Settings: &Settings{CRL: p.CRL}, By: p.By, Reason: p.Reason}, nil
	})
}

// makeKey writes the key, unless an attempt before this one did.
func (a *CA) makeKey(ctx context.Context, p Plan) (crypto.Signer, error) {
	text, err := p.key()
	if err != nil {
		return nil, err
	}
	err = a.files.Create(ctx, keyFile, text)
	before := errors.Is(err, fs.ErrExist)
	if err != nil && !before {
		return nil, err
	}
	key, err := a.loadKey(ctx)
	if err != nil || !before {
		return key, err
	}
	if err := p.fits(key); err != nil {
		return nil, fmt.Errorf("%s is of an earlier attempt: %w", a.files.Where(keyFile), err)
	}
	return key, nil
}

// key makes a key, and returns it, or the reference to the one on a token, in PEM.
func (p *Plan) key() ([]byte, error) {
	if p.On != nil {
		if algorithm, err := evidence.AlgorithmOf(p.On.Public); err != nil || algorithm != evidence.ES256 && algorithm != evidence.RS256 {
			return nil, errors.Join(wrongKind(algorithm), err)
		}
		return p.On.PEM()
	}
	key, err := newKey(p.Algorithm)
	if err != nil {
		return nil, err
	}
	der, err := evidence.MarshalPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// fits returns an error if a key is not the one that the plan wants.
func (p *Plan) fits(key crypto.Signer) error {
	algorithm, err := evidence.AlgorithmOf(key.Public())
	switch {
	case err != nil:
		return err
	case algorithm != evidence.ES256 && algorithm != evidence.RS256:
		return wrongKind(algorithm)
	case p.On != nil && !p.On.Public.(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()):
		return errors.New("it is another key than the one on the token; remove the file if it is of no use")
	case p.On == nil && p.Algorithm != "" && p.Algorithm != algorithm:
		return fmt.Errorf("it is a key for %s; remove the file if it is of no use", algorithm)
	}
	return nil
}

func newKey(algorithm evidence.Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case "", evidence.ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case evidence.RS256:
		const bits = 3072 // 128-bit strength, as P-256 and Ed25519 have
		return rsa.GenerateKey(rand.Reader, bits)
	}
	return nil, wrongKind(algorithm)
}

// wrongKind: golang.org/x/crypto/ocsp signs with ECDSA and RSA only.
func wrongKind(algorithm evidence.Algorithm) error {
	return fmt.Errorf("a CA with a key for %s: want ES256 or RS256, which can sign OCSP responses, too", algorithm)
}

// root makes the CA's own certificate: for certificates of actors and lists, and for no CAs below it.
func root(p Plan, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	from := now.Add(-keys.Skew)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: p.Name}, NotBefore: from, NotAfter: from.AddDate(p.Years, 0, 0).Add(-time.Second),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, UnknownExtKeyUsage: []asn1.ObjectIdentifier{oidDocumentSigning},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true}
	return certify(template, template, key.Public(), key)
}

// certify signs a certificate, and reads it as others will.
func certify(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key) // it verifies its signature
	if err != nil {
		return nil, fmt.Errorf("making certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// newSerial returns 128 random bits as a positive number.
func newSerial() (*big.Int, error) {
	const bits = 128
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), bits))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	if serial.Sign() == 0 {
		return newSerial()
	}
	return serial, nil
}
