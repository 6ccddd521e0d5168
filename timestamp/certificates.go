package timestamp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The names of the built-in authority say whose clock it is, wherever a certificate is shown: its time is only the
// operator's word.
const (
	rootName      = "jurat built-in authority root (the operator's own clock)"
	authorityName = "jurat built-in authority (the operator's own clock)"
)

// CertificateConfig describes a certificate of the built-in authority. The caller keeps keys, counts serials and
// reads the clock.
type CertificateConfig struct {
	Key       crypto.Signer // required; ECDSA P-256, whose public key is certified
	Serial    *big.Int      // required; positive, at most 20 bytes
	NotBefore time.Time     // required; first second of validity
	NotAfter  time.Time     // required; last second of validity
	Operator  string        // who keeps the clock, as the subject's organisation; empty: left out
}

// NewRoot makes the self-signed certificate that readers use as a trust anchor. It signs only the authority's
// certificate, so that the authority's key can be replaced without a change at the readers. It returns ErrAlgorithm
// for a key that is not ECDSA P-256. It refuses an empty validity and a serial number outside the bounds, and passes
// on the errors of the key.
func NewRoot(c CertificateConfig) (*x509.Certificate, error) {
	template, err := c.template(rootName)
	if err != nil {
		return nil, fmt.Errorf("creating authority root: %w", err)
	}
	template.BasicConstraintsValid = true
	template.IsCA = true
	template.MaxPathLenZero = true // no authorities below it
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	return create(template, template, c.Key, c.Key)
}

// NewCertificate makes the authority's certificate, issued by root: for time stamping alone, as RFC 3161, 2.3
// demands. Its validity must lie within the root's. Its errors are those of NewRoot. It also refuses a root without a
// key, one that is not a CA, and a validity beyond the root's.
func NewCertificate(c CertificateConfig, root *x509.Certificate, rootKey crypto.Signer) (*x509.Certificate, error) {
	template, err := c.template(authorityName)
	if err != nil {
		return nil, fmt.Errorf("creating authority certificate: %w", err)
	}
	if root == nil || rootKey == nil || !root.IsCA {
		return nil, errors.New("creating authority certificate: a root and its key are required")
	}
	if c.NotBefore.Before(root.NotBefore) || c.NotAfter.After(root.NotAfter) {
		return nil, errors.New("creating authority certificate: its validity is not within the root's")
	}
	purpose, err := timeStampingAlone()
	if err != nil {
		return nil, fmt.Errorf("creating authority certificate: %w", err)
	}
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtraExtensions = []pkix.Extension{purpose}
	return create(template, root, c.Key, rootKey)
}

// timeStampingAlone is the extended key usage extension, written here because
// x509.Certificate.ExtKeyUsage cannot be marked critical.
func timeStampingAlone() (pkix.Extension, error) {
	keyPurpose := asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 3, 8} // id-kp-timeStamping
	value, err := asn1.Marshal([]asn1.ObjectIdentifier{keyPurpose})
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: value}, err
}

func (c *CertificateConfig) template(name string) (*x509.Certificate, error) {
	switch {
	case c.Key == nil:
		return nil, errors.New("a key is required")
	case c.Serial == nil || c.Serial.Sign() <= 0 || c.Serial.BitLen() >= 8*20: // RFC 5280, 4.1.2.2
		return nil, errors.New("serial number is not positive and within 20 bytes")
	case c.NotBefore.IsZero() || c.NotAfter.Before(c.NotBefore):
		return nil, errors.New("validity is empty")
	}
	key, ok := c.Key.Public().(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: the key is not ECDSA P-256", ErrAlgorithm)
	}
	point, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	subject := pkix.Name{CommonName: name}
	if c.Operator != "" {
		subject.Organization = []string{c.Operator}
	}
	identifier := sha256.Sum256(point)
	return &x509.Certificate{
		SerialNumber:       c.Serial,
		Subject:            subject,
		NotBefore:          c.NotBefore,
		NotAfter:           c.NotAfter,
		SubjectKeyId:       identifier[:20], // RFC 7093, 2 (1)
		SignatureAlgorithm: x509.ECDSAWithSHA256,
	}, nil
}

func create(template, parent *x509.Certificate, key, parentKey crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("creating authority certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}
