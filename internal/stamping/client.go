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
	"strconv"
	"time"

	"jurat/timestamp"
)

// A Client asks one authority. It is safe for concurrent use.
type Client struct {
	url      string
	roots    []*x509.Certificate // that its tokens must chain to
	policy   x509.OID            // requested, and required of the token; zero: the authority's default
	provider *provider           // of trusted lists, by which the authority must be a qualified one; nil: it need not
	now      func() time.Time

	timeout time.Duration                                    // the limit of one attempt
	sleep   func(ctx context.Context, d time.Duration) error // between attempts; tests do not wait
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

// Stamp gets a token over a SHA-256 imprint. It verifies the token against the configured roots, this imprint, this request's nonce and the
// configured policy, and, if it must be a qualified one, against the trusted lists. Its errors have ErrUnavailable, ErrAnswer, ErrListOutOfDate or the
// context's error in their chain.
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
	request := c.request(imprint)
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

const nonceBytes = 16

func (c *Client) request(imprint [sha256.Size]byte) *timestamp.Request {
	var nonce [nonceBytes]byte
	rand.Read(nonce[:]) // never fails
	return &timestamp.Request{Imprint: imprint, Nonce: new(big.Int).SetBytes(nonce[:]), Policy: c.policy, CertReq: true}
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
	if response.StatusCode != http.StatusOK {
		return nil, retryAfter(response), fmt.Errorf("%w: status %d", kindOfStatus(response.StatusCode), response.StatusCode)
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

// kindOfStatus returns ErrUnavailable for a status that may pass, and ErrAnswer for one that a repeated request will not change.
func kindOfStatus(status int) error {
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return ErrUnavailable
	}
	return ErrAnswer
}

// retryAfter reads the header in seconds (RFC 9110, section 10.2.3). It ignores dates, since they need a common clock.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestWait)
}
