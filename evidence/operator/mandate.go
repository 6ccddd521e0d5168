package operator

import (
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
)

// MandatesChain is the chain of the operator's acts on mandates.
const MandatesChain = evidence.OperatorPrefix + "mandates"

// MandateBody is the response of a mandate: by a signed file, an organisation lets a CA certify keys of actors.
type MandateBody struct {
	By           string          `json:"by"`
	CA           evidence.KeyID  `json:"ca"`     // the CA's key
	Digest       evidence.Digest `json:"digest"` // of the signed file
	From         string          `json:"from"`   // RFC 3339
	Names        []string        `json:"names,omitempty"`
	Organisation string          `json:"organisation"` // as the certificate of its seal names it
	Reason       string          `json:"reason"`
	Roles        []evidence.Role `json:"roles"`
	To           string          `json:"to"` // RFC 3339
}

// ReadMandate reads a mandate. It returns an error if the act stands in another chain or breaks a rule. It does not read the signed file.
func ReadMandate(p *evidence.Payload) (*MandateBody, error) {
	if p.ActionType != evidence.Mandate || p.ChainID != MandatesChain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, evidence.Mandate, MandatesChain)
	}
	body, err := Read[MandateBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *MandateBody) check() error {
	from, errFrom := evidence.ParseTime(b.From)
	to, errTo := evidence.ParseTime(b.To)
	switch {
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case b.CA.IsZero() || b.Digest.IsZero():
		return errors.New("ca or digest is missing")
	case b.Organisation == "":
		return errors.New("organisation is empty")
	case errFrom != nil || errTo != nil || !from.Before(to):
		return errors.New("from and to are not two times, the first before the second")
	case len(b.Roles) == 0 || !sortedOnce(b.Roles) || slices.ContainsFunc(b.Roles, func(r evidence.Role) bool { return !slices.Contains(evidence.Roles(), r) }):
		return fmt.Errorf("roles: want one or more of %v, sorted, none twice", evidence.Roles())
	case !sortedOnce(b.Names):
		return errors.New("names are not sorted, or one is there twice")
	}
	for _, name := range b.Names {
		if err := evidence.CheckName(name); err != nil {
			return fmt.Errorf("names: %w", err)
		}
	}
	return nil
}

func sortedOnce[T ~string](list []T) bool {
	for i := 1; i < len(list); i++ {
		if list[i-1] >= list[i] {
			return false
		}
	}
	return true
}
