// Package signintest is a server of MCP that asks its clients to sign in by OAuth, with its authorization server, for tests. It holds clients to RFC 9728, 8414, 7591, 7636 (PKCE) and 8707.
package signintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Path is the server's own path.
const Path = "/mcp"

// A Server is both servers. Its Tools and Authorization are their addresses.
type Server struct {
	Tools, Authorization *httptest.Server
	Serves               http.Handler // what is behind the sign-in

	mu        sync.Mutex
	clients   map[string][]string // redirect addresses, by client
	codes     map[string]url.Values
	access    map[string]bool
	refresh   map[string]string // the client, by token
	secrets   []string
	seconds   int  // that a token says it lasts
	ends      bool // nothing is given any more
	problems  []string
	refreshed int
}

// New starts a server. What is behind the sign-in is served as it is.
func New(t *testing.T, serves http.Handler) *Server {
	s := &Server{Serves: serves, clients: map[string][]string{}, codes: map[string]url.Values{}, access: map[string]bool{}, refresh: map[string]string{}, seconds: 3600}
	s.Tools = httptest.NewServer(http.HandlerFunc(s.tools))
	t.Cleanup(s.Tools.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", s.metadata)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	s.Authorization = httptest.NewServer(mux)
	t.Cleanup(s.Authorization.Close)
	return s
}

// Address is where clients ask.
func (s *Server) Address() string { return s.Tools.URL + Path }

// Lasting sets how long tokens last from now on, as they say.
func (s *Server) Lasting(seconds int) { s.locked(func() { s.seconds = seconds }) }

// Revoke ends all tokens, and gives none any more.
func (s *Server) Revoke() { s.locked(func() { s.ends, s.access, s.refresh = true, nil, nil }) }

// Secrets are all that nobody else may know: tokens, codes, verifiers.
func (s *Server) Secrets() (list []string) {
	s.locked(func() { list = slices.Clone(s.secrets) })
	return list
}

// Refreshed counts tokens that were given for another.
func (s *Server) Refreshed() (n int) {
	s.locked(func() { n = s.refreshed })
	return n
}

// Problems are what clients did wrong.
func (s *Server) Problems() (list []string) {
	s.locked(func() { list = slices.Clone(s.problems) })
	return list
}

func (s *Server) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// tools is the server of MCP.
func (s *Server) tools(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/.well-known/oauth-protected-resource"+Path {
		say(w, http.StatusOK, map[string]any{"resource": s.Address(), "authorization_servers": []string{s.Authorization.URL}, "scopes_supported": []string{"tools"}})
		return
	}
	known := false
	s.locked(func() { known = s.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] })
	if !known {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource%s", scope="tools"`, s.Tools.URL, Path))
		say(w, http.StatusUnauthorized, map[string]any{"error": "invalid_token"})
		return
	}
	s.Serves.ServeHTTP(w, r)
}

func say(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // the client may have left
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	at := s.Authorization.URL
	say(w, http.StatusOK, map[string]any{"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register", "response_types_supported": []string{"code"},
		"grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true})
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		s.wrong(w, "invalid_client_metadata", err.Error())
		return
	}
	id := "client-" + rand.Text()
	list, _ := asked["redirect_uris"].([]any)
	s.locked(func() {
		for _, at := range list {
			s.clients[id] = append(s.clients[id], fmt.Sprint(at))
		}
	})
	asked["client_id"] = id
	say(w, http.StatusCreated, asked)
}

// authorize signs everybody in, and sends the browser back.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	back := q.Get("redirect_uri")
	switch {
	case !slices.Contains(s.clients[q.Get("client_id")], back):
		s.refuse(w, "invalid_request", "an unknown client, or address to come back to")
	case q.Get("resource") != s.Address():
		s.refuse(w, "invalid_target", "the resource "+q.Get("resource"))
	case q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256":
		s.refuse(w, "invalid_request", "no PKCE")
	default:
		code := s.secret("marked-code-")
		s.codes[code] = q
		http.Redirect(w, r, back+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.Authorization.URL}}.Encode(), http.StatusFound)
	}
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := r.PostForm
	switch client, known := s.refresh[f.Get("refresh_token")]; {
	case err != nil:
		s.refuse(w, "invalid_request", err.Error())
	case s.ends:
		s.refuse(w, "invalid_grant", "ended: "+f.Get("refresh_token"))
	case f.Get("grant_type") == "refresh_token" && known && client == f.Get("client_id"):
		delete(s.refresh, f.Get("refresh_token"))
		s.refreshed++
		s.give(w, client)
	case f.Get("grant_type") == "authorization_code":
		s.exchange(w, f)
	default:
		s.refuse(w, "invalid_grant", f.Get("grant_type"))
	}
}

func (s *Server) exchange(w http.ResponseWriter, f url.Values) {
	asked, known := s.codes[f.Get("code")]
	delete(s.codes, f.Get("code"))
	verifier := f.Get("code_verifier")
	s.secrets = append(s.secrets, verifier)
	digest := sha256.Sum256([]byte(verifier))
	switch {
	case !known || asked.Get("client_id") != f.Get("client_id") || asked.Get("redirect_uri") != f.Get("redirect_uri"):
		s.refuse(w, "invalid_grant", "another code, client or address")
	case base64.RawURLEncoding.EncodeToString(digest[:]) != asked.Get("code_challenge"):
		s.refuse(w, "invalid_grant", "another verifier")
	case f.Get("resource") != s.Address():
		s.refuse(w, "invalid_target", "the resource "+f.Get("resource"))
	default:
		s.give(w, f.Get("client_id"))
	}
}

func (s *Server) give(w http.ResponseWriter, client string) {
	access, refresh := s.secret("marked-access-"), s.secret("marked-refresh-")
	s.access[access], s.refresh[refresh] = true, client
	say(w, http.StatusOK, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": s.seconds})
}

func (s *Server) secret(kind string) string {
	text := kind + rand.Text()
	s.secrets = append(s.secrets, text)
	return text
}

func (s *Server) wrong(w http.ResponseWriter, code, why string) {
	s.locked(func() { s.refuse(w, code, why) })
}

// refuse notes what was wrong; s.mu is held. Like some servers it says what it was asked.
func (s *Server) refuse(w http.ResponseWriter, code, why string) {
	s.problems = append(s.problems, code+": "+why)
	say(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": why})
}
