package access

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/names"
)

// Config says which log a Register reads and writes.
type Config struct {
	Ledger *ledger.Ledger   // required
	Keys   ledger.Keys      // required
	Random io.Reader        // for tokens; nil: crypto/rand
	Now    func() time.Time // nil: time.Now
}

// A Register reads from the log who may do what, and logs changes. It is safe for concurrent use, and notices changes by other processes.
type Register struct {
	config Config

	mu   sync.Mutex // held while book and next are read or updated
	book *book
	next int64 // the index in the log of the next record to read
}

// New makes a Register.
func New(c Config) *Register {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Register{config: c, book: newBook()}
}

// read calls do with the present state of the log.
func (r *Register) read(ctx context.Context, do func(*book)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		records, next, err := r.config.Ledger.InChain(ctx, operator.AccessChain, r.next)
		if err != nil {
			return fmt.Errorf("reading who may do what: %w", err)
		}
		if len(records) == 0 {
			break
		}
		for _, record := range records {
			if err := r.book.apply(record); err != nil {
				// After an error, read starts again from the beginning of the chain next time.
				r.book, r.next = newBook(), 0
				return fmt.Errorf("reading who may do what: %w", err)
			}
		}
		r.next = next
	}
	do(r.book)
	return nil
}

// Who returns the grant of a token. It returns ErrUnknown, or the grant together with ErrExpired or ErrRevoked.
func (r *Register) Who(ctx context.Context, token string) (*Grant, error) {
	var g *Grant
	var refused error
	err := r.read(ctx, func(b *book) {
		known, why := b.who(IDOf(token), r.config.Now())
		g, refused = clone(known), why
	})
	if err != nil {
		return nil, err
	}
	return g, refused
}

// clone returns a copy that later events do not change.
func clone(g *Grant) *Grant {
	if g == nil {
		return nil
	}
	c := *g
	return &c
}

// Public reports whether everyone may read a chain.
func (r *Register) Public(ctx context.Context, chain string) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.public[chain] })
	return public, err
}

// PublicRecord reports whether everyone may read a record that is in no chain.
func (r *Register) PublicRecord(ctx context.Context, id string) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.open[id] })
	return public, err
}

// PublicAgent reports whether everyone may read the reputation of an agent.
func (r *Register) PublicAgent(ctx context.Context, name string) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.agents[name] })
	return public, err
}

// Listed is a grant together with its present state.
type Listed struct {
	Grant
	Ended error // ErrExpired or ErrRevoked, of this token or of the one that it is under; nil: it is valid
}

// Grants returns every grant, in the order of the log, ended ones included.
func (r *Register) Grants(ctx context.Context) (list []Listed, err error) {
	err = r.read(ctx, func(b *book) {
		for _, g := range b.order {
			_, ended := b.who(g.Token, r.config.Now())
			list = append(list, Listed{*g, ended})
		}
	})
	return list, err
}

// An Order says which grant to make.
type Order struct {
	Name    string
	Roles   []Role
	For     time.Duration   // how long the grant lasts; at least a second
	Under   evidence.Digest // the token whose end also ends the new one; zero: none
	Session bool            // the token is a browser's session
	Reason  string          // required, as is By
	By      string
}

// checkName returns an error for a name under which no one may begin to act. A session may have an older name.
func (o *Order) checkName() error {
	if o.Under.IsZero() {
		return names.Check(o.Name)
	}
	return evidence.CheckName(o.Name)
}

// Check returns an error with ErrOrder in its chain if no token can be made by the order.
func (o *Order) Check() error {
	if err := o.checkName(); err != nil {
		return fmt.Errorf("%w: name: %w", ErrOrder, err)
	}
	if err := checkRoles(o.Roles); err != nil {
		return err
	}
	if o.For < time.Second {
		return fmt.Errorf("%w: it would last %v, want at least 1s", ErrOrder, o.For)
	}
	return nil
}

// Has reports whether the order is for a role.
func (o *Order) Has(role Role) bool { return slices.Contains(o.Roles, role) }

// Grant makes a token and returns it. The token itself is not stored anywhere. For an order that is not valid, the error has ErrOrder in
// its chain.
func (r *Register) Grant(ctx context.Context, o Order) (token string, grant *Grant, err error) {
	if token, err = r.grant(ctx, o); err != nil {
		return "", nil, fmt.Errorf("granting access: %w", err)
	}
	grant, err = r.Who(ctx, token)
	return token, grant, err
}

func (r *Register) grant(ctx context.Context, o Order) (string, error) {
	if err := o.Check(); err != nil {
		return "", err
	}
	if err := r.checkNew(ctx, &o); err != nil {
		return "", err
	}
	token, err := newToken(r.config.Random)
	if err != nil {
		return "", err
	}
	roles := text(o.Roles)
	slices.Sort(roles)
	return token, r.seal(ctx, operator.AccessEventBody{Event: operator.AccessGranted, Token: IDOf(token), Under: o.Under, Session: o.Session, Name: o.Name,
		Roles: slices.Compact(roles), NotAfter: evidence.FormatTime(r.config.Now().Add(o.For)), Reason: o.Reason, By: o.By})
}

// checkNew refuses an order for a name that readers could take for one that had access before.
func (r *Register) checkNew(ctx context.Context, o *Order) (err error) {
	if !o.Under.IsZero() {
		return nil // the name is that of a token
	}
	reading := r.read(ctx, func(b *book) {
		known := false
		for _, g := range b.grants {
			known = known || g.Name == o.Name
		}
		if !known {
			err = names.CheckNew(o.Name, func(yield func(string) bool) {
				for _, g := range b.grants {
					if !yield(g.Name) {
						return
					}
				}
			})
		}
	})
	if err != nil {
		err = fmt.Errorf("%w: name: %w", ErrOrder, err)
	}
	return cmp.Or(reading, err)
}

// Revoke ends a token. A token that is revoked already stays as it is. For an unknown token, the error has ErrUnknown in its chain.
func (r *Register) Revoke(ctx context.Context, id evidence.Digest, reason, by string) error {
	var g *Grant
	if err := r.read(ctx, func(b *book) { g = clone(b.grants[id]) }); err != nil {
		return err
	}
	if g == nil {
		return fmt.Errorf("revoking access: %w", ErrUnknown)
	}
	if !g.Revoked.IsZero() {
		return nil
	}
	if err := r.seal(ctx, operator.AccessEventBody{Event: operator.AccessRevoked, Token: id, Reason: reason, By: by}); err != nil {
		return fmt.Errorf("revoking access: %w", err)
	}
	return nil
}

// SetPublic makes a chain public, or ends that, so that only parties with a role for it read the chain. It returns
// ErrOrder, wrapped, for an act that its readers would refuse.
func (r *Register) SetPublic(ctx context.Context, chain string, public bool, reason, by string) error {
	return r.publish(ctx, operator.AccessEventBody{Chain: chain, Reason: reason, By: by}, public, "chain "+strconv.Quote(chain))
}

// SetPublicRecord does the same for a record that is in no chain. Its errors are those of SetPublic.
func (r *Register) SetPublicRecord(ctx context.Context, id string, public bool, reason, by string) error {
	return r.publish(ctx, operator.AccessEventBody{Record: id, Reason: reason, By: by}, public, "record "+id)
}

// SetPublicAgent does the same for the reputation of an agent. What it rests on does not become public by this. Its errors
// are those of SetPublic.
func (r *Register) SetPublicAgent(ctx context.Context, name string, public bool, reason, by string) error {
	return r.publish(ctx, operator.AccessEventBody{Agent: name, Reason: reason, By: by}, public, "the reputation of agent "+strconv.Quote(name))
}

// publish makes what an event names public, or ends that, unless it is so already. what names it in an error.
func (r *Register) publish(ctx context.Context, e operator.AccessEventBody, public bool, what string) error {
	already := false
	if err := r.read(ctx, func(b *book) {
		where, name := b.shelf(&e)
		already = where[name]
	}); err != nil || already == public {
		return err
	}
	if e.Event = operator.AccessWithdrawn; public {
		e.Event = operator.AccessPublished
	}
	if err := r.seal(ctx, e); err != nil {
		return fmt.Errorf("changing who reads %s: %w", what, err)
	}
	return nil
}

// Admit lets an agent add to a chain that another agent has begun. This cannot be undone: what the agent adds stays. A refused name returns
// ErrOrder.
func (r *Register) Admit(ctx context.Context, chain, agent, reason, by string) error {
	if err := names.Check(agent); err != nil {
		return fmt.Errorf("admitting %q to chain %q: %w: agent_id: %w", agent, chain, ErrOrder, err)
	}
	if err := r.seal(ctx, operator.AccessEventBody{Event: operator.AccessAdmitted, Chain: chain, Name: agent, Reason: reason, By: by}); err != nil {
		return fmt.Errorf("admitting %q to chain %q: %w", agent, chain, err)
	}
	return nil
}

func (r *Register) seal(ctx context.Context, body operator.AccessEventBody) error {
	p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.AccessEvent, ChainID: operator.AccessChain}, body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOrder, err)
	}
	return ledger.Operator{Ledger: r.config.Ledger, Keys: r.config.Keys}.SealLast(ctx, p)
}
