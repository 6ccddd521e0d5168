package timestamp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"sync"
	"time"
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
	token, err = a.issue(r)
	if err != nil {
		return nil, fmt.Errorf("issuing time stamp: %w", err)
	}
	return token, nil
}

func (a *Authority) issue(r *Request) ([]byte, error) {
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
