package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// MaxRequestSize is the size in bytes above which a request is refused unread.
// A request with nonce and policy takes about a hundred.
const MaxRequestSize = 4 << 10

const requestVersion = 1 // RFC 3161, 2.4.1

// Request is an RFC 3161 TimeStampReq over a SHA-256 imprint.
type Request struct {
	Imprint [sha256.Size]byte // SHA-256 of what is to be stamped
	Nonce   *big.Int          // nil: none, and an old answer can be passed off as a new one
	Policy  x509.OID          // zero: the authority's default
	CertReq bool              // whether the token is to contain the authority's certificate
}

// Marshal encodes the request in DER (RFC 3161, 2.4.1).
func (r *Request) Marshal() ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(requestVersion)
		addImprint(b, r.Imprint)
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

// ParseRequest reads a TimeStampReq in strict DER: what parses marshals back to
// the same bytes, except that a NULL parameter of SHA-256 is dropped. An imprint
// other than SHA-256 is ErrAlgorithm, any extension is ErrExtension, anything
// else wrong is ErrMalformed.
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
		d.extensions(extensions)
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
	if imprint.sha256 == nil {
		return nil, fmt.Errorf("%w: imprint is not SHA-256", ErrAlgorithm)
	}
	r.Imprint = *imprint.sha256
	return r, nil
}

// messageImprint is what a request or a token stamps (RFC 3161, 2.4.1).
type messageImprint struct {
	sha256 *[sha256.Size]byte // nil when another algorithm was used
}

func (d *decoder) imprint(s *cryptobyte.String) (m messageImprint) {
	contents := d.read(s, asn1.SEQUENCE, "message imprint")
	algorithm := d.algorithm(&contents, "imprint algorithm")
	at := contents
	hash := d.octets(&contents, "hashed message")
	d.end(contents, "message imprint")
	if d.err != nil || algorithm.oid != oidSHA256 || !algorithm.plain() {
		return m
	}
	// "The length of the hash value MUST match the length of the hash value for
	// that algorithm" (RFC 3161, 2.4.1).
	if len(hash) != sha256.Size {
		d.fail(at, "hashed message is not as long as SHA-256")
		return m
	}
	m.sha256 = (*[sha256.Size]byte)(hash)
	return m
}

func addImprint(b *cryptobyte.Builder, imprint [sha256.Size]byte) {
	b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		addAlgorithm(b, oidSHA256)
		b.AddASN1OctetString(imprint[:])
	})
}
