package server

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/log/access"
)

// A Caller is the sender of a request. A stranger's grant is zero.
type Caller struct {
	grant  access.Grant
	token  string
	cookie bool // the token came in a browser's cookie
}

// Stranger reports whether the caller is not signed in.
func (c *Caller) Stranger() bool { return c.grant.Token.IsZero() }

// Name returns the agent_id or the person's name; "" for a stranger.
func (c *Caller) Name() string { return c.grant.Name }

func (c *Caller) Has(role access.Role) bool { return c.grant.Has(role) }

// FormKey returns the session's form key, which every form for this caller must carry; "": the caller has no session.
func (c *Caller) FormKey() string {
	if !c.cookie {
		return ""
	}
	return access.FormKey(c.token)
}

func (c *Caller) tokenID() evidence.Digest { return c.grant.Token }

// Names of the session's cookie. Browsers accept the first only from this very host over TLS.
const (
	cookieName         = "__Host-jurat"
	loopbackCookieName = "jurat"
)

// FormField and FormHeader carry a session's form key.
const (
	FormField  = "form"
	FormHeader = "Jurat-Form"
)

// caller determines who sends a request. An invalid token gives an error rather than a stranger, because the caller
// meant to be identified. If the token's owner is known, the Caller comes with the error.
func (s *Server) caller(r *http.Request) (*Caller, error) {
	token, cookie, err := s.tokenOf(r)
	if err != nil || token == "" {
		return &Caller{}, err
	}
	grant, err := s.access.Who(r.Context(), token)
	if grant == nil {
		if errors.Is(err, access.ErrUnknown) {
			err = fmt.Errorf("%w: the token was never given out here", api.ErrSignIn)
		}
		return &Caller{}, err
	}
	c := &Caller{*grant, token, cookie}
	switch {
	case errors.Is(err, access.ErrExpired):
		return c, fmt.Errorf("%w at %s", api.ErrExpired, evidence.FormatTime(grant.Until))
	case err != nil:
		return c, api.ErrRevoked
	}
	s.uses.Note(grant, s.config.Now())
	return c, nil
}

// tokenOf reads the token of a request. The header overrides the cookie, which browsers send automatically.
func (s *Server) tokenOf(r *http.Request) (token string, cookie bool, err error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return "", false, fmt.Errorf("%w: header Authorization: want Bearer and a token", api.ErrSignIn)
		}
		return token, false, nil
	}
	if c, err := r.Cookie(s.cookieName()); err == nil {
		return c.Value, true, nil
	}
	return "", false, nil
}

func (s *Server) cookieName() string {
	if s.config.Secure {
		return cookieName
	}
	return loopbackCookieName
}

// setSession sets the session's cookie; an empty token deletes it.
func (s *Server) setSession(w http.ResponseWriter, token string, until time.Time) {
	c := &http.Cookie{Name: s.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: s.config.Secure,
		SameSite: http.SameSiteStrictMode, Expires: until}
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// formMemory is how much of a form with files is held in memory. The rest is on disk until the request ends.
const formMemory = 8 << 20

// checkForm refuses what another site could make a browser send: it is signed in by cookie, and lacks the form key that our pages know.
func checkForm(r *http.Request, c *Caller) error {
	if !c.cookie || c.Stranger() || !changes(r) {
		return nil
	}
	key := r.Header.Get(FormHeader)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // a body of an unreadable media type is not parsed as a form
	if key == "" && (media == "application/x-www-form-urlencoded" || media == "multipart/form-data") {
		if err := r.ParseMultipartForm(formMemory); err != nil && !errors.Is(err, http.ErrNotMultipart) {
			return malformed(err)
		}
		key = r.PostForm.Get(FormField)
	}
	if subtle.ConstantTimeCompare([]byte(key), []byte(c.FormKey())) != 1 {
		return fmt.Errorf("%w: the field %q or the header %s is missing or wrong; load the page again", api.ErrForm, FormField, FormHeader)
	}
	return nil
}

// sharedHeaders lists headers that pages of other sites may read beside those that they may always read.
const sharedHeaders = "ETag, Jurat-Cut"

// share lets pages of other sites read an answer (CORS), if the route is Shared and any stranger gets the same answer. It
// gives no credentials: a request that carries any gets no permission, so the answer cannot depend on who is signed in.
func (s *Server) share(route *Route, h http.Header, r *http.Request, c *Caller) {
	if !route.Shared || !s.published() {
		return
	}
	h.Add("Vary", "Origin")
	if r.Header.Get("Origin") == "" || !c.Stranger() || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", sharedHeaders)
}

// published reports whether others than this machine reach the server. If only this machine does, other sites' pages in
// its browsers would reach what nobody else can, so they may read nothing.
func (s *Server) published() bool {
	return s.config.Secure && (!s.config.Local || len(s.config.Origins) > 0)
}

// ParseOrigin returns an https origin as browsers send it: in small letters, without the usual port and without a slash at its end. It refuses
// what is no origin, and a host that browsers spell otherwise.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	number, err := strconv.ParseUint(cmp.Or(port, "443"), 10, 16)
	ip, notIP := netip.ParseAddr(host)
	switch {
	case u.Scheme != "https":
		return "", fmt.Errorf("%s: want https://, as browsers send session cookies over nothing else", text)
	case host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return "", fmt.Errorf("%s: want a host and no more, such as https://jurat.example", text)
	case err != nil || number == 0:
		return "", fmt.Errorf("%s: the port %q is not a number from 1 to 65535", text, port)
	case notIP == nil && (ip.Is4In6() || ip.Zone() != ""):
		return "", fmt.Errorf("%s: browsers spell this address in another way", text)
	case notIP == nil && ip.Is6():
		host = "[" + ip.String() + "]"
	case notIP != nil && strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", fmt.Errorf("%s: give the host as browsers send it: in ASCII, with xn-- before each part that has other letters", text)
	case notIP != nil && !isName(host):
		return "", fmt.Errorf("%s: %q is not the name of a host", text, host)
	}
	if number == 443 {
		return "https://" + host, nil
	}
	return fmt.Sprintf("https://%s:%d", host, number), nil
}

// isName reports whether a host is a name, and not an IP address in one of the spellings that browsers replace, such as 127.1.
func isName(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// crossOrigin returns the check of where requests come from. Its error is that of an origin that ParseOrigin refuses.
func crossOrigin(origins []string) (*http.CrossOriginProtection, error) {
	check := http.NewCrossOriginProtection()
	for _, text := range origins {
		origin, err := ParseOrigin(text)
		if err == nil {
			err = check.AddTrustedOrigin(origin)
		}
		if err != nil {
			return nil, fmt.Errorf("origin %q: %w", text, err)
		}
	}
	return check, nil
}

// checkOrigin refuses requests that a browser sends for another site, or for one that only seems to be this one.
func (s *Server) checkOrigin(r *http.Request) error {
	err := s.origins.Check(r)
	if s.plain(r) && (err != nil || r.Header.Get("Origin") != "") { // before a link is used up for a session that the browser would drop
		return fmt.Errorf("%w: over http from another machine it neither keeps a session nor says where a request comes from", api.ErrPlainHTTP)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", api.ErrCrossOrigin, err)
	}
	return s.calledByName(r)
}

// plain reports whether a browser that should come by https has come by http. Then it sends no Sec-Fetch-Site, which
// it sends only to trustworthy origins. Its requests are refused, because they could come from any site.
func (s *Server) plain(r *http.Request) bool {
	if !s.config.Secure || r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "" {
		return false
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Scheme != "https" && (origin.Host == "" || origin.Host == r.Host)
}

// calledByName refuses requests to this machine under a foreign host name, which a browser sends for a page of a site that points
// its own name to this machine (DNS rebinding): both would have the same origin.
func (s *Server) calledByName(r *http.Request) error {
	if s.config.Secure && !s.config.Local || isLoopback(r.Host) {
		return nil
	}
	for _, origin := range s.config.Origins {
		if u, err := url.Parse(origin); err == nil && strings.EqualFold(u.Host, strings.TrimSuffix(r.Host, ":443")) { // some proxies add the port
			return nil
		}
	}
	return fmt.Errorf("%w: header Host: %q is not a name of this machine", api.ErrCrossOrigin, r.Host)
}

// isLoopback reports whether a host, with or without a port, is this machine.
func isLoopback(host string) bool {
	u := url.URL{Host: host}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// All requests take their memory from one budget, so their total is limited, whatever their number and size. A request waits a short time
// for its part. Then it is refused, and its caller may try again.

const (
	// DefaultMemory is the memory of a server without a setting, in bytes.
	DefaultMemory = 1 << 30

	bodyFactor   = 32               // a body takes this many times its size while it is read, sealed and tried
	recordFactor = 8                // a record that is shown with others takes this many times its size
	valueSize    = 512              // a value of JSON takes this many bytes beside, where many are small
	heavyRequest = 64 << 20         // a request that may read a record of any size takes this many bytes
	budgetWait   = 10 * time.Second // how long a request waits for memory
)

// MemoryFor returns the least memory with which a server can accept bodies of this size.
func MemoryFor(body int64) int64 { return max(4*bodyFactor*body, 8*heavyRequest) }

// A memoryBudget is the memory that all requests may hold together. It is safe for concurrent use.
type memoryBudget struct {
	total int64 // half of the memory: the rest is for trials, the log and garbage
	parts *semaphore.Weighted

	mu      sync.Mutex // held while callers is read or changed
	callers map[string]int64
}

// A memoryAccount counts what one request holds. It must be used by one goroutine only.
type memoryAccount struct {
	of     *memoryBudget
	caller string
	held   int64
}

// most returns the limit for all requests of one caller together, so that others get a part, too.
func (b *memoryBudget) most() int64 { return b.total / 2 }

// reserve counts n more bytes for a caller, or returns api.ErrUnavailable if that exceeds the caller's limit.
func (b *memoryBudget) reserve(caller string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held := b.callers[caller]; held+n > b.most() {
		return fmt.Errorf("%w: the requests of one caller may hold at most %d MiB of memory: send them one after the other", api.ErrUnavailable, b.most()>>20)
	}
	b.callers[caller] += n
	return nil
}

func (b *memoryBudget) restore(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[caller] -= n; b.callers[caller] <= 0 {
		delete(b.callers, caller)
	}
}

// Take counts n more bytes, and waits a short time for them. It returns api.ErrTooLarge, api.ErrUnavailable or the context's error.
func (a *memoryAccount) Take(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if a.held+n > a.of.most() {
		return fmt.Errorf("%w: the answer takes more memory than the %d MiB that one request may hold", api.ErrTooLarge, a.of.most()>>20)
	}
	waiting, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	for err := a.of.reserve(a.caller, n); err != nil; err = a.of.reserve(a.caller, n) {
		if !wait(waiting, 20*time.Millisecond) {
			return err
		}
	}
	if err := a.of.parts.Acquire(waiting, n); err != nil {
		a.of.restore(a.caller, n)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: other requests hold the memory that this one needs", api.ErrUnavailable)
	}
	a.held += n
	return nil
}

// Keep gives back all but n bytes.
func (a *memoryAccount) Keep(n int64) {
	if a == nil || n >= a.held {
		return
	}
	a.of.parts.Release(a.held - n)
	a.of.restore(a.caller, a.held-n)
	a.held = n
}

type accountKey struct{}

// memoryAccountOf returns the account of a request, or nil if it has none.
func memoryAccountOf(ctx context.Context) *memoryAccount {
	a, _ := ctx.Value(accountKey{}).(*memoryAccount)
	return a
}

// counted takes memory for twice the bytes that are read through it, since a growing buffer briefly exists twice.
type counted struct {
	io.Reader
	ctx  context.Context
	held *memoryAccount
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if failed := c.held.Take(c.ctx, 2*int64(n)); failed != nil {
		return 0, failed
	}
	return n, err
}

func (s *Server) account(route *Route, r *http.Request, c *Caller) (*http.Request, *memoryAccount, error) {
	a := &memoryAccount{of: s.budget, caller: limitedAs(c, r)}
	r = r.WithContext(context.WithValue(r.Context(), accountKey{}, a))
	most := s.config.MaxBody
	if route.MaxBody > 0 {
		most = route.MaxBody
	}
	var need int64
	if route.Kind != API || c.cookie { // no other body is parsed as a form, whatever its Content-Type: curl labels all bodies as forms
		need = 4 * formSize(r, most)
	}
	if route.Heavy {
		need += heavyRequest
	}
	return r, a, a.Take(r.Context(), need)
}

// formSize is the size limit of a form. The server reads forms completely before it calls a handler.
func formSize(r *http.Request, most int64) int64 {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if !changes(r) || media != "application/x-www-form-urlencoded" && media != "multipart/form-data" {
		return 0
	}
	if r.ContentLength >= 0 {
		return min(r.ContentLength, most)
	}
	return most
}

// limitedAs returns the key under which a caller's rate is limited: the token, or the address for a caller without
// one. A session counts as the token that opened it, so many sessions do not raise the limit.
func limitedAs(c *Caller, r *http.Request) string {
	switch {
	case c.Stranger():
		return address(r)
	case !c.grant.Under.IsZero():
		return c.grant.Under.String()
	}
	return c.grant.Token.String()
}

// address returns the caller's address. For IPv6 it is the network that one subscriber has.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip := net.ParseIP(host)
	if ip == nil || ip.To4() != nil {
		return host
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}

// A Rate is how often one caller may ask. A caller is a token, or the address of a stranger.
type Rate struct {
	PerSecond float64 // requests per second; 0: 50; negative: no limit
	Burst     int     // requests at once; 0: 200, or the number in four seconds if that is more
}

const (
	defaultPerSecond = 50
	defaultBurst     = 200
	maxStrangers     = 10_000 // the largest number of callers that are remembered while strangers still get in
)

// A rateLimiter refuses callers that ask too often. It is safe for concurrent use.
type rateLimiter struct {
	limits Rate
	now    func() time.Time

	mu      sync.Mutex // held while callers is read or written
	callers map[string]*rate.Limiter
	swept   time.Time
}

func newRateLimiter(l Rate, now func() time.Time) *rateLimiter {
	l.PerSecond = cmp.Or(l.PerSecond, defaultPerSecond)
	if l.Burst == 0 {
		l.Burst = max(defaultBurst, int(min(4*l.PerSecond, math.MaxInt32)))
	}
	return &rateLimiter{limits: l, now: now, callers: map[string]*rate.Limiter{}}
}

// Allow counts a request. It returns api.ErrTooMany if the caller asks too often, or if a stranger comes while too many callers are
// remembered. Strangers never shut out a caller with a token, since only issued tokens count as such.
func (l *rateLimiter) Allow(caller string, stranger bool) error {
	if l.limits.PerSecond < 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	a := l.callers[caller]
	if a == nil {
		if l.sweep(now); stranger && len(l.callers) >= maxStrangers {
			return fmt.Errorf("%w: from too many addresses at once", api.ErrTooMany)
		}
		a = rate.NewLimiter(rate.Limit(l.limits.PerSecond), l.limits.Burst)
		l.callers[caller] = a
	}
	if !a.AllowN(now, 1) {
		return fmt.Errorf("%w: at most %v a second, and %d at once", api.ErrTooMany, l.limits.PerSecond, l.limits.Burst)
	}
	return nil
}

// sweep forgets, at most once a second, the callers that have their full allowance again.
func (l *rateLimiter) sweep(now time.Time) {
	if since := now.Sub(l.swept); 0 <= since && since < time.Second { // the clock may go back
		return
	}
	l.swept = now
	for caller, a := range l.callers {
		if a.TokensAt(now) >= float64(l.limits.Burst) {
			delete(l.callers, caller)
		}
	}
}

const refusalsEvery = time.Minute

// A refusalCounter counts what is refused, for the program log and the metrics. It is safe for concurrent use.
type refusalCounter struct {
	log     *slog.Logger
	metrics *metrics

	mu      sync.Mutex // held while counted is read or written
	counted map[refused]int
}

// A refused request, by whom, where and why. A stranger has neither name nor token.
type refused struct {
	name           string
	token          evidence.Digest
	route, problem string
}

// note counts a request to a route that ended with this problem, if that was a refusal rather than a mistake.
func (f *refusalCounter) note(route string, c *Caller, p *api.Problem) {
	if p.Status != http.StatusUnauthorized && p.Status != http.StatusForbidden && p.Status != http.StatusTooManyRequests {
		return
	}
	f.metrics.Refused(route, p.Name())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counted == nil {
		f.counted = map[refused]int{}
	}
	f.counted[refused{c.Name(), c.tokenID(), route, p.Name()}]++
}

// run tells the counts every minute, and once more at the end.
func (f *refusalCounter) run(ctx context.Context) {
	for again := true; again; {
		again = wait(ctx, refusalsEvery)
		f.tell(ctx)
	}
}

func (f *refusalCounter) tell(ctx context.Context) {
	f.mu.Lock()
	counted := f.counted
	f.counted = nil
	f.mu.Unlock()
	for one, count := range counted {
		said := []slog.Attr{slog.String("route", one.route), slog.String("problem", one.problem), slog.Int("count", count)}
		if !one.token.IsZero() {
			said = append(said, slog.String("name", one.name), slog.String("token", one.token.String()))
		}
		f.log.LogAttrs(ctx, slog.LevelWarn, "requests refused", said...)
	}
}
