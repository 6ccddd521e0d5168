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
	"io"
	"math/big"
	"slices"
	"sync"
	"time"

	"jurat/internal/fault"
)

// builtInPolicy is the policy of the built-in authority: the time is that of the operator's own clock, which no other
// party measured or vouches for. The arc 2.25 takes any UUID, here 2f6f83e8-eeb1-4b1a-922a-f0176cc3037b, without
// registration (ITU-T X.667). jurat uses .1 and .2 under it.
const (
	builtInPolicy = "2.25.63052736203651960446583647240053785467.1"
	mockPolicy    = "2.25.63052736203651960446583647240053785467.2"
)

// BuiltInPolicy is the default policy of an Authority: the operator's own clock, accuracy not stated, no audit.
func BuiltInPolicy() x509.OID { return fixedOID(builtInPolicy) }

// MockPolicy is the policy of the mock authority: it promises nothing.
func MockPolicy() x509.OID { return fixedOID(mockPolicy) }

func fixedOID(text string) x509.OID { return fixed(x509.ParseOID(text)) }

// fixed returns what was made from a constant of this package. It panics if the constant is wrong.
func fixed[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// AuthorityConfig makes an Authority.
type AuthorityConfig struct {
	Key         crypto.Signer       // required; ECDSA P-256; must be safe for concurrent use
	Certificate *x509.Certificate   // required; of Key, for time stamping alone
	Chain       []*x509.Certificate // its issuer and so on up to the root; not put into tokens
	Policy      x509.OID            // zero: BuiltInPolicy
	Now         func() time.Time    // nil: time.Now; must be safe for concurrent use
	Rand        io.Reader           // serial numbers; nil: crypto/rand
}

// Authority issues time stamp tokens by the operator's own clock. It is safe for
// concurrent use.
type Authority struct {
	key    crypto.Signer
	chain  []*x509.Certificate // the authority's own first
	policy x509.OID
	now    func() time.Time
	serial func(*Request) (*big.Int, error)
	names  []byte // the attribute that names its certificate
}

// NewAuthority returns an error for a configuration whose tokens could not be verified.
func NewAuthority(c AuthorityConfig) (*Authority, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("creating time stamp authority: %w", err)
	}
	if unset(c.Policy) {
		c.Policy = BuiltInPolicy()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &Authority{
		key:    c.Key,
		chain:  slices.Concat([]*x509.Certificate{c.Certificate}, c.Chain),
		policy: c.Policy,
		now:    c.Now,
		serial: randomSerials(c.Rand),
		names:  signingCertificate(c.Certificate),
	}, nil
}

func (c *AuthorityConfig) check() error {
	if c.Key == nil || c.Certificate == nil {
		return errors.New("key and certificate are required")
	}
	key, ok := c.Key.Public().(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return fmt.Errorf("%w: the key is not ECDSA P-256", ErrAlgorithm)
	}
	if !key.Equal(c.Certificate.PublicKey) {
		return errors.New("the certificate is not for the key")
	}
	if err := checkUsage(c.Certificate); err != nil {
		return err
	}
	child := c.Certificate
	for _, issuer := range c.Chain {
		if err := child.CheckSignatureFrom(issuer); err != nil {
			return fmt.Errorf("the chain does not lead on from %q: %w", child.Subject, err)
		}
		child = issuer
	}
	return nil
}

// serialBytes of randomness make a unique serial number without a counter. A restored backup would reuse the numbers
// of a counter.
const serialBytes = 16

// randomSerials reads positive serial numbers. The lock makes any reader safe for concurrent callers. While it is
// held, one number is being read.
func randomSerials(random io.Reader) func(*Request) (*big.Int, error) {
	var mu sync.Mutex
	return func(*Request) (*big.Int, error) {
		b := make([]byte, serialBytes)
		mu.Lock()
		_, err := io.ReadFull(random, b)
		mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("reading a random serial number: %w", err)
		}
		serial := new(big.Int).SetBytes(b)
		if serial.Sign() == 0 {
			return nil, errors.New("reading a random serial number: it is zero, so the source is not random")
		}
		return serial, nil
	}
}

// Certificates returns the authority's certificate, followed by its issuers as far as they were given.
func (a *Authority) Certificates() []*x509.Certificate { return slices.Clone(a.chain) }

// Issue stamps the request's imprint with the present time, in milliseconds. It states no accuracy, because no other
// party has measured the operator's clock. It returns ErrPolicy if the request asks for another policy, ErrValidity
// if the clock is outside the certificate's validity, and the errors of the key and of the source of randomness.
func (a *Authority) Issue(r *Request) (token []byte, err error) {
	defer fault.While(&err, "issuing time stamp")
	if !unset(r.Policy) && !r.Policy.Equal(a.policy) {
		return nil, ErrPolicy
	}
	// Truncated, not rounded, so that a token never states a future time.
	now := a.now().UTC().Truncate(time.Millisecond)
	if now.Before(a.chain[0].NotBefore) || now.After(a.chain[0].NotAfter) {
		return nil, ErrValidity
	}
	serial, err := a.serial(r)
	if err != nil {
		return nil, err
	}
	return a.sign(r, serial, now)
}

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
