// Package openid signs people in by OpenID Connect: it asks a provider who a person is and which groups they are in. It uses the
// authorization code flow with PKCE, state and nonce. It believes an answer only if its signature, issuer, audience, time and nonce are
// right.
package openid

import (
	"cmp"
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

	"jurat/internal/log/access"
	"jurat/internal/log/names"
)

var (
	ErrStale   = errors.New("this browser has not begun this sign-in, or it has ended")
	ErrRefused = errors.New("the provider did not confirm the person")
	ErrAway    = errors.New("the provider does not answer")
	ErrNobody  = errors.New("the provider gives no role here")
)

// Config says which provider to ask, and what its answers mean here.
type Config struct {
	Issuer       string                   // required: https, or http to this machine
	ClientID     string                   // required
	ClientSecret string                   // "": a public client
	NameClaim    string                   // the claim with the person's name here; "": email, which must then be verified
	RolesClaim   string                   // the claim with the groups, an array of strings or one string; "": groups
	Roles        map[string][]access.Role // required: the roles of each group
	Shared       []byte                   // 32 bytes that all servers share to which a browser may return; nil: this is the only server
	HTTP         *http.Client             // nil: a client that waits 20 seconds
	Now          func() time.Time         // nil: time.Now
}

// A Person is a person whom the provider has identified.
type Person struct {
	Name    string
	Roles   []access.Role
	Subject string // the provider's id of the person
}

const pendingTime = 10 * time.Minute

// maxNext is the length limit of next, since browsers do not keep large cookies.
const maxNext = 1000

// A Provider signs people in. It is safe for concurrent use. The browser keeps the state of a sign-in, encrypted. The server keeps no state
// for sign-ins in progress, so strangers cannot exhaust its memory.
type Provider struct {
	config   Config
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	direct   *http.Client // for the token endpoint: follows no redirect, which could carry the code and the secret elsewhere
	sealed   cipher.AEAD  // encrypts what browsers keep

	mu   sync.Mutex           // held while done is read or written
	done map[string]time.Time // the states of completed sign-ins, and when they expire
}

type pending struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Proof    string    `json:"proof"`
	Redirect string    `json:"redirect"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
}

// New asks the provider for its configuration. It returns an error if c is not valid, or if the provider does not answer.
func New(ctx context.Context, c Config) (*Provider, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("OpenID Connect: %w", err)
	}
	c.NameClaim, c.RolesClaim = cmp.Or(c.NameClaim, "email"), cmp.Or(c.RolesClaim, "groups")
	c.HTTP = cmp.Or(c.HTTP, &http.Client{Timeout: 20 * time.Second})
	if c.Now == nil {
		c.Now = time.Now
	}
	// The provider keeps this context, and fetches keys with it later. So the end of a request must not cancel it.
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
		return errors.New("the client id is missing")
	case len(c.Roles) == 0:
		return errors.New("no group has a role, so no one could sign in")
	}
	for group, roles := range c.Roles {
		for _, role := range roles {
			if !slices.Contains(access.PeopleRoles(), role) {
				return fmt.Errorf("group %q: %q is not a role of people", group, role)
			}
		}
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (p *Provider) Issuer() string { return p.config.Issuer }

// Begin begins a sign-in. It returns the address at the provider to which the browser goes, and a text that the browser must keep and
// present when it returns to redirect. Finish returns next. Begin returns an error if next is too long.
func (p *Provider) Begin(redirect, next string) (address, kept string, err error) {
	if len(next) > maxNext {
		return "", "", fmt.Errorf("the address after the sign-in has more than %d bytes", maxNext)
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

// Finish ends a sign-in. query is what the provider sent by the browser, and kept is what the browser kept. It returns the person, and the
// next that Begin was given. Its errors have ErrStale, ErrRefused, ErrAway or ErrNobody in their chain.
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

// open decrypts what a browser kept, and checks that it belongs to the state that the browser brought, and is neither used nor expired.
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

// use marks a sign-in as used, and reports whether it was unused. A failed one can be tried again: the provider accepts a code only once.
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
	case errors.As(err, &refused): // only the provider's error code is reported, and not its whole answer
		return nil, fmt.Errorf("%w: it refuses the code: %d %s", ErrRefused, refused.Response.StatusCode, refused.ErrorCode)
	case err != nil:
		return nil, fmt.Errorf("%w: asking %s who it is: %w", ErrAway, p.config.Issuer, err)
	}
	raw, ok := answer.Extra("id_token").(string)
	if !ok {
		return nil, fmt.Errorf("%w: its answer has no ID token", ErrRefused)
	}
	token, err := p.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("%w: its ID token: %w", ErrRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.Nonce)) != 1 {
		return nil, fmt.Errorf("%w: its ID token belongs to another sign-in", ErrRefused)
	}
	if err := p.checkClaims(token); err != nil {
		return nil, fmt.Errorf("%w: its ID token: %w", ErrRefused, err)
	}
	return p.person(token)
}

// earliest is how far a provider's clock may be ahead.
const earliest = 5 * time.Minute

// checkClaims checks what the library leaves to its caller (OpenID Connect Core, sections 2 and 3.1.3.7). The times must be numbers. The
// token must be issued by now, and to this client, even if it also has other audiences.
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
		return fmt.Errorf("iat: it is %v in the future", ahead)
	}
	value, there := claims["azp"]
	var party string
	switch {
	case !there && len(token.Audience) > 1:
		return fmt.Errorf("aud: it has %d audiences, but no azp that names the client", len(token.Audience))
	case there && (json.Unmarshal(value, &party) != nil || party != p.config.ClientID):
		return fmt.Errorf("azp: it was issued to another client, %s", value)
	}
	return nil
}

func (p *Provider) person(token *oidc.IDToken) (*Person, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, fmt.Errorf("%w: its claims: %w", ErrRefused, err)
	}
	name, _ := claims[p.config.NameClaim].(string)
	if err := names.Check(name); err != nil {
		return nil, fmt.Errorf("%w: claim %q is not a valid name: %w", ErrRefused, p.config.NameClaim, err)
	}
	if verified, _ := claims["email_verified"].(bool); p.config.NameClaim == "email" && !verified {
		return nil, fmt.Errorf("%w: it has not verified the address %q", ErrRefused, name)
	}
	person := &Person{Name: name, Subject: token.Subject}
	for _, group := range texts(claims[p.config.RolesClaim]) {
		person.Roles = append(person.Roles, p.config.Roles[group]...)
	}
	if len(person.Roles) == 0 {
		return nil, fmt.Errorf("%w: no group of %q has a role", ErrNobody, name)
	}
	return person, nil
}

// texts returns the strings of a claim that is a string or an array.
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
