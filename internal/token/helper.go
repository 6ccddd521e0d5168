package token

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Variable is the environment variable that names the helper of this machine. Nothing else does but the command line: a key file may come from a
// backup that another person wrote, and so names no program.
const Variable = "JURAT_TOKEN_HELPER"

// Errors that a helper tells apart. Each has a code on the wire, or ends the helper.
var (
	ErrNotFound    = errors.New("there is no such key")
	ErrExists      = errors.New("there is such a key already")
	ErrRefused     = errors.New("the helper refuses")
	ErrUnsupported = errors.New("unsupported")
	ErrPIN         = errors.New("the PIN is wrong, missing or locked")
	ErrUnavailable = errors.New("the token cannot be reached")
	errFailed      = errors.New("the helper failed")
)

var codes = map[string]error{"not_found": ErrNotFound, "exists": ErrExists, "refused": ErrRefused, "unsupported": ErrUnsupported}

var errSlow = fmt.Errorf("%w: it did not answer in time", ErrUnavailable)

// A Helper is a program that keeps keys. It is started at the first request, and again after it ended. The zero value is the program that Variable
// names. It is safe for concurrent use.
type Helper struct {
	mu      sync.Mutex // held while the helper is started
	command string     // "": what Variable says
	running *process
	refused error // why none is started any more: its PIN, or Close was called
	failed  error // why the last attempt to start it failed
	next    time.Time
	wait    time.Duration
	kept    Reference // one that the helper keeps: Ready asks for it

	patience time.Duration // for an answer; 0: half a minute
}

// Use says which program is started, with its arguments, separated by blanks. "" is the one that Variable names.
func (h *Helper) Use(command string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.command = command
}

// Close ends the helper.
func (h *Helper) Close() {
	h.mu.Lock()
	p := h.running
	h.running, h.refused = nil, errors.New("the helper was closed")
	h.mu.Unlock()
	if p != nil {
		p.end()
		<-p.gone
	}
}

// Protection is what a helper says of how a key is kept. It is the helper's word.
type Protection = operator.Protection

// keyInfo is what a helper says of a key.
type keyInfo struct {
	URI        string             `json:"uri"`
	Algorithm  evidence.Algorithm `json:"alg"`
	Public     []byte             `json:"public"` // DER SubjectPublicKeyInfo
	Protection Protection         `json:"protection"`
}

// Find returns a reference to the key that a URI names. It returns ErrNotFound, wrapped, if there is no such key, other errors of the helper
// (ErrUnavailable, ErrPIN and the like), and refuses an answer that breaks the protocol.
func (h *Helper) Find(ctx context.Context, uri string) (Reference, error) {
	return h.shown(ctx, request{Do: "key", URI: uri})
}

// FindOrGenerate is Find, and has the helper make the key if there is none. It also refuses a key of another algorithm.
func (h *Helper) FindOrGenerate(ctx context.Context, uri string, algorithm evidence.Algorithm) (Reference, error) {
	r, err := h.Find(ctx, uri)
	if errors.Is(err, ErrNotFound) {
		r, err = h.shown(ctx, request{Do: "generate", URI: uri, Algorithm: string(algorithm)})
	}
	if err != nil {
		return Reference{}, err
	}
	if is, err := evidence.AlgorithmOf(r.Public); err != nil || is != algorithm {
		return Reference{}, fmt.Errorf("key %s is for %s, and one for %s is wanted", r.URI, is, algorithm)
	}
	return r, nil
}

func (h *Helper) shown(ctx context.Context, r request) (Reference, error) {
	found, err := h.reference(ctx, r)
	if err != nil {
		return Reference{}, fmt.Errorf("key %s: %w", clip(r.URI), err)
	}
	return found, nil
}

func (h *Helper) reference(ctx context.Context, r request) (Reference, error) {
	a, err := h.call(ctx, r)
	if err != nil {
		return Reference{}, err
	}
	if a.Key == nil {
		return Reference{}, errEmpty
	}
	public, err := evidence.ParsePublicKey(a.Key.Public)
	if err != nil {
		return Reference{}, err
	}
	algorithm, err := evidence.AlgorithmOf(public)
	if err != nil || algorithm != a.Key.Algorithm {
		return Reference{}, fmt.Errorf("the helper says that its key signs with %q, which it does not", clip(string(a.Key.Algorithm)))
	}
	found := Reference{a.Key.URI, public, &a.Key.Protection}
	return found, found.check()
}

var errEmpty = errors.New("the helper's answer lacks what was asked for")

// Signer returns what signs with the key that a reference names. It starts no helper yet. It needs no context: a call ends by itself after half
// a minute.
func (h *Helper) Signer(r Reference) (crypto.Signer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = r
	return signer{h, r}, nil
}

type signer struct {
	helper *Helper
	key    Reference
}

func (s signer) Public() crypto.PublicKey { return s.key.Public }

// Sign has the helper sign, and verifies the signature with the public key. It returns evidence.ErrSignature, wrapped, for a wrong one.
func (s signer) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if _, pss := opts.(*rsa.PSSOptions); pss || opts.HashFunc() != crypto.SHA256 || len(digest) != crypto.SHA256.Size() {
		return nil, fmt.Errorf("a helper signs SHA-256 digests with ECDSA and RSA PKCS #1 v1.5, and was asked for something else: %w", ErrUnsupported)
	}
	a, err := s.helper.call(context.Background(), request{Do: "sign", URI: s.key.URI, Digest: digest})
	if err == nil && !valid(s.key.Public, digest, a.Signature) {
		err = fmt.Errorf("the helper's answer: %w", evidence.ErrSignature)
	}
	if err != nil {
		return nil, fmt.Errorf("signing with %s: %w", s.key.URI, err)
	}
	return a.Signature, nil
}

func valid(public crypto.PublicKey, digest, signature []byte) bool {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, digest, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signature) == nil
	}
	return false
}

// Ready returns an error if the helper keeps a key, and cannot be reached now, or has another key in its place.
func (h *Helper) Ready(ctx context.Context) error {
	h.mu.Lock()
	kept := h.kept
	h.mu.Unlock()
	if kept.Public == nil {
		return nil
	}
	is, err := h.Find(ctx, kept.URI)
	if err == nil && !kept.Public.(interface{ Equal(crypto.PublicKey) bool }).Equal(is.Public) {
		err = fmt.Errorf("%s is another key than it was", kept.URI)
	}
	return err
}

// call sends a request, and waits for its answer. A helper that ended meanwhile is started once more: a token may drop the sessions of a helper
// that had nothing to do, and a signature that nobody got is no harm.
func (h *Helper) call(ctx context.Context, r request) (a answer, err error) {
	if err := CheckURI(r.URI); err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(h.patience, 30*time.Second), errSlow)
	defer cancel()
	for range 2 {
		var p *process
		if p, err = h.started(); err != nil {
			return a, err
		}
		a, err = p.ask(ctx, r)
		if errors.Is(err, errSlow) {
			p.kill() // a helper that hangs is replaced
		}
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err == nil && a.Problem != nil {
		err = a.Problem.error()
	}
	return a, err
}

// started returns the helper that runs, and starts one if there is none. After a failure, it waits a little longer each time.
func (h *Helper) started() (*process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running != nil {
		select {
		case <-h.running.gone:
			h.failed, h.running = h.running.why, nil
			if errors.Is(h.failed, ErrPIN) {
				h.refused = h.failed
			}
		default:
			return h.running, nil
		}
	}
	now := time.Now()
	switch {
	case h.refused != nil:
		return nil, h.refused
	case now.Before(h.next):
		return nil, h.failed
	}
	command := h.command
	if command == "" {
		command = os.Getenv(Variable)
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: no helper is named: set %s, such as \"jurat-pkcs11 --module FILE --pin-file FILE\"; docs/token.md is about it", ErrUnavailable, Variable)
	}
	h.wait = min(max(2*h.wait, 100*time.Millisecond), 10*time.Second) // also for a helper that starts and dies at once
	h.next = now.Add(h.wait)
	p, err := start(words, h.answered, cmp.Or(h.patience, 5*time.Second))
	if err != nil {
		h.failed = fmt.Errorf("%w: starting the helper: %w", ErrUnavailable, err)
		return nil, h.failed
	}
	h.running = p
	return p, nil
}

// answered says that the helper works.
func (h *Helper) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait, h.next = 0, time.Time{}
}

// error is what a helper's problem means, in the helper's own words, quoted where control characters are in them. An unknown code is a failure.
func (p *problem) error() error {
	kind := codes[p.Code]
	if kind == nil {
		kind = errFailed
	}
	message := clip(p.Message)
	if strings.ContainsFunc(message, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		message = fmt.Sprintf("%q", message)
	}
	return &helperError{kind, "helper: " + message}
}

type helperError struct {
	kind    error
	message string
}

func (e *helperError) Unwrap() error { return e.kind }
func (e *helperError) Error() string { return e.message }
