// Package access decides who may do what. The log is the only source: granting, revoking and making a chain public are acts of the
// operator. So no second list can contradict the log, each process notices the changes of others, and a reader of the log sees who could do
// what and when.
//
// Every method of a Register reads the log first. It returns the ledger's errors, and an error for an act that does not fit those before
// it. A method that logs also returns the errors of sealing.
//
// A token is 32 random bytes. The log has its SHA-256, which does not reveal the token. A browser's session is a token, too. It ends with
// the token by which its owner signed in.
//
// # Who may do what stands in the log alone
//
// As with keys, there is no second list. A token is an act of the operator that states its SHA-256. A browser's session is also such an
// act, so it outlives a restart, ends with the token by which it was opened, and can be ended by a command of another process. Each request
// only checks whether the chain has grown. The price is one record for each sign-in.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
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

// Roles returns every role.
func Roles() []Role { return []Role{Agent, Submitter, Reviewer, Auditor, Operator} }

// PeopleRoles returns the roles of people. An agent acts only in its own name, so it has no other role.
func PeopleRoles() []Role { return []Role{Submitter, Reviewer, Auditor, Operator} }

var (
	// ErrUnknown says that this installation did not grant the token.
	ErrUnknown = errors.New("the token is unknown here")
	// ErrExpired says that a token has expired.
	ErrExpired = errors.New("the token has expired")
	// ErrRevoked says that a token was revoked.
	ErrRevoked = errors.New("the token was revoked")
	// ErrOrder says that an order for a grant is not valid.
	ErrOrder = errors.New("the grant is refused")
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
}

// Has reports whether the grant has one of these roles.
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

func newToken(random io.Reader) (string, error) {
	var secret [32]byte
	if random == nil {
		random = rand.Reader
	}
	if _, err := io.ReadFull(random, secret[:]); err != nil {
		return "", fmt.Errorf("making a token: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:]), nil
}

// IDOf returns a token's id in the log: its SHA-256.
func IDOf(token string) evidence.Digest { return evidence.DigestOf([]byte(token)) }

// FormKey returns the value that a form of a token's session must carry. Only the bearer of the token can compute it.
func FormKey(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("jurat form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkRoles returns an error for unknown roles, and for an agent with a second role: an agent must not decide on its own work under a
// person's name.
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
		where, name := b.shelf(e)
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

// shelf returns where the public things are of the kind that an event names, and its name there.
func (b *book) shelf(e *operator.AccessEventBody) (map[string]bool, string) {
	switch {
	case e.Record != "":
		return b.open, e.Record
	case e.Agent != "":
		return b.agents, e.Agent
	}
	return b.public, e.Chain
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
		list.Public = append(list.Public, slices.Sorted(maps.Keys(b.public))...)
		list.Agents = append(list.Agents, slices.Sorted(maps.Keys(b.agents))...)
	})
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

// Uses remembers when this process last saw each token. The log has acts, not requests, so this ends with the process. It
// holds valid tokens alone, and so no more than the log. It is safe for concurrent use.
type Uses struct {
	mu   sync.Mutex // held while last is read or changed
	last map[evidence.Digest]time.Time
}

// Note says that a token was used. The use of a session is one of the token under it, too.
func (u *Uses) Note(g *Grant, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[evidence.Digest]time.Time{}
	}
	u.last[g.Token] = at
	if !g.Under.IsZero() {
		u.last[g.Under] = at
	}
}

// Last returns when a token was last used; zero: not since this process began.
func (u *Uses) Last(token evidence.Digest) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[token]
}
