package timestamp

import (
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
	statusRejection       = 2
)

// statusName returns the name of a PKIStatus in RFC 3161, 2.4.2.
func statusName(status int) string {
	names := [...]string{"granted", "grantedWithMods", "rejection", "waiting", "revocationWarning", "revocationNotification"}
	if status < 0 || status >= len(names) {
		return ""
	}
	return names[status]
}

// failure is a bit of PKIFailureInfo (RFC 3161, 2.4.2).
type failure int

const (
	badAlg              failure = 0
	badRequest          failure = 2
	badDataFormat       failure = 5
	timeNotAvailable    failure = 14
	unacceptedPolicy    failure = 15
	unacceptedExtension failure = 16
	addInfoNotAvailable failure = 17
	systemFailure       failure = 25
)

func (f failure) String() string {
	names := map[failure]string{
		badAlg:              "badAlg",
		badRequest:          "badRequest",
		badDataFormat:       "badDataFormat",
		timeNotAvailable:    "timeNotAvailable",
		unacceptedPolicy:    "unacceptedPolicy",
		unacceptedExtension: "unacceptedExtension",
		addInfoNotAvailable: "addInfoNotAvailable",
		systemFailure:       "systemFailure",
	}
	if name, ok := names[f]; ok {
		return name
	}
	return fmt.Sprintf("bit %d", int(f))
}

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
	if d.err != nil {
		return nil
	}
	if !s.ReadASN1BitString(&bits) {
		d.fail(at, "failure information")
		return nil
	}
	for i := range bits.BitLength {
		if bits.At(i) == 1 {
			names = append(names, failure(i).String())
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
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1Int64(statusGranted) })
		b.AddBytes(token)
	})
	return b.Bytes()
}

// marshalRejection writes a TimeStampResp that refuses (RFC 3161, 2.4.2).
func marshalRejection(reason failure, text string) []byte {
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1Int64(statusRejection)
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.UTF8String, func(b *cryptobyte.Builder) { b.AddBytes([]byte(text)) })
			})
			addFailure(b, reason)
		})
	})
	return b.BytesOrPanic() // cannot fail: the shape is fixed
}

// addFailure writes the one bit as a named bit list: the bytes up to the bit, preceded by the number of unused bits.
func addFailure(b *cryptobyte.Builder, bit failure) {
	b.AddASN1(asn1.BIT_STRING, func(b *cryptobyte.Builder) {
		b.AddUint8(uint8(7 - bit%8))
		b.AddBytes(make([]byte, bit/8))
		b.AddUint8(0x80 >> (bit % 8))
	})
}
