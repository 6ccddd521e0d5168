package operator

import (
	"errors"
	"fmt"

	"jurat/evidence"
)

// ListsChain is the chain of the operator's acts on trusted lists.
const ListsChain = evidence.OperatorPrefix + "lists"

// TrustedListBody is the response of a trusted_list: which issue of a trusted list of the EU the operator keeps. The installation keeps the
// file itself. The record's time shows that this issue existed by then.
type TrustedListBody struct {
	By         string          `json:"by"`
	Digest     evidence.Digest `json:"digest"`               // of the file
	Issued     string          `json:"issued"`               // RFC 3339, as the list says
	NextUpdate string          `json:"next_update,omitzero"` // RFC 3339; "": no next one is to come
	Reason     string          `json:"reason"`
	Sequence   int64           `json:"sequence"`  // the list's number, from 1 to 2147483647
	Territory  string          `json:"territory"` // two capital letters; EU: the list of the lists
}

// ReadTrustedList reads a trusted_list. It returns an error if the act stands in another chain or breaks a rule. It does not read the list.
func ReadTrustedList(p *evidence.Payload) (*TrustedListBody, error) {
	if p.ActionType != evidence.TrustedList || p.ChainID != ListsChain {
		return nil, fmt.Errorf("%s in chain %q is not a %s of chain %q", p.ActionType, p.ChainID, evidence.TrustedList, ListsChain)
	}
	body, err := Read[TrustedListBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *TrustedListBody) check() error {
	switch {
	case b.By == "" || b.Reason == "":
		return errors.New("by or reason is empty")
	case b.Digest.IsZero():
		return errors.New("digest is missing")
	case !isTerritory(b.Territory):
		return fmt.Errorf("territory: %q is not two capital letters", evidence.Abbreviate(b.Territory))
	case b.Sequence < 1 || b.Sequence > 1<<31-1:
		return fmt.Errorf("sequence: %d, want 1 to 2147483647", b.Sequence)
	}
	issued, err := evidence.ParseTime(b.Issued)
	if err != nil {
		return fmt.Errorf("issued: %w", err)
	}
	if b.NextUpdate == "" {
		return nil
	}
	switch next, err := evidence.ParseTime(b.NextUpdate); {
	case err != nil:
		return fmt.Errorf("next_update: %w", err)
	case next.Before(issued):
		return errors.New("next_update is before issued")
	}
	return nil
}

func isTerritory(text string) bool {
	return len(text) == 2 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'A' && text[1] <= 'Z'
}
