package access

import (
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// A book is what the log says of access up to some record.
type book struct {
	grants map[evidence.Digest]*Grant
	order  []*Grant
	public map[string]bool // chains that everybody may read
	open   map[string]bool // records in no chain that everybody may read, by id
}

func newBook() *book {
	return &book{grants: map[evidence.Digest]*Grant{}, public: map[string]bool{}, open: map[string]bool{}}
}

// apply takes in one event more. What does not fit is an error for good: nobody is let in by a list that cannot be read.
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
		if e.Record != "" {
			where, name = b.open, e.Record
		}
		if where[name] = true; e.Event == operator.AccessWithdrawn {
			delete(where, name)
		}
	case operator.AccessGranted:
		return b.grant(e, at)
	case operator.AccessRevoked:
		g := b.grants[e.Token]
		if g == nil {
			return errors.New("a token is revoked that was not granted")
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
		return errors.New("a token is granted under one that was not")
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

// who says whose token this is, and whether it opens anything at a time. The grant is returned with the error, too, where the
// token was once given out.
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
