// Package access says who may do what. The log is the only truth about it: granting, revoking and making a chain public are
// acts of the operator, and what holds is read from them. So an installation needs no second list that could say something
// else, a change by another process is noticed, and whoever has the log can see who could do what and when.
//
// A token is 32 random bytes. The log has its SHA-256, from which nobody finds it. A browser's session is a token, too, that
// ends with the one by which its owner signed in.
//
// # Who may do what stands in the log alone
//
// As with keys, there is no second list. A token is an act of the operator that has its SHA-256, and so is a browser's session,
// which therefore outlives a restart, ends with the token it was opened with, and is ended by another process's command. What is
// asked on every request is one look whether the chain has grown. The price is a record for each sign-in.
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

// A Role says what somebody may do. Which requests are for which roles is in the server's table of routes.
type Role string

const (
	Agent     Role = "agent"     // has its own records sealed
	Submitter Role = "submitter" // puts agents before the jury
	Reviewer  Role = "reviewer"  // decides what needs a person
	Auditor   Role = "auditor"   // reads
	Operator  Role = "operator"  // runs the installation
)

// Roles lists every role.
func Roles() []Role { return []Role{Agent, Submitter, Reviewer, Auditor, Operator} }

// PeopleRoles lists the roles that people have. An agent acts in its own name alone, so it has no other role.
func PeopleRoles() []Role { return []Role{Submitter, Reviewer, Auditor, Operator} }

var (
	// ErrUnknown says that a token was never given out.
	ErrUnknown = errors.New("the token was never given out here")
	// ErrExpired says that a token has come to its end.
	ErrExpired = errors.New("the token has expired")
	// ErrRevoked says that a token was revoked.
	ErrRevoked = errors.New("the token was revoked")
	// ErrOrder says that a grant cannot be made as it was ordered.
	ErrOrder = errors.New("the grant is refused")
)

// A Grant is what whoever has a token may do. It must not be changed.
type Grant struct {
	Token   evidence.Digest // SHA-256 of the token
	Under   evidence.Digest // the token that this one ends with; zero: none
	Name    string          // agent_id of an agent, submitter's or reviewer's name of a person
	Roles   []Role          // sorted
	Since   time.Time
	Until   time.Time
	Session bool // somebody signed in with a browser
	Reason  string
	By      string

	Revoked time.Time // zero: it was not
}

// Has reports whether the grant has one of these roles.
func (g *Grant) Has(roles ...Role) bool {
	return slices.ContainsFunc(roles, func(r Role) bool { return slices.Contains(g.Roles, r) })
}

// check says what stands against the grant at a time.
func (g *Grant) check(now time.Time) error {
	switch {
	case !g.Revoked.IsZero():
		return ErrRevoked
	case !now.Before(g.Until):
		return ErrExpired
	}
	return nil
}

// tokenPrefix lets people and scanners see what a string is.
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

// IDOf is what the log calls a token.
func IDOf(token string) evidence.Digest { return evidence.DigestOf([]byte(token)) }

// FormKey is what a form has to carry that was made for the session of a token: only who has the token can tell it.
func FormKey(token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("jurat form"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// checkRoles refuses roles that nobody has, and an agent's beside others: an agent must not decide on its own work under a
// person's name.
func checkRoles(roles []Role) error {
	if len(roles) == 0 {
		return fmt.Errorf("%w: without a role", ErrOrder)
	}
	for _, r := range roles {
		if !slices.Contains(Roles(), r) {
			return fmt.Errorf("%w: there is no role %q, only %s", ErrOrder, r, strings.Join(text(Roles()), ", "))
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
