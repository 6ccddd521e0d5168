// Package stamping gets time stamps. A Client asks one time-stamping authority over HTTP (RFC 3161, section 3.4). It verifies each answer
// in full, against roots that the operator configured, before it returns the token. Stampers are all authorities that stamp new records,
// the built-in one included. A Timekeeper gets the time stamps that records wait for, lets outside
// authorities stamp the log's checkpoints, and renews these stamps before they end.
//
// # An authority's silence stops nobody
//
// If an outside authority does not answer, the record is sealed and waits for its stamp, which the transaction that appends it also stores. A
// stamp that comes later is added in one transaction with the act (`late_stamp`) that describes it. If another process has added one of the
// stamps first, the transaction fails, since the signed act names that stamp, and the ledger makes a new act about the rest. The act itself
// never waits for a stamp, and neither does one about a stamped checkpoint, or acts about acts would never end: the built-in authority stamps them.
//
// # A qualified authority must be one at each time stamp
//
// An authority that was added with `--qualified` keeps what the trusted lists say of its provider. Each token is judged on receipt by the rule
// that a reader's verification applies (package verify/trust), and refused unless it is a qualified time stamp. When the lists are out of date,
// the authority is not asked: its tokens may cost money. The record is sealed and waits. AddQualified takes newer lists.
//
// # The operator's clock is tied to another one through the log
//
// `jurat log stamp --checkpoint` asks an outside authority to stamp the signed checkpoint, and logs the token (`checkpoint_stamp`). One token then
// proves for every record under that checkpoint that it existed by then, even if only the operator's clock stamped the record: that can be set
// back by at most the time between two stamped checkpoints. A proof carries, of each authority, the earliest stamped checkpoint over each record;
// a later token over a checkpoint and its tokens renews them. The acts themselves do not count as unstamped: a schedule must come to rest.
package stamping

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// BuiltIn names the built-in authority.
const BuiltIn = "built-in"

const (
	sealingTime  = 10 * time.Second // how long outside authorities may delay one record
	firstPause   = 30 * time.Second // how long an authority is not asked after its first failure; doubled at each further one
	longestPause = 10 * time.Minute
)

// ErrNotConfigured says that no authority of this name or URL is configured, so its answers could not be verified.
var ErrNotConfigured = errors.New("no such time-stamping authority is configured")

// Stampers are the built-in authority and the outside ones. They are safe for concurrent use.
type Stampers struct {
	own      *Own
	ownToo   bool // the built-in authority stamps records
	outside  []*Client
	selected []*Client // the outside authorities that stamp records
	trusted  []trust.Authority

	Patience time.Duration // how long outside authorities may delay one record; Open sets 10 seconds
}

// Open reads every outside authority in a file store, and selects those that stamp new records, by names or URLs; none: all of them and the
// built-in one. If use names an unknown one, the error has ErrNotConfigured in its chain.
func Open(ctx context.Context, files filestore.Store, own *Own, use []string, now func() time.Time) (*Stampers, error) {
	list, err := (&Timekeeper{Files: files}).List(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stampers{own: own, Patience: sealingTime}
	for _, o := range list {
		client, err := o.check()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", files.Where(outsideFile(o.Name)), err)
		}
		client.rest = now
		s.outside = append(s.outside, client)
		s.trusted = append(s.trusted, o.trusted(client.roots)...)
	}
	return s, s.selectOnly(use)
}

func (s *Stampers) selectOnly(wanted []string) error {
	if len(wanted) == 0 {
		s.ownToo, s.selected = true, s.outside
		return nil
	}
	for _, w := range wanted {
		if w == BuiltIn {
			s.ownToo = true
			continue
		}
		found := slices.IndexFunc(s.outside, func(c *Client) bool { return c.name == w || c.url == w })
		if found < 0 {
			return fmt.Errorf("%q: %w", w, ErrNotConfigured)
		}
		if !slices.Contains(s.selected, s.outside[found]) {
			s.selected = append(s.selected, s.outside[found])
		}
	}
	return nil
}

// of returns the outside authority with this name, or nil.
func (s *Stampers) of(name string) *Client {
	i := slices.IndexFunc(s.outside, func(c *Client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.outside[i]
}

// Stamp implements ledger.Stamper. It asks all selected authorities at the same time. It returns the errors of the
// built-in authority and the context's error. What keeps another authority from answering is in Stamped.Missing.
func (s *Stampers) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, s.ownToo)
}

// Settler returns the stamper of the operator's acts about stamps. These acts never wait, so the built-in authority always stamps them.
func (s *Stampers) Settler() ledger.Stamper { return settler{s} }

// Trusted returns the authorities in the form of a trust file, in which each root stands once.
func (s *Stampers) Trusted() []trust.Authority {
	list := []trust.Authority{s.own.trusted()}
	for _, a := range s.trusted {
		list = trustToo(list, a)
	}
	return list
}

// trustToo adds an authority to those of a trust file. Of several with one root, as of one whose address has changed, it makes one: with the
// names and the policies of all, and with the first one's clock, so that what the operator's own root has signed is never called independent.
func trustToo(list []trust.Authority, a trust.Authority) []trust.Authority {
	i := slices.IndexFunc(list, func(known trust.Authority) bool { return bytes.Equal(known.Certificate, a.Certificate) })
	if i < 0 {
		return append(list, a)
	}
	same := &list[i]
	if same.Name != a.Name {
		same.Name += ", " + a.Name
	}
	if len(same.Policies) == 0 || len(a.Policies) == 0 {
		same.Policies = nil // one of them accepts any
	} else if !slices.Contains(same.Policies, a.Policies[0]) {
		same.Policies = append(slices.Clone(same.Policies), a.Policies...)
	}
	return list
}

type settler struct{ *Stampers }

// Stamp implements ledger.Stamper.
func (s settler) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, true)
}

func (s *Stampers) stamp(ctx context.Context, imprint [32]byte, own bool) (stamped ledger.Stamped, err error) {
	if own {
		token, err := s.own.stamp(ctx, imprint)
		if err != nil {
			return stamped, err
		}
		stamped.Tokens = [][]byte{token}
	}
	if len(s.selected) == 0 {
		return stamped, nil
	}
	tokens, errs := make([][]byte, len(s.selected)), make([]error, len(s.selected))
	bounded, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for i, c := range s.selected {
		wg.Go(func() { tokens[i], errs[i] = c.unlessResting(bounded, imprint) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil { // the caller cancelled, and no authority failed
		return ledger.Stamped{}, err
	}
	for i, c := range s.selected {
		if errs[i] != nil {
			stamped.Missing = append(stamped.Missing, ledger.Missing{Authority: c.name, Reason: errs[i]})
			continue
		}
		stamped.Tokens = append(stamped.Tokens, tokens[i])
	}
	stamped.Earliest, err = earliest(stamped.Tokens)
	return stamped, err
}

// earliest returns the earliest time that verified tokens prove, or zero if there are none.
func earliest(tokens [][]byte) (first time.Time, err error) {
	for _, der := range tokens {
		token, err := timestamp.Parse(der)
		if err != nil {
			return first, err
		}
		info := token.UnverifiedInfo() // readers take the latest time at which the imprint may first have existed
		if at := info.GenTime.Add(info.Accuracy); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, nil
}

// unlessResting asks the authority, unless it failed recently.
func (c *Client) unlessResting(ctx context.Context, imprint [32]byte) ([]byte, error) {
	c.mu.Lock()
	rests, failure := c.rests, c.failure
	c.mu.Unlock()
	if c.rest().Before(rests) {
		return nil, fmt.Errorf("not asked again before %s: %w", rests.UTC().Format(time.TimeOnly), failure)
	}
	return c.ask(ctx, imprint)
}

// ask asks the authority, and remembers whether it answered.
func (c *Client) ask(ctx context.Context, imprint [32]byte) ([]byte, error) {
	token, err := c.Stamp(ctx, imprint)
	if errors.Is(err, context.Canceled) {
		return nil, err // the caller cancelled, which says nothing about the authority
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.failure = err == nil, err
	if err == nil {
		c.pause, c.rests = 0, time.Time{}
		return token, nil
	}
	c.pause = min(max(firstPause, 2*c.pause), longestPause)
	c.rests = c.rest().Add(c.pause)
	return nil, err
}

// Own is the built-in time-stamping authority. It uses the operator's clock.
type Own struct {
	*timestamp.Authority
	Root *x509.Certificate
}

// stamp issues a token that contains the certificate, so that verifying a record needs only the root.
func (a *Own) stamp(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
}

func (a *Own) trusted() trust.Authority {
	return trust.Authority{Name: "built-in authority", Certificate: a.Root.Raw, Clock: trust.OperatorClock}
}

// A Client asks one authority, and not for a while after a failure, so that an outage delays one record. It is safe for concurrent use.
type Client struct {
	name     string
	url      string
	roots    []*x509.Certificate // that its tokens must chain to
	policy   x509.OID            // requested, and required of the token; zero: the authority's default
	provider *provider           // of trusted lists, by which the authority must be a qualified one; nil: it need not
	now      func() time.Time    // by which its answers are judged
	rest     func() time.Time    // by which it rests after a failure; Open sets it

	timeout time.Duration                                    // the limit of one attempt
	sleep   func(ctx context.Context, d time.Duration) error // between attempts; tests do not wait

	mu       sync.Mutex // held while what follows is read or written
	answered bool       // whether it answered the last request
	failure  error      // the failure of the last request
	pause    time.Duration
	rests    time.Time // it is not asked before this time
}

var (
	// ErrUnavailable says that the authority gave no answer. A later request may succeed.
	ErrUnavailable = errors.New("the authority gave no answer")
	// ErrAnswer says that the authority's answer is not a valid token for the request.
	ErrAnswer = errors.New("the authority's answer is not valid")
)

const (
	mediaQuery = "application/timestamp-query"
	mediaReply = "application/timestamp-reply"

	mostSkew    = 5 * time.Minute  // how far the authority's time may be from ours
	attemptTime = 10 * time.Second // the limit of one attempt
	attempts    = 3
	pause       = 200 * time.Millisecond // before the second attempt, doubled before each further one
	longestWait = 30 * time.Second       // also the limit for Retry-After
)

// newClient makes a Client. It returns an error if the URL is not http or https, or if there are no roots.
func newClient(address string, roots []*x509.Certificate) (*Client, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, fmt.Errorf("time-stamping authority %q: want an http or https URL", address)
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("time-stamping authority %s: want a root certificate that verifies its tokens", address)
	}
	return &Client{url: address, roots: roots, now: time.Now, timeout: attemptTime, sleep: sleep}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stamp gets a token over a SHA-256 imprint, verified against the roots, this imprint, this request's nonce, the policy, and the trusted lists if it
// must be qualified. Its errors have ErrUnavailable, ErrAnswer, ErrListOutOfDate or the context's error in their chain.
func (c *Client) Stamp(ctx context.Context, imprint [sha256.Size]byte) (token []byte, err error) {
	if c.provider != nil { // a token that would be refused costs money all the same
		if err := c.provider.fresh(c.now()); err != nil {
			return nil, fmt.Errorf("tsa %s: %w", c.url, err)
		}
	}
	pause := pause
	for attempt := 1; ; attempt++ {
		var wait time.Duration
		token, wait, err = c.attempt(ctx, imprint)
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || attempt >= attempts {
			break
		}
		// Jitter prevents that many clients return at the same moment.
		wait = min(max(wait, pause/2+mathrand.N(pause)), longestWait)
		if sleepErr := c.sleep(ctx, wait); sleepErr != nil {
			break
		}
		pause *= 2
	}
	if err != nil {
		return nil, fmt.Errorf("tsa %s: %w", c.url, errors.Join(err, context.Cause(ctx)))
	}
	return token, nil
}

// attempt asks once. wait is the pause that the authority demands before the next attempt.
func (c *Client) attempt(ctx context.Context, imprint [sha256.Size]byte) (token []byte, wait time.Duration, err error) {
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails
	request := &timestamp.Request{Imprint: imprint, Nonce: new(big.Int).SetBytes(nonce[:]), Policy: c.policy, CertReq: true}
	query, err := request.Marshal()
	if err != nil {
		return nil, 0, fmt.Errorf("writing request: %w", err)
	}
	reply, wait, err := c.post(ctx, query)
	if err != nil {
		return nil, wait, err
	}
	if token, err = timestamp.ParseResponse(reply); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return token, 0, c.check(token, request)
}

// check verifies the token as a reader will, and checks that it answers this request.
func (c *Client) check(token []byte, request *timestamp.Request) error {
	unverified, err := timestamp.Parse(token)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	options := timestamp.Options{Roots: c.roots, Nonce: request.Nonce}
	if !c.policy.Equal(x509.OID{}) {
		options.Policies = []x509.OID{c.policy}
	}
	verified, err := unverified.Verify(request.Imprint, options)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	// A token proves existence at its time. A time far from now therefore proves something else than the request asked for.
	if skew := verified.GenTime.Sub(c.now()); skew.Abs() > mostSkew {
		return fmt.Errorf("%w: its time is %s, which is %v from this machine's clock; one of the two is wrong",
			ErrAnswer, verified.GenTime.Format(time.RFC3339), skew.Round(time.Second))
	}
	if c.provider != nil {
		if _, err := c.provider.qualified(unverified, request.Imprint, c.now()); err != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return nil
}

// post sends one query and returns the body of the reply.
func (c *Client) post(ctx context.Context, query []byte) (reply []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(query))
	if err != nil {
		return nil, 0, fmt.Errorf("writing request: %w", err)
	}
	request.Header.Set("Content-Type", mediaQuery)
	request.Header.Set("Accept", mediaReply)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer response.Body.Close()
	if code := response.StatusCode; code != http.StatusOK {
		kind := ErrAnswer // which a repeated request will not change
		if code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout {
			kind = ErrUnavailable
		}
		return nil, retryAfter(response), fmt.Errorf("%w: status %d", kind, code)
	}
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || media != mediaReply {
		return nil, 0, fmt.Errorf("%w: content type %q, want %s", ErrAnswer, response.Header.Get("Content-Type"), mediaReply)
	}
	reply, err = io.ReadAll(io.LimitReader(response.Body, timestamp.MaxResponseSize+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: reading reply: %w", ErrUnavailable, err)
	}
	if len(reply) > timestamp.MaxResponseSize {
		return nil, 0, fmt.Errorf("%w: longer than %d bytes", ErrAnswer, timestamp.MaxResponseSize)
	}
	return reply, 0, nil
}

// retryAfter reads the header in seconds (RFC 9110, section 10.2.3). It ignores dates, since they need a common clock.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}
