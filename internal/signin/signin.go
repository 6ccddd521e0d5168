// Package signin signs a recorder in at a server of the Model Context Protocol that asks for it by OAuth, so that the clients behind the recorder need no token.
//
// # The recorder is the client
//
// Clients cannot sign in through a recorder themselves: the server's metadata (RFC 9728) names the server's own address as the resource, clients compare that with the address
// that they ask, and an authorization server gives tokens for the server alone (RFC 8707). Another resource in the metadata would be a lie that breaks at the next server that checks
// its tokens. So the recorder is the client: it registers (RFC 7591), shows a person where to sign in, takes the code at an address of this machine, with PKCE, and asks for a new token when
// one ends. Tokens stay in the memory of the process.
package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"jurat/evidence"
)

// Config says where to sign in.
type Config struct {
	Server string               // the address of the server of MCP
	Show   func(address string) // shows a person the address to open in a browser
	HTTP   *http.Client         // nil: one that waits 30 s for each answer
}

// Tokens are what a server is asked with. They are safe for concurrent use.
type Tokens struct {
	source oauth2.TokenSource
	turn   chan struct{} // held by who asks the source, which knows no contexts
}

// ErrNotNeeded says that a server takes calls without a token.
var ErrNotNeeded = errors.New("the server asks nobody to sign in")

// At signs in at a server, which lasts until a person has done so in a browser, or the context ends.
func At(ctx context.Context, c Config) (*Tokens, error) {
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: 30 * time.Second}
	}
	if err := mayHaveToken(c.Server); err != nil {
		return nil, err
	}
	refused, asked, err := challenge(ctx, c)
	if err != nil {
		return nil, err
	}
	back, err := listen()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for the browser that comes back: %w", err), refused.Body.Close())
	}
	defer back.close()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL:         back.address,
		RequestRefreshToken: true,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "jurat recorder", RedirectURIs: []string{back.address}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			return back.code(ctx, args.URL, c.Show)
		},
		AcceptUnadvertisedIss: true, // it is compared all the same
		Client:                c.HTTP,
	})
	if err != nil {
		return nil, errors.Join(err, refused.Body.Close())
	}
	if err := handler.Authorize(ctx, asked, refused); err != nil {
		return nil, fmt.Errorf("signing in at %s: %w", c.Server, plain(err))
	}
	source, err := handler.TokenSource(ctx)
	if err == nil && source == nil {
		err = errors.New("it gave no token")
	}
	if err != nil {
		return nil, fmt.Errorf("signing in at %s: %w", c.Server, plain(err))
	}
	return &Tokens{source, make(chan struct{}, 1)}, nil
}

// mayHaveToken refuses a server that would be sent the token in the clear.
func mayHaveToken(server string) error {
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "https" || u.Hostname() == "localhost" || ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("signing in at %s: the token would be sent over plain http, where others can read it: use https", server)
}

// challenge asks the server without a token. It returns the refusal, which says where to sign in.
func challenge(ctx context.Context, c Config) (*http.Response, *http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Server, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := c.HTTP.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("asking the server whether it wants a sign-in: %w", err)
	}
	if answer.StatusCode != http.StatusUnauthorized {
		return nil, nil, errors.Join(fmt.Errorf("%w: %s answers %s without a token, and not 401", ErrNotNeeded, c.Server, answer.Status), answer.Body.Close())
	}
	return answer, req, nil
}

// Token returns the token of now. It asks for a new one if the last has ended, and waits for it until the context ends: then it is for the next who asks.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", waited(ctx)
	}
	came := make(chan func() (*oauth2.Token, error), 1)
	go func() {
		defer func() { <-t.turn }()
		token, err := t.source.Token()
		came <- func() (*oauth2.Token, error) { return token, err }
	}()
	select {
	case got := <-came:
		token, err := got()
		if err != nil {
			return "", plain(err)
		}
		return token.AccessToken, nil
	case <-ctx.Done():
		return "", waited(ctx)
	}
}

func waited(ctx context.Context) error {
	return fmt.Errorf("waiting for a new token: %w", context.Cause(ctx))
}

// plain leaves out of an error what an authorization server wrote: it may repeat a secret.
func plain(err error) error {
	if refused, is := errors.AsType[*oauthex.ClientRegistrationError](err); is {
		return fmt.Errorf("the authorization server does not register the recorder: %s", evidence.Abbreviate(fmt.Sprintf("%q", refused.ErrorCode)))
	}
	if _, unasked := errors.AsType[*url.Error](err); !unasked && strings.HasPrefix(err.Error(), unregistered) { // package auth gives these errors no type, and some have the whole answer in them
		return errors.New("the authorization server does not register the recorder, or gives an answer that cannot be read")
	}
	failed, is := errors.AsType[*oauth2.RetrieveError](err)
	if !is {
		return err
	}
	if failed.ErrorCode != "" {
		return fmt.Errorf("the authorization server gives no token: %s", evidence.Abbreviate(fmt.Sprintf("%q", failed.ErrorCode)))
	}
	status := "an answer that cannot be read"
	if failed.Response != nil {
		status = failed.Response.Status
	}
	return fmt.Errorf("the authorization server gives no token: %s", status)
}

// unregistered begins the errors of a registration.
const unregistered = "failed to register client: "

// back is where a browser comes back to.
type back struct {
	address string
	server  *http.Server
	came    chan url.Values
}

const callback = "/callback"

func listen() (*back, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &back{address: "http://" + l.Addr().String() + callback, came: make(chan url.Values)}
	b.server = &http.Server{Handler: http.HandlerFunc(b.serve), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = b.server.Serve(l) }() // until close
	return b, nil
}

// close lets an answer that is under way end.
func (b *back) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close() // who came for nothing, and waits
	}
}

// serve takes an answer, if somebody waits for one.
func (b *back) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet || r.URL.Path != callback {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	select {
	case b.came <- r.URL.Query():
		_, _ = fmt.Fprintln(w, "jurat: You can close this window. / このウィンドウを閉じてください。 / Это окно можно закрыть.")
	case <-r.Context().Done():
	}
}

// code waits until a browser comes back from an address. Who comes with another state is not meant.
func (b *back) code(ctx context.Context, address string, show func(string)) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	show(address)
	for {
		select {
		case q := <-b.came:
			if q.Get("state") != u.Query().Get("state") {
				continue
			}
			if refused := q.Get("error"); refused != "" {
				return nil, fmt.Errorf("it was refused: %s", evidence.Abbreviate(fmt.Sprintf("%q", refused)))
			}
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("nobody signed in: %w", context.Cause(ctx))
		}
	}
}
