package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/verify/trust"
)

// Config configures a Client.
type Config struct {
	URL       string       // required: https, or http to this machine, because a token is sent
	Token     string       // as 'jurat access grant' prints it; "": public access only
	HTTP      *http.Client // nil: http.DefaultClient
	Attempts  int          // attempts per request if the server is away or busy; 0: 3
	MaxAnswer int64        // largest answer in bytes; 0: 128 MiB
}

// A Client sends requests to one server. It is safe for concurrent use.
//
// All methods that send requests have the same errors. If the server refuses a request, the error is an *api.Problem,
// and errors.Is finds the error of package api. If no server answers, it is a *url.Error, and after the end of the
// context errors.Is finds the context's error. An answer that is too long, does not come from jurat or cannot be read
// is an error, too.
//
// A request that creates something carries an idempotency key. So the Client can repeat it after a failure without
// creating anything twice.
type Client struct {
	config Config
	base   *url.URL
	key    string
}

// NewClient makes a Client. It returns an error if the URL is not allowed.
func NewClient(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	switch {
	case base.Host == "" || base.Scheme != "https" && base.Scheme != "http":
		return nil, fmt.Errorf("server: %q: want https:// and a host", c.URL)
	case c.Token != "" && base.Scheme != "https" && !isLoopback(base.Hostname()):
		return nil, fmt.Errorf("server: %q: the connection would not protect the token: want https", c.URL)
	}
	if c.HTTP == nil {
		c.HTTP = http.DefaultClient
	}
	// The server never redirects. A redirect would send the token, and the text to be sealed, to another host.
	straight := *c.HTTP
	straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.HTTP = &straight
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.MaxAnswer == 0 {
		c.MaxAnswer = evidence.MaxRecord
	}
	return &Client{config: c, base: base}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// WithKey returns a client that sends all requests under this idempotency key. A caller that stores the key before
// sending can repeat the request after its own crash.
func (c *Client) WithKey(key string) *Client {
	with := *c
	with.key = key
	return &with
}

// Seal asks the server to seal a payload with the key that the installation keeps for the agent or reviewer, and
// returns the record.
func (c *Client) Seal(ctx context.Context, payload []byte) (*evidence.Record, error) {
	return c.record(ctx, http.MethodPost, "/v1/records", payload)
}

// Deposit sends a record that was signed with Sign or SignApart, and returns it as the server stored it. Check compares
// the two. Deposit does not send the values that are sealed apart: their owner keeps them.
func (c *Client) Deposit(ctx context.Context, signed *evidence.Record) (*evidence.Record, error) {
	bare := *signed
	bare.Disclosures = nil
	file, err := bare.Marshal()
	if err != nil {
		return nil, err
	}
	return c.WithKey("").record(ctx, http.MethodPost, "/v1/records", file)
}

// Record reads a record with its proofs.
func (c *Client) Record(ctx context.Context, id string) (*evidence.Record, error) {
	return c.record(ctx, http.MethodGet, "/v1/records/"+url.PathEscape(id), nil)
}

// Review records a decision of the token's person.
func (c *Client) Review(ctx context.Context, id string, review api.Review) (*evidence.Record, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return c.record(ctx, http.MethodPost, "/v1/records/"+url.PathEscape(id)+"/reviews", body)
}

// Deliver records that the answer approved by a review was given.
func (c *Client) Deliver(ctx context.Context, id, reviewID string) (*evidence.Record, error) {
	body, err := json.Marshal(api.Delivery{Review: reviewID})
	if err != nil {
		return nil, err
	}
	return c.record(ctx, http.MethodPost, "/v1/records/"+url.PathEscape(id)+"/deliveries", body)
}

// Property asks the server for a proof of what a value is like that it keeps, in a bundle without the value. Package verify checks it.
// A program that holds the value itself calls Prove.
func (c *Client) Property(ctx context.Context, id string, wanted api.Property) (*evidence.Bundle, error) {
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	doc, err := c.ask(ctx, http.MethodPost, "/v1/records/"+url.PathEscape(id)+"/properties", body)
	if err != nil {
		return nil, err
	}
	return evidence.ParseBundle(doc)
}

// Chain reads the records of a chain, or of a trial, as one bundle.
func (c *Client) Chain(ctx context.Context, chainID string) (*evidence.Bundle, error) {
	doc, err := c.ask(ctx, http.MethodGet, "/v1/chains/"+url.PathEscape(chainID), nil)
	if err != nil {
		return nil, err
	}
	return evidence.ParseBundle(doc)
}

// Records iterates over the records that the token may read, in the order of the log. If chainID is set, it reads
// only that chain. It ends after an error.
func (c *Client) Records(ctx context.Context, chainID string) iter.Seq2[api.Entry, error] {
	return func(yield func(api.Entry, error) bool) {
		for cursor := ""; ; {
			page, err := c.page(ctx, chainID, cursor)
			if err != nil {
				yield(api.Entry{}, err)
				return
			}
			for _, entry := range page.Records {
				if !yield(entry, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

func (c *Client) page(ctx context.Context, chainID, cursor string) (*api.Listing, error) {
	query := url.Values{}
	for name, value := range map[string]string{"after": cursor, "chain": chainID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	doc, err := c.ask(ctx, http.MethodGet, "/v1/records?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var page api.Listing
	if err := json.Unmarshal(doc, &page); err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", evidence.Steady(err))
	}
	return &page, nil
}

// Trust reads the server's trust file. Its statements about keys are only the server's word: compare its fingerprint
// over another channel before you verify with it.
func (c *Client) Trust(ctx context.Context) (*trust.Trust, error) {
	doc, err := c.ask(ctx, http.MethodGet, "/v1/trust", nil)
	if err != nil {
		return nil, err
	}
	return trust.Parse(doc)
}

// Ready asks once whether the server's log takes records, and returns nil if it does. A server that answers and is not ready gives
// api.ErrUnavailable with the reason.
func (c *Client) Ready(ctx context.Context) error {
	doc, err := c.once(ctx, http.MethodGet, "/readyz", "", nil)
	if err == nil && string(doc) != "ready\n" {
		err = errors.New("status 200, and the answer is not from jurat")
	}
	return err
}

// Checkpoint reads a signed checkpoint of the whole log. A caller that keeps it can later detect a change of anything
// that it covers.
func (c *Client) Checkpoint(ctx context.Context) (string, error) {
	doc, err := c.ask(ctx, http.MethodGet, "/log/checkpoint", nil)
	return string(doc), err
}

func (c *Client) record(ctx context.Context, method, path string, body []byte) (*evidence.Record, error) {
	doc, err := c.ask(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return evidence.Open(doc)
}

// pause is the wait before the second attempt. Each further wait is twice as long.
const pause = 200 * time.Millisecond

// ask makes a request and repeats it if it may succeed later.
func (c *Client) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	key := c.key
	if key == "" && method == http.MethodPost {
		id, err := evidence.NewRecordID(time.Now(), nil)
		if err != nil {
			return nil, err
		}
		key = id
	}
	for attempt := 1; ; attempt++ {
		doc, err := c.once(ctx, method, path, key, body)
		if err == nil || attempt == c.config.Attempts || !mayPass(err) {
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			return doc, nil
		}
		select {
		case <-time.After(pause << (attempt - 1)):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %s: %w", method, path, errors.Join(err, ctx.Err()))
		}
	}
}

// mayPass reports whether the same request may succeed later.
func mayPass(err error) bool {
	var p *api.Problem
	if errors.As(err, &p) {
		return errors.Is(p, api.ErrUnavailable) || errors.Is(p, api.ErrTooMany)
	}
	var failed *url.Error // no server answered
	return errors.As(err, &failed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// send makes a request once. It returns any answer, whatever its status.
func (c *Client) send(ctx context.Context, method, path, key string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.base.String(), "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.config.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set(api.IdempotencyKey, key)
	}
	return c.config.HTTP.Do(r)
}

func (c *Client) once(ctx context.Context, method, path, key string, body []byte) (doc []byte, err error) {
	answer, err := c.send(ctx, method, path, key, body)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	doc, err = io.ReadAll(io.LimitReader(answer.Body, c.config.MaxAnswer+1))
	switch {
	case err != nil:
		return nil, &url.Error{Op: method, URL: path, Err: err}
	case int64(len(doc)) > c.config.MaxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", c.config.MaxAnswer)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return nil, problemIn(answer, doc)
	}
	return doc, nil
}

// problemIn returns the problem in an answer. An answer without one comes from another program, such as a proxy.
func problemIn(answer *http.Response, doc []byte) error {
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	p := new(api.Problem)
	if err != nil || media != api.ProblemMediaType || json.Unmarshal(doc, p) != nil || p.Status != answer.StatusCode {
		return errors.New("status " + strconv.Itoa(answer.StatusCode) + ", and the answer is not from jurat")
	}
	return p
}

// Submit puts an agent before the jury. It returns when the submission is sealed. The trial starts when its turn
// comes.
func (c *Client) Submit(ctx context.Context, n api.NewSubmission) (*api.Submission, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return read[api.Submission](c.ask(ctx, http.MethodPost, "/v1/submissions", body))
}

// Submission returns the state of a submission, the votes, and the result so far.
func (c *Client) Submission(ctx context.Context, id string) (*api.Submission, error) {
	return read[api.Submission](c.ask(ctx, http.MethodGet, submissionPath(id, ""), nil))
}

// Cancel stops a trial that has no verdict. The log records the caller and the reason. A juror that was already asked
// still answers.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*api.Submission, error) {
	body, err := json.Marshal(api.Cancellation{Reason: reason})
	if err != nil {
		return nil, err
	}
	return read[api.Submission](c.ask(ctx, http.MethodPost, submissionPath(id, "/cancel"), body))
}

// Resume continues a trial that was broken off or cancelled.
func (c *Client) Resume(ctx context.Context, id string) (*api.Submission, error) {
	return read[api.Submission](c.ask(ctx, http.MethodPost, submissionPath(id, "/resume"), nil))
}

// Submissions iterates over the submissions that the token may see, the newest first. It ends after an error.
func (c *Client) Submissions(ctx context.Context) iter.Seq2[api.Submission, error] {
	return func(yield func(api.Submission, error) bool) {
		for cursor := ""; ; {
			page, err := read[api.Submissions](c.ask(ctx, http.MethodGet, "/v1/submissions?after="+url.QueryEscape(cursor), nil))
			if err != nil {
				yield(api.Submission{}, err)
				return
			}
			for _, s := range page.Submissions {
				if !yield(s, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

// CaseFile reads every record of a trial, proved against one checkpoint. Verify it with your own trust file.
func (c *Client) CaseFile(ctx context.Context, id string) (*evidence.Bundle, error) {
	doc, err := c.ask(ctx, http.MethodGet, submissionPath(id, "/case"), nil)
	if err != nil {
		return nil, err
	}
	return evidence.ParseBundle(doc)
}

func submissionPath(id, rest string) string { return "/v1/submissions/" + url.PathEscape(id) + rest }

// read decodes an answer. It ignores unknown members, which a later server may have added.
func read[T any](doc []byte, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(doc, value); err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", evidence.Steady(err))
	}
	return value, nil
}
