//go:build !js

package timestamp

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	stdasn1 "encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/kit/fault"
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
	Key         crypto.Signer       // required; ECDSA P-256; safe for concurrent use; its Sign gets no source of randomness (RFC 6979)
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
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtraExtensions = []pkix.Extension{timeStampingAlone}
	return create(template, root, c.Key, rootKey)
}

// timeStampingAlone is the extended key usage extension with id-kp-timeStamping, written here because
// x509.Certificate.ExtKeyUsage cannot be marked critical.
var timeStampingAlone = pkix.Extension{Id: stdasn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: seq(oid("\x2b\x06\x01\x05\x05\x07\x03\x08"))}

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

// tlv writes an element that holds these parts. A token has some thirty of them, and a log as many tokens as records: this takes a fifth of the
// time of a cryptobyte.Builder for each.
func tlv(tag asn1.Tag, parts ...[]byte) []byte {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	out := append(make([]byte, 0, size+6), byte(tag))
	if n := (bits.Len(uint(size)) + 7) / 8; size < 0x80 {
		out = append(out, byte(size))
	} else {
		for out = append(out, 0x80|byte(n)); n > 0; n-- {
			out = append(out, byte(size>>(8*(n-1))))
		}
	}
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

func seq(parts ...[]byte) []byte    { return tlv(asn1.SEQUENCE, parts...) }
func set(parts ...[]byte) []byte    { return tlv(asn1.SET, parts...) }
func oid(contents string) []byte    { return tlv(asn1.OBJECT_IDENTIFIER, []byte(contents)) }
func octets(contents []byte) []byte { return tlv(asn1.OCTET_STRING, contents) }
func integer(n int64) []byte        { return bigInteger(big.NewInt(n)) }

func bigInteger(n *big.Int) []byte {
	var b cryptobyte.Builder
	b.AddASN1BigInt(n)
	return b.BytesOrPanic()
}

// policyElement writes an object identifier given by a caller.
func policyElement(policy x509.OID) ([]byte, error) {
	contents, err := policy.MarshalBinary()
	return oid(string(contents)), err
}

func attribute(kind string, values ...[]byte) []byte { return seq(oid(kind), set(values...)) }

// imprintElement writes a MessageImprint. The algorithm has no parameters, as RFC 5754 demands for SHA-2 and ECDSA.
func imprintElement(algorithm []byte, hash []byte) []byte { return seq(algorithm, octets(hash)) }

// signingCertificate writes SigningCertificateV2 with one ESSCertIDv2 under the default SHA-256, and the issuerSerial
// that RFC 5035, 4 recommends.
func signingCertificate(c *x509.Certificate) []byte {
	issuerSerial := seq(seq(tlv(context4Constructed, c.RawIssuer)), bigInteger(c.SerialNumber))
	return attribute(oidSigningCertificateV2, seq(seq(seq(octets(sum(crypto.SHA256, c.Raw)), issuerSerial))))
}

// sign writes and signs a token. It has no signingTime attribute, because genTime says the same more exactly.
func (a *Authority) sign(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	content, err := a.tstInfo(r, serial, genTime)
	if err != nil {
		return nil, err
	}
	// In DER order: each begins 30 LENGTH, contentType and messageDigest have fixed lengths 1a and 2f, and the hash and
	// name in SigningCertificateV2 make it longer than both.
	attributes := set(attribute(oidContentType, oid(oidTSTInfo)), attribute(oidMessageDigest, octets(sum(crypto.SHA256, content))), a.names)
	// Signed as SET OF, sent as [0] (RFC 5652, 5.4).
	digest := sha256.Sum256(attributes)
	signature, err := a.key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	attributes[0] = byte(context0Constructed)
	token := a.contentInfo(content, attributes, signature, r.CertReq)
	if len(token) > MaxTokenSize {
		return nil, &SyntaxError{MaxTokenSize, "token would be larger than accepted"}
	}
	return token, nil
}

// tstInfo writes TSTInfo (RFC 3161, 2.4.2).
func (a *Authority) tstInfo(r *Request, serial *big.Int, genTime time.Time) ([]byte, error) {
	policy, err := policyElement(a.policy)
	var nonce []byte
	if r.Nonce != nil {
		nonce = bigInteger(r.Nonce)
	}
	return seq(integer(tstInfoVersion), policy, imprintElement(seq(oid(oidSHA256)), r.Imprint[:]), bigInteger(serial),
		tlv(asn1.GeneralizedTime, []byte(formatGenTime(genTime))), nonce), err
}

// contentInfo writes ContentInfo around SignedData and SignerInfo (RFC 5652, 3, 5.1 and 5.3).
func (a *Authority) contentInfo(content, attributes, signature []byte, withCertificate bool) []byte {
	c, digest := a.chain[0], seq(oid(oidSHA256))
	signer := seq(integer(signerInfoVersionIssuer), seq(c.RawIssuer, bigInteger(c.SerialNumber)), digest, attributes,
		seq(oid(oidECDSAWithSHA256)), octets(signature))
	var certificates []byte
	if withCertificate {
		certificates = tlv(context0Constructed, c.Raw)
	}
	encapsulated := seq(oid(oidTSTInfo), tlv(context0Constructed, octets(content)))
	return seq(oid(oidSignedData), tlv(context0Constructed,
		seq(integer(signedDataVersion), set(digest), encapsulated, certificates, set(signer))))
}

// WORTHLESS KEYS. They are published with the source so that tests have the same tokens everywhere. Anyone can sign
// with them. Verify recognises and refuses them. Never list them as trusted.
const (
	mockRootKeyWORTHLESS = "7162afdd29097c3947556bd586e8c70667e834b42998097ad146c8c3effdd3aa"
	mockKeyWORTHLESS     = "9d34e00e6fb41ae75ae0332d5c3f8b6440a1a604c9e08bc6b6025fd1e24f2c6c"
)

// The mock's certificates are constants: code that makes certificates may change its bytes, and these must not
// change.
const (
	mockRootPEM = `-----BEGIN CERTIFICATE-----
MIIB4jCCAYigAwIBAgIBATAKBggqhkjOPQQDAjBWMSowKAYDVQQKEyFXT1JUSExF
U1M6IGl0cyBrZXlzIGFyZSBwdWJsaXNoZWQxKDAmBgNVBAMTH2p1cmF0IG1vY2sg
cm9vdCwgZm9yIHRlc3RzIG9ubHkwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNTEyMzEy
MzU5NTlaMFYxKjAoBgNVBAoTIVdPUlRITEVTUzogaXRzIGtleXMgYXJlIHB1Ymxp
c2hlZDEoMCYGA1UEAxMfanVyYXQgbW9jayByb290LCBmb3IgdGVzdHMgb25seTBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABCyZUkAI7emSIAMa71F00FyX41eF+qNr
gpZKDTi6wrJBb16CNFl7X2jeI4hLIwf9ihiCQRzFH5MJ+JTj4CLPhbOjRTBDMA4G
A1UdDwEB/wQEAwIBBjASBgNVHRMBAf8ECDAGAQH/AgEAMB0GA1UdDgQWBBT7WRZl
dtT1iA3nPX0Z4au5RNAIIjAKBggqhkjOPQQDAgNIADBFAiEAtMPXHzlk1OSPewYw
OARlguB5CN/ygRqrAOCS+wftJdQCIFkW0KFQK44faxKf1tNXA94QOQxNy65gfIOC
Q/mpZ7Ui
-----END CERTIFICATE-----`
	mockPEM = `-----BEGIN CERTIFICATE-----
MIICGTCCAcCgAwIBAgIBAjAKBggqhkjOPQQDAjBWMSowKAYDVQQKEyFXT1JUSExF
U1M6IGl0cyBrZXlzIGFyZSBwdWJsaXNoZWQxKDAmBgNVBAMTH2p1cmF0IG1vY2sg
cm9vdCwgZm9yIHRlc3RzIG9ubHkwIBcNMjUwMTAxMDAwMDAwWhgPMjEyNTEyMzEy
MzU5NTlaMFsxKjAoBgNVBAoTIVdPUlRITEVTUzogaXRzIGtleXMgYXJlIHB1Ymxp
c2hlZDEtMCsGA1UEAxMkanVyYXQgbW9jayBhdXRob3JpdHksIGZvciB0ZXN0cyBv
bmx5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAESKCGn1n1XSYu2GeHXjPFFjoJ
L+oGszGRo8JWTY+3UCoT8mgW11wY8Qdbie6j5N4Phf/hA5zKt15XiTTj11J/s6N4
MHYwDgYDVR0PAQH/BAQDAgeAMAwGA1UdEwEB/wQCMAAwHQYDVR0OBBYEFO8zzvPm
skwa5TMD+3vp1p1jqJxSMB8GA1UdIwQYMBaAFPtZFmV21PWIDec9fRnhq7lE0Agi
MBYGA1UdJQEB/wQMMAoGCCsGAQUFBwMIMAoGCCqGSM49BAMCA0cAMEQCIDN5Sx5E
OdNosKBS2sTuKOrbsMhZP0rvrAPTSoO3uXaWAiAOQ2jhsUsVtUBEQMWEGBLpTH8q
+SAV8sVdri187/B+og==
-----END CERTIFICATE-----`
)

// mockGenTime is the time of every mock token.
const mockGenTime = "20260101000000"

// NewMock returns an authority for tests in which everything is fixed: the same request gives the same bytes, everywhere and always. Verify refuses its
// tokens unless Options.UnsafeAllowMock is set.
//
//   - Key, certificates and policy (MockPolicy) are constants; Certificates()[1] is the root. genTime is 2026-01-01T00:00:00Z.
//   - The serial number is the first 8 bytes, as an unsigned big-endian integer, of SHA-256(imprint ‖ nonce), where nonce is its magnitude, big-endian
//     without leading zero bytes, and nothing when there is none. The nonce is repeated.
//   - Signatures are deterministic (RFC 6979).
func NewMock() *Authority {
	genTime := fixed(time.Parse(genTimeSeconds, mockGenTime))
	a := fixed(NewAuthority(AuthorityConfig{
		Key:         mockKey(mockKeyWORTHLESS),
		Certificate: mockCertificate(mockPEM),
		Chain:       []*x509.Certificate{mockCertificate(mockRootPEM)},
		Policy:      MockPolicy(),
		Now:         func() time.Time { return genTime },
	}))
	a.serial = mockSerial
	return a
}

const mockSerialBytes = 8

func mockSerial(r *Request) (*big.Int, error) {
	input := r.Imprint[:]
	if r.Nonce != nil {
		input = slices.Concat(input, r.Nonce.Bytes())
	}
	digest := sha256.Sum256(input)
	return new(big.Int).SetUint64(binary.BigEndian.Uint64(digest[:mockSerialBytes])), nil
}

// deterministic signs by RFC 6979, which crypto/ecdsa does without randomness.
type deterministic struct{ key *ecdsa.PrivateKey }

func (d deterministic) Public() crypto.PublicKey { return d.key.Public() }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.key.Sign(nil, digest, opts)
}

func mockKey(scalar string) crypto.Signer {
	return deterministic{fixed(ecdsa.ParseRawPrivateKey(elliptic.P256(), fixed(hex.DecodeString(scalar))))}
}

func mockCertificate(text string) *x509.Certificate {
	block, _ := pem.Decode([]byte(text))
	return fixed(x509.ParseCertificate(block.Bytes))
}

// Marshal encodes the request in DER (RFC 3161, 2.4.1). It returns ErrMalformed if a field is invalid.
func (r *Request) Marshal() ([]byte, error) {
	var policy, nonce, certReq []byte
	var err error
	if !unset(r.Policy) {
		if policy, err = policyElement(r.Policy); err != nil {
			return nil, fmt.Errorf("marshalling time stamp request: %w", err)
		}
	}
	if r.Nonce != nil {
		nonce = bigInteger(r.Nonce)
	}
	if r.CertReq { // DEFAULT FALSE
		certReq = tlv(asn1.BOOLEAN, []byte{0xff})
	}
	der := seq(integer(requestVersion), imprintElement(seq(oid(oidSHA256)), r.Imprint[:]), policy, nonce, certReq)
	if len(der) > MaxRequestSize {
		return nil, fmt.Errorf("marshalling time stamp request: %w", &SyntaxError{MaxRequestSize, "larger than accepted"})
	}
	return der, nil
}

// MarshalResponse wraps a token as the TimeStampResp that granted it, which "openssl ts -verify -in" reads without
// -token_in. It does not check the token's contents. It returns ErrMalformed for a token that is not one SEQUENCE in
// DER, or is longer than MaxTokenSize.
func MarshalResponse(token []byte) ([]byte, error) {
	d, s := decode(token, MaxTokenSize, "token")
	d.element(&s, asn1.SEQUENCE, "token")
	d.end(s, "token")
	if d.err != nil {
		return nil, fmt.Errorf("marshalling time stamp response: %w", d.err)
	}
	return seq(seq(integer(statusGranted)), token), nil
}

// MaxRequestSize is the largest request in bytes. One with nonce and policy takes about a hundred.
const MaxRequestSize = 4 << 10

const requestVersion = 1 // RFC 3161, 2.4.1

// Request is an RFC 3161 TimeStampReq.
type Request struct {
	Imprint [sha256.Size]byte // SHA-256 of the data to stamp
	Nonce   *big.Int          // nil: none; then an old answer can pass for a new one
	Policy  x509.OID          // zero: the authority's default
	CertReq bool              // whether the token must contain the authority's certificate
}

// MaxResponseSize is the largest response in bytes: the largest token and some text of status. A larger one is
// refused unread.
const MaxResponseSize = MaxTokenSize + 4<<10

// PKIStatus (RFC 3161, 2.4.2).
const (
	statusGranted         = 0
	statusGrantedWithMods = 1
)

// statuses are the names of PKIStatus (RFC 3161, 2.4.2).
var statuses = []string{"granted", "grantedWithMods", "rejection", "waiting", "revocationWarning", "revocationNotification"}

// failures are the named bits of PKIFailureInfo (RFC 3161, 2.4.2).
var failures = map[int]string{0: "badAlg", 2: "badRequest", 5: "badDataFormat", 14: "timeNotAvailable", 15: "unacceptedPolicy",
	16: "unacceptedExtension", 17: "addInfoNotAvailable", 25: "systemFailure"}

// ParseResponse reads a TimeStampResp and returns the bytes of its token, for Parse. It returns a *StatusError if the
// authority refused, and ErrMalformed if the response is not strict DER, grants without a token, or refuses with one.
func ParseResponse(der []byte) (token []byte, err error) {
	defer fault.While(&err, "parsing time stamp response")
	d, s := decode(der, MaxResponseSize, "time stamp response")
	response := d.read(&s, asn1.SEQUENCE, "time stamp response")
	d.end(s, "time stamp response")

	info := d.read(&response, asn1.SEQUENCE, "status information")
	status := d.statusInfo(info)
	at := response
	var found cryptobyte.String
	if d.more(response) {
		found = d.element(&response, asn1.SEQUENCE, "token")
	}
	d.end(response, "token")
	if d.err != nil {
		return nil, d.err
	}
	granted := status.Status == statusGranted || status.Status == statusGrantedWithMods
	switch {
	// "When the status contains the value zero or one, a TimeStampToken MUST be present. When status contains a value other
	// than zero or one, a TimeStampToken MUST NOT be present" (RFC 3161, 2.4.2).
	case granted && found == nil:
		d.fail(at, "granted without a token")
	case !granted && found != nil:
		d.fail(at, "refused with a token")
	case granted && len(status.Failures) > 0:
		d.fail(info, "granted with a failure")
	case granted && len(found) > MaxTokenSize:
		d.fail(at, "token is larger than accepted")
	case !granted:
		d.failWith(status)
	}
	if d.err != nil {
		return nil, d.err
	}
	return found, nil
}

// statusInfo reads the contents of PKIStatusInfo (RFC 3161, 2.4.2).
func (d *decoder) statusInfo(s cryptobyte.String) *StatusError {
	e := &StatusError{}
	at := s
	status := d.integer(&s, "status")
	if d.err == nil && (!status.IsInt64() || status.Int64() != int64(int32(status.Int64()))) {
		d.fail(at, "status out of range")
	}
	text, present := d.optional(&s, asn1.SEQUENCE, "status text")
	if present && text.Empty() {
		d.fail(text, "status text without a member")
	}
	for d.more(text) {
		at := text
		line := d.read(&text, asn1.UTF8String, "status text")
		if d.err == nil && !utf8.Valid(line) {
			d.fail(at, "status text is not UTF-8")
		}
		e.Text = append(e.Text, string(line))
	}
	if s.PeekASN1Tag(asn1.BIT_STRING) {
		e.Failures = d.failures(&s)
	}
	d.end(s, "status information")
	if d.err == nil {
		e.Status = int(status.Int64())
	}
	return e
}

func (d *decoder) failures(s *cryptobyte.String) (names []string) {
	at := *s
	var bits stdasn1.BitString
	if !d.next(s, "failure information", func() bool { return s.ReadASN1BitString(&bits) }) {
		return nil
	}
	for i := range bits.BitLength {
		if bits.At(i) == 1 {
			names = append(names, cmp.Or(failures[i], fmt.Sprintf("bit %d", i)))
		}
	}
	// A named bit list is written without trailing zero bits (X.690, 11.2.2).
	if bits.BitLength > 0 && bits.At(bits.BitLength-1) == 0 {
		d.fail(at, "failure information with trailing zero bits")
	}
	return names
}

// StatusError is an authority's refusal to issue a token (RFC 3161, 2.4.2).
type StatusError struct {
	Status   int      // PKIStatus: 2 rejection, 3 waiting, 4 revocation warning, 5 revocation notification
	Failures []string // PKIFailureInfo by name: badAlg, badRequest, … or bit N for an unnamed one
	Text     []string // the authority's explanation; foreign text, not trusted
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("authority refused: status %d", e.Status)
	if e.Status >= 0 && e.Status < len(statuses) {
		s += " (" + statuses[e.Status] + ")"
	}
	if len(e.Failures) > 0 {
		s += ": " + strings.Join(e.Failures, ", ")
	}
	if len(e.Text) > 0 {
		s += fmt.Sprintf(": %q", strings.Join(e.Text, "; "))
	}
	return s
}
