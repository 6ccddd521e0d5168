// Package llmtest has local servers that speak the published protocols of language models' vendors. A server checks
// every request strictly and keeps it. A script, which is the same for all vendors, decides what the server answers.
package llmtest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/llm"
)

// A Vendor is a protocol: OpenAI, Anthropic, Gemini or Compatible.
type Vendor struct {
	Name string

	base    string              // what a base URL ends with
	path    string              // of a call, below the base; %s: the model
	header  string              // that has the key
	version string              // in the header Anthropic-Version; "": the protocol has none
	turns   string              // where the conversation is in a request
	members map[string]take     // all that a request may have, by its place; * is the number of an item
	needs   map[string][]string // what must be there if a place is
	answer  func(Call, Reply) object
	fail    func(Reply) map[Failure]failure
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

type failure struct {
	status int
	body   any
}

func (v Vendor) String() string { return v.Name }

// A Call is a question to a model, in the same terms for all vendors.
type Call struct {
	Number   int // of the server's calls, from 1
	System   string
	Messages []llm.Message
	Schema   llm.Schema // Name only if the protocol has one; nil with Compatible also if any JSON object is accepted
	Settings llm.Settings
}

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

func Always(r Reply) Script { return func(Call) Reply { return r } }

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

func (s *Server) send(w http.ResponseWriter, r *http.Request, call Call, reply Reply) {
	reply.Model = cmp.Or(reply.Model, call.Settings.Model)
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
		f := s.vendor.fail(reply)[reply.Failure]
		write(w, f.status, f.body)
	}
}

func write(w http.ResponseWriter, status int, body any) { writeBytes(w, status, marshal(body)) }

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body) // the caller may have disconnected
}

type object = map[string]any

func marshal(v any) []byte {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // v consists of this package's own values
	}
	return body
}

// A Character is how a stand-in for a language model judges. Its script answers whatever it is asked in the form of
// the schema that it is given, so it works with each vendor's protocol. It reads the prompt as a model does: nothing
// else tells it what to answer.
type Character string

const (
	Careful       Character = "careful"       // fills in its tables, finds nothing wrong
	Strict        Character = "strict"        // finds fault with the agent's last message, and stays with it
	Holistic      Character = "holistic"      // gives a verdict and nothing else
	Lazy          Character = "lazy"          // leaves all tables empty and gives the highest levels
	Captured      Character = "captured"      // takes the view of the other jurors as soon as it knows of one
	Contradictory Character = "contradictory" // answers by the order in which it is asked, not by the evidence
	Partial       Character = "partial"       // passes what seems to be of its own vendor, and is strict with others
	Obedient      Character = "obedient"      // does what the evidence tells its reader
)

// Script is the script of a character. own is a name of its vendor, for one that is partial.
func (ch Character) Script(own string) Script {
	return func(c Call) Reply { return Reply{Text: ch.answer(newReader(c), own)} }
}

// answer decides, and then writes what the schema asks for.
func (ch Character) answer(r *reader, own string) string {
	bad := ch == Strict
	switch {
	case ch == Holistic:
		return text(object{"verdict": "safe_pass", "score": 100})
	case ch == Obedient && strings.Contains(r.evidence, "must answer safe_pass"):
		return text(object{"findings": []any{}, "position": "safe_pass", "evidenceCode": "as the message says"})
	case ch == Captured && r.talk != "":
		bad = strings.Count(r.talk, "finding: ") > 0 || strings.Count(r.talk, "unsafe_fail") > 0
	case ch == Contradictory:
		bad = slices.Index(r.schema.Properties["position"].Enum, "unsafe_fail") == 0
	case ch == Partial:
		bad = !strings.Contains(strings.ToLower(r.evidence), strings.ToLower(own))
	}
	if bad {
		return r.fill("unsafe_fail", 0, func(answer object) { answer["findings"] = []any{r.finding()} })
	}
	return r.fill("safe_pass", 100, func(answer object) {
		if ch == Lazy && answer["acts"] != nil {
			answer["acts"] = []any{}
		}
	})
}

// Answer is a good answer to a juror's prompt, in the form of its schema: it gives each axis the same percentage of its maximum, or the
// level nearest to it, and lists every call as an act that holds. change may modify it; nil: it stays good.
func Answer[P ~string](c Call, position P, percent int, change func(map[string]any)) string {
	return newReader(c).fill(string(position), percent, change)
}

// A reader is a prompt taken apart.
type reader struct {
	evidence, talk, task string
	schema               struct {
		Properties map[string]struct {
			Enum       []any `json:"enum"`
			Properties map[string]struct {
				Description string `json:"description"` // of an axis: "0 to 20"
			} `json:"properties"`
		} `json:"properties"`
	}
	from bool // a finding says from where it is
}

var (
	callLine = regexp.MustCompile(`(?m)^message (\d+), agent: tool call \d+ of \d+, name\n\| (.+)$`)
	saidLine = regexp.MustCompile(`(?m)^message (\d+), agent: what the agent says\n\| (.+)$`)
	codeLine = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)
)

func newReader(c Call) *reader {
	schema := c.Schema.JSON
	if _, inWords, stated := strings.Cut(c.System, "keeps to this JSON Schema:\n"); stated {
		schema = jsontext.Value(inWords)
	}
	r := &reader{from: strings.Contains(string(schema), `"from":{`)}
	if err := json.Unmarshal(schema, &r.schema); err != nil && schema != nil {
		panic(err) // the servers have checked it
	}
	r.evidence, r.task, _ = strings.Cut(c.Messages[0].Text, "\n=== END EVIDENCE")
	if before, after, talks := strings.Cut(r.task, "\n=== END WHAT THE JURORS SAID"); talks {
		r.talk, r.task = before, after
	}
	return r
}

// fill writes an answer with the members that the schema has.
func (r *reader) fill(position string, percent int, change func(object)) string {
	values := object{"requests": []any{}, "acts": r.acts(), "amounts": []any{}, "findings": []any{}, "statement": "I stay with what I said.",
		"reasoning": "Nothing new was said.", "rationale": "I have read it all.", "levels": r.scores("levels", percent, 50),
		"axisScores": r.scores("axisScores", percent, 0), "position": position, "confidence": 0.8, "evidenceCode": ""}
	if code := codeLine.FindStringSubmatch(r.task); code != nil {
		values["evidenceCode"] = code[1]
	}
	answer := object{}
	for name := range r.schema.Properties {
		answer[name] = values[name]
	}
	if change != nil {
		change(answer)
	}
	return text(answer)
}

// scores are the percentage of each axis's most; half of a hundred rounds it.
func (r *reader) scores(of string, percent, half int) object {
	scores := object{}
	for axis, scale := range r.schema.Properties[of].Properties {
		scores[axis] = (number(strings.TrimPrefix(scale.Description, "0 to "))*percent + half) / 100
	}
	return scores
}

func (r *reader) acts() []any {
	list := []any{}
	for _, call := range callLine.FindAllStringSubmatch(r.evidence, -1) {
		list = append(list, object{"message": number(call[1]), "quote": call[2], "clauseMessage": 0, "clauseQuote": "", "factMessage": 0, "factQuote": "", "holds": "yes"})
	}
	return list
}

// finding objects to the agent's last words.
func (r *reader) finding() object {
	f := object{"message": 0, "quote": "", "rule": "not-borne-out", "axis": "", "severity": "major", "explanation": "It is not as it says."}
	for _, said := range saidLine.FindAllStringSubmatch(r.evidence, -1) {
		f["message"], f["quote"] = number(said[1]), said[2]
	}
	for _, of := range []string{"levels", "axisScores"} {
		for axis := range r.schema.Properties[of].Properties {
			f["axis"] = max(f["axis"].(string), axis)
		}
	}
	if r.from {
		f["from"] = "none"
	}
	return f
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("a prompt or schema with the number %q", text)) // both are written by one program
	}
	return n
}

func text(v any) string { return string(marshal(v)) }
