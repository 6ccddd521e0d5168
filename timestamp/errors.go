package timestamp

import (
	"errors"
	"fmt"
	"strings"
)

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
	if name := statusName(e.Status); name != "" {
		s += " (" + name + ")"
	}
	if len(e.Failures) > 0 {
		s += ": " + strings.Join(e.Failures, ", ")
	}
	if len(e.Text) > 0 {
		s += fmt.Sprintf(": %q", strings.Join(e.Text, "; "))
	}
	return s
}
