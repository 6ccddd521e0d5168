package stamping

import (
	"bytes"
	"context"
	"crypto"
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
	"jurat/verify/trust"
)

// ClientConfig describes how to ask one authority.
type ClientConfig struct {
	URL           string              // required: http or https
	Roots         []*x509.Certificate // required: the roots that its tokens must chain to
	Intermediates []*x509.Certificate // further certificates, for tokens that embed too few
	Policy        x509.OID            // requested, and required of the token; zero: the authority's default

	Provider *trust.Trust // the authority must be a qualified one by these authorities of trusted lists; nil: it need not

	Skew time.Duration    // how far the authority's time may be from ours; 0: 5 minutes
	Now  func() time.Time // nil: time.Now

	HTTP     *http.Client                                     // nil: http.DefaultClient
	Timeout  time.Duration                                    // the limit of one attempt; 0: 10 s
	Attempts int                                              // how often to try; 0: 3
	Pause    time.Duration                                    // before the second attempt, doubled before each further one; 0: 200 ms
	Random   io.Reader                                        // for nonces; nil: crypto/rand
	Sleep    func(ctx context.Context, d time.Duration) error // nil: waits for d or until ctx ends
}

// A Client asks one authority. It is safe for concurrent use.
type Client struct{ config ClientConfig }

var (
	// ErrUnavailable says that the authority gave no answer. A later request may succeed.
	ErrUnavailable = errors.New("the authority gave no answer")
	// ErrAnswer says that the authority's answer is not a valid token for the request.
	ErrAnswer = errors.New("the authority's answer is not valid")
)

const (
	mediaQuery = "application/timestamp-query"
	mediaReply = "application/timestamp-reply"

	defaultSkew     = 5 * time.Minute
	defaultTimeout  = 10 * time.Second
	defaultAttempts = 3
	defaultPause    = 200 * time.Millisecond
	longestWait     = 30 * time.Second // also the limit for Retry-After
)

// NewClient makes a Client. It returns an error if the URL is not http or https, or if there are no roots.
func NewClient(c ClientConfig) (*Client, error) {
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") {
		return nil, fmt.Errorf("time-stamping authority %q: want an http or https URL", c.URL)
	}
	if len(c.Roots) == 0 {
		return nil, fmt.Errorf("time-stamping authority %s: want a root certificate that verifies its tokens", c.URL)
	}
	if c.Skew == 0 {
		c.Skew = defaultSkew
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Attempts == 0 {
		c.Attempts = defaultAttempts
	}
	if c.Pause == 0 {
		c.Pause = defaultPause
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	return &Client{config: c}, nil
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
	return c.StampImprint(ctx, timestamp.Imprint{Hash: crypto.SHA256, Sum: imprint[:]})
}

// StampImprint is Stamp for an imprint of any hash algorithm. Its errors are those of Stamp.
func (c *Client) StampImprint(ctx context.Context, imprint timestamp.Imprint) (token []byte, err error) {
	if c.config.Provider != nil { // a token that would be refused costs money all the same
		if err := (provider{c.config.Provider}).fresh(c.config.Now()); err != nil {
			return nil, fmt.Errorf("tsa %s: %w", c.config.URL, err)
		}
	}
	pause := c.config.Pause
	for attempt := 1; ; attempt++ {
		var wait time.Duration
		token, wait, err = c.attempt(ctx, imprint)
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || attempt >= c.config.Attempts {
			break
		}
		// Jitter prevents that many clients return at the same moment.
		wait = min(max(wait, pause/2+mathrand.N(pause)), longestWait)
		if sleepErr := c.config.Sleep(ctx, wait); sleepErr != nil {
			break
		}
		pause *= 2
	}
	if err != nil {
		return nil, fmt.Errorf("tsa %s: %w", c.config.URL, errors.Join(err, context.Cause(ctx)))
	}
	return token, nil
}

// attempt asks once. wait is the pause that the authority demands before the next attempt.
func (c *Client) attempt(ctx context.Context, imprint timestamp.Imprint) (token []byte, wait time.Duration, err error) {
	request, err := c.request(imprint)
	if err != nil {
		return nil, 0, err
	}
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

func (c *Client) request(imprint timestamp.Imprint) (*timestamp.Request, error) {
	var nonce [nonceBytes]byte
	if _, err := io.ReadFull(c.config.Random, nonce[:]); err != nil {
		return nil, fmt.Errorf("drawing nonce: %w", err)
	}
	return &timestamp.Request{Wide: imprint, Nonce: new(big.Int).SetBytes(nonce[:]), Policy: c.config.Policy, CertReq: true}, nil
}

// check verifies the token as a reader will, and checks that it answers this request.
func (c *Client) check(token []byte, request *timestamp.Request) error {
	unverified, err := timestamp.Parse(token)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	options := timestamp.Options{Roots: c.config.Roots, Intermediates: c.config.Intermediates, Nonce: request.Nonce}
	if !c.config.Policy.Equal(x509.OID{}) {
		options.Policies = []x509.OID{c.config.Policy}
	}
	verified, err := unverified.VerifyImprint(request.Wide, options)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	// A token proves existence at its time. A time far from now therefore proves something else than the request asked for.
	if skew := verified.GenTime.Sub(c.config.Now()); skew.Abs() > c.config.Skew {
		return fmt.Errorf("%w: its time is %s, which is %v from this machine's clock; one of the two is wrong",
			ErrAnswer, verified.GenTime.Format(time.RFC3339), skew.Round(time.Second))
	}
	if c.config.Provider == nil {
		return nil
	}
	if err := (provider{c.config.Provider}).check(unverified, request.Wide, c.config.Now()); err != nil {
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return nil
}

// post sends one query and returns the body of the reply.
func (c *Client) post(ctx context.Context, query []byte) (reply []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.URL, bytes.NewReader(query))
	if err != nil {
		return nil, 0, fmt.Errorf("writing request: %w", err)
	}
	request.Header.Set("Content-Type", mediaQuery)
	request.Header.Set("Accept", mediaReply)
	response, err := c.config.HTTP.Do(request)
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
