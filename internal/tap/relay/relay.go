package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/tap/traffic"
)

// Options set up a Relay.
type Options struct {
	// Upstreams are the providers to which it leads as a handler, by the first element of the path.
	Upstreams map[string]Upstream
	// Root is the name of the upstream to which every path leads, as it stands. "": a path begins with the name of its upstream.
	Root string
	// Mode is Closed if it is "".
	Mode Mode
	// Folder is where copies go that are too large for memory. It is made if it is not there, and must be closed to other users.
	Folder string
	// FingerprintKey is the key under which credentials become fingerprints: at least 32 bytes.
	FingerprintKey []byte

	// MemoryPerBody is how much of each body stays in memory: 256 KiB if zero.
	MemoryPerBody int64
	// Cap is how much all bodies may hold together, in memory and in files: 1 GiB if zero.
	Cap int64
	// MaxDecoded is how far a compressed copy is decoded: 64 MiB if zero.
	MaxDecoded int64

	// Drain is how long an answer is read on after its client has left. If zero, the provider's connection is closed at once.
	Drain time.Duration
	// Linger is how long the end of a body may come after its terminal event: 100 ms if zero. After that, the relay ends the answer.
	Linger time.Duration
	// EndTimeout is how long Begin and End may take: 30 s if zero.
	EndTimeout time.Duration

	// BodyTimeout is how long the body of a request may take, and a second more for each 16 KiB: 30 s if zero.
	BodyTimeout time.Duration

	// AgentOf returns whose a token is; "" is the token of a call that has none. It is asked before the body of a call is read. nil: Begin alone says who may
	// call.
	AgentOf func(ctx context.Context, token string) (agent string, err error)
	// Hosts are names, in lower case, by which clients on this machine may ask, beside localhost and addresses: those under which a reverse proxy on
	// this machine is known.
	Hosts []string
	// Next asks the providers. If nil, a transport that neither compresses nor retries.
	Next http.RoundTripper
	// Log is told of what nobody else is told of. If nil, slog.Default().
	Log *slog.Logger
}

// An Upstream is a provider.
type Upstream struct {
	// Base is a scheme and a host, and maybe a path, which goes before the caller's.
	Base *url.URL
	// Key is the provider's key. If it is set, it replaces every credential that the caller sends.
	Key Secret
	// KeyIn is where the key goes: "authorization" (as a bearer), another header, or "?key=". Needed with Key.
	KeyIn string
	// Speaks is what its callers speak: Models if nil.
	Speaks *Protocol `json:"-"`
	// Only are the paths that pass, as the upstream gets them. nil: all.
	Only []string
	// Version is an element, such as "v1", that goes before a caller's path which begins with one of Versioned, unless Base ends in it: of the SDKs of one
	// provider, some add it to the address that they are given, and others expect it there.
	Version   string   `json:",omitzero"`
	Versioned []string `json:",omitzero"`
}

// versioned returns a caller's path as the provider wants it.
func (u Upstream) versioned(path string) string {
	first, _, _ := strings.Cut(path, "/")
	if strings.HasSuffix(strings.TrimSuffix(u.Base.Path, "/"), "/"+u.Version) || !slices.Contains(u.Versioned, first) {
		return path
	}
	return u.Version + "/" + path
}

func (u Upstream) custody() bool { return u.Key != "" }

// Origin is the scheme and host, as a Call has them.
func (u Upstream) Origin() string { return u.Base.Scheme + "://" + u.Base.Host }

// A Secret prints as a placeholder.
type Secret string

func (Secret) String() string               { return "(secret)" }
func (Secret) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, "(secret)") }
func (Secret) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }
func (Secret) LogValue() slog.Value         { return slog.StringValue("(secret)") }

var upstreamName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// A Relay passes calls on, and shows each to a witness: those that it serves as a handler, those of a program through its Transport, and those of a Pipe. All
// share the room for copies. It is safe for concurrent use.
type Relay struct {
	Options
	witness    Observer
	spool      *spool
	late       sync.WaitGroup // calls of End in open mode
	wantsToken sync.Once      // is logged
}

// Wait returns when End has returned for all calls of open mode, or with the context's error.
func (r *Relay) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		r.late.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// New returns a relay that shows each call to a witness. The paths that it serves are /NAME/…, with a name of Options.Upstreams, and /r/TOKEN/NAME/…,
// with a token that tells the witness which agent calls.
func New(witness Observer, o Options) (*Relay, error) {
	if _, known := o.Upstreams[o.Root]; o.Root != "" && !known {
		return nil, fmt.Errorf("relay: every path is to lead to %q, which is no upstream", o.Root)
	}
	for name, upstream := range o.Upstreams {
		if err := upstream.Check(name); err != nil {
			return nil, err
		}
	}
	if witness == nil {
		return nil, errors.New("relay: a witness is needed")
	}
	if len(o.FingerprintKey) < 32 {
		return nil, fmt.Errorf("relay: the key for fingerprints has %d bytes, and must have at least 32", len(o.FingerprintKey))
	}
	if o.Mode = cmp.Or(o.Mode, Closed); o.Mode != Closed && o.Mode != Open {
		return nil, fmt.Errorf("relay: unknown mode %q: want closed or open", o.Mode)
	}
	o.MemoryPerBody, o.Cap, o.MaxDecoded = cmp.Or(max(o.MemoryPerBody, 0), 256<<10), cmp.Or(max(o.Cap, 0), 1<<30), cmp.Or(max(o.MaxDecoded, 0), mostDecoded)
	o.Linger = cmp.Or(max(o.Linger, 0), 100*time.Millisecond)
	o.EndTimeout, o.BodyTimeout = cmp.Or(max(o.EndTimeout, 0), 30*time.Second), cmp.Or(max(o.BodyTimeout, 0), 30*time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Next == nil {
		o.Next = newTransport()
	}
	if err := private(o.Folder); err != nil {
		return nil, err
	}
	return &Relay{Options: o, witness: witness, spool: &spool{folder: o.Folder, perBody: o.MemoryPerBody, memory: mostInMemory, cap: o.Cap}}, nil
}

// private makes a folder that nobody else can read, and refuses one that others can.
func private(folder string) error {
	if folder == "" {
		return errors.New("relay: a folder for large bodies is needed")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("relay: making the folder for large bodies: %w", err)
	}
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("relay: the folder for large bodies: %w", err)
	}
	if !info.IsDir() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("relay: %s must be a folder that only its owner can read, and has mode %v; run: chmod 700 %[1]s", folder, info.Mode())
	}
	return nil
}

// Check refuses an upstream that cannot be asked, or that would take more than a host from its URL.
func (u Upstream) Check(name string) error {
	switch {
	case !upstreamName.MatchString(name) || name == "r":
		return fmt.Errorf("relay: the name %q of an upstream must have only a-z, 0-9, '.', '_' and '-', and not be \"r\"", name)
	case u.Base == nil || u.Base.Scheme != "https" && u.Base.Scheme != "http" || u.Base.Host == "":
		return fmt.Errorf("relay: upstream %s: the address must be https://HOST or http://HOST, and maybe a path", name)
	case u.Base.User != nil || u.Base.RawQuery != "" || u.Base.Fragment != "" || u.Base.Opaque != "":
		return fmt.Errorf("relay: upstream %s: the address must have no user, query or fragment; a key belongs in the key's own setting", name)
	case u.custody() && u.KeyIn == "":
		return fmt.Errorf("relay: upstream %s has a key: say where it goes: authorization, x-api-key, x-goog-api-key or ?key=", name)
	}
	return nil
}

// An Observer is shown each call. Its methods are called by many goroutines at once.
type Observer interface {
	// Begin is called before anything of the call is forwarded. If it fails, closed mode answers 503 and forwards nothing, and open mode
	// passes the call and calls Missed. A *Refusal refuses the call in both modes, with its own status. Of a call with an Upgrade only a refusal counts:
	// it is not recorded, and Begin should return ErrUpgrade.
	Begin(ctx context.Context, call *Call) (Exchange, error)

	// Missed is told of each call that passed without a record, and why. It is only called in open mode, and must not wait.
	Missed(call *Call, why error)
}

// An Exchange is a call that has begun.
type Exchange interface {
	// End is called exactly once. In closed mode the client gets the end of the answer only when End has returned nil. End must return when
	// its context ends. The bodies in the outcome and in the call can be read until then.
	End(ctx context.Context, outcome *Outcome) error
}

// A Refusal is an error of Begin that says how a call is refused.
type Refusal struct {
	Status int    // of HTTP: 401, 403, 429, 503
	Reason string // goes to the client: what is wrong, and what to do
}

func (r *Refusal) Error() string { return r.Reason }

// A Mode says what happens to a call that cannot be recorded: it is refused, or it passes and the witness is told.
type Mode = observed.Mode

// The modes.
const (
	Closed = observed.Closed
	Open   = observed.Passing
)

// A Call is a request, as a witness may see it.
type Call struct {
	ID       string // unique; the spool's files begin with it
	Began    time.Time
	Vantage  evidence.Vantage
	Mode     Mode
	Upstream string    // its name in the options, or its host for a transport
	Origin   string    // scheme and host, as https://api.openai.com
	Speaks   *Protocol `json:"-"`
	Version  string    // of the protocol, if the call or its connection says one
	Method   string
	Path     string      // as the provider gets it, escaped
	Query    url.Values  // parameters that are on the list
	Header   http.Header // headers that are on the list

	Token       string       // which agent calls: from the path or the header Jurat-Agent; a secret
	Chain       string       // the header Jurat-Chain
	Session     string       // a fingerprint of the session that the protocol names; "": none
	Credentials []Credential // with which the provider is asked
	Custody     bool         // the credential is the relay's own, and the caller does not have it

	Upgrade string // the protocol that the caller asks to change to; only in open mode
	Request *Body
}

// A Credential is what the provider knows the caller by.
type Credential struct {
	Where       string // the header, in lower case, or "?key="
	Fingerprint string // HMAC-SHA-256 of the secret, in hexadecimal
}

// Ended says how a call ended.
type Ended = evidence.Ended

// The ends.
const (
	Complete      = evidence.Complete
	UpstreamError = evidence.UpstreamError
	UpstreamCut   = evidence.UpstreamCut
	ClientGone    = evidence.ClientGone
	RecorderCut   = evidence.RecorderCut
)

// An Outcome is what became of a call.
type Outcome struct {
	Ended  Ended
	Reason error // unless complete

	Session  string                // a fingerprint of the session that the answer begins
	Status   int                   // 0 if there was no answer
	Header   http.Header           // headers of the answer that are on the list
	Response *Body                 // nil if there was no answer
	TLS      *evidence.UpstreamTLS // by which certificate the provider was known; nil if it was asked without TLS

	// Delivered counts the bytes of the answer that the client had got when End was called: that the operating system took for its connection, read or not. Held
	// bytes follow if End succeeds.
	Delivered, Held int64
	// Terminal is the terminal event that was found: "[DONE]", "message_stop", "response.completed", "finishReason" and so on, as the protocol
	// names it. It is empty for bodies that have none.
	Terminal string
	// Unfinished is set when the provider had not ended its answer some time after the terminal event, and the relay ended it.
	Unfinished bool

	// Counted says what passed with the call, and is in no bytes, such as notifications of progress.
	Counted []string

	FirstByte time.Time // of the answer's body; zero if it has none
	At        time.Time // when the answer ended
}

// A Reason is an error in closed words: nothing in it is a client's or a server's, so records may have it.
type Reason string

func (r Reason) Error() string { return string(r) }

// What a reader of errors may ask for.
var (
	ErrClientGone  error = Reason("the client closed its connection before the answer ended")
	ErrNotRecorded       = errors.New("the call could not be recorded, so the end of the answer is not handed out")
	ErrSpoolFull         = errors.New("the spool is full")
	ErrRefused           = traffic.ErrTooLong
	ErrUpgrade           = errors.New("the connection changed to another protocol, which is not recorded")
)

func notRecorded(err error) error { return fmt.Errorf("%w: %w", ErrNotRecorded, err) }
