package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
)

// A Witness is shown each call. Its methods are called by many goroutines at once.
type Witness interface {
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

	// Delivered counts the bytes of the answer that the client had got when End was called. Held bytes follow if End succeeds.
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
	ErrRefused           = observe.ErrTooLong
	ErrUpgrade           = errors.New("the connection changed to another protocol, which is not recorded")
)

// notRecorded wraps what the witness said.
func notRecorded(err error) error { return fmt.Errorf("%w: %w", ErrNotRecorded, err) }
