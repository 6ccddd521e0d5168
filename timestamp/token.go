package timestamp

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxTokenSize is the largest token in bytes. A larger one is refused unread. The largest that authorities send,
// RSA-4096 with a long chain, has a tenth of it.
const MaxTokenSize = 64 << 10

// Unverified is a TimeStampToken that was parsed but not authenticated. It is safe for concurrent use.
type Unverified struct {
	data         signedData
	info         tstInfo
	certificates []*x509.Certificate

	mu      sync.Mutex        // guards what follows
	checked *x509.Certificate // the certificate of the last signature check: callers try one authority after another
	found   error             // result of that check
}

// UnverifiedInfo is what a token claims. Use it to choose roots for verification, or to describe a token that cannot
// be verified. It proves nothing.
type UnverifiedInfo struct {
	Statement
	Imprint      [sha256.Size]byte   // zero if not SHA-256
	Certificates []*x509.Certificate // embedded ones that could be parsed
}

// Token is what a verified token states.
type Token struct {
	Statement
	Signer *x509.Certificate   // the authority's
	Chain  []*x509.Certificate // from Signer to one of the reader's roots
}

// Parse reads a TimeStampToken in strict DER, without authenticating it. Call Verify on the result. All errors are
// ErrMalformed.
func Parse(der []byte) (*Unverified, error) { return parse(der, x509.ParseCertificate) }

func parse(der []byte, certificate func([]byte) (*x509.Certificate, error)) (*Unverified, error) {
	d, s := decode(der, MaxTokenSize, "time stamp token")
	u := &Unverified{data: d.signedData(s)}
	u.info = d.tstInfo(u.data.content)
	if d.err != nil {
		return nil, fmt.Errorf("parsing time stamp token: %w", d.err)
	}
	for _, element := range u.data.certificates[:min(maxEmbedded, len(u.data.certificates))] {
		// An unreadable certificate cannot be used. No signature covers the set, so this is no reason to refuse a
		// token whose path is found without it.
		if c, err := certificate(element); err == nil {
			u.certificates = append(u.certificates, c)
		}
	}
	return u, nil
}

// UnverifiedInfo returns what the token claims. Only Verify proves anything.
func (u *Unverified) UnverifiedInfo() UnverifiedInfo {
	info := UnverifiedInfo{Statement: u.info.Statement.clone(), Certificates: slices.Clone(u.certificates)}
	if u.info.imprint.hash == crypto.SHA256 {
		info.Imprint = [sha256.Size]byte(u.info.imprint.sum)
	}
	return info
}

const tstInfoVersion = 1 // RFC 3161, 2.4.2

// A Statement is what an authority says of an imprint.
type Statement struct {
	GenTime  time.Time     // when the authority saw the imprint, UTC
	Accuracy time.Duration // the deviation from GenTime, either way; 0: not stated
	Serial   *big.Int      // unique under this authority
	Policy   x509.OID
	Nonce    *big.Int // nil: none
}

// clone copies the numbers, because the caller may change them.
func (s Statement) clone() Statement {
	s.Serial = new(big.Int).Set(s.Serial)
	if s.Nonce != nil {
		s.Nonce = new(big.Int).Set(s.Nonce)
	}
	return s
}

// tstInfo is what an authority signs (RFC 3161, 2.4.2).
type tstInfo struct {
	Statement
	imprint  imprint
	critical bool // whether an extension is critical
}

// tstInfo reads the contents of the eContent. The tsa name is only a hint: "the actual identification of the entity that
// signed the response will always occur through the use of the certificate identifier" (RFC 3161, 2.4.2).
func (d *decoder) tstInfo(s cryptobyte.String) (t tstInfo) {
	info := d.read(&s, asn1.SEQUENCE, "TSTInfo")
	d.end(s, "TSTInfo")

	d.version(&info, tstInfoVersion, "TSTInfo version")
	if policy := d.oid(&info, "policy"); d.err == nil {
		// An x509.OID, because arcs such as 2.25.<UUID> do not fit asn1.ObjectIdentifier. It cannot fail: validOID checks the same.
		_ = t.Policy.UnmarshalBinary([]byte(policy))
	}
	t.imprint = d.imprint(&info)
	t.Serial = d.integer(&info, "serial number")
	t.GenTime = d.genTime(&info)
	t.Accuracy = d.accuracy(&info)
	d.optionalBoolean(&info, "ordering")
	t.Nonce = d.optionalInteger(&info, "nonce")
	if tsa, present := d.optional(&info, context0Constructed, "tsa"); present {
		d.anyElement(&tsa, "tsa name")
		d.end(tsa, "tsa name")
	}
	if extensions, present := d.optional(&info, context1Constructed, "TSTInfo extensions"); present {
		t.critical = d.extensions(extensions)
	}
	d.end(info, "TSTInfo members")
	return t
}

const genTimeSeconds = "20060102150405"

// genTime reads YYYYMMDDhhmmss[.s...]Z. "The encoding MUST terminate with a Z", and a fraction, "if present, MUST
// omit all trailing 0's" (RFC 3161, 2.4.2). It refuses a fraction finer than a nanosecond instead of cutting it.
func (d *decoder) genTime(s *cryptobyte.String) time.Time {
	at := *s
	text := string(d.read(s, asn1.GeneralizedTime, "genTime"))
	t, err := time.Parse(genTimeSeconds+"Z", text) // it accepts a fraction, too; only one spelling of that is written again as it was
	if d.err == nil && (err != nil || formatGenTime(t) != text) {
		d.fail(at, "genTime is not a GeneralizedTime in UTC as DER writes it")
	}
	return t
}

// formatGenTime is the only spelling of t, which is in UTC.
func formatGenTime(t time.Time) string {
	return t.Format(genTimeSeconds+".999999999") + "Z"
}

// accuracy reads
//
//	Accuracy ::= SEQUENCE {
//	  seconds INTEGER OPTIONAL, millis [0] INTEGER (1..999) OPTIONAL, micros [1] INTEGER (1..999) OPTIONAL }
func (d *decoder) accuracy(s *cryptobyte.String) time.Duration {
	contents, present := d.optional(s, asn1.SEQUENCE, "accuracy")
	if !present {
		return 0
	}
	var total time.Duration
	at := contents
	if n := d.optionalInteger(&contents, "accuracy seconds"); n != nil {
		if n.Sign() < 0 || !n.IsInt64() || n.Int64() > math.MaxInt64/int64(time.Second)-1 {
			d.fail(at, "accuracy seconds out of range")
			return 0
		}
		total = time.Duration(n.Int64()) * time.Second
	}
	total += d.thousandths(&contents, context0, "accuracy millis") * time.Millisecond
	total += d.thousandths(&contents, context1, "accuracy micros") * time.Microsecond
	d.end(contents, "accuracy")
	return total
}

func (d *decoder) thousandths(s *cryptobyte.String, tag asn1.Tag, what string) time.Duration {
	var n int64
	if !s.PeekASN1Tag(tag) || !d.next(s, what, func() bool { return s.ReadASN1Int64WithTag(&n, tag) && n >= 1 && n <= 999 }) {
		return 0
	}
	return time.Duration(n)
}

// An imprint is the hash of what was stamped (RFC 3161, 2.4.1).
type imprint struct {
	hash crypto.Hash // 0: an unknown algorithm
	sum  []byte      // as long as hash demands
}

// imprint reads MessageImprint.
func (d *decoder) imprint(s *cryptobyte.String) imprint {
	contents := d.read(s, asn1.SEQUENCE, "message imprint")
	algorithm := d.algorithm(&contents, "imprint algorithm")
	at := contents
	sum := d.octets(&contents, "hashed message")
	d.end(contents, "message imprint")
	hash, err := algorithm.digest()
	if d.err != nil || err != nil {
		return imprint{}
	}
	// "The length of the hash value MUST match the length of the hash value for
	// that algorithm" (RFC 3161, 2.4.1).
	if len(sum) != hash.Size() {
		d.fail(at, "hashed message does not have the length of its algorithm")
	}
	return imprint{hash, sum}
}

// The reasons for refusing a request, a response or a token. Every error of this package's parsers and of Verify
// matches exactly one of them with errors.Is, or is a *StatusError. Issue also returns the errors of the key and of
// the source of randomness.
var (
	// ErrMalformed: not strict DER of the expected shape, or too large. The error is a *SyntaxError that says what
	// was expected, and where.
	ErrMalformed = errors.New("malformed")
	// ErrAlgorithm: an algorithm or key that this package does not know, or refuses as too weak (SHA-1 under a
	// signature, RSA below 2048 bits).
	ErrAlgorithm = errors.New("algorithm not accepted")
	// ErrExtension: a token with a critical extension. Its meaning is unknown and must not be ignored.
	ErrExtension = errors.New("extension not accepted")
	// ErrImprint: a token over other data. The token may be valid.
	ErrImprint = errors.New("imprint is not that of the data")
	// ErrNonce: the token does not answer this request.
	ErrNonce = errors.New("nonce is not that of the request")
	// ErrPolicy: issued (or to be issued) under a policy that was not accepted.
	ErrPolicy = errors.New("policy not accepted")
	// ErrSignature: the signature or the digest under it is wrong.
	ErrSignature = errors.New("signature does not verify")
	// ErrUsage: the signer's certificate is not one for time stamping alone.
	ErrUsage = errors.New("certificate is not for time stamping alone")
	// ErrCertificateID: no signed attribute binds the token to the signer's certificate, or states another issuer or serial number for it.
	ErrCertificateID = errors.New("signing certificate attribute does not name the signer's certificate")
	// ErrUntrusted: no path from the signer to the reader's roots was valid at the token's time.
	ErrUntrusted = errors.New("no trusted path to the signer")
	// ErrEffort: the search for a path would take longer than for any path in practical use, so it was not made.
	ErrEffort = errors.New("too many certificates to try")
	// ErrNoCertificate: the signer's certificate, by name or by its signed hash, is neither in the token nor among those given. The token
	// can be neither proved nor refuted.
	ErrNoCertificate = errors.New("signer's certificate not found")
	// ErrMock: signed by the mock authority, whose keys are public.
	ErrMock = errors.New("issued by the mock authority, which proves nothing")
	// ErrExpired: a certificate in the path had expired before the renewal.
	ErrExpired = errors.New("certificates had run out when it was renewed")
	// ErrValidity: the authority's clock is outside its certificate's validity, so its tokens could not be verified.
	ErrValidity = errors.New("clock is outside the certificate's validity")
)

// SyntaxError says where an input stopped being valid.
type SyntaxError struct {
	Offset int    // bytes from the start of the input
	What   string // the element that was expected there, or what is wrong with it
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("malformed at byte %d: %s", e.Offset, e.What)
}

// Is makes a SyntaxError match ErrMalformed.
func (e *SyntaxError) Is(target error) bool { return target == ErrMalformed }
