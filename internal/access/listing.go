package access

import (
	"context"
	"errors"
	"time"

	"jurat/api"
)

// List says who may do what, in the order of the log. all adds what has ended, and sessions that end with a token. Its
// errors are those of reading the log.
func (r *Register) List(ctx context.Context, all bool) (api.AccessList, error) {
	list := api.AccessList{Grants: []api.Grant{}, Public: []string{}, Agents: []string{}}
	grants, err := r.Grants(ctx)
	if err != nil {
		return list, err
	}
	for i := range grants {
		if g := &grants[i]; all || g.Counts() {
			list.Grants = append(list.Grants, g.Described())
		}
	}
	chains, err := r.PublicChains(ctx)
	if err != nil {
		return list, err
	}
	list.Public = append(list.Public, chains...)
	agents, err := r.PublicAgents(ctx)
	list.Agents = append(list.Agents, agents...)
	return list, err
}

// Counts reports whether the grant is valid and does not end with another's token.
func (l *Listed) Counts() bool { return l.Ended == nil && (!l.Session || l.Under.IsZero()) }

// Described returns the grant as it travels.
func (l *Listed) Described() api.Grant {
	return api.Grant{Token: l.Token, Name: l.Name, Roles: text(l.Roles), Since: second(l.Since), NotAfter: second(l.Until), State: l.State(),
		Session: l.Session, By: l.By, Reason: l.Reason}
}

func second(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// State says whether the grant is valid, or why not.
func (l *Listed) State() api.GrantState {
	switch {
	case errors.Is(l.Ended, ErrRevoked):
		return api.GrantRevoked
	case errors.Is(l.Ended, ErrExpired):
		return api.GrantExpired
	}
	return api.GrantGood
}
