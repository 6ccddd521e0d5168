package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Kind is why there is no answer: the set is closed.
type Kind string

const (
	Refused      Kind = "refused"      // by a safety filter, the provider's or the model's own
	RateLimited  Kind = "rate limited" // ask again later
	TimedOut     Kind = "timed out"    // no answer within the time of one call
	Unauthorised Kind = "unauthorised" // the key is missing, wrong, or not good for this model
	Unavailable  Kind = "unavailable"  // the provider is down or cannot be reached
	Malformed    Kind = "malformed"    // what came back is not what the provider's protocol says, or the question was not
	TooLong      Kind = "too long"     // the question does not fit the model's window, or the answer its limit
)

// An Error is why there is no answer.
type Error struct {
	Kind       Kind
	Status     int           // of HTTP; 0: there was none
	RetryAfter time.Duration // how long the provider wants to be left alone; 0: it did not say
	Detail     string        // for people; never holds a key
	Answer     Answer        // what is known of the call, such as its cost; often zero
}

func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP status %d)", e.Status)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap makes a call that timed out a deadline's error to whoever knows nothing of this package.
func (e *Error) Unwrap() error {
	if e.Kind == TimedOut {
		return context.DeadlineExceeded
	}
	return nil
}

// KindOf is the kind of an error of a Model; "" for one that is none, such as a cancellation by the caller.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// maxDetail is the longest detail in bytes: what providers send is put into errors and records.
const maxDetail = 300

// Fail makes an Error of what a provider sent or the network said. Secrets are cut out of the detail.
func Fail(kind Kind, status int, detail string, secrets ...string) *Error {
	return &Error{Kind: kind, Status: status, Detail: Clean(detail, secrets...)}
}

// Clean makes a provider's words fit for an error: on one line, not long, without secrets.
func Clean(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[key]")
		}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return text
}

// KindOfStatus is what an HTTP status of an error means.
func KindOfStatus(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired, status == http.StatusNotFound:
		return Unauthorised // a model that a key may not use is often said not to be there
	case status == http.StatusRequestEntityTooLarge:
		return TooLong
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return Unavailable
	}
	return Malformed
}

// KindOfTransport is what an error means that came without a response.
func KindOfTransport(err error) Kind {
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return TimedOut
	}
	return Unavailable
}

// RetryAfter reads the header in either of its forms (RFC 9110, section 10.2.3), and the milliseconds that some send.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return bounded(ms / 1000)
	}
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return bounded(seconds)
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return bounded(at.Sub(now).Seconds())
	}
	return 0
}

// LongestWait is the longest that a provider is obeyed.
const LongestWait = 10 * time.Minute

func bounded(seconds float64) time.Duration {
	if seconds >= LongestWait.Seconds() {
		return LongestWait
	}
	return time.Duration(seconds * float64(time.Second))
}
