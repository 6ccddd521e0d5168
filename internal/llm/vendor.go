package llm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
)

// A protocol holds what differs between vendors. Its functions are pure.
type protocol struct {
	baseURL string                    // the vendor's own; "": the configuration must name one
	keyless bool                      // a missing key is allowed
	check   func(Settings) error      // refuses settings that the protocol cannot carry; nil: it carries all
	path    func(Settings) string     // below the base URL
	sign    func(http.Header, string) // puts the key into the headers
	request func(Settings, Question, dialect) any
	next    func(dialect, *Error) (dialect, bool) // what to try after a server has refused a request's form; nil: every server of the vendor speaks alike
	read    func(*exchange) (Answer, error)
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

// A schemaForm is how a request states the form of the answer.
type schemaForm int

const (
	schemaGiven   schemaForm = iota
	schemaInWords            // and any JSON object demanded
	schemaOnlyInWords
)

// protocols are those of all vendors, by the name that package config gives each. compatible speaks OpenAI's Chat Completions; its base URL is
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
	var e *Error
	if errors.As(err, &e) && e.Kind == Malformed && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) {
		return e
	}
	return nil
}

// ask makes one exchange. Patient does the retries.
func (m *model) ask(ctx context.Context, q Question, d dialect) (Answer, error) {
	body, err := json.Marshal(m.request(m.settings, q, d))
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
	return m.read(x)
}

// bearer puts a key into the Authorization header as OAuth 2.0 defines it (RFC 6750).
func bearer(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}
