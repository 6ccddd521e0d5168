package evidence

import (
	"errors"
	"fmt"
	"slices"
)

// Chains of the operator's acts on who may do what, and of what was refused.
const (
	AccessChain   = OperatorPrefix + "access"
	RefusalsChain = OperatorPrefix + "refusals"
)

// MaxRefusals is how many refusals one act may speak of.
const MaxRefusals = 500

// AccessChange says what became of somebody's access.
type AccessChange string

const (
	AccessGranted   AccessChange = "granted"   // whoever has the token may do what its roles allow
	AccessRevoked   AccessChange = "revoked"   // the token opens nothing any more
	AccessPublished AccessChange = "published" // everybody may read the chain or the record
	AccessWithdrawn AccessChange = "withdrawn" // nobody may read it without a role any more
	AccessAdmitted  AccessChange = "admitted"  // an agent may add to the chain, whoever began it
)

// AccessEventBody is the response of an access_event. Of a token it has the digest alone: a token is random, so nobody
// finds it from that.
type AccessEventBody struct {
	By       string       `json:"by"`
	Chain    string       `json:"chain,omitzero"` // of published, withdrawn and admitted
	Event    AccessChange `json:"event"`
	Name     string       `json:"name,omitzero"`      // of granted: who acts with it; of admitted: the agent
	NotAfter string       `json:"not_after,omitzero"` // of granted: RFC 3339
	Reason   string       `json:"reason"`
	Record   string       `json:"record,omitzero"`  // of published and withdrawn, in place of a chain: the id of a record that is in none
	Roles    []string     `json:"roles,omitempty"`  // of granted: at least one, sorted
	Session  bool         `json:"session,omitzero"` // of granted: somebody signed in with a browser
	Token    Digest       `json:"token,omitzero"`   // of granted and revoked
	Under    Digest       `json:"under,omitzero"`   // of granted: the token that this one ends with
}

// ReadAccessEvent reads an act that says who may do what.
func ReadAccessEvent(p *Payload) (*AccessEventBody, error) {
	if p.ActionType != AccessEvent || p.ChainID != AccessChain {
		return nil, fmt.Errorf("%s in chain %q is no event of access in chain %q", p.ActionType, p.ChainID, AccessChain)
	}
	body, err := ReadOperatorBody[AccessEventBody](p)
	if err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, fmt.Errorf("response of %s: %w", p.ActionType, err)
	}
	return body, nil
}

func (b *AccessEventBody) check() error {
	if b.By == "" || b.Reason == "" {
		return errors.New("by and reason are not empty")
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
		return fmt.Errorf("event %q is none", b.Event)
	}
	ofChain := b.Event == AccessPublished || b.Event == AccessWithdrawn || b.Event == AccessAdmitted
	if b.Event == AccessAdmitted {
		if err := CheckName(b.Name); err != nil {
			return fmt.Errorf("name: %w", err)
		}
	}
	named := b.Chain != "" || b.Record != ""
	if ofChain != b.Token.IsZero() || ofChain != named || b.Chain != "" && b.Record != "" || b.Record != "" && b.Event == AccessAdmitted {
		return fmt.Errorf("%s is of %s", b.Event, map[bool]string{true: "a chain, or a record where it may be one, and nothing else", false: "a token and nothing else"}[ofChain])
	}
	switch {
	case b.Record != "":
		return checkRecordID(b.Record)
	case ofChain:
		return CheckName(b.Chain)
	}
	return nil
}

func (b *AccessEventBody) checkGrant() error {
	if err := CheckName(b.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if _, err := ParseTime(b.NotAfter); err != nil {
		return fmt.Errorf("not_after: %w", err)
	}
	if len(b.Roles) == 0 || !slices.IsSorted(b.Roles) || len(slices.Compact(slices.Clone(b.Roles))) != len(b.Roles) {
		return errors.New("roles: want at least one, sorted, none twice")
	}
	for _, role := range b.Roles {
		if err := CheckName(role); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	}
	return nil
}

// RefusalBody is the response of a refusal.
type RefusalBody struct {
	Refused []Refused `json:"refused"` // 1 to MaxRefusals
}

// Refused says that somebody was refused something, once or several times within a span of time.
type Refused struct {
	Count   int64  `json:"count"`
	From    string `json:"from"`           // RFC 3339
	Name    string `json:"name,omitzero"`  // whose token it was; "": nobody knows who it was
	Problem string `json:"problem"`        // the name of what stood against it
	Route   string `json:"route"`          // method and pattern, such as "POST /v1/records"
	To      string `json:"to"`             // RFC 3339
	Token   Digest `json:"token,omitzero"` // that was shown; zero: none that was ever given out
}

func (b *RefusalBody) checkSize() error {
	if n := len(b.Refused); n < 1 || n > MaxRefusals {
		return fmt.Errorf("refused: there are %d, want 1 to %d", n, MaxRefusals)
	}
	for i, r := range b.Refused {
		if r.Count < 1 || r.Problem == "" || r.Route == "" || r.From == "" || r.To == "" || (r.Name == "") != r.Token.IsZero() {
			return fmt.Errorf("refused: number %d lacks something, or has a name without a token", i+1)
		}
	}
	return nil
}
