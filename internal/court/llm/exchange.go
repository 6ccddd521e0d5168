package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence/jsonform"
)

// maxBody limits the response, to many times the longest answer that models write.
const maxBody = 8 << 20

// minSecret is the shortest key that is removed from a provider's text. Shorter keys are placeholders for local
// servers, such as "ollama"; removing them would garble names.
const minSecret = 8

// client returns a client that keeps no cookies and follows no redirect, because a redirect could carry key and
// evidence elsewhere. If given is nil, it uses the defaults.
func client(given *http.Client) *http.Client {
	var c http.Client
	if given != nil {
		c = *given
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Jar = nil
	return &c
}

// An exchange is the response to one call.
type exchange struct {
	status int    // 0: there was no response
	body   []byte // complete, with the key removed

	key    string
	header http.Header
}

// A reading is what a vendor's error tells beyond its HTTP status.
type reading struct {
	kind   Kind // "": the kind that follows from the status
	detail string
	wait   time.Duration // 0: the wait that the headers state
}

// do sends a request and reads the response, which must have a success status and one JSON value. Its errors are
// *Error, or the context's if the caller cancelled.
func (x *exchange) do(ctx context.Context, c *http.Client, request *http.Request, explain func(int, []byte) reading) error {
	response, err := c.Do(request)
	if err == nil {
		err = x.take(response)
		response.Body.Close() // take has read it to its end, or the rest is not wanted
	}
	network, late := errors.AsType[net.Error](err)
	var known *Error
	switch {
	case err == nil && x.ok() && jsontext.Value(x.body).IsValid(lenient):
		return nil
	case err == nil && x.ok(): // whatever its Content-Type is
		return x.fail(Malformed, fmt.Sprintf("the response is not one JSON value; its type is %q", x.header.Get("Content-Type")))
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return Fail(TimedOut, 0, "no answer in time")
	case errors.As(err, &known):
		return known
	case err != nil && (errors.Is(err, context.DeadlineExceeded) || late && network.Timeout()):
		return x.fail(TimedOut, err.Error())
	case err != nil:
		return x.fail(Unavailable, err.Error())
	}
	return x.refusal(explain(x.status, x.body))
}

// take reads a response to its end, so that it can tell a truncated body from a malformed one.
func (x *exchange) take(response *http.Response) error {
	x.status, x.header = response.StatusCode, response.Header
	if x.status >= 300 && x.status < 400 {
		return x.fail(Malformed, "the provider redirects; requests go only to the configured address")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return x.fail(Malformed, fmt.Sprintf("the response is larger than %d MiB", maxBody>>20))
	}
	if jsonform.CheckValues(body) != nil {
		return x.fail(Malformed, fmt.Sprintf("the response has more than %d values", jsonform.MaxValues))
	}
	x.body = standard(withoutKey(body, x.key))
	return nil
}

// JSON writers escape strings in two ways: the common one, and one that is safe inside HTML.
var (
	inJSON = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	inHTML = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
)

// withoutKey removes a key from a body, in every form in which JSON writers write it.
func withoutKey(body []byte, key string) []byte {
	if len(key) < minSecret {
		return body
	}
	quoted := inJSON.Replace(key)
	html := inHTML.Replace(quoted)
	for _, form := range []string{key, quoted, strings.ReplaceAll(quoted, "/", `\/`), html, strings.ReplaceAll(html, "+", `\u002b`)} {
		if bytes.Contains(body, []byte(form)) { // usually the key does not occur, and the body stays as it is
			body = bytes.ReplaceAll(body, []byte(form), []byte("[key]"))
		}
	}
	return body
}

func (x *exchange) ok() bool { return x.status >= 200 && x.status < 300 }

func (x *exchange) refusal(said reading) error {
	failure := x.fail(cmp.Or(said.kind, KindOfStatus(x.status)), cmp.Or(said.detail, http.StatusText(x.status)))
	failure.RetryAfter = cmp.Or(min(said.wait, LongestWait), RetryAfter(x.header, time.Now()))
	return failure
}

// lenient reads envelopes as most clients do: the last of several members with one name counts.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// bareNumber matches a string, which it leaves alone, or what Python writes for numbers that JSON does not have.
var bareNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// standard returns a body without a byte order mark, and with null for numbers that JSON does not have.
func standard(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	if jsontext.Value(body).IsValid(lenient) {
		return body
	}
	mended := jsontext.Value(bareNumber.ReplaceAllStringFunc(string(body), func(match string) string {
		if match[0] == '"' {
			return match
		}
		return "null"
	}))
	if !mended.IsValid(lenient) {
		return body
	}
	return mended
}

// fail makes an error of this call. It adds the status only if that tells something.
func (x *exchange) fail(kind Kind, detail string) *Error {
	status := x.status
	if x.ok() {
		status = 0
	}
	return Fail(kind, status, detail, x.key)
}

// failWith is fail for a call whose answer is known in part, such as its cost.
func (x *exchange) failWith(answer Answer, kind Kind, detail string) *Error {
	failure := x.fail(kind, detail)
	if x.repeatsKey(answer.Text) {
		answer.Text = ""
	}
	answer.Model, answer.Version, answer.FinishReason = Clean(answer.Model), Clean(answer.Version), Clean(answer.FinishReason)
	failure.Answer = answer
	return failure
}

// repeatsKey reports whether an answer has the key: with escapes, which withoutKey does not recognize.
func (x *exchange) repeatsKey(text string) bool {
	return len(x.key) >= minSecret && strings.Contains(text, x.key)
}

// How a provider says that an answer is incomplete, in lower case. The vendors' lists differ, and servers that speak
// one vendor's protocol pass on the words of another. Every other word, and none, leaves an answer whole.
var (
	cutOffs = []string{"length", "max_length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"}
	filters = []string{"content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii",
		"image_safety", "image_prohibited_content", "image_recitation", "guardrail_intervened", "sensitive"}
)

// word returns a finish reason in the spelling of cutOffs and filters.
func word(reason string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(reason)))
}

// conclude returns the answer that a protocol read from a response, or says why there is none: a filter withheld it, for the given
// reason, or it was cut off, or it is empty: then the next turn could not even quote it, because providers refuse empty messages.
func (x *exchange) conclude(answer Answer, withheld string) (Answer, error) {
	switch reason := word(answer.FinishReason); {
	case slices.Contains(filters, reason):
		return Answer{}, x.failWith(answer, Refused, withheld)
	case slices.Contains(cutOffs, reason):
		return Answer{}, x.cutOff(answer)
	}
	if x.repeatsKey(answer.Text) {
		return Answer{}, x.failWith(answer, Malformed, "the answer repeats the key")
	}
	if Blank(answer.Text) {
		detail := "the answer is empty"
		if answer.FinishReason != "" {
			detail += ": the model stopped with " + answer.FinishReason
		}
		return Answer{}, x.failWith(answer, Malformed, detail)
	}
	if answer.Usage.Input == 0 || answer.Usage.Output == 0 {
		answer.Usage = Usage{} // something was read and written
	}
	answer.Model, answer.Version, answer.FinishReason = Clean(answer.Model), Clean(answer.Version), Clean(answer.FinishReason)
	return answer, nil
}

func (x *exchange) cutOff(answer Answer) *Error {
	return x.failWith(answer, TooLong, "the answer was cut off: "+answer.FinishReason)
}

// Blank reports whether a text shows nothing: it has only spaces and characters that are not seen.
func Blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) })
}

func excerpt(body []byte) string { return string(body[:min(len(body), 300)]) }

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
	if e, is := errors.AsType[*Error](err); is {
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
	if status >= 500 {
		return Unavailable
	}
	return cmp.Or(kindsOfStatus[status], Malformed)
}

var kindsOfStatus = map[int]Kind{http.StatusTooManyRequests: RateLimited, http.StatusUnauthorized: Unauthorised, http.StatusForbidden: Unauthorised,
	http.StatusPaymentRequired: Unauthorised, http.StatusNotFound: NotFound, http.StatusGone: NotFound, http.StatusRequestEntityTooLarge: TooLong,
	http.StatusRequestTimeout: Unavailable, http.StatusConflict: Unavailable}

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
	return time.Duration(min(seconds, LongestWait.Seconds()) * float64(time.Second))
}
