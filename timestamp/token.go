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
	Imprint      [sha256.Size]byte   // zero if not SHA-256
	GenTime      time.Time           // UTC
	Accuracy     time.Duration       // the deviation from GenTime, either way; 0: not stated
	Serial       *big.Int            // the token's
	Policy       x509.OID            //
	Nonce        *big.Int            // nil: none
	SignerIssuer []byte              // DER of the issuer's name; nil if a key identifier names the signer
	SignerSerial *big.Int            // of the signer's certificate, with SignerIssuer
	SignerKeyID  []byte              // subject key identifier, without SignerIssuer
	Certificates []*x509.Certificate // embedded ones that could be parsed
}

// Token is what a verified token states.
type Token struct {
	GenTime  time.Time     // when the authority saw the imprint, UTC
	Accuracy time.Duration // the deviation from GenTime, either way; 0: not stated
	Serial   *big.Int      // unique under this authority
	Policy   x509.OID
	Nonce    *big.Int            // nil: none
	Signer   *x509.Certificate   // the authority's
	Chain    []*x509.Certificate // from Signer to one of the reader's roots
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
	if u.info.imprint.hash == crypto.SHA256 {
		info.Imprint = [sha256.Size]byte(u.info.imprint.sum)
	}
	return info
}

// clone copies n, because the caller may change the result.
func clone(n *big.Int) *big.Int {
	if n == nil {
		return nil
	}
	return new(big.Int).Set(n)
}
