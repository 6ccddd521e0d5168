package certlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/ca"
)

// ErrNotYours says that an agent asked for a certificate in another's name.
var ErrNotYours = errors.New("an agent gets certificates in its own name only")

// An Issuer issues certificates to agents that ask for them over a network. It is safe for concurrent use.
type Issuer struct {
	Log   *Log
	CA    *ca.CA
	Life  time.Duration // of the certificates; 0: the default of ca.Order
	Short bool          // as in ca.Order
}

// Issue issues the certificate that an agent asks for in its own name. If the key has one that need not be renewed yet, Issue returns that
// one, and before is true: so an agent that repeats its request fills neither the log nor the CA's folder. The errors are ErrNotYours, and
// those of ca.ParseRequest and Log.Issue.
func (i *Issuer) Issue(ctx context.Context, agent string, request []byte) (made *ca.Issued, before bool, err error) {
	r, err := ca.ParseRequest(request)
	if err != nil {
		return nil, false, err
	}
	if r.Role != evidence.RoleAgent || r.Name != agent {
		return nil, false, fmt.Errorf("%w: the token is that of %q, and the request names %s %q", ErrNotYours, agent, r.Role, r.Name)
	}
	order := Order{Order: ca.Order{Request: r, Life: i.Life, Short: i.Short, By: agent, Reason: "the agent asked with its token"}}
	if _, err := i.Log.may(ctx, order); err != nil {
		return nil, false, fmt.Errorf("issuing certificate: %w", err)
	}
	if made, err = i.present(ctx, r); err != nil {
		return nil, false, err
	}
	if made != nil {
		return made, true, i.Log.published(ctx, i.CA, made) // unless a crash came before it, this seals nothing
	}
	made, err = i.Log.Issue(ctx, i.CA, order)
	return made, false, err
}

// present returns the latest certificate for a request's name and key, unless it is to be renewed, or there is none.
func (i *Issuer) present(ctx context.Context, r *ca.Request) (*ca.Issued, error) {
	all, err := i.CA.Issued(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Backward(all) {
		if one.Role == r.Role && one.Name == r.Name && one.KeyID == r.KeyID && one.Revoked == nil {
			if i.Log.Now().Before(one.DueAt()) {
				return &one, nil
			}
			return nil, nil
		}
	}
	return nil, nil
}
