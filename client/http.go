package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/client/api"
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
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, evidence.MaxRecord)
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

// Seal asks the server to seal a payload with the key that the installation keeps for its actor, and returns the record.
func (c *Client) Seal(ctx context.Context, payload []byte) (*evidence.Record, error) {
	return answer(evidence.Open)(c.ask(ctx, http.MethodPost, "/v1/records", payload))
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
	return c.WithKey("").Seal(ctx, file)
}

// Record reads a record with its proofs.
func (c *Client) Record(ctx context.Context, id string) (*evidence.Record, error) {
	return answer(evidence.Open)(c.get(ctx, recordPath(id, "")))
}

// Review records a decision of the token's person.
func (c *Client) Review(ctx context.Context, id string, review api.Review) (*evidence.Record, error) {
	return answer(evidence.Open)(c.post(ctx, recordPath(id, "/reviews"), review))
}

// Deliver records that the answer approved by a review was given.
func (c *Client) Deliver(ctx context.Context, id, reviewID string) (*evidence.Record, error) {
	return answer(evidence.Open)(c.post(ctx, recordPath(id, "/deliveries"), api.Delivery{Review: reviewID}))
}

// Property asks the server for a proof of what a value is like that it keeps, in a bundle without the value. Package verify checks it.
// A program that holds the value itself calls Prove.
func (c *Client) Property(ctx context.Context, id string, wanted api.Property) (*evidence.Bundle, error) {
	return answer(evidence.ParseBundle)(c.post(ctx, recordPath(id, "/properties"), wanted))
}

// Chain reads the records of a chain, or of a trial, as one bundle.
func (c *Client) Chain(ctx context.Context, chainID string) (*evidence.Bundle, error) {
	return answer(evidence.ParseBundle)(c.get(ctx, "/v1/chains/"+url.PathEscape(chainID)))
}

// Records iterates over the records that the token may read, in the order of the log. If chainID is set, it reads
// only that chain. It ends after an error.
func (c *Client) Records(ctx context.Context, chainID string) iter.Seq2[api.Entry, error] {
	query := url.Values{}
	if chainID != "" {
		query.Set("chain", chainID)
	}
	return pages(ctx, c, "/v1/records?", query, func(l *api.Listing) ([]api.Entry, string) { return l.Records, l.Next })
}

// pages iterates over what a list has on all its pages. of returns what a page has, and the next cursor.
func pages[P, T any](ctx context.Context, c *Client, path string, query url.Values, of func(*P) ([]T, string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for more := true; more; more = query.Get("after") != "" {
			page, err := answer(read[P])(c.get(ctx, path+query.Encode()))
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			list, next := of(page)
			for _, one := range list {
				if !yield(one, nil) {
					return
				}
			}
			query.Set("after", next)
		}
	}
}

// Trust reads the server's trust file. Its statements about keys are only the server's word: compare its fingerprint
// over another channel before you verify with it.
func (c *Client) Trust(ctx context.Context) (*trust.Trust, error) {
	return answer(trust.Parse)(c.get(ctx, "/v1/trust"))
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

// Checkpoint reads a signed checkpoint of the whole log. A caller that keeps it can later detect a change of what it covers.
func (c *Client) Checkpoint(ctx context.Context) (string, error) {
	doc, err := c.get(ctx, "/log/checkpoint")
	return string(doc), err
}

// answer makes of parse a function that takes what the server answered.
func answer[T any](parse func([]byte) (*T, error)) func([]byte, error) (*T, error) {
	return func(doc []byte, err error) (*T, error) {
		if err != nil {
			return nil, err
		}
		return parse(doc)
	}
}

func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	return c.ask(ctx, http.MethodGet, path, nil)
}

// post sends a value of package api.
func (c *Client) post(ctx context.Context, path string, value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return c.ask(ctx, http.MethodPost, path, body)
}

func recordPath(id, rest string) string { return "/v1/records/" + url.PathEscape(id) + rest }

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

// Submit puts an agent before the jury. It returns when the submission is sealed; the trial starts when its turn comes.
func (c *Client) Submit(ctx context.Context, n api.NewSubmission) (*api.Submission, error) {
	return answer(read[api.Submission])(c.post(ctx, "/v1/submissions", n))
}

// Submission returns the state of a submission, the votes, and the result so far.
func (c *Client) Submission(ctx context.Context, id string) (*api.Submission, error) {
	return answer(read[api.Submission])(c.get(ctx, submissionPath(id, "")))
}

// Cancel stops a trial that has no verdict. The log records by whom, and why. A juror that was already asked still answers.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*api.Submission, error) {
	return answer(read[api.Submission])(c.post(ctx, submissionPath(id, "/cancel"), api.Cancellation{Reason: reason}))
}

// Resume continues a trial that was broken off or cancelled.
func (c *Client) Resume(ctx context.Context, id string) (*api.Submission, error) {
	return answer(read[api.Submission])(c.ask(ctx, http.MethodPost, submissionPath(id, "/resume"), nil))
}

// Submissions iterates over the submissions that the token may see, the newest first. It ends after an error.
func (c *Client) Submissions(ctx context.Context) iter.Seq2[api.Submission, error] {
	return pages(ctx, c, "/v1/submissions?", url.Values{"after": {""}}, func(s *api.Submissions) ([]api.Submission, string) { return s.Submissions, s.Next })
}

// CaseFile reads every record of a trial, proved against one checkpoint. Verify it with your own trust file.
func (c *Client) CaseFile(ctx context.Context, id string) (*evidence.Bundle, error) {
	return answer(evidence.ParseBundle)(c.get(ctx, submissionPath(id, "/case")))
}

func submissionPath(id, rest string) string { return "/v1/submissions/" + url.PathEscape(id) + rest }

// read decodes an answer. It ignores unknown members, which a later server may have added.
func read[T any](doc []byte) (*T, error) {
	value := new(T)
	if err := json.Unmarshal(doc, value); err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", evidence.Steady(err))
	}
	return value, nil
}

// silence is how long Watch waits for any sign of the server. The server sends one every 15 seconds.
const silence = time.Minute

// errBroken says that a stream ended before the trial did, or was silent too long.
var errBroken = errors.New("the connection ended before the trial did")

// Watch iterates over the events of a trial after a given one (0: from the first), until the trial ends, however long
// that takes. If the connection ends, Watch connects again and continues after the last event. It ends with an error
// after Config.Attempts failed attempts in a row.
func (c *Client) Watch(ctx context.Context, id string, after int64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for failed := 0; ; {
			seen, err := c.listen(ctx, id, after, yield)
			if err == nil {
				return
			}
			if failed++; seen > after {
				after, failed = seen, 0
			}
			if failed >= c.config.Attempts || !(errors.Is(err, errBroken) || mayPass(err)) || ctx.Err() != nil {
				yield(api.Event{}, fmt.Errorf("watching %s after event %d: %w", id, after, err))
				return
			}
			select {
			case <-time.After(pause << max(0, failed-1)):
			case <-ctx.Done():
			}
		}
	}
}

// listen passes on what one connection tells. It returns the last event's number, and nil when the trial is over or the caller stopped.
func (c *Client) listen(ctx context.Context, id string, after int64, yield func(api.Event, error) bool) (last int64, err error) {
	lines, end, err := c.stream(ctx, fmt.Sprintf("%s?after=%d", submissionPath(id, "/events"), after))
	if lines == nil {
		return after, err
	}
	defer end()
	for lines.Scan() {
		doc, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData {
			continue // event boundaries and signs of life
		}
		e := api.Event{JSON: bytes.Clone(doc)}
		if err := json.Unmarshal(e.JSON, &e); err != nil {
			return after, fmt.Errorf("reading an event: %w", evidence.Steady(err))
		}
		if e.Seq != after+1 {
			return after, fmt.Errorf("event %d came after event %d", e.Seq, after)
		}
		after = e.Seq
		if !yield(e, nil) || e.Type == api.LastEvent {
			return after, nil
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return after, fmt.Errorf("an event has more than %d bytes", c.config.MaxAnswer)
	}
	return after, errors.Join(errBroken, lines.Err())
}

// stream asks for an answer that the server sends line by line. The answer ends when the server is silent for too long, or when end is
// called. Without an answer (204) lines is nil.
func (c *Client) stream(ctx context.Context, path string) (lines *bufio.Scanner, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	dead := time.AfterFunc(silence, cancel)
	var answer *http.Response
	end = func() {
		dead.Stop()
		cancel()
		if answer != nil {
			_ = answer.Body.Close() // what was read is complete, or its reader has an error
		}
	}
	if answer, err = c.send(ctx, http.MethodGet, path, "", nil); err == nil && answer.StatusCode == http.StatusOK {
		lines = bufio.NewScanner(lively{answer.Body, dead})
		lines.Buffer(nil, int(min(c.config.MaxAnswer, 1<<30)))
		return lines, end, nil
	}
	defer end()
	if err != nil || answer.StatusCode == http.StatusNoContent {
		return nil, nil, err
	}
	doc, err := io.ReadAll(io.LimitReader(answer.Body, c.config.MaxAnswer))
	if err != nil {
		return nil, nil, &url.Error{Op: http.MethodGet, URL: path, Err: err}
	}
	return nil, nil, problemIn(answer, doc)
}

// lively is an answer whose bytes are signs of life.
type lively struct {
	io.Reader
	dead *time.Timer
}

func (l lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.dead.Reset(silence)
	}
	return n, err
}

// Conduct iterates over what the log had about an agent when it was of a size that a checkpoint says: the case files of the
// trials that judged it, and bundles of its own records. It holds one at a time. Verify them with your own trust file: package
// reputation computes what they are worth, and with the log's entries (package tiles) whether any is missing. Conduct ends after an
// error, also if the server stops in the middle. It is not repeated: what came before would come again.
func (c *Client) Conduct(ctx context.Context, agent string, size int64) iter.Seq2[*evidence.Bundle, error] {
	return func(yield func(*evidence.Bundle, error) bool) {
		path := fmt.Sprintf("/v1/agents/%s/conduct?size=%d", url.PathEscape(agent), size)
		lines, end, err := c.stream(ctx, path)
		if lines == nil {
			if err == nil {
				err = errors.New("the answer is empty")
			}
			yield(nil, fmt.Errorf("%s %s: %w", http.MethodGet, path, err))
			return
		}
		defer end()
		for n := 1; lines.Scan(); n++ {
			bundle, err := evidence.ParseBundle(append(lines.Bytes(), '\n')) // which the Scanner cut off
			if err != nil && lines.Err() != nil {
				break // the connection ended within the line
			}
			if err != nil {
				err = fmt.Errorf("%s %s: file %d: %w", http.MethodGet, path, n, err)
			}
			if !yield(bundle, err) || err != nil {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, fmt.Errorf("%s %s: a file has more than %d bytes", http.MethodGet, path, c.config.MaxAnswer))
		case err != nil:
			yield(nil, &url.Error{Op: http.MethodGet, URL: path, Err: err})
		}
	}
}
