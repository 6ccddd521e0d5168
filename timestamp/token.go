package timestamp

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
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
	Statement
	Imprint      [sha256.Size]byte   // zero if not SHA-256
	Certificates []*x509.Certificate // embedded ones that could be parsed
}

// Token is what a verified token states.
type Token struct {
	Statement
	Signer *x509.Certificate   // the authority's
	Chain  []*x509.Certificate // from Signer to one of the reader's roots
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
	info := UnverifiedInfo{Statement: u.info.Statement.clone(), Certificates: slices.Clone(u.certificates)}
	if u.info.imprint.hash == crypto.SHA256 {
		info.Imprint = [sha256.Size]byte(u.info.imprint.sum)
	}
	return info
}
