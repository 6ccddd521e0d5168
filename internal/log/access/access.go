// Package access decides who may do what.
//
// # Who may do what stands in the log alone
//
// Granting, revoking and making a chain public are acts of the operator. So no second list can contradict the log, each process notices the changes
// of others, and a reader of the log sees who could do what and when. A token is 32 random bytes; its act states its SHA-256, which does not reveal
// it. A browser's session is a token, too: it outlives a restart, ends with the token by which its owner signed in, and costs one record. Each
// request only checks whether the chain has grown.
//
// Every method of a Register reads the log first. It returns the ledger's errors, and an error for an act that does not fit those before it. A
// method that logs also returns the errors of sealing.
package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/ledger"
	"jurat/internal/log/names"
)

// A Role says what a party may do. The server's table of routes lists the roles for each request.
type Role string

const (
	Agent     Role = "agent"     // has its own records sealed
	Submitter Role = "submitter" // puts agents before the jury
	Reviewer  Role = "reviewer"  // decides what needs a person
	Auditor   Role = "auditor"   // reads
	Operator  Role = "operator"  // runs the installation
)

func Roles() []Role { return []Role{Agent, Submitter, Reviewer, Auditor, Operator} }

// PeopleRoles returns the roles of people. An agent acts only in its own name, so it has no other role.
func PeopleRoles() []Role { return []Role{Submitter, Reviewer, Auditor, Operator} }

var (
	ErrUnknown = errors.New("the token is unknown here")
	ErrExpired = errors.New("the token has expired")
	ErrRevoked = errors.New("the token was revoked")
	ErrOrder   = errors.New("the grant is refused")
)

// A Grant says what the bearer of a token may do. Callers must not change it.
type Grant struct {
	Token   evidence.Digest // SHA-256 of the token
	Under   evidence.Digest // the token whose end also ends this one; zero: none
	Name    string          // the agent_id of an agent, or the name of a person
	Roles   []Role          // sorted
	Since   time.Time
	Until   time.Time
	Session bool // the token is a browser's session
	Reason  string
	By      string

	Revoked time.Time // zero: it was not revoked
	Ended   error     // ErrExpired or ErrRevoked, of this token or of the one that it is under, when it was asked for; nil: it is valid
}

func (g *Grant) Has(roles ...Role) bool {
	return slices.ContainsFunc(roles, func(r Role) bool { return slices.Contains(g.Roles, r) })
}

// check returns ErrRevoked or ErrExpired if the grant is not valid at a time.
func (g *Grant) check(now time.Time) error {
	switch {
	case !g.Revoked.IsZero():
		return ErrRevoked
	case !now.Before(g.Until):
		return ErrExpired
	}
	return nil
}

// tokenPrefix lets people and secret scanners recognise a token.
const tokenPrefix = "jurat_"

func newToken() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

// IDOf returns a token's id in the log: its SHA-256.
func IDOf(token string) evidence.Digest { return evidence.DigestOf([]byte(token)) }

// FormKey returns the value that a form of a token's session must carry. Only the bearer of the token can compute it.
func FormKey(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("jurat form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkRoles refuses unknown roles, and a second role of an agent, which must not decide on its own work under a person's name.
func checkRoles(roles []Role) error {
	if len(roles) == 0 {
		return fmt.Errorf("%w: want at least one role", ErrOrder)
	}
	for _, r := range roles {
		if !slices.Contains(Roles(), r) {
			return fmt.Errorf("%w: unknown role %q, want one of %s", ErrOrder, r, strings.Join(text(Roles()), ", "))
		}
	}
	if len(roles) > 1 && slices.Contains(roles, Agent) {
		return fmt.Errorf("%w: an agent has no other role", ErrOrder)
	}
	return nil
}

func text(roles []Role) []string {
	var list []string
	for _, r := range roles {
		list = append(list, string(r))
	}
	return list
}

// A book is the state of access after some record of the log.
type book struct {
	grants map[evidence.Digest]*Grant
	order  []*Grant
	public map[What]bool
}

// What the operator can make public: one of a chain, a record that is in no chain, by its id, and the reputation of an agent, by its name.
// What a reputation rests on does not become public by this.
type What struct{ Chain, Record, Agent string }

func (w What) String() string {
	switch {
	case w.Record != "":
		return "record " + w.Record
	case w.Agent != "":
		return "the reputation of agent " + strconv.Quote(w.Agent)
	}
	return "chain " + strconv.Quote(w.Chain)
}

func newBook() *book { return &book{grants: map[evidence.Digest]*Grant{}, public: map[What]bool{}} }

// apply adds one event. An event that does not fit makes every later reading fail: an unreadable list grants no access.
func (b *book) apply(r *evidence.Record) error {
	e, err := operator.ReadAccessEvent(&r.Payload)
	if err == nil {
		err = b.change(e, r.Payload.Time())
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
	}
	return nil
}

func (b *book) change(e *operator.AccessEventBody, at time.Time) error {
	switch e.Event {
	case operator.AccessPublished:
		b.public[What{e.Chain, e.Record, e.Agent}] = true
	case operator.AccessWithdrawn:
		delete(b.public, What{e.Chain, e.Record, e.Agent})
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

// who returns the grant of a token, and an error if it is not valid at a time. With ErrExpired and ErrRevoked it returns both.
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
	err = r.read(ctx, func(b *book) {
		for what := range b.public {
			if what.Chain != "" {
				list.Public = append(list.Public, what.Chain)
			} else if what.Agent != "" {
				list.Agents = append(list.Agents, what.Agent)
			}
		}
	})
	slices.Sort(list.Public)
	slices.Sort(list.Agents)
	return list, err
}

// Counts reports whether the grant is valid and does not end with another's token.
func (g *Grant) Counts() bool { return g.Ended == nil && (!g.Session || g.Under.IsZero()) }

func (g *Grant) Described() api.Grant {
	return api.Grant{Token: g.Token, Name: g.Name, Roles: text(g.Roles), Since: second(g.Since), NotAfter: second(g.Until), State: g.State(),
		Session: g.Session, By: g.By, Reason: g.Reason}
}

func second(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func (g *Grant) State() api.GrantState {
	switch {
	case errors.Is(g.Ended, ErrRevoked):
		return api.GrantRevoked
	case errors.Is(g.Ended, ErrExpired):
		return api.GrantExpired
	}
	return api.GrantGood
}

// Uses remembers when this process last saw each token. The log has acts, not requests, so this ends with the process. It
// holds valid tokens alone, and so no more than the log. It is safe for concurrent use.
type Uses struct{ last sync.Map }

// Note says that a token was used. The use of a session is one of the token under it, too.
func (u *Uses) Note(g *Grant, at time.Time) {
	u.last.Store(g.Token, at)
	if !g.Under.IsZero() {
		u.last.Store(g.Under, at)
	}
}

// Last returns when a token was last used; zero: not since this process began.
func (u *Uses) Last(token evidence.Digest) time.Time {
	at, _ := u.last.Load(token)
	last, _ := at.(time.Time)
	return last
}

type Config struct {
	Ledger *ledger.Ledger   // required
	Keys   ledger.Keys      // required
	Now    func() time.Time // nil: time.Now
}

// A Register reads from the log who may do what, and logs changes. It is safe for concurrent use, and notices changes by other processes.
type Register struct {
	config Config

	mu   sync.Mutex // held while book and next are read or updated
	book *book
	next int64 // the index in the log of the next record to read
}

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
func (r *Register) Who(ctx context.Context, token string) (g *Grant, refused error) {
	err := r.read(ctx, func(b *book) {
		if g, refused = b.who(IDOf(token), r.config.Now()); g != nil {
			g = new(*g) // later events do not change it
			g.Ended = refused
		}
	})
	if err != nil {
		return nil, err
	}
	return g, refused
}

// Agent returns the agent to whom a token was granted.
func (r *Register) Agent(ctx context.Context, token string) (string, error) {
	grant, err := r.Who(ctx, token)
	if err != nil {
		return "", err
	}
	if !grant.Has(Agent) {
		return "", fmt.Errorf("it belongs to %s, who is no agent", grant.Name)
	}
	return grant.Name, nil
}

func (r *Register) Public(ctx context.Context, what What) (public bool, err error) {
	err = r.read(ctx, func(b *book) { public = b.public[what] })
	return public, err
}

// Grants returns every grant, in the order of the log, ended ones included.
func (r *Register) Grants(ctx context.Context) (list []Grant, err error) {
	err = r.read(ctx, func(b *book) {
		for _, g := range b.order {
			one := *g
			_, one.Ended = b.who(g.Token, r.config.Now())
			list = append(list, one)
		}
	})
	return list, err
}

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

func (o *Order) Has(role Role) bool { return slices.Contains(o.Roles, role) }

// Grant makes a token and returns it: it is stored nowhere. For an order that is not valid, the error has ErrOrder in its chain.
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
	token := newToken()
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
		known := map[string]bool{}
		for _, g := range b.order {
			known[g.Name] = true
		}
		if !known[o.Name] {
			err = names.CheckNew(o.Name, maps.Keys(known))
		}
	})
	if err != nil {
		err = fmt.Errorf("%w: name: %w", ErrOrder, err)
	}
	return cmp.Or(reading, err)
}

// Revoke ends a token. A token that is revoked already stays as it is. For an unknown token, the error has ErrUnknown in its chain.
func (r *Register) Revoke(ctx context.Context, id evidence.Digest, reason, by string) error {
	var known, revoked bool
	if err := r.read(ctx, func(b *book) {
		g := b.grants[id]
		known, revoked = g != nil, g != nil && !g.Revoked.IsZero()
	}); err != nil || revoked {
		return err
	}
	if !known {
		return fmt.Errorf("revoking access: %w", ErrUnknown)
	}
	if err := r.seal(ctx, operator.AccessEventBody{Event: operator.AccessRevoked, Token: id, Reason: reason, By: by}); err != nil {
		return fmt.Errorf("revoking access: %w", err)
	}
	return nil
}

// Publish makes something public, or ends that, so that only parties with a role for it read it. What is so already stays as it is. It returns
// ErrOrder, wrapped, for an act that its readers would refuse.
func (r *Register) Publish(ctx context.Context, what What, public bool, reason, by string) error {
	if already, err := r.Public(ctx, what); err != nil || already == public {
		return err
	}
	event := operator.AccessWithdrawn
	if public {
		event = operator.AccessPublished
	}
	err := r.seal(ctx, operator.AccessEventBody{Event: event, Chain: what.Chain, Record: what.Record, Agent: what.Agent, Reason: reason, By: by})
	if err != nil {
		return fmt.Errorf("changing who reads %s: %w", what, err)
	}
	return nil
}

// Admit lets an agent add to a chain that another has begun. This cannot be undone: what it adds stays. A refused name returns ErrOrder.
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
