package signin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"jurat/internal/signin"
	"jurat/internal/signin/signintest"
)

// browser is a person who opens an address, and goes where they are sent.
func browser(t *testing.T) func(string) {
	return func(address string) {
		go func() {
			answer, err := http.Get(address)
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("the browser sees %s", answer.Status)
			}
		}()
	}
}

func answers(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("tools")) }

// ask asks the server with a token.
func ask(t *testing.T, s *signintest.Server, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", s.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestSignIn: a server that holds its clients to the RFCs gives a token, and another when it ends. When it gives none any more, the error says so, without what the server wrote.
func TestSignIn(t *testing.T) {
	s := signintest.New(t, http.HandlerFunc(answers))
	s.Lasting(1) // which is over at once: tokens are taken for ended ten seconds before
	tokens, err := signin.At(t.Context(), signin.Config{Server: s.Address(), Show: browser(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.Lasting(3600)
	first, err := tokens.Token(t.Context())
	if err != nil || ask(t, s, first) != http.StatusOK || s.Refreshed() == 0 {
		t.Errorf("%v, %d times another token", err, s.Refreshed())
	}
	again, err := tokens.Token(t.Context())
	if err != nil || again != first {
		t.Errorf("a token that lasts is not used again: %v", err)
	}
	if p := s.Problems(); p != nil {
		t.Error(p)
	}

	s.Lasting(1)
	ended, err := signin.At(t.Context(), signin.Config{Server: s.Address(), Show: browser(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.Revoke()
	_, err = ended.Token(t.Context())
	if err == nil || !strings.Contains(err.Error(), `the authorization server gives no token: "invalid_grant"`) || strings.Contains(err.Error(), "marked") {
		t.Errorf("a token that cannot be renewed: %v", err)
	}
}

// TestNoSignIn: who cannot sign in is told why.
func TestNoSignIn(t *testing.T) {
	open := httptest.NewServer(http.HandlerFunc(answers))
	defer open.Close()
	if _, err := signin.At(t.Context(), signin.Config{Server: open.URL, Show: browser(t)}); !errors.Is(err, signin.ErrNotNeeded) || !strings.Contains(err.Error(), "200 OK") {
		t.Errorf("a server that asks for no sign-in: %v", err)
	}

	nothing := &http.Client{Transport: &wire{func(req *http.Request) (*http.Response, error) { return nil, fmt.Errorf("it was asked: %v", req.URL) }}}
	for server, says := range map[string]string{"http://tools.example/mcp": "plain http", "http://192.0.2.1/mcp": "plain http", "http://127.0.0.1/mcp": "it was asked", "http://localhost:8000/mcp": "it was asked", "https://tools.example/mcp": "it was asked"} {
		if _, err := signin.At(t.Context(), signin.Config{Server: server, Show: browser(t), HTTP: nothing}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", server, err)
		}
	}

	s := signintest.New(t, http.HandlerFunc(answers))
	for name, c := range map[string]struct {
		show func(cancel func(), address string)
		says string
	}{
		"nobody comes": {func(cancel func(), _ string) { cancel() }, "nobody signed in"},
		"refused": {func(_ func(), address string) {
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
				return
			}
			q := u.Query()
			back := func(state string) int {
				answer, err := http.Get(q.Get("redirect_uri") + "?" + url.Values{"state": {state}, "error": {"access_denied"}}.Encode())
				if err != nil {
					t.Error(err)
					return 0
				}
				defer answer.Body.Close()
				return answer.StatusCode
			}
			go func() {
				back("another") // does not end it
				back(q.Get("state"))
			}()
		}, `it was refused: "access_denied"`},
		"a code of another sign-in": {func(_ func(), address string) {
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				if answer, err := http.Get(u.Query().Get("redirect_uri") + "?" + url.Values{"state": {u.Query().Get("state")}, "code": {"made-up"}, "iss": {s.Authorization.URL}}.Encode()); err == nil {
					answer.Body.Close()
				}
			}()
		}, `"invalid_grant"`},
		"another issuer": {func(_ func(), address string) {
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				if answer, err := http.Get(u.Query().Get("redirect_uri") + "?" + url.Values{"state": {u.Query().Get("state")}, "code": {"made-up"}, "iss": {"https://evil.example"}}.Encode()); err == nil {
					answer.Body.Close()
				}
			}()
		}, "does not match expected issuer"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := signin.At(ctx, signin.Config{Server: s.Address(), Show: func(address string) { c.show(cancel, address) }})
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(fmt.Sprint(err), s.Address()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A wire is the way to the servers, which a test changes.
type wire struct {
	pass func(*http.Request) (*http.Response, error)
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) { return w.pass(req) }

// TestTokenThatDoesNotCome: nobody waits longer for a token than they want to, though the authorization server does not answer, and others wait as well. It is there when the server does.
func TestTokenThatDoesNotCome(t *testing.T) {
	s := signintest.New(t, http.HandlerFunc(answers))
	s.Lasting(1)
	held, asked := make(chan struct{}), make(chan struct{}, 10)
	w := &wire{pass: http.DefaultTransport.RoundTrip}
	tokens, err := signin.At(t.Context(), signin.Config{Server: s.Address(), Show: browser(t), HTTP: &http.Client{Transport: w}})
	if err != nil {
		t.Fatal(err)
	}
	s.Lasting(3600)
	w.pass = func(req *http.Request) (*http.Response, error) {
		asked <- struct{}{}
		<-held
		return http.DefaultTransport.RoundTrip(req)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 2)
	for range cap(failed) {
		go func() { _, err := tokens.Token(ctx); failed <- err }()
	}
	<-asked
	cancel()
	for range cap(failed) {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	close(held)
	if token, err := tokens.Token(t.Context()); err != nil || ask(t, s, token) != http.StatusOK || len(asked) > 0 {
		t.Errorf("%v, and it was asked %d more times", err, len(asked))
	}
}

// TestNoRegistration: what a server answers that does not register the recorder is in no error, since it may have secrets.
func TestNoRegistration(t *testing.T) {
	s := signintest.New(t, http.HandlerFunc(answers))
	for name, c := range map[string]struct {
		status     int
		body, says string
	}{
		"fails":          {500, "marked-secret", "does not register"},
		"is broken":      {201, `{"client_id":"a","client_secret":"marked-secret"`, "does not register"},
		"refuses":        {400, `{"error":"invalid_redirect_uri","error_description":"marked-secret"}`, `"invalid_redirect_uri"`},
		"refuses broken": {400, "marked-secret", "does not register"},
	} {
		w := &wire{func(req *http.Request) (*http.Response, error) {
			if req.URL.Path != "/register" {
				return http.DefaultTransport.RoundTrip(req)
			}
			answer := httptest.NewRecorder()
			answer.WriteHeader(c.status)
			_, _ = answer.WriteString(c.body) // into memory
			return answer.Result(), nil
		}}
		_, err := signin.At(t.Context(), signin.Config{Server: s.Address(), Show: browser(t), HTTP: &http.Client{Transport: w}})
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "marked") {
			t.Errorf("a registration that %s: %v", name, err)
		}
	}
}
