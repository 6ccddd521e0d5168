package token

import (
	"context"
	"crypto"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"jurat/evidence"
)

// A Client asks one helper. It connects at the first call, and again after the helper was lost. It is safe for concurrent use.
type Client struct {
	helper  Helper
	timeout time.Duration // of one call

	mu      sync.Mutex // held while the helper is connected to
	conn    *conn
	refused error // why no helper is asked: it refused its PIN, this machine does not allow it, or Close was called
	failed  error // why the last attempt to connect failed
	next    time.Time
	wait    time.Duration
}

// New makes a Client of a helper. It connects to nothing yet. It returns an error if the helper is not valid: see
// Helper.Check.
func New(helper Helper) (*Client, error) {
	if err := helper.Check(); err != nil {
		return nil, err
	}
	return &Client{helper: helper, timeout: patience}, nil
}

// Close ends the connection, and the helper if it is a child. Its errors are those of ending the connection, or the
// child.
func (c *Client) Close() error {
	c.mu.Lock()
	conn := c.conn
	c.conn, c.refused = nil, errors.New("the connection to the helper was closed")
	c.mu.Unlock()
	if conn == nil || conn.why() != nil { // what was lost has been closed, and its callers know
		return nil
	}
	return conn.end()
}

// Keys lists the keys that may sign. It returns the helper's errors (ErrUnavailable, ErrPIN and the like), and
// refuses an answer that breaks the protocol.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	a, err := c.call(ctx, request{Verb: verbKeys})
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	if len(a.Keys) > maxKeys {
		return nil, fmt.Errorf("listing keys: the helper lists more than %d", maxKeys)
	}
	var keys []Key
	for _, w := range a.Keys {
		k, err := w.key()
		if err != nil {
			return nil, fmt.Errorf("listing keys: %w", err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// Generate has the helper make the key that a URI names. It returns ErrExists, wrapped, if there is such a key, and
// the other errors of Keys. It also refuses a key of another algorithm.
func (c *Client) Generate(ctx context.Context, uri string, algorithm evidence.Algorithm) (Key, error) {
	k, err := c.shown(ctx, request{Verb: verbGenerate, URI: uri, Algorithm: algorithm})
	if err == nil && k.Algorithm != algorithm {
		err = fmt.Errorf("the helper made a key for %s instead of %s", k.Algorithm, algorithm)
	}
	if err != nil {
		return Key{}, fmt.Errorf("making key %s: %w", uri, err)
	}
	return k, nil
}

// Key asks which key a URI names, and how it is protected. Both are the helper's word. It returns ErrNotFound,
// wrapped, if there is no such key, and the other errors of Keys.
func (c *Client) Key(ctx context.Context, uri string) (Key, error) {
	k, err := c.shown(ctx, request{Verb: verbPublic, URI: uri})
	if err == nil {
		k.Protection, err = c.attributes(ctx, uri)
	}
	if err != nil {
		return Key{}, fmt.Errorf("reading key %s: %w", uri, err)
	}
	return k, nil
}

func (c *Client) shown(ctx context.Context, r request) (Key, error) {
	a, err := c.call(ctx, r)
	if err != nil {
		return Key{}, err
	}
	if a.Key == nil {
		return Key{}, errEmpty
	}
	return a.Key.key()
}

func (c *Client) attributes(ctx context.Context, uri string) (Protection, error) {
	a, err := c.call(ctx, request{Verb: verbAttributes, URI: uri})
	if err != nil {
		return Protection{}, err
	}
	if a.Protection == nil {
		return Protection{}, errEmpty
	}
	return *a.Protection, a.Protection.Check()
}

var errEmpty = errors.New("the helper's answer lacks what was asked for")

// Sign asks for a signature over data, and verifies it with the public key. It returns evidence.ErrSignature,
// wrapped, for a wrong signature, ErrNotFound, wrapped, if there is no such key, and the other errors of Keys.
func (c *Client) Sign(ctx context.Context, uri string, public crypto.PublicKey, data []byte) ([]byte, error) {
	a, err := c.call(ctx, request{Verb: verbSign, URI: uri, Data: data})
	if err != nil {
		return nil, fmt.Errorf("signing with %s: %w", uri, err)
	}
	if err := checkSignature(public, data, a.Signature); err != nil {
		return nil, fmt.Errorf("signing with %s: the helper's answer: %w", uri, err)
	}
	return a.Signature, nil
}

// Signer returns a signer with the key that a URI names. It needs no context: a call ends by itself after half a minute.
func (c *Client) Signer(uri string, public crypto.PublicKey) crypto.Signer {
	algorithm, err := evidence.AlgorithmOf(public)
	return &signer{c, uri, public, algorithm, err}
}

type signer struct {
	client    *Client
	uri       string
	public    crypto.PublicKey
	algorithm evidence.Algorithm
	err       error // why there is no algorithm
}

func (s *signer) Public() crypto.PublicKey { return s.public }

func (s *signer) Sign(_ io.Reader, data []byte, opts crypto.SignerOpts) ([]byte, error) {
	if _, pss := opts.(*rsa.PSSOptions); pss || opts.HashFunc() != 0 && opts.HashFunc() != crypto.SHA256 {
		return nil, errors.New("a helper signs SHA-256 digests with ECDSA and RSA PKCS #1 v1.5, and messages")
	}
	if s.err != nil || (opts.HashFunc() == 0) != (s.algorithm == evidence.Ed25519 || s.algorithm.PostQuantum()) {
		return nil, fmt.Errorf("a key for %s was asked to sign something else: %w", s.algorithm, errors.Join(s.err, ErrUnsupported))
	}
	return s.client.Sign(context.Background(), s.uri, s.public, data)
}

// call sends a request, and waits for its answer.
func (c *Client) call(ctx context.Context, r request) (answer, error) {
	if r.URI != "" {
		if err := CheckURI(r.URI); err != nil {
			return answer{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.connected(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := conn.call(ctx, r)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no answer within %s", ErrUnavailable, c.timeout)
		conn.fail(err) // a helper that hangs is replaced
	}
	if err == nil && a.Problem != nil {
		err = a.Problem.error()
	}
	if errors.Is(err, ErrPIN) {
		c.refuse(err)
	}
	return a, err
}

// refuse remembers why no child is started any more, such as a refused PIN, which no other child may try again.
func (c *Client) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.helper.Socket == "" {
		c.refused = err
	}
}

// allow forgets that this machine did not allow the program.
func (c *Client) allow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.refused, ErrNotAllowed) {
		c.refused = nil
	}
}

// connected returns the connection, which it makes if there is none. After a failure, it waits a little longer each time.
func (c *Client) connected(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused != nil {
		return nil, c.refused
	}
	if c.conn != nil && c.conn.why() == nil {
		return c.conn, nil
	}
	now := time.Now()
	if c.conn != nil {
		c.failed, c.conn = c.conn.why(), nil
	}
	if now.Before(c.next) {
		return nil, c.failed
	}
	// A helper that starts and dies at once is not started more often either: the wait ends with an answer.
	c.wait = min(max(2*c.wait, 100*time.Millisecond), 10*time.Second)
	c.next = now.Add(c.wait)
	made, err := c.helper.connect(ctx, c.answered)
	if err != nil {
		c.failed = fmt.Errorf("%w: %w", ErrUnavailable, err)
		return nil, c.failed
	}
	c.conn = made
	return made, nil
}

// answered says that the helper works.
func (c *Client) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait, c.next = 0, time.Time{}
}
