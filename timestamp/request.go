package timestamp

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxRequestSize is the largest request in bytes. A larger one is refused unread. A request with nonce and policy
// takes about a hundred.
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

// ParseRequest reads a TimeStampReq in strict DER: what parses marshals back to the same bytes, except that a NULL
// parameter of SHA-256 is dropped. It returns ErrAlgorithm for an imprint other than SHA-256, ErrExtension
// for any extension, and ErrMalformed for any other error.
func ParseRequest(der []byte) (*Request, error) {
	r, err := parseRequest(der)
	if err != nil {
		return nil, fmt.Errorf("parsing time stamp request: %w", err)
	}
	return r, nil
}

func parseRequest(der []byte) (*Request, error) {
	d, s := decode(der, MaxRequestSize, "time stamp request")
	request := d.read(&s, asn1.SEQUENCE, "time stamp request")
	d.end(s, "time stamp request")

	r := &Request{}
	d.version(&request, requestVersion, "request version")
	imprint := d.imprint(&request)
	if request.PeekASN1Tag(asn1.OBJECT_IDENTIFIER) {
		r.Policy = d.policy(&request, "requested policy")
	}
	r.Nonce = d.optionalInteger(&request, "nonce")
	r.CertReq = d.optionalTrue(&request, "certReq")
	extensions, extended := d.optional(&request, context0Constructed, "request extensions")
	if extended {
		d.extensions(extensions, d.optionalTrue)
	}
	d.end(request, "request")
	if d.err != nil {
		return nil, d.err
	}
	// "If an extension, whether it is marked critical or not critical, is used
	// by a requester but is not recognized by a time-stamping server, the server
	// SHALL NOT issue a token" (RFC 3161, 2.4.1).
	if extended {
		return nil, ErrExtension
	}
	if imprint.hash != crypto.SHA256 {
		return nil, fmt.Errorf("%w: imprint", ErrAlgorithm)
	}
	r.Imprint = [sha256.Size]byte(imprint.sum)
	return r, nil
}
