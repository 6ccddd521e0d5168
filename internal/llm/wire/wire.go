// Package wire is what the adapters share below the vendors' SDKs: one exchange over HTTP, seen as it was. What an SDK
// makes of a failure differs from vendor to vendor and may repeat a key; what went over the wire does not.
package wire

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

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// maxBody is the largest response that is read: many times the longest answer that models write.
const maxBody = 8 << 20

// minSecret is the length from which a key is cut out of what a provider sends. Shorter ones are the placeholders that
// local servers are given, such as "ollama": cutting those out would garble names.
const minSecret = 8

// A Line is the way to one provider.
type Line struct {
	HTTP *http.Client // for the SDK
	key  string
}

// Open makes a line whose HTTP client follows no redirect, which could carry key and evidence elsewhere; which bounds what
// it reads; and which hands on nothing but whole JSON.
func Open(c llm.Config) *Line {
	var client http.Client
	if c.HTTP != nil {
		client = *c.HTTP
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = transport{next}
	client.Jar = nil
	return &Line{&client, c.Key}
}

// An Exchange is what one call sent back.
type Exchange struct {
	Status int    // 0: there was no response
	Body   []byte // whole, without the key

	key    string
	header http.Header
	err    error // why there is no good response, an *llm.Error where it is known what that means
}

type exchangeKey struct{}

// Begin makes the context of one call, and where its exchange will be.
func (l *Line) Begin(ctx context.Context) (context.Context, *Exchange) {
	x := &Exchange{key: l.key}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper. The body is read here, to the end, so that one that is cut off is told apart
// from one that is malformed, and so that no SDK sees what it may not stand: errors are read by the adapters alone.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	x, ok := request.Context().Value(exchangeKey{}).(*Exchange)
	if !ok {
		return nil, errors.New("a request outside of a call")
	}
	var response *http.Response
	if response, x.err = t.next.RoundTrip(request); x.err != nil {
		return nil, x.err
	}
	defer response.Body.Close()
	if x.err = x.take(response); x.err != nil {
		return nil, x.err
	}
	forSDK := x.Body
	if !x.ok() {
		forSDK = []byte("{}")
	}
	response.Body = io.NopCloser(bytes.NewReader(forSDK))
	response.ContentLength = int64(len(forSDK))
	return response, nil
}

func (x *Exchange) take(response *http.Response) error {
	x.Status, x.header = response.StatusCode, response.Header
	if x.Status >= 300 && x.Status < 400 {
		return x.Fail(llm.Malformed, "it redirects elsewhere, and nothing is sent but to where the configuration says")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return x.Fail(llm.Malformed, fmt.Sprintf("the response is larger than %d MiB", maxBody>>20))
	}
	x.Body = withoutKey(body, x.key)
	if x.ok() {
		return x.protocol()
	}
	return nil
}

// How JSON writers write what is in a string: all of them, and those who mind HTML.
var (
	inJSON = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	inHTML = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`)
)

// withoutKey cuts a key out of a body, in the ways that JSON writers write it.
func withoutKey(body []byte, key string) []byte {
	if len(key) < minSecret {
		return body
	}
	quoted := inJSON.Replace(key)
	html := inHTML.Replace(quoted)
	for _, form := range []string{key, quoted, strings.ReplaceAll(quoted, "/", `\/`), html, strings.ReplaceAll(html, "+", `\u002b`)} {
		if bytes.Contains(body, []byte(form)) { // usually it is not, and the body stays as it is
			body = bytes.ReplaceAll(body, []byte(form), []byte("[key]"))
		}
	}
	return body
}

// A Reading is what a vendor's error says, beyond its HTTP status.
type Reading struct {
	Kind   llm.Kind // "": what the status means
	Detail string
	Wait   time.Duration // 0: what the headers say
}

// Problem tells why a call failed, nil if it did not. sdk is what the SDK returned, read understands the vendor's errors.
func (x *Exchange) Problem(ctx context.Context, sdk error, read func(status int, body []byte) Reading) error {
	var known *llm.Error
	switch {
	case sdk == nil && x.err == nil && x.ok():
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return llm.Fail(llm.TimedOut, 0, "no answer in time")
	case errors.As(x.err, &known):
		return known
	case x.err != nil:
		return x.Fail(kindOfTransport(x.err, sdk), x.err.Error())
	case x.Status == 0:
		return x.Fail(llm.Malformed, fmt.Sprintf("nothing was sent: %v", sdk))
	case !x.ok():
		return x.refusal(read(x.Status, x.Body))
	}
	return x.Fail(llm.Malformed, fmt.Sprintf("the response is not the provider's protocol: %v", sdk))
}

// kindOfTransport asks both errors: that a client's own time limit ran out is known only to the client.
func kindOfTransport(inner, outer error) llm.Kind {
	if outer != nil && llm.KindOfTransport(outer) == llm.TimedOut {
		return llm.TimedOut
	}
	return llm.KindOfTransport(inner)
}

func (x *Exchange) ok() bool { return x.Status >= 200 && x.Status < 300 }

func (x *Exchange) refusal(said Reading) error {
	if said.Kind == "" {
		said.Kind = llm.KindOfStatus(x.Status)
	}
	if said.Detail == "" {
		said.Detail = http.StatusText(x.Status)
	}
	failure := x.Fail(said.Kind, said.Detail)
	failure.RetryAfter = min(said.Wait, llm.LongestWait)
	if failure.RetryAfter == 0 {
		failure.RetryAfter = llm.RetryAfter(x.header, time.Now())
	}
	return failure
}

// protocol refuses a good response that is not one JSON value. SDKs are more lenient than that, and recurse.
func (x *Exchange) protocol() error {
	media, _, err := mime.ParseMediaType(x.header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return x.Fail(llm.Malformed, fmt.Sprintf("the response is no JSON: its type is %q", x.header.Get("Content-Type")))
	}
	if !jsontext.Value(x.Body).IsValid() {
		return x.Fail(llm.Malformed, "the response is not one JSON value")
	}
	return nil
}

// Fail makes an error of this call. The status is told only where it says something.
func (x *Exchange) Fail(kind llm.Kind, detail string) *llm.Error {
	status := x.Status
	if x.ok() {
		status = 0
	}
	failure := llm.Fail(kind, status, detail, x.key)
	failure.Answer.Raw = x.Body
	return failure
}

// FailWith is Fail for a call that has cost something.
func (x *Exchange) FailWith(answer llm.Answer, kind llm.Kind, detail string) *llm.Error {
	failure := x.Fail(kind, detail)
	answer.Model, answer.Version, answer.FinishReason = llm.Clean(answer.Model), llm.Clean(answer.Version), llm.Clean(answer.FinishReason)
	failure.Answer = answer
	return failure
}

// Finish checks what an adapter read out of a response, and makes an Answer of it. An empty answer is none: it could not
// even be held against a model in the next turn, which providers refuse if it is empty.
func (x *Exchange) Finish(answer llm.Answer) (llm.Answer, error) {
	u := answer.Usage
	for _, n := range []int64{u.Input, u.Cached, u.Output, u.Reasoning} {
		if n < 0 {
			return llm.Answer{}, x.Fail(llm.Malformed, "the provider counts a negative number of tokens")
		}
	}
	if u.Cached > u.Input || u.Reasoning > u.Output {
		return llm.Answer{}, x.Fail(llm.Malformed, "the provider counts more tokens in a part than in the whole")
	}
	for _, name := range []string{answer.Model, answer.Version, answer.FinishReason} {
		if llm.Clean(name) != name {
			return llm.Answer{}, x.FailWith(answer, llm.Malformed, "a name in the response is too long or not on one line")
		}
	}
	if len(x.key) >= minSecret && strings.Contains(answer.Text, x.key) { // written in escapes: else it would have been cut out
		answer.Text, answer.Raw = "", nil
		return llm.Answer{}, x.FailWith(answer, llm.Malformed, "the answer repeats the key")
	}
	if strings.TrimSpace(answer.Text) == "" {
		return llm.Answer{}, x.FailWith(answer, llm.Malformed, "the answer is empty")
	}
	return answer.WithJSON(), nil
}
