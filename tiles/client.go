// Package tiles reads a log over HTTP in the layout of C2SP tlog-tiles. It trusts only what a checkpoint proves.
//
//	GET URL/checkpoint             the signed checkpoint
//	GET URL/tile/LEVEL/INDEX       256 hashes of the tree, or as many as there are (.p/WIDTH)
//	GET URL/tile/entries/INDEX     the 256 entries under a tile of level 0
//
// Tiles never change, so any cache may keep them. A Client fetches. A Tree compares what it fetches with the root of
// one checkpoint, whose signature the caller has checked. It proves where entries are, and that the tree has only
// grown.
//
// It works with every log of that layout, jurat's or not.
//
// # The log as tiles
//
// The server publishes the log under `/log/` as C2SP tlog-tiles. Tiles are made of the hashes that are in the
// database anyway: a tile of any level is one query for 256 of them, and never shows what no signed checkpoint
// covers. So a reader with a checkpoint computes every proof alone, caches can serve it, and other programs' monitors
// can read it: a test runs Tessera's `fsck`. Package `tiles` is the client side, for any log of that layout. It
// believes a hash only if the path to a signed root is there.
package tiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

var (
	// ErrUnavailable says that the log did not answer a request.
	ErrUnavailable = errors.New("the log does not answer as it should")
	// ErrRefused says that the log shows something only to authorised readers.
	ErrRefused = errors.New("the log does not show this to everybody")
)

const (
	maxCheckpoint = 1_000_000 // the largest signed note
	attempts      = 4         // number of attempts per request
	maxWait       = 30 * time.Second
	timeout       = time.Minute // for one answer, unless Config.HTTP has another
)

// Config configures a Client.
type Config struct {
	URL   string       // required: the part before /checkpoint, such as https://jurat.example/log
	Token string       // sent as a bearer token if entries are not public; "": none
	HTTP  *http.Client // nil: a client with a timeout of one minute
}

// A Client fetches from one log. It is safe for concurrent use.
type Client struct {
	config Config
	base   string
}

// New makes a Client. It returns an error if the URL is not allowed.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	switch ip := net.ParseIP(base.Hostname()); {
	case base.Host == "" || base.Scheme != "https" && base.Scheme != "http" || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("log: %q: want https://, a host and perhaps a path", c.URL)
	case c.Token != "" && base.Scheme != "https" && base.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()):
		return nil, fmt.Errorf("log: %q: the connection would not protect the token: want https", c.URL)
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: timeout}
	}
	if c.Token != "" {
		// A redirect could send the token to another port, or without TLS, on the same host.
		straight := *c.HTTP
		straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.HTTP = &straight
	}
	return &Client{config: c, base: strings.TrimRight(c.URL, "/") + "/"}, nil
}

// URL returns the log's URL, with a slash at the end.
func (c *Client) URL() string { return c.base }

// Checkpoint fetches the checkpoint. The caller must check its signatures. Its errors are ErrUnavailable, ErrRefused
// and *InconsistentError.
func (c *Client) Checkpoint(ctx context.Context) (string, error) {
	doc, err := c.fetch(ctx, "checkpoint", maxCheckpoint)
	return string(doc), err
}

// wide fetches a tile or bundle, of at most most bytes for each of its hashes or entries, and returns its width. If the log no longer serves a
// partial one, wide fetches the whole one, which begins with it.
func (c *Client) wide(ctx context.Context, t tlog.Tile, most int64) (data []byte, width int, err error) {
	data, err = c.fetch(ctx, Path(t), int64(t.W)*most)
	if missing(err) && t.W < Width {
		t.W = Width
		data, err = c.fetch(ctx, Path(t), Width*most)
	}
	return data, t.W, err
}

func (c *Client) tile(ctx context.Context, t tlog.Tile) ([]byte, error) {
	data, width, err := c.wide(ctx, t, tlog.HashSize)
	if err != nil {
		return nil, err
	}
	if want := width * tlog.HashSize; len(data) != want {
		return nil, &InconsistentError{Path(t), data, fmt.Sprintf("it has %d bytes: want %d", len(data), want)}
	}
	return data[:t.W*tlog.HashSize], nil
}

// bundle fetches a bundle of entries.
func (c *Client) bundle(ctx context.Context, t tlog.Tile) ([][]byte, error) {
	data, width, err := c.wide(ctx, t, MaxEntry+2)
	if err != nil {
		return nil, err
	}
	entries, err := ParseEntries(data, width)
	if err != nil {
		return nil, &InconsistentError{Path(t), data, err.Error()}
	}
	return entries[:t.W], nil
}

// A statusError is an answer other than 200.
type statusError struct {
	path   string
	status int
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d %s", e.path, e.status, http.StatusText(e.status))
}

func (e *statusError) Is(target error) bool {
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return target == ErrRefused
	}
	return target == ErrUnavailable
}

func missing(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.status == http.StatusNotFound || status.status == http.StatusGone)
}

// fetch repeats a request until there is an answer, or no answer can be expected.
func (c *Client) fetch(ctx context.Context, path string, most int64) ([]byte, error) {
	for n := 1; ; n++ {
		doc, wait, err := c.once(ctx, path, most)
		if err == nil || wait < 0 || n == attempts {
			return doc, err
		}
		if wait == 0 {
			wait = time.Duration(n) * 250 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(wait, maxWait)):
		}
	}
}

// once makes a request once. wait is how long to wait before another attempt. 0: the server does not say; negative:
// no other attempt.
func (c *Client) once(ctx context.Context, path string, most int64) (doc []byte, wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, -1, err
	}
	if c.config.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	answer, err := c.config.HTTP.Do(request)
	if ctx.Err() != nil {
		return nil, -1, ctx.Err()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, worthAsking(answer), &statusError{path, answer.StatusCode}
	}
	doc, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: reading %s: %w", ErrUnavailable, path, err)
	}
	if int64(len(doc)) > most {
		return nil, -1, &InconsistentError{path, doc, fmt.Sprintf("it is longer than %d bytes", most)}
	}
	return doc, 0, nil
}

// worthAsking returns how long to wait until another attempt can have another answer, as wait of once.
func worthAsking(answer *http.Response) time.Duration {
	if answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode < http.StatusInternalServerError {
		return -1
	}
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
