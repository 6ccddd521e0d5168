package operator

import (
	"errors"
	"fmt"
	"slices"

	"jurat/evidence"
)

// AccessChain has the operator's acts on access.
const AccessChain = evidence.OperatorPrefix + "access"

// AccessChange is what happened to the access of a person, an agent or the public.
type AccessChange string

const (
	AccessGranted   AccessChange = "granted"   // the holder of the token may do what its roles allow
	AccessRevoked   AccessChange = "revoked"   // the token no longer opens anything
	AccessPublished AccessChange = "published" // everybody may read the chain, the record, or what the log shows of the agent
	AccessWithdrawn AccessChange = "withdrawn" // only roles open it again
	AccessAdmitted  AccessChange = "admitted"  // an agent may add to a chain that another began
)

// AccessEventBody is the response of an access_event. It has a token's digest, not the token: a token is random, so the digest
// does not reveal it.
type AccessEventBody struct {
	Agent    string          `json:"agent,omitzero"` // of published and withdrawn, instead of a chain: an agent, whose reputation is shown
	By       string          `json:"by"`
	Chain    string          `json:"chain,omitzero"` // of published, withdrawn and admitted
	Event    AccessChange    `json:"event"`
	Name     string          `json:"name,omitzero"`      // of granted: who acts with it; of admitted: the agent
	NotAfter string          `json:"not_after,omitzero"` // of granted: RFC 3339
	Reason   string          `json:"reason"`
	Record   string          `json:"record,omitzero"`  // of published and withdrawn, instead of a chain: the id of a record without one
	Roles    []string        `json:"roles,omitempty"`  // of granted: at least one, sorted
	Session  bool            `json:"session,omitzero"` // of granted: a person signed in with a browser
	Token    evidence.Digest `json:"token,omitzero"`   // of granted and revoked
	Under    evidence.Digest `json:"under,omitzero"`   // of granted: the token that this one ends with
}

// ReadAccessEvent reads an access_event. It returns an error if the act stands in another chain or breaks a rule of its event.
func ReadAccessEvent(p *evidence.Payload) (*AccessEventBody, error) {
	return readIn[AccessEventBody](p, evidence.AccessEvent, AccessChain)
}

func (b *AccessEventBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by or reason is empty")
	}
	switch b.Event {
	case AccessGranted:
		if err := b.checkGrant(); err != nil {
			return err
		}
	case AccessRevoked, AccessPublished, AccessWithdrawn, AccessAdmitted:
		if (b.Name != "") != (b.Event == AccessAdmitted) || b.NotAfter != "" || b.Roles != nil || b.Session || !b.Under.IsZero() {
			return fmt.Errorf("%s has a name if it is %s, and no not_after, roles, session or under", b.Event, AccessAdmitted)
		}
	default:
		return fmt.Errorf("unknown event %q", b.Event)
	}
	ofChain := b.Event == AccessPublished || b.Event == AccessWithdrawn || b.Event == AccessAdmitted
	if b.Event == AccessAdmitted {
		if err := evidence.CheckName(b.Name); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	named, want := 0, 0
	for _, name := range []string{b.Chain, b.Record, b.Agent} {
		if name != "" {
			named++
		}
	}
	if ofChain {
		want = 1
	}
	if ofChain != b.Token.IsZero() || named != want || b.Chain == "" && b.Event == AccessAdmitted {
		return fmt.Errorf("%s is of %s", b.Event, map[bool]string{true: "a chain, or a record or an agent where it may be one, and nothing else", false: "a token and nothing else"}[ofChain])
	}
	switch {
	case b.Agent != "":
		if err := evidence.CheckName(b.Agent); err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		return nil
	case b.Record != "":
		return evidence.CheckRecordID(b.Record)
	case ofChain:
		return evidence.CheckName(b.Chain)
	}
	return nil
}

func (b *AccessEventBody) checkGrant() error {
	if err := evidence.CheckName(b.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if _, err := evidence.ParseTime(b.NotAfter); err != nil {
		return fmt.Errorf("not_after: %w", err)
	}
	if len(b.Roles) == 0 || !slices.IsSorted(b.Roles) || len(slices.Compact(slices.Clone(b.Roles))) != len(b.Roles) {
		return errors.New("roles: want at least one, sorted, none twice")
	}
	for _, role := range b.Roles {
		if err := evidence.CheckName(role); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	}
	return nil
}
