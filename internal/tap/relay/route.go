package relay

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"jurat/evidence"
)

// The headers by which an agent tells who it is. The provider does not get them.
const (
	agentHeader = "Jurat-Agent"
	chainHeader = "Jurat-Chain"
	ownHeaders  = "Jurat-"
)

type route struct {
	name     string
	upstream Upstream
	path     string // escaped, as the provider gets it
	query    string
	force    bool   // there is a query, and it is empty
	token    string // from the path
}

// target returns the address that is asked. Only its path and query are from the request, letter for letter.
func (t route) target() *url.URL {
	return &url.URL{Scheme: t.upstream.Base.Scheme, Host: t.upstream.Base.Host, Opaque: t.path, RawQuery: t.query, ForceQuery: t.force}
}

func refuse(status int, format string, args ...any) error {
	return &Refusal{Status: status, Reason: fmt.Sprintf(format, args...)}
}

// routeOf finds where a request goes. It fails with a *Refusal.
func (r *Relay) routeOf(req *http.Request) (route, error) {
	if req.Method == http.MethodConnect || req.Method == http.MethodTrace {
		return route{}, refuse(http.StatusMethodNotAllowed, "the method %s is not passed on", req.Method)
	}
	if !strings.HasPrefix(req.RequestURI, "/") {
		return route{}, refuse(http.StatusBadRequest, "the request must name a path, not a whole address: set the recorder as base URL, not as a proxy")
	}
	path, query, hasQuery := strings.Cut(req.RequestURI, "?")
	if err := checkPath(path); err != nil {
		return route{}, err
	}
	t := route{query: query, force: hasQuery && query == ""}
	var rest string
	t.token, t.name, rest = r.divided(path)
	if t.token != "" && !isPrivate(req) {
		return route{}, refuse(http.StatusForbidden, "a token in the path is only taken over TLS or from this machine; send it as header %s over TLS", agentHeader)
	}
	upstream, known := r.Upstreams[t.name]
	if !known {
		return route{}, refuse(http.StatusNotFound, "no upstream has the name that the path begins with; it must be /NAME/…, with a NAME of the recorder's options")
	}
	if err := r.checkBrowser(req); err != nil {
		return route{}, err
	}
	t.upstream = upstream
	t.path = upstream.pathOf(rest)
	if upstream.Only != nil && !slices.Contains(upstream.Only, t.path) {
		return route{}, refuse(http.StatusNotFound, "this path does not pass the recorder; those that do: %s%s", strings.Join(upstream.Only, ", "), signingIn(t.path))
	}
	return t, nil
}

// divided returns the token in a path, the name of the upstream, and what follows it.
func (r *Relay) divided(path string) (token, name, rest string) {
	rest = path[1:]
	if r.Root != "" {
		return "", r.Root, rest
	}
	if after, found := strings.CutPrefix(rest, "r/"); found {
		token, rest, _ = strings.Cut(after, "/")
	}
	name, rest, _ = strings.Cut(rest, "/")
	return token, name, rest
}

func (u Upstream) pathOf(rest string) string {
	return strings.TrimSuffix(u.Base.EscapedPath(), "/") + "/" + u.versioned(rest)
}

// signingIn says what to do to a client that wants to sign in at the recorder (RFC 9728, 8414). It cannot: tokens are for the server's own address, and
// clients compare it with the one that they ask.
func signingIn(path string) string {
	for _, known := range []string{"/.well-known/oauth-", "/.well-known/openid-configuration"} {
		if strings.HasPrefix(path, known) {
			return ". Nobody can sign in here, since tokens are for the server's own address: " + doSignIn
		}
	}
	return ""
}

const doSignIn = "get a token there, and give it to the recorder ('jurat record mcp --upstream URL --key FILE'), or send the token in the header Authorization"

// checkPath refuses paths that servers read in more than one way.
func checkPath(path string) error {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return refuse(http.StatusBadRequest, "the path has an escape that is none: a %% must be followed by two hexadecimal digits")
	}
	if strings.Contains(plain, `\`) {
		return refuse(http.StatusBadRequest, "the path must have no backslash")
	}
	if strings.Contains(plain, "//") {
		return refuse(http.StatusBadRequest, "the path must have no empty element, as in //")
	}
	for element := range strings.SplitSeq(plain, "/") {
		if element == "." || element == ".." {
			return refuse(http.StatusBadRequest, "the path must have no element that is '.' or '..'")
		}
	}
	if strings.ContainsFunc(plain, func(c rune) bool { return c < 0x20 || c == 0x7f }) {
		return refuse(http.StatusBadRequest, "the path must have no control characters")
	}
	return nil
}

// checkBrowser refuses a page in a browser: what it sends would be sealed as an agent's, and asked with a key that the relay keeps. Browsers say that a page
// is of another site, by Sec-Fetch-Site or, older ones, by Origin. But a page can make its own name mean this machine; so a request to this machine must name
// it by a name that no page has.
func (r *Relay) checkBrowser(req *http.Request) error {
	site, origins := req.Header.Get("Sec-Fetch-Site"), req.Header["Origin"]
	foreign := site != "" && site != "none" && site != "same-origin"
	if site == "" && len(origins) > 0 {
		from, err := url.Parse(origins[0])
		foreign = len(origins) > 1 || err != nil || !strings.EqualFold(from.Host, req.Host) && !slices.Contains(r.Hosts, strings.ToLower(from.Hostname()))
	}
	if foreign {
		return refuse(http.StatusForbidden, "a page of another site may not use this recorder")
	}
	local, is := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !is || req.TLS != nil || !isLoopback(local.String()) {
		return nil
	}
	host := req.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || isLoopback(net.JoinHostPort(host, "0")) || slices.Contains(r.Hosts, host) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest, "this recorder must be asked by a name that is this machine's own: use 127.0.0.1 or localhost in the base URL, or name %q in the recorder's options", host)
}

func isPrivate(req *http.Request) bool {
	if req.TLS != nil {
		return true
	}
	if _, _, err := net.SplitHostPort(req.RemoteAddr); err != nil {
		return req.RemoteAddr == "" || req.RemoteAddr == "@" // a socket of this machine
	}
	return isLoopback(req.RemoteAddr)
}

func isLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// identity takes the headers of jurat's own from a header, and returns who calls.
func identity(header http.Header, pathToken string) (token, chain string, err error) {
	token, chain = bare(header.Get(agentHeader)), header.Get(chainHeader)
	if len(header[agentHeader]) > 1 || len(header[chainHeader]) > 1 || token != "" && pathToken != "" && token != pathToken {
		return "", "", refuse(http.StatusBadRequest, "the request names more than one agent or chain: send %s and %s once, and no other token in the path", agentHeader, chainHeader)
	}
	for name := range header {
		if strings.HasPrefix(name, ownHeaders) {
			delete(header, name)
		}
	}
	token = cmp.Or(token, pathToken)
	return token, chain, nil
}

// hopByHop are headers for one connection, by RFC 9110, section 7.6.1, and some that servers send in spite of it. Alt-Svc (RFC 7838) says where else the
// server of this connection can be asked: clients that believe it of the relay go past it.
var hopByHop = []string{"Alt-Svc", "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// forAllReaders are the beginnings of names of headers that say how a message is read, who sends it, or what it asks for.
var forAllReaders = []string{"A2a-", "Accept", "Access-Control-", "Age", "Anthropic-", "Api-Key", "Authorization", "Cache-Control", "Content-", "Cookie",
	"Date", "Etag", "Expires", "Host", "Idempotency-", "If-", "Last-Modified", "Location", "Mcp-", "Openai-", "Origin", ownHeaders, "Range", "Sec-",
	"Set-Cookie", "User-Agent", "Vary", "Www-Authenticate", "X-Api-Key", "X-Goog-"}

// endToEnd returns what of a header is for all who read the message, in one spelling. It leaves out headers for one connection, also those that the header
// Connection names, and everything here reads what it returns: so what is recorded is what is passed on. It fails if Connection names a header that is for
// all, since those who read the message would not read the same.
func endToEnd(header http.Header) (http.Header, error) {
	plain := canonical(header)
	for _, line := range plain["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			if shownHeaders[name] || slices.ContainsFunc(forAllReaders, func(begins string) bool { return strings.HasPrefix(name, begins) }) {
				return nil, fmt.Errorf("the header Connection names %.60q, which is not for one connection", name)
			}
			delete(plain, name)
		}
	}
	for _, name := range hopByHop {
		delete(plain, name)
	}
	return plain, nil
}

func canonical(header http.Header) http.Header {
	plain := make(http.Header, len(header))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		one := http.CanonicalHeaderKey(name)
		plain[one] = append(plain[one], header[name]...)
	}
	return plain
}

// onward adds to a header what holds for the next connection, too.
func onward(header, came http.Header, upgrade string) {
	if names(came["Te"], "trailers") {
		header.Set("Te", "trailers")
	}
	if upgrade != "" {
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", upgrade)
	}
}

// shownHeaders are the headers that a witness may see, of requests and of answers. What is not here may be a secret.
var shownHeaders = map[string]bool{
	"A2a-Extensions": true, "A2a-Version": true, "Accept": true, "Accept-Encoding": true, "Anthropic-Beta": true, "Anthropic-Version": true,
	"Content-Encoding": true, "Content-Type": true, "Idempotency-Key": true, "Mcp-Method": true, "Mcp-Protocol-Version": true,
	"Openai-Beta": true, "Openai-Organization": true, "Openai-Project": true, "Traceparent": true, "User-Agent": true, "X-Client-Request-Id": true,
	"X-Request-Id": true, "X-Stainless-Retry-Count": true, "X-Stainless-Timeout": true,

	"Apim-Request-Id": true, "Cf-Ray": true, "Date": true, "Openai-Processing-Ms": true, "Openai-Version": true, "Request-Id": true, "Retry-After": true,
	"X-Ms-Request-Id": true, "X-Should-Retry": true,
}

var shownParameters = map[string]bool{
	"A2A-Version": true, "after": true, "alt": true, "api-version": true, "before": true, "beta": true, "include": true, "include[]": true, "limit": true,
	"order": true, "pageSize": true, "pageToken": true, "starting_after": true, "stream": true,
}

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

var credentialHeaders = []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "Cookie", "Proxy-Authorization"}

// keyParameter is the parameter of a query in which Gemini takes a key.
const keyParameter = "key"

// inQuery is how options and credentials name it.
const inQuery = "?key="

func (r *Relay) credentials(header http.Header, query string) []Credential {
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

func (r *Relay) fingerprint(secret string) string {
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

// followed are the headers of an answer that name an address which clients ask next by themselves: redirects and what was made, where uploads go on, and where
// the result of a long call will be. Content-Location and Link are not followed by clients of models and agents.
var followed = []string{"Location", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url", "Operation-Location", "Azure-Asyncoperation", "Refresh"}

// An astrayError says that an answer leads the client to an address that is not this relay's, or means something else there.
type astrayError struct {
	status int
	header string
	to     string // no more of the address than others may know
	past   bool   // past this relay, and not to another path of it
}

func (e *astrayError) Error() string {
	how := "elsewhere than the server means, to "
	if e.past {
		how = "past this recorder, to "
	}
	return fmt.Sprintf("the server's answer with the status %d leads the client by the header %s %s%s", e.status, e.header, how, e.to)
}

const notAstray = "start the recorder with the address to which the server leads as its upstream, such as --upstream https://HOST/mcp/ with a slash at the end, or let the server name a path alone"

// astray returns an error if a client that follows the answer would ask past this relay, or for something else than the server means.
func (p *passage) astray(answer *http.Response) *astrayError {
	if p.from == nil {
		return nil
	}
	for _, header := range followed {
		for _, text := range answer.Header[header] {
			if header == "Refresh" {
				if text = refreshed(text); text == "" {
					continue
				}
			}
			if to, past := p.leads(text); to != "" {
				return &astrayError{answer.StatusCode, header, to, past}
			}
		}
	}
	return nil
}

// refreshing is a header Refresh that names an address, as browsers read it: "5; url=https://HOST/", and also with a comma or a space, or without "url=".
var refreshing = regexp.MustCompile(`^[^;,\s]*(?:\s*[;,]|\s)\s*(?:(?i:url)\s*=\s*)?(.+)$`)

// refreshed returns the address in a header Refresh. "": it names none.
func refreshed(text string) string {
	found := refreshing.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return strings.Trim(strings.TrimSpace(found[1]), `"'`)
}

// leads returns where an address leads that a client is to ask; "": to the same upstream, through this relay. past is set if that is not this relay.
func (p *passage) leads(text string) (shown string, past bool) {
	text, _, _ = strings.Cut(text, "#")
	to, err := url.Parse(text)
	if err != nil || text != "" && !plainAddress.MatchString(text) || to.User != nil || to.Opaque != "" || to.Scheme != "" && to.Host == "" {
		return "an address that clients may read in more than one way", true
	}
	if to = p.from.ResolveReference(to); !p.r.leadsHere(p.from, to) {
		shown = to.Scheme + "://" + to.Host
		if path := to.EscapedPath(); strings.Trim(path, "/") == strings.Trim(p.call.Path, "/") { // others may be secret, as those of uploads are
			shown += path
		}
		return shown, true
	}
	path := to.EscapedPath()
	path = cmp.Or(path, "/")
	_, name, rest := p.r.divided(path)
	upstream := p.r.Upstreams[p.call.Upstream]
	if name != p.call.Upstream || upstream.Only != nil && !slices.Contains(upstream.Only, upstream.pathOf(rest)) || checkPath(path) != nil {
		return "a path at which it does not find that server", false
	}
	return "", false
}

func askedAt(req *http.Request) *url.URL {
	path, query, _ := strings.Cut(req.RequestURI, "?")
	at := &url.URL{Scheme: "http", Host: req.Host, RawQuery: query}
	if req.TLS != nil {
		at.Scheme = "https"
	}
	if at.Path, _ = url.PathUnescape(path); at.EscapedPath() != path { // which checkPath has read
		at.RawPath = path
	}
	return at
}

// plainAddress are addresses that every client reads in the same way: browsers' rules leave out tabs, and take a backslash for a slash.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9._~:/?\[\]@!$&()*+,;=%-]+$`)

// leadsHere reports whether an address has the origin at which a client asked. Before a relay that has a name of a reverse proxy, that one may speak TLS.
func (r *Relay) leadsHere(asked, to *url.URL) bool {
	same := strings.EqualFold(hostOf(to, asked.Scheme), hostOf(asked, asked.Scheme)) && to.Scheme == asked.Scheme
	return same || to.Scheme == "https" && strings.EqualFold(to.Host, asked.Host) && slices.Contains(r.Hosts, strings.ToLower(asked.Hostname()))
}

func hostOf(u *url.URL, scheme string) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
