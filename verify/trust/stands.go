package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// errRevoked: what the authority stamped cannot be told from what others may have stamped with its key.
	errRevoked = errors.New("revoked")
	// errRevocation: the reader's lists do not say whether it was revoked.
	errRevocation = errors.New("whether it was revoked is not known")
)

// gone are the reasons for revocation that leave the key in the authority's hands. What it stamped before stands (RFC 3161, section 4).
var gone = []int{unspecified, affiliationChanged, superseded, cessationOfOperation}

// stands asks whether a token still counts, if the reader wants revocation asked of its authority. A thief of the authority's key can date
// tokens back. Then no time in a token counts, unless something shows that the token is older than the theft. ownWord reports that only
// the operator's clock shows it.
func (c *Checker) stands(a *Authority, path []*x509.Certificate, at time.Time, shown Proof) (ownWord bool, err error) {
	if !a.Asked() {
		c.Unasked = true
		return false, nil
	}
	var unknown error
	for i, certificate := range path[:len(path)-1] {
		entry, err := c.revoked(certificate, path[i+1])
		switch {
		case err != nil:
			unknown = fmt.Errorf("%w: %s: %w", errRevocation, a.Name, err)
		case entry == nil:
		case !slices.Contains(gone, entry.reason):
			if !shown.Proved() || !shown.Earliest.Time.Before(entry.since) {
				return false, fmt.Errorf("%w: the certificate of %q, for a reason for which nothing counts that it stamped", errRevoked, certificate.Subject)
			}
			ownWord = ownWord || !shown.IndependentlyBefore(entry.since)
		case !at.Before(entry.since):
			return false, fmt.Errorf("%w: the certificate of %q, from %s on, and this is of %s", errRevoked, certificate.Subject, utc(entry.since), utc(at))
		}
	}
	return ownWord, unknown
}
