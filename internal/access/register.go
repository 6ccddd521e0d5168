package access

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/names"
)

// Config is what a Register works with.
type Config struct {
	Ledger *ledger.Ledger   // required
	Keys   ledger.Keys      // required
	Random io.Reader        // of tokens; nil: crypto/rand
	Now    func() time.Time // nil: time.Now
}

// A Register knows what the log says of access, and has the log told of changes. It is safe for concurrent use, and notices
// what other processes have the log told.
type Register struct {
	config Config

	mu   sync.Mutex // held while what is known is read or brought up to date
	book *book
	next int64 // index in the log from which nothing was read yet
}

// New makes a Register.
func New(c Config) *Register {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Register{config: c, book: newBook()}
}

// read does something with what the log says now.
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
				// What was read of this page is read again, from the beginning.
				r.book, r.next = newBook(), 0
				return fmt.Errorf("reading who may do what: %w", err)
			}
		}
		r.next = next
	}
	do(r.book)
	return nil
}

// Who says whose token this is. It returns ErrUnknown, or a grant together with ErrExpired or ErrRevoked.
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

// clone is a grant that no later event changes.
func clone(g *Grant) *Grant {
	if g == nil {
		return nil
	}
	c := *g
	return &c
}

// Public reports whether everybody may read a chain.
func (r *Register) Public(ctx context.Context, chain string) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.public[chain] })
	return public, err
}

// PublicRecord reports whether everybody may read a record that is in no chain.
func (r *Register) PublicRecord(ctx context.Context, id string) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.open[id] })
	return public, err
}

// PublicChains lists the chains that everybody may read.
func (r *Register) PublicChains(ctx context.Context) (chains []string, err error) {
	err = r.read(ctx, func(b *book) {
		for chain := range b.public {
			chains = append(chains, chain)
		}
	})
	slices.Sort(chains)
	return chains, err
}

// Listed is a grant with what stands against it now.
type Listed struct {
	Grant
	Ended error // ErrExpired or ErrRevoked, also where the token that it is under has ended; nil: it is good
}

// Grants lists every grant there ever was, in the order of the log.
func (r *Register) Grants(ctx context.Context) (list []Listed, err error) {
	err = r.read(ctx, func(b *book) {
		for _, g := range b.order {
			_, ended := b.who(g.Token, r.config.Now())
			list = append(list, Listed{*g, ended})
		}
	})
	return list, err
}

// An Order says what is to be granted.
type Order struct {
	Name    string
	Roles   []Role
	For     time.Duration   // how long; at least a second
	Under   evidence.Digest // the token that the new one ends with; zero: none
	Session bool            // somebody signs in with a browser
	Reason  string          // not empty, as By
	By      string
}

// checkName refuses names that are not given to anybody anew. Who has one from earlier signs in under it.
func (o *Order) checkName() error {
	if o.Under.IsZero() {
		return names.Check(o.Name)
	}
	return evidence.CheckName(o.Name)
}

// Check returns an error with ErrOrder in its chain if no token can be made by the order, wherever.
func (o *Order) Check() error {
	if err := o.checkName(); err != nil {
		return fmt.Errorf("%w: name: %w", ErrOrder, err)
	}
	if err := checkRoles(o.Roles); err != nil {
		return err
	}
	if o.For < time.Second {
		return fmt.Errorf("%w: it would end after %v", ErrOrder, o.For)
	}
	return nil
}

// Has reports whether the order is for a role.
func (o *Order) Has(role Role) bool { return slices.Contains(o.Roles, role) }

// Grant makes a token. It is returned once, and stored nowhere.
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
	token, err := newToken(r.config.Random)
	if err != nil {
		return "", err
	}
	roles := text(o.Roles)
	slices.Sort(roles)
	return token, r.seal(ctx, operator.AccessEventBody{Event: operator.AccessGranted, Token: IDOf(token), Under: o.Under, Session: o.Session, Name: o.Name,
		Roles: slices.Compact(roles), NotAfter: evidence.FormatTime(r.config.Now().Add(o.For)), Reason: o.Reason, By: o.By})
}

// Revoke ends a token. One that has ended already stays as it is.
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

// SetPublic has everybody read a chain from now on, or nobody any more who has no role for it.
func (r *Register) SetPublic(ctx context.Context, chain string, public bool, reason, by string) error {
	already, err := r.Public(ctx, chain)
	if err != nil || already == public {
		return err
	}
	if err := r.seal(ctx, operator.AccessEventBody{Event: publication(public), Chain: chain, Reason: reason, By: by}); err != nil {
		return fmt.Errorf("changing who reads chain %q: %w", chain, err)
	}
	return nil
}

// SetPublicRecord does the same for a record that is in no chain, by its id.
func (r *Register) SetPublicRecord(ctx context.Context, id string, public bool, reason, by string) error {
	already, err := r.PublicRecord(ctx, id)
	if err != nil || already == public {
		return err
	}
	if err := r.seal(ctx, operator.AccessEventBody{Event: publication(public), Record: id, Reason: reason, By: by}); err != nil {
		return fmt.Errorf("changing who reads record %s: %w", id, err)
	}
	return nil
}

func publication(public bool) operator.AccessChange {
	if public {
		return operator.AccessPublished
	}
	return operator.AccessWithdrawn
}

// Admit lets an agent add to a chain that another has begun. There is no way back: what it has added stays.
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
	return r.append(ctx, p)
}

// Refuse has the log told of what was refused.
func (r *Register) Refuse(ctx context.Context, refused []operator.Refused) error {
	for part := range slices.Chunk(refused, operator.MaxRefusals) {
		p, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.Refusal, ChainID: operator.RefusalsChain}, operator.RefusalBody{Refused: part})
		if err == nil {
			err = r.append(ctx, p)
		}
		if err != nil {
			return fmt.Errorf("recording refusals: %w", err)
		}
	}
	return nil
}

func (r *Register) append(ctx context.Context, p evidence.Payload) error {
	return ledger.Operator{Ledger: r.config.Ledger, Keys: r.config.Keys}.SealLast(ctx, p)
}
