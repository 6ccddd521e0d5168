package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

var (
	// errRevoked: what an authority's key stamped cannot be told any more from what others may have stamped with it.
	errRevoked = errors.New("revoked")
	// errRevocation: whether it was, the reader's lists do not say.
	errRevocation = errors.New("whether it was revoked is not known")
)

// gone are the reasons for which an authority's certificate is revoked without its key having come into other hands. What
// it stamped before stands (RFC 3161, section 4).
var gone = []int{unspecified, affiliationChanged, superseded, cessationOfOperation}

// stands asks whether a token may still be believed, of an authority of which the reader wants that asked. Nobody can date
// a token back but who has the authority's key: then no time in it counts, however early, unless the token is shown to be
// older than that; and ownWord says that only the operator shows it.
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
