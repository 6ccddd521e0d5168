package trust

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
)

// A StatementKey is a key of SCITT (RFC 9943): by it an issuer signs statements, or a transparency service receipts. It is not an actor's
// key: what it signs is no record.
type StatementKey struct {
	Name      string             `json:"name"`   // for people
	Issuer    string             `json:"issuer"` // as the claim iss has it: what the key signs for another issuer does not count
	Use       StatementUse       `json:"use"`
	Algorithm evidence.Algorithm `json:"alg"`
	KeyID     evidence.KeyID     `json:"key_id"`
	PublicKey []byte             `json:"public_key"`       // DER SubjectPublicKeyInfo
	COSEKeyID []byte             `json:"kid,omitempty"`    // by which statements name the key; empty: by KeyID
	Revoked   time.Time          `json:"revoked,omitzero"` // from then on others may have signed with it; zero: it was not revoked

	public crypto.PublicKey
}

// StatementUse says what a StatementKey may sign.
type StatementUse string

const (
	IssuesStatements StatementUse = "issuer"
	IssuesReceipts   StatementUse = "service"
)

// Public returns the public key. It is nil before Parse or Prepared has parsed it.
func (k *StatementKey) Public() crypto.PublicKey { return k.public }

// Named reports whether a hint about a key names this one.
func (k *StatementKey) Named(kid []byte) bool {
	if len(k.COSEKeyID) > 0 {
		return string(k.COSEKeyID) == string(kid)
	}
	return string(k.KeyID[:]) == string(kid)
}

func (k *StatementKey) prepare() (err error) {
	switch {
	case k.Name == "":
		return errors.New("name is empty")
	case k.Issuer == "":
		return errors.New("issuer is empty: it is the claim iss of what the key signs")
	case k.Use != IssuesStatements && k.Use != IssuesReceipts:
		return fmt.Errorf("use is %q: want %q (it signs statements) or %q (it signs receipts)", k.Use, IssuesStatements, IssuesReceipts)
	}
	if k.public, err = evidence.ParsePublicKey(k.PublicKey); err != nil {
		return fmt.Errorf("public_key: %w", err)
	}
	algorithm, _ := evidence.AlgorithmOf(k.public)
	switch {
	case algorithm != k.Algorithm:
		return fmt.Errorf("alg is %q, but the key signs %q", k.Algorithm, algorithm)
	case algorithm != evidence.ES256 && algorithm != evidence.Ed25519:
		return fmt.Errorf("alg is %q: want %q or %q, as statements are signed", algorithm, evidence.ES256, evidence.Ed25519)
	case evidence.DigestOf(k.PublicKey) != k.KeyID:
		return fmt.Errorf("key_id is %s, but the key's is %s", k.KeyID, evidence.DigestOf(k.PublicKey))
	}
	return nil
}

func (t *Trust) prepareStatementKeys() error {
	for i := range t.SCITT {
		k := &t.SCITT[i]
		if err := k.prepare(); err != nil {
			return fmt.Errorf("reading trust file: scitt/%d: %w", i, err)
		}
		same := func(other StatementKey) bool {
			return other.KeyID == k.KeyID && other.Use == k.Use && other.Issuer == k.Issuer
		}
		if slices.ContainsFunc(t.SCITT[:i], same) {
			return fmt.Errorf("reading trust file: scitt/%d: the key is there twice for %q", i, k.Issuer)
		}
	}
	return nil
}

// StatementKeys returns the keys that an issuer may sign with, for a use.
func (t *Trust) StatementKeys(use StatementUse, issuer string) []*StatementKey {
	var list []*StatementKey
	for i := range t.SCITT {
		if k := &t.SCITT[i]; k.Use == use && k.Issuer == issuer {
			list = append(list, k)
		}
	}
	return list
}

// LogKey returns the name and public key of the log whose key has an id; nil if the trust file names no such log.
func (t *Trust) LogKey(id []byte) (origin string, public crypto.PublicKey) {
	for _, key := range t.logs {
		if string(key.id[:]) == string(id) {
			return key.origin, key.public
		}
	}
	return "", nil
}
