package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
	var known *Error
	switch {
	case err == nil && x.ok():
		return x.protocol()
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return Fail(TimedOut, 0, "no answer in time")
	case errors.As(err, &known):
		return known
	case err != nil:
		return x.fail(KindOfTransport(err), err.Error())
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
	x.body = withoutKey(body, x.key)
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
	if said.kind == "" {
		said.kind = KindOfStatus(x.status)
	}
	if said.detail == "" {
		said.detail = http.StatusText(x.status)
	}
	failure := x.fail(said.kind, said.detail)
	failure.RetryAfter = min(said.wait, LongestWait)
	if failure.RetryAfter == 0 {
		failure.RetryAfter = RetryAfter(x.header, time.Now())
	}
	return failure
}

// protocol returns an error for a successful response that is not one JSON value.
func (x *exchange) protocol() error {
	media, _, err := mime.ParseMediaType(x.header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return x.fail(Malformed, fmt.Sprintf("the response is not JSON: its type is %q", x.header.Get("Content-Type")))
	}
	if !jsontext.Value(x.body).IsValid() {
		return x.fail(Malformed, "the response is not one JSON value")
	}
	return nil
}

// decode reads the body into one of package wire's answers.
func (x *exchange) decode(answer any) error { return x.unmarshal(x.body, answer) }

// counts reads what an answer reports of its usage into one of package wire's types. Usage may be missing.
func (x *exchange) counts(reported jsontext.Value, usage any) error {
	if reported == nil {
		return nil
	}
	return x.unmarshal(reported, usage)
}

func (x *exchange) unmarshal(value jsontext.Value, into any) error {
	err := json.Unmarshal(value, into)
	var semantic *json.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &semantic) && semantic.JSONPointer != "":
		return x.fail(Malformed, fmt.Sprintf("the response does not follow the provider's protocol: %s has the wrong type", semantic.JSONPointer))
	}
	return x.fail(Malformed, "the response does not follow the provider's protocol")
}

// fail makes an error of this call. It adds the status only if that tells something.
func (x *exchange) fail(kind Kind, detail string) *Error {
	status := x.status
	if x.ok() {
		status = 0
	}
	failure := Fail(kind, status, detail, x.key)
	failure.Answer.Raw = x.body
	return failure
}

// failWith is fail for a call whose answer is known in part, such as its cost.
func (x *exchange) failWith(answer Answer, kind Kind, detail string) *Error {
	failure := x.fail(kind, detail)
	answer.Model, answer.Version, answer.FinishReason = Clean(answer.Model), Clean(answer.Version), Clean(answer.FinishReason)
	failure.Answer = answer
	return failure
}

// stopped is failWith for a finish reason that an answer to such a question cannot have.
func (x *exchange) stopped(answer Answer) *Error {
	return x.failWith(answer, Malformed, "the model stopped for an unexpected reason: "+answer.FinishReason)
}

// cutOff is failWith for an incomplete answer.
func (x *exchange) cutOff(answer Answer) *Error {
	return x.failWith(answer, TooLong, "the answer was cut off: "+answer.FinishReason)
}

// finish checks the fields that a protocol read from a response, and returns the Answer. An empty answer is an error,
// because the next turn could not even quote it: providers refuse empty messages.
func (x *exchange) finish(answer Answer) (Answer, error) {
	u := answer.Usage
	for _, n := range []int64{u.Input, u.Cached, u.Output, u.Reasoning} {
		if n < 0 {
			return Answer{}, x.fail(Malformed, "the provider counts a negative number of tokens")
		}
	}
	if u.Cached > u.Input || u.Reasoning > u.Output {
		return Answer{}, x.fail(Malformed, "the provider counts more tokens in a part than in the whole")
	}
	for _, name := range []string{answer.Model, answer.Version, answer.FinishReason} {
		if Clean(name) != name {
			return Answer{}, x.failWith(answer, Malformed, "a name in the response is too long or not on one line")
		}
	}
	if len(x.key) >= minSecret && strings.Contains(answer.Text, x.key) { // the answer has the key with escapes, which withoutKey does not recognize
		answer.Text, answer.Raw = "", nil
		return Answer{}, x.failWith(answer, Malformed, "the answer repeats the key")
	}
	if strings.TrimSpace(answer.Text) == "" {
		return Answer{}, x.failWith(answer, Malformed, "the answer is empty")
	}
	return answer.WithJSON(), nil
}

// excerpt returns the beginning of a body of unknown form.
func excerpt(body []byte) string { return string(body[:min(len(body), 300)]) }
