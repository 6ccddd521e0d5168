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
	Role         evidence.Role  `json:"role"`
	Name         string         `json:"name"`
	KeyID        evidence.KeyID `json:"key_id"`
	By           Source         `json:"by"`
	CA           string         `json:"ca,omitzero"` // the CA's name, if By is ByCA
	Custody      Custody        `json:"custody"`
	Organisation *Organisation  `json:"organisation,omitempty"` // which mandated the CA; nil: none
}

// Source is the part of a trust file that says whose a key is.
type Source string

const (
	ByKey Source = "keys" // the trust file has the key itself
	ByCA  Source = "cas"  // a CA of the trust file certified it
)

// An Organisation is one that let a CA certify keys, with the trusted list that shows its seal as qualified.
type Organisation struct {
	Name       string    `json:"name"`
	Country    string    `json:"country"`
	Identifier string    `json:"identifier,omitempty"`
	Territory  string    `json:"territory"` // of the list
	Sequence   int       `json:"sequence"`
	Issued     time.Time `json:"issued"`
}

// Identified says that the trust file has the key.
func (k *Key) Identified() *Identified {
	return &Identified{Role: k.Role, Name: k.Name, KeyID: k.KeyID, By: ByKey, Custody: k.Custody}
}

// Identified says that the CA certified an actor's key.
func (ca *CA) Identified(role evidence.Role, name string, key evidence.KeyID) *Identified {
	made := &Identified{Role: role, Name: name, KeyID: key, By: ByCA, CA: ca.Name, Custody: ca.Custody}
	if m := ca.Mandate; m != nil {
		made.Organisation = &Organisation{Name: m.Organisation, Country: m.Country, Identifier: m.Identifier, Territory: m.Service.Territory,
			Sequence: m.Service.List.Sequence, Issued: m.Service.List.Issued}
	}
	return made
}

// AddIdentified adds signers to a list, each once, up to MaxIdentified.
func AddIdentified(list []Identified, more ...Identified) []Identified {
	for _, one := range more {
		same := func(known Identified) bool {
			return known.KeyID == one.KeyID && known.Role == one.Role && known.Name == one.Name && known.CA == one.CA
		}
		if len(list) < MaxIdentified && !slices.ContainsFunc(list, same) {
			list = append(list, one)
		}
	}
	return list
}
