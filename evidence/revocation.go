package evidence

import (
	"crypto/sha256"
	"fmt"
	"slices"
)

// RevocationKind is the kind of a statement about revoked certificates.
type RevocationKind string

const (
	CRL  RevocationKind = "crl"  // CertificateList (RFC 5280, section 5)
	OCSP RevocationKind = "ocsp" // OCSPResponse (RFC 6960, section 4.2)
)

// Bounds of what a record may carry about the revocation of certificates.
const (
	MaxRevocations     = 64      // statements of one record
	MaxRevocation      = 1 << 20 // bytes of one statement
	MaxRevocationTotal = 4 << 20 // bytes of all statements of one record
)

// A Revocation is what a CA said about the revocation of its certificates: a list, or an answer about some of them. A file carries it
// so that its reader can check later what was revoked when.
type Revocation struct {
	Kind  RevocationKind `json:"kind"`
	Value []byte         `json:"value"` // DER
}

func (r *Record) checkRevocations() error { return CheckRevocations(r.Revocations) }

// CheckRevocations returns an error unless one record may carry these statements.
func CheckRevocations(list []Revocation) error {
	if len(list) > MaxRevocations {
		return fmt.Errorf("revocations: %d of them: want at most %d", len(list), MaxRevocations)
	}
	total, seen := 0, make(map[[sha256.Size]byte]bool, len(list))
	for i, s := range list {
		if !slices.Contains([]RevocationKind{CRL, OCSP}, s.Kind) {
			return fmt.Errorf("revocations: %d: kind %q is neither %q nor %q", i, Abbreviate(string(s.Kind)), CRL, OCSP)
		}
		if len(s.Value) == 0 || len(s.Value) > MaxRevocation {
			return fmt.Errorf("revocations: %d has %d bytes: want 1 to %d", i, len(s.Value), MaxRevocation)
		}
		digest := sha256.Sum256(s.Value)
		if seen[digest] {
			return fmt.Errorf("revocations: %d is there twice", i)
		}
		seen[digest] = true
		total += len(s.Value)
	}
	if total > MaxRevocationTotal {
		return fmt.Errorf("revocations: together they have %d bytes: want at most %d", total, MaxRevocationTotal)
	}
	return nil
}
