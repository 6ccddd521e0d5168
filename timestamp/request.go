package timestamp

import (
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	stdasn1 "encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/fault"
)

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
	// "When the status contains the value zero or one, a TimeStampToken MUST be
	// present. When status contains a value other than zero or one, a
	// TimeStampToken MUST NOT be present" (RFC 3161, 2.4.2).
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
