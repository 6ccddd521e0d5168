package access

import (
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// A book is the state of access after some record of the log.
type book struct {
	grants map[evidence.Digest]*Grant
	order  []*Grant
	public map[string]bool // public chains
	open   map[string]bool // public records that are in no chain, by id
	agents map[string]bool // agents whose reputation is public
}

func newBook() *book {
	return &book{grants: map[evidence.Digest]*Grant{}, public: map[string]bool{}, open: map[string]bool{}, agents: map[string]bool{}}
}

// apply adds one event. An event that does not fit makes every later reading fail: an unreadable list grants no access.
func (b *book) apply(r *evidence.Record) error {
	e, err := operator.ReadAccessEvent(&r.Payload)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	if err := b.change(e, r.Payload.Time()); err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	return nil
}

func (b *book) change(e *operator.AccessEventBody, at time.Time) error {
	switch e.Event {
	case operator.AccessPublished, operator.AccessWithdrawn:
		where, name := b.public, e.Chain
		switch {
		case e.Record != "":
			where, name = b.open, e.Record
		case e.Agent != "":
			where, name = b.agents, e.Agent
		}
		if where[name] = true; e.Event == operator.AccessWithdrawn {
			delete(where, name)
		}
	case operator.AccessGranted:
		return b.grant(e, at)
	case operator.AccessRevoked:
		g := b.grants[e.Token]
		if g == nil {
			return errors.New("an unknown token is revoked")
		}
		if g.Revoked.IsZero() {
			g.Revoked = at
		}
	}
	return nil
}

func (b *book) grant(e *operator.AccessEventBody, at time.Time) error {
	if b.grants[e.Token] != nil {
		return errors.New("a token is granted a second time")
	}
	if !e.Under.IsZero() && b.grants[e.Under] == nil {
		return errors.New("a token is granted under an unknown token")
	}
	until, err := evidence.ParseTime(e.NotAfter)
	if err != nil {
		return err
	}
	g := &Grant{Token: e.Token, Under: e.Under, Name: e.Name, Since: at, Until: until, Session: e.Session, Reason: e.Reason, By: e.By}
	for _, role := range e.Roles {
		g.Roles = append(g.Roles, Role(role))
	}
	b.grants[e.Token], b.order = g, append(b.order, g)
	return nil
}

// who returns the grant of a token, and an error if the token is not valid at a time. With ErrExpired and ErrRevoked it also returns the
// grant.
func (b *book) who(id evidence.Digest, now time.Time) (*Grant, error) {
	g := b.grants[id]
	if g == nil {
		return nil, ErrUnknown
	}
	for at := g; at != nil; at = b.grants[at.Under] {
		if err := at.check(now); err != nil {
			return g, err
		}
	}
	return g, nil
}
