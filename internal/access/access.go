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
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
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
