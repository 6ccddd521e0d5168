package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"jurat/evidence"
)

// shownHeaders are the headers that a witness may see, of requests and of answers. What is not here may be a secret.
var shownHeaders = map[string]bool{
	"A2a-Extensions": true, "A2a-Version": true, "Accept": true, "Accept-Encoding": true, "Anthropic-Beta": true, "Anthropic-Version": true, "Content-Encoding": true,
	"Content-Type": true, "Idempotency-Key": true, "Mcp-Method": true, "Mcp-Protocol-Version": true, "Openai-Beta": true, "Openai-Organization": true,
	"Openai-Project": true, "Traceparent": true, "User-Agent": true, "X-Client-Request-Id": true, "X-Request-Id": true, "X-Stainless-Retry-Count": true,
	"X-Stainless-Timeout": true,

	"Apim-Request-Id": true, "Cf-Ray": true, "Date": true, "Openai-Processing-Ms": true, "Openai-Version": true, "Request-Id": true, "Retry-After": true,
	"X-Ms-Request-Id": true, "X-Should-Retry": true,
}

// shownParameters are the parameters of queries that a witness may see.
var shownParameters = map[string]bool{
	"A2A-Version": true, "after": true, "alt": true, "api-version": true, "before": true, "beta": true, "include": true, "include[]": true, "limit": true, "order": true,
	"pageSize": true, "pageToken": true, "starting_after": true, "stream": true,
}

// shownOf returns what of a header a witness may see.
func shownOf(all http.Header) http.Header {
	shown := http.Header{}
	for name, values := range all {
		if shownHeaders[http.CanonicalHeaderKey(name)] {
			shown[name] = append([]string(nil), values...)
		}
	}
	return shown
}

func shownOfQuery(raw string) url.Values {
	all, _ := url.ParseQuery(raw) // what is not well-formed is not shown
	for name := range all {
		if !shownParameters[name] {
			delete(all, name)
		}
	}
	return all
}

// credentialHeaders are where providers look for a key.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization"}

// keyParameter is the parameter of a query in which Gemini takes a key.
const keyParameter = "key"

// inQuery is how options and credentials name it.
const inQuery = "?key="

// credentials returns by what the provider will know the caller.
func (r *relay) credentials(header http.Header, query string) []Credential {
	var found []Credential
	for _, name := range credentialHeaders {
		for _, value := range header[name] {
			found = append(found, Credential{strings.ToLower(name), r.fingerprint(bare(value))})
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		if value, is := keyIn(pair); is {
			found = append(found, Credential{inQuery, r.fingerprint(value)})
		}
	}
	return found
}

// bare returns a credential without its scheme, so that a key has one fingerprint wherever it is sent.
func bare(value string) string {
	if scheme, key, found := strings.Cut(strings.TrimSpace(value), " "); found && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(key)
	}
	return value
}

func (r *relay) fingerprint(secret string) string {
	mac := hmac.New(sha256.New, r.FingerprintKey)
	mac.Write([]byte(secret))
	return hex.EncodeToString(mac.Sum(nil))
}

// keyIn returns the key in one parameter of a query. Servers decode names, and some end parameters at a semicolon.
func keyIn(pair string) (string, bool) {
	name, value, _ := strings.Cut(pair, "=")
	if plain, err := url.QueryUnescape(name); err != nil || !strings.EqualFold(plain, keyParameter) {
		return "", false
	}
	if plain, err := url.QueryUnescape(value); err == nil {
		value = plain
	}
	return value, true
}

// keep puts the upstream's own key in the place of all credentials of the caller.
func (u Upstream) keep(header http.Header, query string) string {
	for _, name := range credentialHeaders {
		delete(header, name)
	}
	var pairs []string
	for pair := range strings.SplitSeq(query, "&") {
		if _, is := keyIn(pair); !is {
			pairs = append(pairs, pair)
		}
	}
	switch strings.ToLower(u.KeyIn) {
	case inQuery:
		pairs = append(pairs, keyParameter+"="+url.QueryEscape(string(u.Key)))
	case "authorization":
		header.Set("Authorization", "Bearer "+string(u.Key))
	default:
		header.Set(u.KeyIn, string(u.Key))
	}
	return strings.TrimPrefix(strings.Join(pairs, "&"), "&")
}

func tlsOf(state *tls.ConnectionState) *evidence.UpstreamTLS {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	return &evidence.UpstreamTLS{SPKISHA256: sha256.Sum256(leaf.RawSubjectPublicKeyInfo), NotAfter: evidence.FormatTime(leaf.NotAfter)}
}
