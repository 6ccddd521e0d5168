// Package llmtest has local servers that speak the published protocols of language models' vendors. A server checks
// every request strictly and keeps it. A script, which is the same for all vendors, decides what the server answers.
package llmtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
)

// A Vendor is a protocol: OpenAI, Anthropic, Gemini or Compatible.
type Vendor struct {
	Name string

	base    string // what a base URL ends with
	header  string // that has the key
	version string // in the header Anthropic-Version; "": the protocol has none
	decode  func(path string, body []byte) (Call, error)
	answer  func(Call, Reply) any
	fail    func(Reply) failure
	wrong   func(message string) any // the body of an error for an invalid request, with status 400
}

// headers checks that the key is in the vendor's header and in no other.
func (v Vendor) headers(h http.Header, key string) error {
	want := key
	if v.header == "Authorization" && key != "" {
		want = "Bearer " + key
	}
	switch {
	case h.Get(v.header) != want:
		return fmt.Errorf("%s is not the key", v.header)
	case v.version != "" && h.Get("Anthropic-Version") != v.version:
		return fmt.Errorf("anthropic-version %q", h.Get("Anthropic-Version"))
	case v.header != "Authorization" && h.Get("Authorization") != "":
		return fmt.Errorf("there is an authorization beside %s", v.header)
	}
	for other := range h {
		if other != v.header && key != "" && h.Get(other) == key {
			return fmt.Errorf("the key is in header %s", other)
		}
	}
	return nil
}

// failure is an error in a vendor's form.
type failure struct {
	status int
	body   any
}

// Vendors lists all vendors.
var Vendors = []Vendor{OpenAI, Anthropic, Gemini, Compatible}

// String names the vendor.
func (v Vendor) String() string { return v.Name }

// A Call is a question to a model, in the same terms for all vendors.
type Call struct {
	Number   int // of the server's calls, from 1
	System   string
	Messages []llm.Message
	Schema   llm.Schema // Name only if the protocol has one; nil with Compatible also if any JSON object is accepted
	Settings llm.Settings
}

// Last is the text of the last message.
func (c Call) Last() string { return c.Messages[len(c.Messages)-1].Text }

// A Request is a Call as the server received it.
type Request struct {
	Call
	Path   string
	Header http.Header
	Body   []byte
}

// A Script decides on each call. Many goroutines call it at once.
type Script func(Call) Reply

// Always answers every call with the same reply.
func Always(r Reply) Script { return func(Call) Reply { return r } }

// Say answers every call with a text.
func Say(text string) Script { return Always(Reply{Text: text}) }

// InTurn answers the first call with the first reply, and so on. It repeats the last reply for all later calls.
func InTurn(replies ...Reply) Script {
	return func(c Call) Reply { return replies[min(c.Number, len(replies))-1] }
}

// A Reply is the server's response to a call.
type Reply struct {
	Text  string
	Model string        // as reported; "": as asked
	Usage llm.Usage     // zero: Used
	Delay time.Duration // before the server sends anything; ends early if the caller disconnects

	Failure    Failure
	RetryAfter time.Duration // of RateLimited, in whole seconds
	Block      string        // of Blocked and PromptBlocked: the vendor's word for the kind, if it has several
	Location   string        // of Redirected
}

// Used is what a call consumes unless the reply says otherwise.
var Used = llm.Usage{Input: 120, Cached: 20, Output: 30, Reasoning: 10}

// Failure says how a call fails.
type Failure int

const (
	Nothing       Failure = iota
	RateLimited           // with Retry-After, or in the vendor's form
	Unauthorised          // the key is wrong
	NoSuchModel           // or the key may not use it
	NoMoney               // the account is empty
	ServerError           // status 500
	Overloaded            // with the vendor's own status for it
	PromptTooLong         // the question does not fit the window
	PromptBlocked         // by a filter, before the model saw it
	Blocked               // by a filter, while the model answered
	CutOff                // at the limit of tokens
	NotJSON               // an HTML page, with a success status
	Malformed             // JSON that ends too early, with a success status
	OtherShape            // JSON, but of another protocol
	BodyCut               // the connection ends within the body
	Closed                // the connection ends before the response
	Redirected            // to Location
	EchoedKey             // an error that repeats the key
	NoSchemas             // a request with a schema is refused, as by older servers
)

// A Server is a server of one vendor's protocol, for one test.
type Server struct {
	URL string // the base URL for a Config
	Key string // the key that it requires

	t       testing.TB
	vendor  Vendor
	script  Script
	closing chan struct{}

	mu       sync.Mutex
	calls    int
	forgets  bool
	requests []Request
}

const maxRequest = 32 << 20

// New starts a server that ends with the test. A request that violates the vendor's protocol fails the test.
func New(t testing.TB, vendor Vendor, script Script) *Server {
	s := &Server{Key: "key-of-" + strings.ToLower(vendor.Name) + "-5f0c9a71d3", t: t, vendor: vendor, script: script, closing: make(chan struct{})}
	server := httptest.NewServer(s)
	s.URL = server.URL + vendor.base
	t.Cleanup(func() {
		close(s.closing)
		server.Close()
	})
	return s
}

// Config is what an adapter needs to ask this server.
func (s *Server) Config(settings llm.Settings) llm.Config {
	return llm.Config{BaseURL: s.URL, Key: s.Key, Settings: settings}
}

// Forget makes Requests return none, now and later. Over a thousand trials the requests would fill most of the
// memory.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets, s.requests = true, nil
}

// Requests returns the requests so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request bytes.Buffer
	request.Grow(int(min(max(r.ContentLength, 0), maxRequest)) + bytes.MinRead)
	if _, err := request.ReadFrom(io.LimitReader(r.Body, maxRequest)); err != nil {
		return // the caller disconnected
	}
	body := request.Bytes()
	call, err := s.check(r, body)
	if err != nil {
		s.t.Errorf("a request that is not %s's protocol: %v\n%s %s\n%s", s.vendor, err, r.Method, r.URL, body)
		write(w, http.StatusBadRequest, s.vendor.wrong(err.Error()))
		return
	}
	s.mu.Lock()
	s.calls++
	call.Number = s.calls
	if !s.forgets {
		s.requests = append(s.requests, Request{call, r.URL.Path, r.Header.Clone(), body})
	}
	s.mu.Unlock()
	reply := s.script(call)
	select {
	case <-time.After(reply.Delay):
	case <-r.Context().Done():
		return
	case <-s.closing:
		return
	}
	s.send(w, r, call, reply)
}

// check compares a request with the vendor's published protocol.
func (s *Server) check(r *http.Request, body []byte) (Call, error) {
	base, err := url.Parse(s.URL)
	if err != nil {
		return Call{}, err
	}
	path, ok := strings.CutPrefix(r.URL.Path, base.Path)
	switch {
	case r.Method != http.MethodPost:
		return Call{}, fmt.Errorf("method %s", r.Method)
	case !ok || r.URL.RawQuery != "":
		return Call{}, fmt.Errorf("path or query of %s", r.URL)
	case r.Header.Get("Content-Type") != "application/json":
		return Call{}, fmt.Errorf("content type %q", r.Header.Get("Content-Type"))
	case s.Key != "" && strings.Contains(string(body), s.Key):
		return Call{}, fmt.Errorf("the key is in the body")
	}
	if err := s.vendor.headers(r.Header, s.Key); err != nil {
		return Call{}, err
	}
	return s.vendor.decode(path, body)
}

// send does what a reply demands.
func (s *Server) send(w http.ResponseWriter, r *http.Request, call Call, reply Reply) {
	if reply.Model == "" {
		reply.Model = call.Settings.Model
	}
	if reply.Usage == (llm.Usage{}) {
		reply.Usage = Used
	}
	switch reply.Failure {
	case Nothing, Blocked, CutOff:
		write(w, http.StatusOK, s.vendor.answer(call, reply))
	case NoSchemas:
		if call.Schema.JSON == nil {
			write(w, http.StatusOK, s.vendor.answer(call, reply))
		} else {
			write(w, http.StatusBadRequest, s.vendor.wrong("response_format is not understood"))
		}
	case EchoedKey:
		write(w, http.StatusBadRequest, s.vendor.wrong("cannot make sense of "+s.Key+" in this request"))
	case NotJSON:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<!doctype html><title>Sign in to the network</title>"))
	case OtherShape:
		write(w, http.StatusOK, map[string]any{"hello": "world"})
	case Malformed:
		body := marshal(s.vendor.answer(call, reply))
		writeBytes(w, http.StatusOK, body[:len(body)-2])
	case BodyCut:
		body := marshal(s.vendor.answer(call, reply))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		writeBytes(w, http.StatusOK, body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case Closed:
		panic(http.ErrAbortHandler)
	case Redirected:
		http.Redirect(w, r, reply.Location, http.StatusTemporaryRedirect)
	default:
		if reply.Failure == RateLimited && s.vendor.Name != Gemini.Name { // Gemini's body has it instead
			w.Header().Set("Retry-After", strconv.Itoa(int(reply.RetryAfter/time.Second)))
		}
		f := s.vendor.fail(reply)
		write(w, f.status, f.body)
	}
}

func write(w http.ResponseWriter, status int, body any) { writeBytes(w, status, marshal(body)) }

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // the caller may have disconnected
}

// object is short for JSON objects.
type object = map[string]any

func marshal(v any) []byte {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // v consists of this package's own values
	}
	return body
}

// A decoding makes a Call of a request, and keeps the first thing in it that is not the vendor's protocol.
type decoding struct {
	Call
	err error
}

// decode reads a request. It refuses unknown and repeated members.
func decode(body []byte, into any) *decoding {
	return &decoding{err: json.Unmarshal(body, into, json.RejectUnknownMembers(true))}
}

func (d *decoding) demand(so bool, format string, args ...any) {
	if !so && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// turn adds a message.
func (d *decoding) turn(role, model, text string) {
	d.demand(role == "user" || role == model, "messages/%d: role %q", len(d.Messages), role)
	d.demand(text != "", "messages/%d: empty", len(d.Messages))
	d.Messages = append(d.Messages, llm.Message{ByModel: role == model, Text: text})
}

func (d *decoding) limit(tokens *int, least int) {
	if tokens != nil {
		d.demand(*tokens >= least, "a limit of %d tokens", *tokens)
		d.Settings.MaxTokens = *tokens
	}
}

// schema takes a schema that the vendor's dialect has.
func (d *decoding) schema(name string, schema jsontext.Value, of dialect) {
	d.err = cmp.Or(d.err, of.check(schema))
	d.Schema = llm.Schema{Name: name, JSON: schema}
}

// call returns the call, unless it lacks what all vendors require.
func (d *decoding) call() (Call, error) {
	d.demand(d.Settings.Model != "", "there is no model")
	last := len(d.Messages) - 1
	d.demand(last >= 0 && !d.Messages[last].ByModel, "there is no last message by the user")
	if d.err != nil {
		return Call{}, d.err
	}
	return d.Call, nil
}

// A dialect is the part of JSON Schema that a vendor accepts.
type dialect struct {
	keywords    []string
	closed      bool // every object must forbid further members
	allRequired bool // every object must require all of its members
}

// A panel of several vendors can use only the keywords that every vendor accepts.
var everywhere = []string{"type", "title", "description", "enum", "items", "properties", "required", "additionalProperties", "anyOf", "$ref", "$defs"}

var (
	openAIDialect = dialect{append([]string{"const", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}, everywhere...), true, true}

	anthropicDialect = dialect{append([]string{"const", "default", "allOf", "pattern", "format", "definitions"}, everywhere...), true, false}

	geminiDialect = dialect{append([]string{"$id", "$anchor", "format", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "oneOf", "propertyOrdering"}, everywhere...), false, false}
)

// check refuses a schema that the vendor would refuse or would not follow.
func (d dialect) check(schema jsontext.Value) error {
	var root object
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" {
		return errors.New("schema: the root is not an object of type object")
	}
	return d.walk(root, "schema")
}

func (d dialect) walk(schema any, at string) error {
	s, is := schema.(object)
	if !is {
		return fmt.Errorf("%s: not an object", at)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(d.keywords, keyword) {
			return fmt.Errorf("%s: the vendor does not support %s", at, keyword)
		}
	}
	if s["type"] == "object" {
		if err := d.object(s); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	inside, err := below(s)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		if err := d.walk(inside[name], at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (d dialect) object(s object) error {
	if d.closed && s["additionalProperties"] != false {
		return errors.New("additionalProperties is not false")
	}
	properties, _ := s["properties"].(object)
	list, is := s["required"].([]any)
	if s["required"] != nil && !is || d.allRequired && len(list) != len(properties) {
		return errors.New("required: not every member is required")
	}
	seen := map[any]bool{}
	for _, name := range list {
		text, is := name.(string)
		if !is || properties[text] == nil || seen[name] {
			return fmt.Errorf("required: there is no member %v, or it is required twice", name)
		}
		seen[name] = true
	}
	return nil
}

// below lists the schemas inside a schema by their places.
func below(s object) (object, error) {
	inside := object{}
	for _, of := range []string{"properties", "$defs"} {
		members, is := s[of].(object)
		if s[of] != nil && !is {
			return nil, fmt.Errorf("%s is not an object", of)
		}
		for name, schema := range members {
			inside[of+"/"+name] = schema
		}
	}
	choices, is := s["anyOf"].([]any)
	if s["anyOf"] != nil && !is {
		return nil, errors.New("anyOf is not an array")
	}
	for i, schema := range choices {
		inside[fmt.Sprintf("anyOf/%d", i)] = schema
	}
	if items, there := s["items"]; there {
		inside["items"] = items
	}
	return inside, nil
}
