package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// errRevoked: the token cannot be told from a token by a thief of the authority's key.
	errRevoked = errors.New("revoked")
	// errRevocation: the reader's lists do not show whether it was revoked.
	errRevocation = errors.New("whether it was revoked is not known")
)

// gone are the reasons for revocation that leave the key in the authority's hands. Earlier tokens stay valid (RFC
// 3161, section 4).
var gone = []int{unspecified, affiliationChanged, superseded, cessationOfOperation}

// stands checks whether a token still counts if the reader demands a revocation check. A thief of the authority's key
// can backdate tokens. Then a token's own time does not count, unless something proves that the token is older than
// the theft. ownWord reports that only the operator's clock proves it.
func (c *Checker) stands(a *Authority, path []*x509.Certificate, at time.Time, shown Proof) (ownWord bool, err error) {
	if !a.Asked() {
		c.Unasked = true
		return false, nil
	}
	var unknown error
	for i, certificate := range path[:len(path)-1] {
		known, err := c.revoked(certificate, path[i+1], time.Time{}) // what came with the file is about signers' certificates
		entry := known.entry
		switch {
		case err != nil:
			unknown = fmt.Errorf("%w: %s: %w", errRevocation, a.Name, err)
		case entry == nil:
		case !slices.Contains(gone, entry.reason):
			if !shown.Proved() || !shown.Earliest.Time.Before(entry.since) {
				return false, fmt.Errorf("%w: the certificate of %q, for a reason that makes all its tokens worthless", errRevoked, certificate.Subject)
			}
			ownWord = ownWord || !shown.IndependentlyBefore(entry.since)
		case !at.Before(entry.since):
			return false, fmt.Errorf("%w: the certificate of %q, from %s on, and the token is of %s", errRevoked, certificate.Subject, utc(entry.since), utc(at))
		}
	}
	return ownWord, unknown
}
