package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// An Issuer speaks the whole protocol: discovery, keys, authorization, token endpoint with PKCE, signed ID tokens.
type Issuer struct {
	*httptest.Server
	key    *ecdsa.PrivateKey
	Claims map[string]any        // override the claims of the next token
	Sign   *ecdsa.PrivateKey     // signs tokens; nil: the issuer's own key
	asked  map[string]url.Values // the authorization request of each code
}

// The client's credentials at the provider.
const (
	ClientID     = "jurat"
	ClientSecret = "worthless test secret"
)

// NewIssuerKey returns a key that can sign ID tokens.
func NewIssuerKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// NewIssuer starts a provider, and closes it when the test ends.
func NewIssuer(t *testing.T) *Issuer {
	t.Helper()
	i := &Issuer{key: NewIssuerKey(t), asked: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(t, w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}, "response_types_supported": []string{"code"},
			"subject_types_supported": []string{"public"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		point, err := i.key.PublicKey.Bytes()
		if err != nil {
			t.Error(err)
			return
		}
		i.answer(t, w, map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "1",
			"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])}}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" {
			http.Error(w, "invalid_request", http.StatusBadRequest)
			return
		}
		code := rand.Text()
		i.asked[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /token", i.token(t))
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) answer(t *testing.T, w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		t.Error(err)
	}
}

// token exchanges a code for an ID token, once. It demands the client secret, and the proof for the code's challenge.
func (i *Issuer) token(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		asked := i.asked[r.FormValue("code")]
		delete(i.asked, r.FormValue("code"))
		challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if id != ClientID || secret != url.QueryEscape(ClientSecret) || asked == nil || asked.Get("redirect_uri") != r.FormValue("redirect_uri") ||
			asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			if _, err := w.Write([]byte(`{"error":"invalid_grant"}`)); err != nil {
				t.Error(err)
			}
			return
		}
		now := time.Now()
		claims := map[string]any{"iss": i.URL, "aud": ClientID, "sub": "248289761001", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
			"nonce": asked.Get("nonce"), "email": "mia@example.com", "email_verified": true, "groups": []string{"everybody", "reviewers"}}
		maps.Copy(claims, i.Claims)
		i.answer(t, w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": i.jwt(t, claims)})
	}
}

// jwt signs claims as RFC 7515 and RFC 7518, section 3.4, demand.
func (i *Issuer) jwt(t *testing.T, claims map[string]any) string {
	encode := func(value any) string {
		doc, err := json.Marshal(value)
		if err != nil {
			t.Error(err)
		}
		return base64.RawURLEncoding.EncodeToString(doc)
	}
	text := encode(map[string]string{"alg": "ES256", "kid": "1", "typ": "JWT"}) + "." + encode(claims)
	key := i.key
	if i.Sign != nil {
		key = i.Sign
	}
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Error(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
