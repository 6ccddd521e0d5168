package sdktest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"jurat/internal/relay"
	"jurat/internal/signin"
	"jurat/internal/signin/signintest"
)

// follows opens an address as a browser, and returns where it is sent.
func follows(address string) (url.Values, error) {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(address)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	to, err := answer.Location()
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

// addsSignedIn uses a tool with the SDK's client for Go, which signs in where it is asked to.
func addsSignedIn(t *testing.T, address string) (said string, err error) {
	t.Helper()
	signedIn := 0
	const back = "http://127.0.0.1:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		RedirectURL:                     back,
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "client", RedirectURIs: []string{back}, TokenEndpointAuthMethod: "none"}},
		AuthorizationCodeFetcher: func(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			signedIn++
			q, err := follows(args.URL)
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, OAuthHandler: handler}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"A": 40, "B": 2}})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(result.StructuredContent, " signed in ", signedIn), nil
}

// signsIn uses a tool with the SDK's client for TypeScript.
func signsIn(t *testing.T, address string) (said string, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "oauth.mjs"), address)
	c.Env = os.Environ()
	out, err := c.CombinedOutput()
	if err == nil && strings.HasPrefix(string(out), "failed: ") {
		err = fmt.Errorf("%s", out)
	}
	return string(out), err
}

// TestOAuth: clients that sign in at a server themselves cannot do so through the relay, whose log says what to do. If the relay holds a token, they need none. The relay shows its witness no token.
func TestOAuth(t *testing.T) {
	clients := map[string]func(*testing.T, string) (string, error){"Go": addsSignedIn}
	if os.Getenv("JURAT_TEST_MCP") != "" {
		clients["TypeScript"] = signsIn
	} else if os.Getenv("CI") == "true" {
		t.Fatal("JURAT_TEST_MCP names no folder with @modelcontextprotocol/sdk: scripts/test sdks sets it")
	}
	one := tools()
	for name, uses := range clients {
		t.Run(name, func(t *testing.T) {
			server := signintest.New(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return one }, nil))
			t.Cleanup(server.Tools.CloseClientConnections)
			if said, err := uses(t, server.Address()); err != nil || !strings.Contains(said, "42") || !strings.Contains(said, "signed in 1") {
				t.Fatalf("directly: %s %v", said, err)
			}
			base, err := url.Parse(server.Tools.URL)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			through := func(keyOf func(context.Context) (relay.Secret, error)) (string, *reader) {
				w, u := new(reader), relay.Upstream{Base: base, Speaks: relay.MCP, Only: []string{signintest.Path}, KeyOf: keyOf, KeyIn: "authorization"}
				h, err := relay.New(w, relay.Options{Upstreams: map[string]relay.Upstream{"mcp": u}, Root: "mcp", Folder: filepath.Join(t.TempDir(), "spool"), FingerprintKey: make([]byte, 32), Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				front := httptest.NewServer(h)
				t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
				return front.URL + signintest.Path, w
			}
			address, _ := through(nil)
			said, err := uses(t, address)
			if err == nil || !strings.Contains(log.String(), "--sign-in") {
				t.Errorf("a client signs in through the relay: %s\n%s", said, &log)
			}
			t.Logf("a client that would sign in: %v", err)

			tokens, err := signin.At(t.Context(), signin.Config{Server: server.Address(), Show: func(address string) {
				go func() {
					if answer, err := http.Get(address); err == nil {
						answer.Body.Close()
					}
				}()
			}})
			if err != nil {
				t.Fatal(err)
			}
			address, w := through(func(ctx context.Context) (relay.Secret, error) {
				token, err := tokens.Token(ctx)
				return relay.Secret(token), err
			})
			if said, err := uses(t, address); err != nil || !strings.Contains(said, "42") || !strings.Contains(said, "signed in 0") {
				t.Errorf("through a relay that has signed in: %s %v", said, err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if seen := fmt.Sprintf("%+v", w.said); len(w.said) == 0 || strings.Contains(seen, "marked-") {
				t.Errorf("%d calls were seen: %s", len(w.said), seen)
			}
			if p := server.Problems(); p != nil {
				t.Error(p)
			}
		})
	}
}
