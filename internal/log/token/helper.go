// Package token signs with keys that a helper keeps: jurat-pkcs11 for hardware tokens, or another program for a key management service.
// docs/token.md specifies what they say to each other: one line of JSON for each request and each answer, over the helper's standard input and
// output. A token here is PKCS #11's word for the device that keeps keys; time-stamp tokens are in package timestamp.
//
// # Nothing is taken at the helper's word
//
// The public key is known from the log, and each signature is verified with it before it is used. What a
// helper sends is bounded in size and time. A helper that breaks the protocol or does not answer is killed. One that ended is started again at the
// next request, unless it ended because of its PIN: each further try could lock the token.
package token

import (
	"bufio"
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
)

// Variable names the helper of this machine, in the environment. Besides, the command line does, and no key file: another person may have written it.
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

// A Helper is a program that keeps keys. It is started at the first request, and again after it ended. It is safe for concurrent use. The zero value
// is the program that Variable names.
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

// keyInfo is what a helper says of a key.
type keyInfo struct {
	URI        string              `json:"uri"`
	Algorithm  evidence.Algorithm  `json:"alg"`
	Public     []byte              `json:"public"` // DER SubjectPublicKeyInfo
	Protection operator.Protection `json:"protection"`
}

// Find returns a reference to the key that a URI names. It returns ErrNotFound, wrapped, if there is no such key, other errors of the helper
// (ErrUnavailable, ErrPIN and the like), and refuses an answer that breaks the protocol.
func (h *Helper) Find(ctx context.Context, uri string) (Reference, error) {
	return h.reference(ctx, request{Do: "key", URI: uri})
}

// FindOrGenerate is Find, and has the helper make the key if there is none. It also refuses a key of another algorithm.
func (h *Helper) FindOrGenerate(ctx context.Context, uri string, algorithm evidence.Algorithm) (Reference, error) {
	r, err := h.Find(ctx, uri)
	if errors.Is(err, ErrNotFound) {
		r, err = h.reference(ctx, request{Do: "generate", URI: uri, Algorithm: string(algorithm)})
	}
	if err != nil {
		return Reference{}, err
	}
	if is, err := evidence.AlgorithmOf(r.Public); err != nil || is != algorithm {
		return Reference{}, fmt.Errorf("key %s is for %s, and one for %s is wanted", r.URI, is, algorithm)
	}
	return r, nil
}

func (h *Helper) reference(ctx context.Context, r request) (_ Reference, err error) {
	defer fault.While(&err, "key %s", clip(r.URI))
	a, err := h.call(ctx, r)
	if err != nil {
		return Reference{}, err
	}
	if a.Key == nil {
		return Reference{}, errors.New("the helper's answer lacks what was asked for")
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
	if err := found.check(); err != nil {
		return Reference{}, err
	}
	return found, nil
}

// Signer returns what signs with the key that a reference names. It starts no helper yet. A call ends by itself after half a minute.
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

// call sends a request, and waits for its answer. A helper that ended is started once more: a token may have dropped the sessions of an idle one.
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
	words := strings.Fields(cmp.Or(h.command, os.Getenv(Variable)))
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
	message := clip(p.Message)
	if strings.ContainsFunc(message, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
		message = fmt.Sprintf("%q", message)
	}
	return &helperError{cmp.Or(codes[p.Code], errFailed), "helper: " + message}
}

type helperError struct {
	kind    error
	message string
}

func (e *helperError) Unwrap() error { return e.kind }
func (e *helperError) Error() string { return e.message }

// A Reference stands where a private key would stand: it says which key signs.
type Reference struct {
	URI    string
	Public crypto.PublicKey

	Protection *operator.Protection // the helper's word when the key was found; nil: none
}

// PEMType is of blocks that hold a reference: the public key, and in headers the URI and how the key is protected.
const PEMType = "TOKEN KEY"

const privateType = "PRIVATE KEY" // RFC 5958

const (
	headerURI        = "Uri"
	headerProtection = "Protection"
)

// PEM writes a reference as ParseReference reads it. It returns an error for a reference that ParseReference would refuse.
func (r Reference) PEM() (text []byte, err error) {
	defer fault.While(&err, "writing key reference")
	der, err := evidence.MarshalPublicKey(r.Public)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: PEMType, Headers: map[string]string{headerURI: r.URI}, Bytes: der}
	if r.Protection != nil {
		protection, err := json.Marshal(r.Protection)
		if err != nil {
			return nil, err
		}
		block.Headers[headerProtection] = string(protection)
	}
	if _, err := ParseReference(block); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

// ParseReference reads a block of type PEMType, with these headers and no others, a valid URI, and a key that a helper signs with.
func ParseReference(block *pem.Block) (Reference, error) {
	r := Reference{URI: block.Headers[headerURI]}
	var err error
	r.Public, err = evidence.ParsePublicKey(block.Bytes)
	headers := 1
	if text, ok := block.Headers[headerProtection]; ok && err == nil {
		headers, r.Protection = 2, new(operator.Protection)
		err = json.Unmarshal([]byte(text), r.Protection, json.RejectUnknownMembers(true))
	}
	if block.Type != PEMType || len(block.Headers) != headers {
		err = errors.Join(err, fmt.Errorf("it is a block %q with %d headers", block.Type, len(block.Headers)))
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Reference{}, fmt.Errorf("reading key reference: want a block %q with the headers %s and %s: %w", PEMType, headerURI, headerProtection, err)
	}
	return r, nil
}

func (r Reference) check() error {
	algorithm, err := evidence.AlgorithmOf(r.Public)
	if err == nil && algorithm != evidence.ES256 && algorithm != evidence.RS256 {
		err = fmt.Errorf("a key for %s cannot be on a token, only one for ES256 or RS256: %w", algorithm, ErrUnsupported)
	}
	if r.Protection != nil {
		err = errors.Join(err, r.Protection.Check())
	}
	return errors.Join(err, CheckURI(r.URI))
}

// Named names a key on the token that a URI names.
func Named(uri, name string) string {
	if strings.HasPrefix(uri, "pkcs11:") {
		return uri + ";object=" + name
	}
	return uri + "/" + name
}

// CheckURI refuses what cannot be the name of a key: no URI, a long one, or one that has a PIN in it.
func CheckURI(uri string) error {
	scheme, rest, ok := strings.Cut(uri, ":")
	printable := !strings.ContainsFunc(uri, func(c rune) bool { return c <= ' ' || c > '~' })
	switch {
	case !ok || scheme == "" || rest == "" || !printable || len(uri) > maxText:
		return fmt.Errorf("%q is no URI of a key, such as pkcs11:token=LABEL;object=LABEL", clip(uri))
	case strings.Contains(strings.ToLower(uri), "pin-"):
		return errors.New("the URI has a PIN in it, or says where one is; only the helper knows the PIN")
	}
	return nil
}

func clip(text string) string {
	if len(text) > maxText {
		return text[:maxText] + "..."
	}
	return text
}

// ParseKey reads a private key in PEM, or a reference to one on a token, as Signer takes it; on is then that reference, and otherwise nil. rest is
// the text after it. Its errors are those of ParseReference, Signer and evidence.ParsePrivateKey.
func (h *Helper) ParseKey(text []byte) (key crypto.Signer, on *Reference, rest string, err error) {
	block, after := pem.Decode(text)
	switch {
	case block != nil && block.Type == PEMType:
		var reference Reference
		if reference, err = ParseReference(block); err == nil {
			on = &reference
			key, err = h.Signer(reference)
		}
	case block != nil && block.Type == privateType:
		key, err = evidence.ParsePrivateKey(block.Bytes)
	default:
		err = fmt.Errorf("want a PEM block of type %q or %q", privateType, PEMType)
	}
	return key, on, string(after), err
}

// PrivatePEM writes a private key as ParseKey reads it.
func PrivatePEM(key crypto.Signer) ([]byte, error) {
	der, err := evidence.MarshalPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: der}), nil
}

const (
	maxLine = 64 << 10 // bytes of an answer
	maxText = 1024     // bytes of a URI, a message and any other text
	exitPIN = 3        // exit code of a helper whose PIN is wrong, missing or locked
)

// A request asks for one thing: "key", "generate" or "sign".
type request struct {
	ID        uint32 `json:"id"`
	Do        string `json:"do"`
	URI       string `json:"uri"`
	Algorithm string `json:"alg,omitzero"`    // of generate
	Digest    []byte `json:"digest,omitzero"` // of sign: SHA-256 of the message
}

// An answer has the id of its request.
type answer struct {
	ID        uint32   `json:"id"`
	Key       *keyInfo `json:"key"`
	Signature []byte   `json:"signature"`
	Problem   *problem `json:"error"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// A process is a helper that runs, with the requests of any number of callers.
type process struct {
	command  *exec.Cmd
	out      io.Closer      // of its standard output
	in       io.WriteCloser // its standard input
	answered func()         // is called at each answer
	end      func()         // closes in, and kills the helper if that does not end it
	gone     chan struct{}  // closed once the helper has ended
	why      error          // set before gone is closed

	writing chan struct{} // of capacity one: full while a request is written
	mu      sync.Mutex    // held while the fields below change
	waiting map[uint32]chan answer
	last    uint32
}

// start starts a helper, which ends when its standard input does, or else so much later.
func start(words []string, answered func(), later time.Duration) (*process, error) {
	p := &process{command: exec.Command(words[0], words[1:]...), answered: answered, gone: make(chan struct{}), writing: make(chan struct{}, 1), waiting: map[uint32]chan answer{}}
	p.end = sync.OnceFunc(func() {
		time.AfterFunc(later, p.kill) // first: on some systems Close waits for a request that is being written
		_ = p.in.Close()              // fails if the helper has ended
	})
	said := &tail{}
	p.command.Stderr = said
	p.command.WaitDelay = time.Second // for a grandchild that holds standard error open
	in, err := p.command.StdinPipe()
	out, outErr := p.command.StdoutPipe()
	if err := errors.Join(err, outErr); err != nil {
		return nil, err
	}
	p.in, p.out = in, out
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go p.read(out, said)
	return p, nil
}

// read hands answers to those who wait for them, and says how the helper ended.
func (p *process) read(out io.Reader, said *tail) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	var broken error
	for broken == nil && lines.Scan() {
		broken = p.take(lines.Bytes())
	}
	if err := lines.Err(); !errors.Is(err, os.ErrClosed) { // kill closed it
		broken = cmp.Or(broken, err)
	}
	if broken != nil {
		p.kill()
	}
	p.end()
	err := p.command.Wait()
	kind, exit := ErrUnavailable, (*exec.ExitError)(nil)
	if errors.As(err, &exit) && exit.ExitCode() == exitPIN {
		kind = ErrPIN
	}
	p.why = fmt.Errorf("%w: the helper %s ended: %w%s", kind, p.command.Path, cmp.Or(broken, err, errors.New("exit status 0")), said)
	close(p.gone)
}

// kill ends the helper by force, and what is read of it, as a child of the helper may hold its output open. Both fail if it has ended.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.out.Close()
}

func (p *process) take(line []byte) error {
	var a answer
	if err := json.Unmarshal(line, &a, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("its answer: %w", err)
	}
	p.mu.Lock()
	asker := p.waiting[a.ID]
	delete(p.waiting, a.ID)
	p.mu.Unlock()
	if asker == nil {
		return fmt.Errorf("it answered request %d, which waits for no answer", a.ID)
	}
	p.answered()
	asker <- a // has room for one
	return nil
}

// ask waits for the answer to a request. A caller that gives up stays in the list until its answer comes.
func (p *process) ask(ctx context.Context, r request) (answer, error) {
	asker := make(chan answer, 1)
	if err := p.write(ctx, r, asker); err != nil {
		return answer{}, err
	}
	select {
	case a := <-asker:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	case <-p.gone:
		return answer{}, p.why
	}
}

// write sends a request. A helper that does not read fills the pipe. It is killed when the time of the caller that then writes is over, however
// short that is, or all callers after that one would wait for ever.
func (p *process) write(ctx context.Context, r request, asker chan answer) error {
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.gone:
		return p.why
	}
	defer func() { <-p.writing }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = asker
	p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, p.kill)()
	_, _ = p.in.Write(append(line, '\n')) // if that fails, read finds why
	return nil
}

// A tail keeps the last bytes of what a helper writes to standard error.
type tail struct {
	mu   sync.Mutex // held while the text changes
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-maxText):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return fmt.Sprintf(", and said %q", strings.TrimSpace(string(t.text)))
}
