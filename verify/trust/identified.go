package trust

import (
	"slices"
	"time"

	"jurat/evidence"
)

// MaxIdentified is how many signers a report lists.
const MaxIdentified = 1000

// Identified says who stands behind a signature, and by whose word.
type Identified struct {
	Role    evidence.Role  `json:"role"`
	Name    string         `json:"name"`
	KeyID   evidence.KeyID `json:"key_id"`
	By      Source         `json:"by"`
	CA      string         `json:"ca,omitzero"` // the CA's name, if By is ByCA
	Custody Custody        `json:"custody"`
	Revoked *Revoked       `json:"revoked,omitempty"` // what was revoked after that; nil: nothing, as far as known
}

// Revoked says that a key or certificate was revoked after what it signed existed.
type Revoked struct {
	Certificate string     `json:"certificate,omitzero"` // its subject, or its serial number if that is empty; "": it is the key that the trust file lists
	On          time.Time  `json:"on"`
	Since       time.Time  `json:"since,omitzero"`  // it is known to be compromised since this earlier time; zero: none is stated
	Reason      string     `json:"reason,omitzero"` // as RFC 5280 (section 5.3.1) names it; "": none is stated
	Existed     ProvedTime `json:"existed"`         // of what it signed in several records, the latest
}

// Later returns that of two of which the signed existed later, by its proof; nil is neither.
func (r *Revoked) Later(than *Revoked) *Revoked {
	if r == nil || than != nil && !than.Existed.Time.Before(r.Existed.Time) {
		return than
	}
	return r
}

// Source is the part of a trust file that says whose a key is.
type Source string

const (
	ByKey Source = "keys" // the trust file has the key itself
	ByCA  Source = "cas"  // a CA of the trust file certified it
)

// Identified says that the trust file has the key.
func (k *Key) Identified() *Identified {
	return &Identified{Role: k.Role, Name: k.Name, KeyID: k.KeyID, By: ByKey, Custody: k.Custody}
}

// IdentifiedAt says the same of what the key signed, and whether the key was revoked after that.
func (k *Key) IdentifiedAt(at Proof) *Identified {
	made := k.Identified()
	if !k.Revoked.IsZero() && at.IndependentlyBefore(k.Revoked) {
		made.Revoked = &Revoked{On: k.Revoked.UTC(), Existed: *at.Independent}
	}
	return made
}

// Identified says that the CA certified an actor's key.
func (ca *CA) Identified(role evidence.Role, name string, key evidence.KeyID) *Identified {
	return &Identified{Role: role, Name: name, KeyID: key, By: ByCA, CA: ca.Name, Custody: ca.Custody}
}

// AddIdentified adds signers to a list, each once, up to MaxIdentified.
func AddIdentified(list []Identified, more ...Identified) []Identified {
	for _, one := range more {
		same := func(known Identified) bool {
			return known.KeyID == one.KeyID && known.Role == one.Role && known.Name == one.Name && known.CA == one.CA
		}
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i].Revoked = one.Revoked.Later(list[i].Revoked)
		} else if len(list) < MaxIdentified {
			list = append(list, one)
		}
	}
	return list
}
