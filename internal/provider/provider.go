// Package provider asks an OpenID Connect provider who somebody is and what they may do: by the authorization code flow, with
// PKCE, state and nonce. What it says is believed only as far as its signature, issuer, audience, time and nonce are right.
package provider

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"jurat/evidence"
	"jurat/internal/access"
)

var (
	// ErrStale says that an answer of the provider belongs to no sign-in that is under way in this browser.
	ErrStale = errors.New("it belongs to no sign-in that this browser has begun")
	// ErrRefused says that the provider has not signed somebody in, or that what it says cannot be believed.
	ErrRefused = errors.New("the provider has not said who it is")
	// ErrNobody says that somebody is known to the provider and has no role here.
	ErrNobody = errors.New("the provider gives no role here")
)

// Config says which provider is asked, and what its answers mean here.
type Config struct {
	Issuer       string                   // required: https, or http to this machine
	ClientID     string                   // required
	ClientSecret string                   // "": a public client
	NameClaim    string                   // in which the name stands that a person acts under; "": email, which must then be verified
	RolesClaim   string                   // in which groups stand, an array of strings or one; "": groups
	Roles        map[string][]access.Role // required: what each group may do
	HTTP         *http.Client             // nil: one that waits 20 seconds
	Now          func() time.Time         // nil: time.Now
}

// A Person is somebody of whom the provider has said who it is.
type Person struct {
	Name    string
	Roles   []access.Role
	Subject string // as the provider calls them
}

// pendingTime is how long a sign-in may take, and maxPending how many may be under way.
const (
	pendingTime = 10 * time.Minute
	maxPending  = 1000
)

// A Provider is safe for concurrent use.
type Provider struct {
	config   Config
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier

	mu      sync.Mutex // held while pending is read or written
	pending map[string]pending
}

type pending struct {
	nonce, proof, redirect, next string
	until                        time.Time
}

// New asks the provider for its configuration.
func New(ctx context.Context, c Config) (*Provider, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("OpenID Connect: %w", err)
	}
	if c.NameClaim == "" {
		c.NameClaim = "email"
	}
	if c.RolesClaim == "" {
		c.RolesClaim = "groups"
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: 20 * time.Second}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	// The client is kept by what is made here, and keys are fetched with it later: no request's context may end that.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), c.HTTP), c.Issuer)
	if err != nil {
		return nil, fmt.Errorf("OpenID Connect: asking %s for its configuration: %w", c.Issuer, err)
	}
	return &Provider{config: c, provider: found, verifier: found.Verifier(&oidc.Config{ClientID: c.ClientID, Now: c.Now}), pending: map[string]pending{}}, nil
}

func (c *Config) check() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil:
		return fmt.Errorf("issuer: %w", err)
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return fmt.Errorf("issuer %q: want https", c.Issuer)
	case c.ClientID == "":
		return errors.New("there is no client id")
	case len(c.Roles) == 0:
		return errors.New("no group has a role, so nobody could sign in")
	}
	for group, roles := range c.Roles {
		for _, role := range roles {
			if !slices.Contains(access.PeopleRoles(), role) {
				return fmt.Errorf("group %q: %q is no role that people have", group, role)
			}
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Issuer is who is asked.
func (p *Provider) Issuer() string { return p.config.Issuer }

// Begin begins a sign-in: the address at the provider to which the browser goes, and the state that the browser must still have
// when it comes back to redirect. next is kept until then.
func (p *Provider) Begin(redirect, next string) (address, state string, err error) {
	state = rand.Text()
	begun := pending{nonce: rand.Text(), proof: oauth2.GenerateVerifier(), redirect: redirect, next: next, until: p.config.Now().Add(pendingTime)}
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, other := range p.pending {
		if !p.config.Now().Before(other.until) {
			delete(p.pending, old)
		}
	}
	if len(p.pending) >= maxPending {
		return "", "", errors.New("too many sign-ins are under way")
	}
	p.pending[state] = begun
	return p.client(redirect).AuthCodeURL(state, oidc.Nonce(begun.nonce), oauth2.S256ChallengeOption(begun.proof)), state, nil
}

func (p *Provider) client(redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: p.provider.Endpoint(), RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
}

// Finish ends a sign-in by what the provider has had the browser bring: query. state is what the browser has kept.
func (p *Provider) Finish(ctx context.Context, query url.Values, state string) (*Person, string, error) {
	begun, ok := p.take(state, query.Get("state"))
	if !ok {
		return nil, "", ErrStale
	}
	if failed := query.Get("error"); failed != "" {
		return nil, "", fmt.Errorf("%w: it says %q", ErrRefused, failed)
	}
	person, err := p.exchange(ctx, begun, query.Get("code"))
	return person, begun.next, err
}

// take uses up the sign-in of a state.
func (p *Provider) take(kept, brought string) (pending, bool) {
	if kept == "" || subtle.ConstantTimeCompare([]byte(kept), []byte(brought)) != 1 {
		return pending{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	begun, ok := p.pending[kept]
	delete(p.pending, kept)
	return begun, ok && p.config.Now().Before(begun.until)
}

func (p *Provider) exchange(ctx context.Context, begun pending, code string) (*Person, error) {
	ctx = oidc.ClientContext(ctx, p.config.HTTP)
	answer, err := p.client(begun.redirect).Exchange(ctx, code, oauth2.VerifierOption(begun.proof))
	if err != nil {
		return nil, fmt.Errorf("%w: it takes the code for nothing: %w", ErrRefused, withoutSecrets(err))
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, fmt.Errorf("%w: it gives no ID token", ErrRefused)
	}
	token, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: its ID token: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.nonce)) != 1 {
		return nil, fmt.Errorf("%w: its ID token is of another sign-in", ErrRefused)
	}
	return p.person(token)
}

// withoutSecrets keeps of an error what the provider calls it, and not the answer around it.
func withoutSecrets(err error) error {
	var failed *oauth2.RetrieveError
	if errors.As(err, &failed) {
		return fmt.Errorf("%d %s", failed.Response.StatusCode, failed.ErrorCode)
	}
	return err
}

// person reads the claims of a token that is verified.
func (p *Provider) person(token *oidc.IDToken) (*Person, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: its claims: %w", ErrRefused, err)
	}
	name, _ := claims[p.config.NameClaim].(string)
	if err := evidence.CheckName(name); err != nil {
		return nil, fmt.Errorf("%w: claim %q is no name: %w", ErrRefused, p.config.NameClaim, err)
	}
	if verified, _ := claims["email_verified"].(bool); p.config.NameClaim == "email" && !verified {
		return nil, fmt.Errorf("%w: it has not verified the address %q", ErrRefused, name)
	}
	person := &Person{Name: name, Subject: token.Subject}
	for _, group := range texts(claims[p.config.RolesClaim]) {
		person.Roles = append(person.Roles, p.config.Roles[group]...)
	}
	if len(person.Roles) == 0 {
		return nil, fmt.Errorf("%w: %q is in no group that has one", ErrNobody, name)
	}
	return person, nil
}

// texts are the strings of a claim that is one or several.
func texts(claim any) (list []string) {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		for _, one := range claim {
			if text, ok := one.(string); ok {
				list = append(list, text)
			}
		}
	}
	return list
}
