package timestamp

import (
	"cmp"
	stdasn1 "encoding/asn1"
	"fmt"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxResponseSize is the largest response in bytes: the largest token and some text of status. A larger one is
// refused unread.
const MaxResponseSize = MaxTokenSize + 4<<10

// PKIStatus (RFC 3161, 2.4.2).
const (
	statusGranted         = 0
	statusGrantedWithMods = 1
)

// statusName returns the name of a PKIStatus in RFC 3161, 2.4.2.
func statusName(status int) string {
	names := [...]string{"granted", "grantedWithMods", "rejection", "waiting", "revocationWarning", "revocationNotification"}
	if status < 0 || status >= len(names) {
		return ""
	}
	return names[status]
}

// failures are the named bits of PKIFailureInfo (RFC 3161, 2.4.2).
var failures = map[int]string{0: "badAlg", 2: "badRequest", 5: "badDataFormat", 14: "timeNotAvailable", 15: "unacceptedPolicy",
	16: "unacceptedExtension", 17: "addInfoNotAvailable", 25: "systemFailure"}

// ParseResponse reads a TimeStampResp and returns the bytes of its token, for Parse. It returns a *StatusError if the
// authority refused, and ErrMalformed if the response is not strict DER, grants without a token, or refuses with one.
func ParseResponse(der []byte) (token []byte, err error) {
	token, err = parseResponse(der)
	if err != nil {
		return nil, fmt.Errorf("parsing time stamp response: %w", err)
	}
	return token, nil
}

func parseResponse(der []byte) ([]byte, error) {
	d, s := decode(der, MaxResponseSize, "time stamp response")
	response := d.read(&s, asn1.SEQUENCE, "time stamp response")
	d.end(s, "time stamp response")

	info := d.read(&response, asn1.SEQUENCE, "status information")
	status := d.statusInfo(info)
	at := response
	var token cryptobyte.String
	if d.more(response) {
		token = d.element(&response, asn1.SEQUENCE, "token")
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
	case granted && token == nil:
		d.fail(at, "granted without a token")
	case !granted && token != nil:
		d.fail(at, "refused with a token")
	case granted && len(status.Failures) > 0:
		d.fail(info, "granted with a failure")
	case granted && len(token) > MaxTokenSize:
		d.fail(at, "token is larger than accepted")
	case !granted:
		d.failWith(status)
	}
	if d.err != nil {
		return nil, d.err
	}
	return token, nil
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
