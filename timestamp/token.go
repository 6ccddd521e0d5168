package timestamp

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"
)

// MaxTokenSize is the size in bytes above which a token is refused unread. The
// largest that authorities send, RSA-4096 with a long chain, is a tenth of it.
const MaxTokenSize = 64 << 10

// Unverified is a TimeStampToken that was read and nothing more: anybody can
// have made it. It is safe for concurrent use.
type Unverified struct {
	data         signedData
	info         tstInfo
	certificates []*x509.Certificate

	mu      sync.Mutex        // guards what follows
	checked *x509.Certificate // by which the signature was checked last: a token is held against one authority after another
	found   error             // what came of it
}

// UnverifiedInfo is what a token claims, for choosing roots to verify it with
// or saying which one could not be verified. None of it is evidence.
type UnverifiedInfo struct {
	Imprint      [sha256.Size]byte   // zero when not SHA-256
	GenTime      time.Time           // UTC
	Accuracy     time.Duration       // the deviation from GenTime, either way; 0: not stated
	Serial       *big.Int            // the token's
	Policy       x509.OID            //
	Nonce        *big.Int            // nil: none
	SignerIssuer []byte              // DER of the issuer's name; nil when the signer is given by key identifier
	SignerSerial *big.Int            // of the signer's certificate, with SignerIssuer
	SignerKeyID  []byte              // subject key identifier, without SignerIssuer
	Certificates []*x509.Certificate // embedded ones that could be read
}

// Token is what a verified token states.
type Token struct {
	GenTime  time.Time     // when the authority saw the imprint, UTC
	Accuracy time.Duration // the deviation from GenTime, either way; 0: not stated
	Serial   *big.Int      // unique under this authority
	Policy   x509.OID
	Nonce    *big.Int            // nil: none
	Signer   *x509.Certificate   // the authority's
	Chain    []*x509.Certificate // from Signer to the root that the reader gave
}

// Parse reads a TimeStampToken in strict DER, without authenticating it: the
// result is good for Verify. All errors are ErrMalformed.
func Parse(der []byte) (*Unverified, error) { return parse(der, x509.ParseCertificate) }

func parse(der []byte, certificate func([]byte) (*x509.Certificate, error)) (*Unverified, error) {
	d, s := decode(der, MaxTokenSize, "time stamp token")
	u := &Unverified{data: d.signedData(s)}
	u.info = d.tstInfo(u.data.content)
	if d.err != nil {
		return nil, fmt.Errorf("parsing time stamp token: %w", d.err)
	}
	for _, element := range u.data.certificates {
		// One that cannot be read cannot be used. Nothing vouches for the set,
		// so that it is no reason to refuse a token whose path is found without.
		if c, err := certificate(element); err == nil && len(u.certificates) < maxEmbedded {
			u.certificates = append(u.certificates, c)
		}
	}
	return u, nil
}

// UnverifiedInfo returns what the token claims. Evidence is what Verify returns.
func (u *Unverified) UnverifiedInfo() UnverifiedInfo {
	info := UnverifiedInfo{
		GenTime:      u.info.genTime,
		Accuracy:     u.info.accuracy,
		Serial:       clone(u.info.serial),
		Policy:       u.info.policy,
		Nonce:        clone(u.info.nonce),
		SignerIssuer: bytes.Clone(u.data.signer.issuer),
		SignerSerial: clone(u.data.signer.serial),
		SignerKeyID:  bytes.Clone(u.data.signer.keyID),
		Certificates: slices.Clone(u.certificates),
	}
	if u.info.imprint.Hash == crypto.SHA256 {
		info.Imprint = [sha256.Size]byte(u.info.imprint.Sum)
	}
	return info
}

// clone copies n for a caller, who may change it.
func clone(n *big.Int) *big.Int {
	if n == nil {
		return nil
	}
	return new(big.Int).Set(n)
}
