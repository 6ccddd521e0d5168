package timestamp

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"

	"golang.org/x/crypto/cryptobyte/asn1"
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
