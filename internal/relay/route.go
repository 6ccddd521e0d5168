package relay

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// The headers by which an agent tells who it is. The provider does not get them.
const (
	agentHeader = "Jurat-Agent"
	chainHeader = "Jurat-Chain"
	ownHeaders  = "Jurat-"
)

// route is where a request goes.
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
func (r *relay) routeOf(req *http.Request) (route, error) {
	if req.Method == http.MethodConnect || req.Method == http.MethodTrace {
		return route{}, refuse(http.StatusMethodNotAllowed, "the method %s is not passed on", req.Method)
	}
	if !strings.HasPrefix(req.RequestURI, "/") {
		return route{}, refuse(http.StatusBadRequest, "the request must name a path of this recorder, and not a whole address: set the recorder as base URL, not as a proxy")
	}
	path, query, hasQuery := strings.Cut(req.RequestURI, "?")
	if err := checkPath(path); err != nil {
		return route{}, err
	}
	t := route{query: query, force: hasQuery && query == ""}
	var rest string
	t.token, t.name, rest = r.divided(path)
	if t.token != "" && !isPrivate(req) {
		return route{}, refuse(http.StatusForbidden, "a token in the path is only taken over TLS or from this machine; send it as header %s instead, over TLS", agentHeader)
	}
	upstream, known := r.Upstreams[t.name]
	if !known {
		return route{}, refuse(http.StatusNotFound, "no upstream has the name that the path begins with; the path must be /NAME/…, with a NAME of the recorder's options")
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
func (r *relay) divided(path string) (token, name, rest string) {
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

// pathOf returns the path that the upstream is asked for.
func (u Upstream) pathOf(rest string) string {
	return strings.TrimSuffix(u.Base.EscapedPath(), "/") + "/" + u.versioned(rest)
}

// signingIn says what to do to a client that wants to sign in at the recorder (RFC 9728, 8414). It cannot: tokens are for the server's own address, and clients compare it with the one that they ask.
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
	for _, b := range []byte(plain) {
		if b < 0x20 || b == 0x7f {
			return refuse(http.StatusBadRequest, "the path must have no control characters")
		}
	}
	return nil
}

// checkBrowser refuses a page in a browser: what it sends would be sealed as an agent's, and asked with a key that the relay keeps. Browsers say that a page is of another site, by
// Sec-Fetch-Site or, older ones, by Origin. But a page can make its own name mean this machine; so a request to this machine must name it by a name that no page has.
func (r *relay) checkBrowser(req *http.Request) error {
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

// isPrivate reports whether others on the network cannot read the request.
func isPrivate(req *http.Request) bool {
	if req.TLS != nil {
		return true
	}
	if _, _, err := net.SplitHostPort(req.RemoteAddr); err != nil {
		return req.RemoteAddr == "" || req.RemoteAddr == "@" // a socket of this machine
	}
	return isLoopback(req.RemoteAddr)
}

// isLoopback reports whether a host and port are of this machine alone.
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
	if token == "" {
		token = pathToken
	}
	return token, chain, nil
}

// hopByHop are headers for one connection, by RFC 9110, section 7.6.1, and some that servers send in spite of it. Alt-Svc (RFC 7838) says where else the server of this
// connection can be asked: clients that believe it of the relay go past it.
var hopByHop = []string{"Alt-Svc", "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings"}

// forAllReaders are the beginnings of names of headers that say how a message is read, who sends it, or what it asks for.
var forAllReaders = []string{"A2a-", "Accept", "Access-Control-", "Age", "Anthropic-", "Api-Key", "Authorization", "Cache-Control", "Content-", "Cookie", "Date", "Etag", "Expires", "Host",
	"Idempotency-", "If-", "Last-Modified", "Location", "Mcp-", "Openai-", "Origin", ownHeaders, "Range", "Sec-", "Set-Cookie", "User-Agent", "Vary", "Www-Authenticate", "X-Api-Key", "X-Goog-"}

// endToEnd returns what of a header is for all who read the message, in one spelling. It leaves out headers for one connection, also those that the header Connection names,
// and everything here reads what it returns: so what is recorded is what is passed on. It fails if Connection names a header that is for all, since those who read
// the message would not read the same.
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

// canonical returns a copy of a header in which each name has one spelling.
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
	if wantsTrailers(came) {
		header.Set("Te", "trailers")
	}
	if upgrade != "" {
		header.Set("Connection", "Upgrade")
		header.Set("Upgrade", upgrade)
	}
}
