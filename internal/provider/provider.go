// Package provider asks an OpenID Connect provider who somebody is and what they may do: by the authorization code flow, with
// PKCE, state and nonce. What it says is believed only as far as its signature, issuer, audience, time and nonce are right.
package provider

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
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

	"jurat/internal/access"
	"jurat/internal/names"
)

var (
	// ErrStale says that an answer of the provider belongs to no sign-in that is under way in this browser.
	ErrStale = errors.New("it belongs to no sign-in that this browser has begun")
	// ErrRefused says that the provider has not signed somebody in, or that what it says cannot be believed.
	ErrRefused = errors.New("the provider has not said who it is")
	// ErrAway says that the provider could not be asked.
	ErrAway = errors.New("the provider cannot be asked")
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
	Shared       []byte                   // 32 bytes that all servers have to which a browser can come back; nil: this one is alone
	HTTP         *http.Client             // nil: one that waits 20 seconds
	Now          func() time.Time         // nil: time.Now
}

// A Person is somebody of whom the provider has said who it is.
type Person struct {
	Name    string
	Roles   []access.Role
	Subject string // as the provider calls them
}

// pendingTime is how long a sign-in may take.
const pendingTime = 10 * time.Minute

// maxNext is how long a next may be: browsers keep no large cookies.
const maxNext = 1000

// A Provider is safe for concurrent use. What it has to remember of a sign-in the browser keeps for it, sealed: nothing is kept
// here that strangers could make more of, until nobody else could sign in.
type Provider struct {
	config   Config
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	direct   *http.Client // of the token endpoint: follows no redirect, which would carry the code and the secret elsewhere
	sealed   cipher.AEAD  // of what browsers keep

	mu   sync.Mutex           // held while done is read or written
	done map[string]time.Time // states of sign-ins that somebody has signed in by here, and when they end by themselves
}

// pending is a sign-in that is under way.
type pending struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Proof    string    `json:"proof"`
	Redirect string    `json:"redirect"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
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
	sealed, err := newSealing(c.Shared)
	if err != nil {
		return nil, fmt.Errorf("OpenID Connect: %w", err)
	}
	direct := *c.HTTP
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Provider{config: c, provider: found, direct: &direct, verifier: found.Verifier(&oidc.Config{ClientID: c.ClientID, Now: c.Now}), sealed: sealed,
		done: map[string]time.Time{}}, nil
}

func newSealing(shared []byte) (cipher.AEAD, error) {
	if shared == nil {
		shared = make([]byte, sha256.Size)
		rand.Read(shared) // never fails
	}
	key, err := hkdf.Key(sha256.New, shared, nil, "jurat: sign-ins that are under way", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
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

// Begin begins a sign-in: the address at the provider to which the browser goes, and what the browser must still have when it
// comes back to redirect. next is kept until then.
func (p *Provider) Begin(redirect, next string) (address, kept string, err error) {
	if len(next) > maxNext {
		return "", "", fmt.Errorf("what follows the sign-in has more than %d bytes", maxNext)
	}
	begun := pending{State: rand.Text(), Nonce: rand.Text(), Proof: oauth2.GenerateVerifier(), Redirect: redirect, Next: next,
		Until: p.config.Now().Add(pendingTime)}
	doc, err := json.Marshal(begun)
	if err != nil {
		return "", "", err
	}
	kept = base64.RawURLEncoding.EncodeToString(p.sealed.Seal(nil, nil, doc, nil))
	return p.client(redirect).AuthCodeURL(begun.State, oidc.Nonce(begun.Nonce), oauth2.S256ChallengeOption(begun.Proof)), kept, nil
}

func (p *Provider) client(redirect string) *oauth2.Config {
	return &oauth2.Config{ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: p.provider.Endpoint(), RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
}

// Finish ends a sign-in by what the provider has had the browser bring: query. kept is what the browser has kept.
func (p *Provider) Finish(ctx context.Context, query url.Values, kept string) (*Person, string, error) {
	begun, ok := p.open(kept, query.Get("state"))
	if !ok {
		return nil, "", ErrStale
	}
	if failed := query.Get("error"); failed != "" {
		return nil, "", fmt.Errorf("%w: it says %q", ErrRefused, failed)
	}
	person, err := p.exchange(ctx, begun, query.Get("code"))
	if err == nil && !p.use(begun) {
		return nil, "", ErrStale
	}
	return person, begun.Next, err
}

// open opens what a browser has kept, if it is of the sign-in whose state was brought.
func (p *Provider) open(kept, brought string) (pending, bool) {
	var begun pending
	sealed, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil {
		return begun, false
	}
	doc, err := p.sealed.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(doc, &begun) != nil || subtle.ConstantTimeCompare([]byte(begun.State), []byte(brought)) != 1 {
		return begun, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, used := p.done[begun.State]
	return begun, !used && p.config.Now().Before(begun.Until)
}

// use uses up a sign-in by which somebody has signed in. One that came to nothing can be tried again, which is for the provider
// to refuse: it takes a code once.
func (p *Provider) use(begun pending) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for state, until := range p.done {
		if !p.config.Now().Before(until) {
			delete(p.done, state)
		}
	}
	_, used := p.done[begun.State]
	p.done[begun.State] = begun.Until
	return !used
}

func (p *Provider) exchange(ctx context.Context, begun pending, code string) (*Person, error) {
	ctx = oidc.ClientContext(ctx, p.config.HTTP)
	answer, err := p.client(begun.Redirect).Exchange(oidc.ClientContext(ctx, p.direct), code, oauth2.VerifierOption(begun.Proof))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused): // of which no more is told than what the provider calls it, and not the answer around it
		return nil, fmt.Errorf("%w: it takes the code for nothing: %d %s", ErrRefused, refused.Response.StatusCode, refused.ErrorCode)
	case err != nil:
		return nil, fmt.Errorf("%w: asking %s who it is: %w", ErrAway, p.config.Issuer, err)
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, fmt.Errorf("%w: it gives no ID token", ErrRefused)
	}
	token, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: its ID token: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.Nonce)) != 1 {
		return nil, fmt.Errorf("%w: its ID token is of another sign-in", ErrRefused)
	}
	if err := p.checkClaims(token); err != nil {
		return nil, fmt.Errorf("%w: its ID token: %w", ErrRefused, err)
	}
	return p.person(token)
}

// earliest is how far a provider's clock may be ahead.
const earliest = 5 * time.Minute

// checkClaims checks what the library leaves to its caller (OpenID Connect Core, sections 2 and 3.1.3.7): the times are numbers, the token was
// issued by now, and it was issued to this client, whoever else it is for.
func (p *Provider) checkClaims(token *oidc.IDToken) error {
	var claims map[string]json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return err
	}
	for _, name := range []string{"exp", "iat", "nbf"} {
		var seconds float64
		if value, there := claims[name]; (there || name != "nbf") && (json.Unmarshal(value, &seconds) != nil || string(value) == "null") {
			return fmt.Errorf("%s: want a number of seconds", name)
		}
	}
	if ahead := token.IssuedAt.Sub(p.config.Now()); ahead > earliest {
		return fmt.Errorf("iat: it is issued in %v from now", ahead)
	}
	value, there := claims["azp"]
	var party string
	switch {
	case !there && len(token.Audience) > 1:
		return fmt.Errorf("aud: it is for %d audiences, and azp does not say to whom it was issued", len(token.Audience))
	case there && (json.Unmarshal(value, &party) != nil || party != p.config.ClientID):
		return fmt.Errorf("azp: it was issued to another client, %s", value)
	}
	return nil
}

// person reads the claims of a token that is verified.
func (p *Provider) person(token *oidc.IDToken) (*Person, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: its claims: %w", ErrRefused, err)
	}
	name, _ := claims[p.config.NameClaim].(string)
	if err := names.Check(name); err != nil {
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
