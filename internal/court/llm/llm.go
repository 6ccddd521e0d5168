// Package llm asks language models of any vendor, one call at a time. It does not know the purpose of a question.
// Vendors' types stay inside the adapter for that vendor.
//
// # The wire formats are written once, and no vendor's library is linked
//
// Each adapter, a line in protocols, writes its vendor's requests, and reads answers as trees of values. Package `convo` has
// what others read too. We refused the vendors' SDKs: for one call of each, they took a third of a first build's processor time, linked gRPC
// and OpenTelemetry, and doubled the binary. What they sent, and how they read 536 answers and errors, is recorded
// (`llmtest/testdata/recorded.jsonl`), and a test compares the adapters with it.
//
// # A setting that a vendor does not accept is refused
//
// The adapter refuses it before it sends anything, because the record's parameters would be untrue if it left the setting out.
//
// # A schema is sent unchanged
//
// Its members keep their order, because models write in that order. It has only what every vendor accepts, with all members required and no
// others allowed: the test servers reject other schemas. The caller checks the ranges of numbers in the answer.
package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/tap/convo"
)

// A Model answers one question at a time. It is safe for concurrent use. Its errors are *Error, or the context's.
type Model interface {
	Ask(context.Context, Question) (Answer, error)
}

// A Question is a conversation for the model to continue, and the form that its answer must have.
type Question struct {
	System   string    // the model's role and task
	Messages []Message // alternating, the user's first
	Schema   Schema
}

// A Message is one turn of a conversation.
type Message struct {
	ByModel bool // an earlier answer of the model; false: the user's text
	Text    string
}

// A Schema is the form of an answer: a JSON Schema for an object whose members are all required.
type Schema struct {
	Name string // letters, digits, hyphens and underscores
	JSON jsontext.Value
}

// An Answer is what the provider sent, even if it does not match the schema.
type Answer struct {
	Text         string
	Model        string // as the provider reported it; "": it reported no model
	Version      string // what else the provider reported about the version, such as a fingerprint; "": nothing
	FinishReason string // in the provider's words
	Usage        Usage  // zero: unknown
	Retries      int    // how many earlier requests failed: the provider limits rates, was down, or refused the request's form
}

// Usage is what a call consumed, by the provider's count.
type Usage = convo.Usage

// Settings are the parameters of a question. The provider chooses those that are nil or 0.
type Settings struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"` // of the answer
}

// bytesPerToken is how many bytes of a question count as one token in an estimate. Most texts have more bytes per
// token, so the reserved amount suffices.
const bytesPerToken = 3

// Estimate returns what a question may consume if its answer has at most maxTokens tokens.
func (q Question) Estimate(maxTokens int) Usage {
	n := len(q.System) + len(q.Schema.JSON)
	for _, m := range q.Messages {
		n += len(m.Text)
	}
	return Usage{Input: int64(n/bytesPerToken + 1), Output: int64(maxTokens)}
}

type Config struct {
	BaseURL  string // "": the vendor's own
	Key      string
	Settings Settings
	HTTP     *http.Client // nil: one with the defaults
}

// check returns an error for an address and a key that no provider can use, and fills in the base URL. Its errors never hold the key.
// Package config has checked the settings.
func (c Config) check(vendorURL string) (Config, error) {
	c.BaseURL = cmp.Or(c.BaseURL, vendorURL)
	at, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return c, errors.New("base URL: want an http or https URL") // the URL may hold a password, so the error does not show it
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return c, errors.New("base URL: want no user, password, query or fragment in it")
	}
	// A key with a character that HTTP cannot carry was copied incorrectly.
	if strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, errors.New("key: it contains a character that keys never have, such as a space or a line break")
	}
	return c, nil
}

// Check returns an *Error for a question that no vendor's protocol can carry.
func (q Question) Check() error {
	if len(q.Messages) == 0 {
		return Fail(Malformed, 0, "the question has no message")
	}
	for i, m := range q.Messages {
		if m.ByModel != (i%2 == 1) {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: the user and the model must alternate, and the user must be first", i))
		}
		if Blank(m.Text) {
			return Fail(Malformed, 0, fmt.Sprintf("messages/%d: empty", i))
		}
	}
	if q.Messages[len(q.Messages)-1].ByModel {
		return Fail(Malformed, 0, "the last message is the model's own")
	}
	return q.Schema.check()
}

const maxSchemaName = 64 // OpenAI's limit

func (s Schema) check() error {
	if s.JSON == nil && s.Name == "" {
		return nil // any text is accepted
	}
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if s.Name == "" || len(s.Name) > maxSchemaName || strings.ContainsFunc(s.Name, odd) {
		return Fail(Malformed, 0, fmt.Sprintf("schema: %q is not a valid name", s.Name))
	}
	if !s.JSON.IsValid() || s.JSON.Kind() != jsontext.KindBeginObject {
		return Fail(Malformed, 0, "schema: not a JSON object")
	}
	return nil
}

// A protocol holds what differs between vendors. Its functions are pure.
type protocol struct {
	baseURL string                    // the vendor's own; "": the configuration must name one
	keyless bool                      // a missing key is allowed
	check   func(Settings) error      // refuses settings that the protocol cannot carry; nil: it carries all
	path    func(Settings) string     // below the base URL
	sign    func(http.Header, string) // puts the key into the headers
	request func(Settings, Question, dialect) object
	next    func(dialect, *Error) (dialect, bool) // what to try after a server has refused a request's form; nil: every server of the vendor speaks alike
	read    func(*exchange, *convo.Node) (Answer, error)
	explain func(status int, body []byte) reading
}

// model implements Model over one protocol.
type model struct {
	protocol
	url      string
	key      string
	settings Settings
	http     *http.Client
	speaks   atomic.Pointer[dialect] // what the server accepted; nil: nothing was refused so far
}

// A dialect is what servers of one protocol differ in. The zero value is tried first.
type dialect struct {
	schema   schemaForm
	newLimit bool // the limit of the answer's length has OpenAI's newer name
}

type schemaForm int

const (
	schemaGiven   schemaForm = iota
	schemaInWords            // and any JSON object demanded
	schemaOnlyInWords
)

// protocols are those of all vendors, by the name that package panel gives each. compatible speaks OpenAI's Chat Completions; its base URL is
// the part before /chat/completions.
var protocols = map[string]protocol{"openai": openAI, "anthropic": anthropic, "gemini": gemini, "compatible": compatible}

// New makes a model of a vendor. It does not read the environment. Its errors name the invalid setting.
func New(vendor string, c Config) (Model, error) {
	p, known := protocols[vendor]
	if !known {
		return nil, fmt.Errorf("no vendor is called %q", vendor)
	}
	if c.BaseURL == "" && p.baseURL == "" {
		return nil, fmt.Errorf("%s: there is no base URL", vendor)
	}
	c, err := c.check(p.baseURL)
	if err == nil && c.Key == "" && !p.keyless {
		err = errors.New("there is no key")
	}
	if err == nil && p.check != nil {
		err = p.check(c.Settings)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vendor, err)
	}
	return &model{protocol: p, url: strings.TrimSuffix(c.BaseURL, "/") + p.path(c.Settings), key: c.Key, settings: c.Settings, http: client(c.HTTP)}, nil
}

// Ask implements Model. If a server refuses the form of a request, the model tries the protocol's other forms, and keeps
// to the one that was accepted. If none is, the error is the first one.
func (m *model) Ask(ctx context.Context, q Question) (Answer, error) {
	if err := q.Check(); err != nil {
		return Answer{}, err
	}
	var d dialect
	if known := m.speaks.Load(); known != nil {
		d = *known
	}
	answer, err := m.ask(ctx, q, d)
	first := refusesForm(err)
	for e, refused := first, 1; e != nil && m.next != nil; refused++ {
		more := false
		if d, more = m.next(d, e); !more {
			first.Answer.Retries = refused - 1
			return first.Answer, first // the form was not the reason for the refusal
		}
		if answer, err = m.ask(ctx, q, d); err == nil {
			m.speaks.Store(&d)
		}
		answer.Retries = refused
		if failed := (*Error)(nil); errors.As(err, &failed) {
			failed.Answer.Retries = refused
		}
		e = refusesForm(err)
	}
	return answer, err
}

// refusesForm returns the error by which a server rejected the request's form; nil: it is another error, or none.
func refusesForm(err error) *Error {
	if e, is := errors.AsType[*Error](err); is && e.Kind == Malformed && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) {
		return e
	}
	return nil
}

// ask makes one exchange. Patient does the retries.
func (m *model) ask(ctx context.Context, q Question, d dialect) (Answer, error) {
	body, err := json.Marshal(m.request(m.settings, q, d), json.Deterministic(true))
	if err != nil {
		return Answer{}, Fail(Malformed, 0, "the question cannot be written: "+err.Error())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return Answer{}, Fail(Malformed, 0, "nothing was sent: "+err.Error(), m.key)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	m.sign(request.Header, m.key)
	x := &exchange{key: m.key}
	if err := x.do(ctx, m.http, request, m.explain); err != nil {
		return Answer{}, err
	}
	root, err := convo.ReadLenient(x.body)
	if err != nil || root.Kind != '{' { // read leaves out members of another type than the protocol's
		return Answer{}, x.fail(Malformed, "the response does not follow the provider's protocol")
	}
	return m.read(x, root)
}

// bearer puts a key into the Authorization header as OAuth 2.0 defines it (RFC 6750).
func bearer(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}
