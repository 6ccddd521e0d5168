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

// Kind says why there is no answer. The set is closed.
type Kind string

const (
	Refused      Kind = "refused"      // by a safety filter, the provider's or the model's own
	RateLimited  Kind = "rate limited" // ask again later
	TimedOut     Kind = "timed out"    // no answer within the time of one call
	Unauthorised Kind = "unauthorised" // the key is missing, wrong, or not good for this model
	NotFound     Kind = "not found"    // the provider does not know the model, or not for this key, or nothing is at the address
	Unavailable  Kind = "unavailable"  // the provider is down or cannot be reached
	Malformed    Kind = "malformed"    // the response does not follow the provider's protocol, or the question was invalid
	TooLong      Kind = "too long"     // the question does not fit the model's window, or the answer its limit
)

// An Error says why there is no answer.
type Error struct {
	Kind       Kind
	Status     int           // of HTTP; 0: there was no response
	RetryAfter time.Duration // how long the provider asks callers to wait; 0: it did not say
	Detail     string        // for people; never holds a key
	Answer     Answer        // the known part of the answer, such as its cost; often zero
}

func (e *Error) Error() string {
	text := string(e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP status %d)", e.Status)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Kind == NotFound {
		text += "; set a model that the provider lists for this key, or another base_url"
	}
	return text
}

// Unwrap makes a timeout match context.DeadlineExceeded for callers that do not know this package. It returns nil for
// every other kind.
func (e *Error) Unwrap() error {
	if e.Kind == TimedOut {
		return context.DeadlineExceeded
	}
	return nil
}

// KindOf returns the kind of a Model's error. It returns "" for other errors, such as a cancellation by the caller.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// maxDetail limits the detail in bytes, because errors and records include the provider's text.
const maxDetail = 300

// Fail makes an Error from a provider's or the network's text. It removes the secrets from the detail.
func Fail(kind Kind, status int, detail string, secrets ...string) *Error {
	return &Error{Kind: kind, Status: status, Detail: Clean(detail, secrets...)}
}

// Clean prepares a provider's text for an error: it makes it one short line, and removes the secrets.
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

// KindOfStatus maps an error's HTTP status to a Kind.
func KindOfStatus(status int) Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return RateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return Unauthorised
	case status == http.StatusNotFound, status == http.StatusGone:
		return NotFound
	case status == http.StatusRequestEntityTooLarge:
		return TooLong
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return Unavailable
	}
	return Malformed
}

// KindOfTransport maps an error that came without a response to a Kind.
func KindOfTransport(err error) Kind {
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return TimedOut
	}
	return Unavailable
}

// RetryAfter reads the header in both of its forms (RFC 9110, section 10.2.3), and the milliseconds that some
// providers send.
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

// LongestWait limits the wait that a provider can demand.
const LongestWait = 10 * time.Minute

func bounded(seconds float64) time.Duration {
	if seconds >= LongestWait.Seconds() {
		return LongestWait
	}
	return time.Duration(seconds * float64(time.Second))
}
