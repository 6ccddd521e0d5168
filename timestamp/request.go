package timestamp

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxRequestSize is the largest request in bytes. A larger one is refused unread. A request with nonce and policy
// takes about a hundred.
const MaxRequestSize = 4 << 10

const requestVersion = 1 // RFC 3161, 2.4.1

// Request is an RFC 3161 TimeStampReq.
type Request struct {
	Imprint [sha256.Size]byte // SHA-256 of the data to stamp
	Wide    Imprint           // replaces Imprint by a SHA-384 or SHA-512; zero: Imprint counts
	Nonce   *big.Int          // nil: none; then an old answer can pass for a new one
	Policy  x509.OID          // zero: the authority's default
	CertReq bool              // whether the token must contain the authority's certificate
}

// Marshal encodes the request in DER (RFC 3161, 2.4.1). It returns ErrMalformed if a field is invalid.
func (r *Request) Marshal() ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(requestVersion)
		addImprint(b, r.stamped())
		if !unset(r.Policy) {
			addPolicy(b, r.Policy)
		}
		if r.Nonce != nil {
			b.AddASN1BigInt(r.Nonce)
		}
		if r.CertReq { // DEFAULT FALSE
			b.AddASN1Boolean(true)
		}
	})
	der, err := b.Bytes()
	if err != nil {
		return nil, fmt.Errorf("marshalling time stamp request: %w", err)
	}
	if len(der) > MaxRequestSize {
		return nil, fmt.Errorf("marshalling time stamp request: %w", &SyntaxError{MaxRequestSize, "larger than accepted"})
	}
	return der, nil
}

// stamped returns the imprint to stamp.
func (r *Request) stamped() Imprint {
	if r.Wide.Hash != 0 {
		return r.Wide
	}
	return sha256Imprint(r.Imprint)
}

// ParseRequest reads a TimeStampReq in strict DER: what parses marshals back to the same bytes, except that a NULL
// parameter of SHA-2 is dropped. It returns ErrAlgorithm for an imprint other than SHA-256, 384 or 512, ErrExtension
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
	switch imprint.Hash {
	case 0:
		return nil, fmt.Errorf("%w: imprint", ErrAlgorithm)
	case crypto.SHA256:
		r.Imprint = [sha256.Size]byte(imprint.Sum)
	default:
		r.Wide = imprint
	}
	return r, nil
}
