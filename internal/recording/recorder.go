package recording

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/observe"
	"jurat/internal/plural"
	"jurat/internal/relay"
)

// A Log is where a recorder's acts go.
type Log interface {
	// Seal makes a draft durable, and returns the digest of its record. Its error has api.ErrConflict in its chain if the log has another record
	// with its id.
	Seal(ctx context.Context, draft *evidence.Draft) (evidence.Digest, error)
	// Last returns the digest of the last record of a chain and the time that it claims, or zero if the log has no such chain. The time is zero if what the record says is gone.
	Last(ctx context.Context, chain string) (evidence.Digest, time.Time, error)
	// Has reports whether the log has a record with this id.
	Has(ctx context.Context, recordID string) (bool, error)
	// RequestOf returns the digest of the request that a record states; zero if it has expired.
	RequestOf(ctx context.Context, recordID string) (evidence.Digest, error)
}

// Config says how a recorder works.
type Config struct {
	Log Log
	// InPlace returns an error if what is sealed now would go to a log that was moved or removed. nil: that is not asked.
	InPlace func() error
	Name    string     // the recorder's agent_id
	Folder  string     // of the journal and the spool; recorders of one log share it
	Mode    relay.Mode // the relay's

	// Agent is whose calls come without a token. "": such calls are refused.
	Agent string
	// WhoIs returns the agent that a token belongs to. nil: no token counts.
	WhoIs func(ctx context.Context, token string) (agent string, err error)
	// Chain is the chain of all calls that name none. "": each conversation has its own.
	Chain string

	// Side is which of two agents the recorded one is, where it exchanges messages. "": evidence.Asked.
	Side evidence.Side

	Vantage       evidence.Vantage
	InTheRecord   bool   // bodies are not sealed apart
	Version       string // of this program
	Configuration evidence.Digest
	Heartbeat     time.Duration // between two heartbeats; 0: five minutes
	Retry         time.Duration // between two attempts to seal what is left; 0: a second

	Tell *slog.Logger // of trouble; nil: slog.Default()
	Now  func() time.Time

	after func(step string) // called after each step at which a crash matters; tests end the process there
}

// A Recorder is the witness of a relay. It is safe for concurrent use.
type Recorder struct {
	Config
	own           string // the folder of this process
	release       func()
	journal       *journal
	conversations *conversations
	bodies        *recent[string, []byte] // the last request of each chain, from which the next one copies: each call sends the whole conversation again
	ends          *recent[string, end]    // the last record of each chain
	attempts      *recent[attempt, made]
	definitions   definitions // of tools
	beginnings    turns       // one act begins each chain, because each but the first names one before it
	gaps          gaps
	calls         atomic.Int64 // that ended since
	since         time.Time    // as the log has it: when it began, or the last heartbeat. Only beat uses it, and then Close
	sealed        atomic.Int64 // calls, since the start
	unsealed      unsealed

	stop context.CancelFunc
	done sync.WaitGroup
}

const (
	mostStates   = 100_000  // conversations that are remembered, by each of their states
	mostBodies   = 64 << 20 // bytes of requests from which later ones may copy
	mostAttempts = 10_000   // requests that may be repeated
)

// Open finishes what an earlier process left in the folder, and begins to record. Close ends it.
func Open(ctx context.Context, c Config) (*Recorder, error) {
	if c.Tell == nil {
		c.Tell = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Mode, c.Heartbeat, c.Retry = cmp.Or(c.Mode, relay.Closed), cmp.Or(c.Heartbeat, 5*time.Minute), cmp.Or(c.Retry, time.Second)
	if c.Mode != relay.Closed && c.Mode != relay.Open {
		return nil, fmt.Errorf("recording: unknown mode %q", c.Mode)
	}
	if c.after == nil {
		c.after = func(string) {}
	}
	r := &Recorder{Config: c, conversations: newConversations(mostStates), bodies: newRecent[string](mostBodies, func(body []byte) int { return len(body) }), ends: newRecent[string, end](mostStates, nil), attempts: newRecent[attempt, made](mostAttempts, nil),
		definitions: definitions{folder: filepath.Join(c.Folder, definitionsFolder)}}
	if err := r.recover(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.since, err = r.sealEvent(ctx, "", "", r.Now(), r.start()); err != nil {
		return nil, errors.Join(fmt.Errorf("recording the start: %w", err), r.leave())
	}
	live, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	r.done.Go(func() { r.beat(live) })
	r.done.Go(func() { r.catchUp(live) })
	return r, nil
}

// Close seals what is left, and that the recorder stopped. The relay must have ended before.
func (r *Recorder) Close(ctx context.Context, reason string) error {
	r.stop()
	r.done.Wait()
	err := r.settle(ctx)
	if n := r.gaps.count() + int64(r.unsealed.count()); err != nil && n > 0 {
		err = fmt.Errorf("%s could not be sealed, and the log does not count them: %w", plural.Of(n, "call"), err)
	}
	_, failed := r.sealEvent(ctx, "", "", r.Now(), r.ending(reason))
	return errors.Join(err, failed, r.leave())
}

// AgentOf says whose a token is, or a call without one. Its error may be a *relay.Refusal.
func (r *Recorder) AgentOf(ctx context.Context, token string) (string, error) {
	if token == "" {
		if r.Agent == "" {
			return "", &relay.Refusal{Status: http.StatusUnauthorized, Reason: "nobody says which agent calls: send the header 'Jurat-Agent: Bearer TOKEN', or put /r/TOKEN before the path"}
		}
		return r.Agent, nil
	}
	if r.WhoIs == nil {
		return "", &relay.Refusal{Status: http.StatusUnauthorized, Reason: "this recorder takes no tokens: it records one agent alone"}
	}
	agent, err := r.WhoIs(ctx, token)
	if err != nil {
		return "", &relay.Refusal{Status: http.StatusUnauthorized, Reason: "the token does not say which agent calls: " + err.Error()}
	}
	return agent, nil
}

// Begin implements relay.Witness.
func (r *Recorder) Begin(ctx context.Context, call *relay.Call) (relay.Exchange, error) {
	agent, err := r.AgentOf(ctx, call.Token)
	if err != nil {
		return nil, err
	}
	kind, known := kinds[call.Speaks]
	if !known {
		return nil, fmt.Errorf("calls of the protocol %q are not recorded here", call.Speaks.Name)
	}
	chain := r.chainNamed(agent, r.asked(call))
	if err := sealable(chain, call.Origin); err != nil {
		return nil, err
	}
	if call.Upgrade != "" {
		return nil, relay.ErrUpgrade
	}
	if why := r.unsealed.trouble(); why != nil && r.Mode == relay.Closed {
		return nil, fmt.Errorf("calls are not passed on until the log seals again: %w", why)
	}
	if r.Mode == relay.Closed && r.InPlace != nil {
		if err := r.InPlace(); err != nil {
			return nil, err
		}
	}
	if err := r.journal.repair(); err != nil {
		return nil, err
	}
	id, err := evidence.NewRecordID(r.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	e := &exchange{recorder: r, call: call, intent: &intent{RecordID: id, Agent: agent, Chain: chain, Began: call.Began, CallID: call.ID, Method: methodOf(call),
		Origin: call.Origin, Path: fitting(observed.PathInClear(call.Path), evidence.CheckPath), Type: kind.act, Side: r.sideOf(kind.act), Protocol: kind.protocolOf(call), Bytes: call.Request.Bytes, SHA256: evidence.Digest(call.Request.SHA256), Vantage: call.Vantage}}
	if err := r.journal.begin(ctx, e.intent, r.Mode == relay.Closed); err != nil {
		return nil, err
	}
	r.after("begun")
	return e, nil
}

// fitting returns a text that a record can have, or "": callers choose how long it is, and the lines of the journal are bounded.
func fitting(text string, check func(string) error) string {
	if check(text) != nil {
		return ""
	}
	return text
}

// methodOf is the method of a call: of HTTP one of its own, of MCP a name.
func methodOf(call *relay.Call) string {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
	if slices.Contains(methods, call.Method) || call.Speaks == relay.MCP && observed.IsPlain(call.Method) {
		return call.Method
	}
	return ""
}

// sealable refuses names that no record can hold: what could never be sealed would stop the calls of all.
func sealable(chain, origin string) error {
	if chain != "" {
		if err := evidence.CheckName(chain); err != nil {
			return &relay.Refusal{Status: http.StatusBadRequest, Reason: "Jurat-Chain: as the chain " + evidence.Abbreviate(chain) + ": " + err.Error()}
		}
	}
	if err := evidence.CheckName(origin); err != nil {
		return &relay.Refusal{Status: http.StatusBadRequest, Reason: "the provider's scheme and host, " + evidence.Abbreviate(origin) + ", cannot stand in a record: " + err.Error()}
	}
	return nil
}

// Missed implements relay.Witness.
func (r *Recorder) Missed(call *relay.Call, why error) {
	agent, err := r.AgentOf(context.Background(), call.Token)
	if err != nil {
		agent = unknownAgent
	}
	r.Tell.Error("a call passed without a record; it is counted, and the log says so as soon as it seals", "agent", agent, "error", why)
	r.gaps.add(gap{r.chainNamed(agent, r.asked(call)), agent, call.Began}, why)
}

// unknownAgent stands in gaps for who did not say who it is.
const unknownAgent = "unknown"

// asked is the name of the chain that a caller asks for. Before an agent that answers, callers without its token are strangers: they could put what they like
// into a chain that a jury is to try.
func (r *Recorder) asked(call *relay.Call) string {
	if r.Side == evidence.Answered && call.Token == "" {
		return ""
	}
	return call.Chain
}

// chainNamed is the chain that a name stands for: the caller's, or else the configuration's. It is "" if there is none.
func (r *Recorder) chainNamed(agent, name string) string {
	if name == "" {
		name = r.Chain
	}
	if name == "" {
		return ""
	}
	return ChainOf(agent, name)
}

// An exchange is a call that is under way.
type exchange struct {
	recorder *Recorder
	call     *relay.Call
	intent   *intent
}

// End implements relay.Exchange.
func (e *exchange) End(ctx context.Context, outcome *relay.Outcome) error {
	r := e.recorder
	r.after("answered")
	act := e.act(outcome)
	act.Request, act.Missing = bodyOf("request", e.call.Request, e.call.Header, false, act.Missing)
	if outcome.Response != nil {
		cut := outcome.Ended != relay.Complete || outcome.Unfinished
		act.Response, act.Missing = bodyOf("response", outcome.Response, outcome.Header, cut, act.Missing)
		if outcome.Ended != relay.Complete { // of a complete answer the end follows after the record
			act.Response.Delivered = &outcome.Delivered
		}
	}
	mask(&act)
	e.place(&act)
	done, err := e.watched(ctx, &act)
	if done != nil {
		defer done()
	}
	if err != nil {
		return r.failed(e, act, err)
	}
	whole, err := r.sealFitting(ctx, e.intent.RecordID, act)
	if err = once(err); err != nil {
		return r.failed(e, act, err)
	}
	r.after("sealed")
	r.counted()
	r.journal.end(e.intent.RecordID)
	r.after("ended")
	if whole && act.Request.Kept != nil && !act.Request.Truncated {
		r.bodies.set(act.ChainID, act.Request.Kept)
	}
	return nil
}

// counted counts a call whose record is in the log.
func (r *Recorder) counted() {
	r.calls.Add(1)
	r.sealed.Add(1)
}

// act says what was seen of a call, but for the bodies.
func (e *exchange) act(outcome *relay.Outcome) observed.Act {
	call, i := e.call, e.intent
	a := e.recorder.actOf(i)
	a.Path = call.Path // the record says what of it has no place in it
	if a.Method != call.Method {
		a.Missing = append(a.Missing, "method: it is none of HTTP's own")
	}
	a.At, a.Status, a.ChainID = outcome.At, outcome.Status, cmp.Or(a.ChainID, e.sessionOf(outcome))
	a.Ended, a.Upstream.TLS = outcome.Ended, outcome.TLS
	a.ProviderRequestID = fitting(first(outcome.Header, "X-Request-Id", "Request-Id", "X-Goog-Request-Id", "Apim-Request-Id"), checkID)
	a.Elapsed = new(outcome.At.Sub(call.Began))
	if !outcome.FirstByte.IsZero() {
		a.FirstByte = new(outcome.FirstByte.Sub(call.Began))
	}
	if len(call.Credentials) > 0 {
		a.Credential = call.Credentials[0].Where + ":" + call.Credentials[0].Fingerprint
	}
	for _, more := range call.Credentials[min(1, len(call.Credentials)):] {
		a.Missing = append(a.Missing, "another credential was sent: "+more.Where+":"+more.Fingerprint)
	}
	if call.Upgrade != "" {
		a.Missing = append(a.Missing, "the connection changed to another protocol, whose messages were not seen")
	}
	if n, err := strconv.ParseInt(call.Header.Get("X-Stainless-Retry-Count"), 10, 32); err == nil && n >= 0 {
		a.Attempt = n + 1
	}
	a.Missing = append(a.Missing, outcome.Counted...)
	if outcome.Reason != nil {
		a.Missing = append(a.Missing, "why the call ended: "+inWords(outcome.Reason))
	}
	return a
}

// actOf is an act as far as its intent tells.
func (r *Recorder) actOf(i *intent) observed.Act {
	return observed.Act{Recorder: r.Name, Type: i.Type, Side: i.Side, RequestID: i.CallID, ChainID: i.Chain, Agent: i.Agent, Vantage: i.Vantage, Fidelity: evidence.ByBytes,
		Protocol: i.Protocol, Method: i.Method, Path: i.Path, Upstream: &evidence.Upstream{Origin: i.Origin}, Began: i.Began}
}

func first(header http.Header, names ...string) string {
	for _, name := range names {
		if v := header.Get(name); v != "" {
			return v
		}
	}
	return ""
}

// bodyOf describes a body, with the bytes that are sealed. cut says that its end did not come.
func bodyOf(direction string, b *relay.Body, header http.Header, cut bool, missing []string) (*observed.Body, []string) {
	body := &observed.Body{Bytes: b.Bytes, SHA256: evidence.Digest(b.SHA256), Encoding: b.Encoding, Type: typeOf(header["Content-Type"]), Headers: kept(header)}
	if b.Encoding == "identity" {
		body.Encoding = ""
	}
	if b.Apart {
		return body, append(missing, direction+": each message in it has a record of its own")
	}
	if b.Partial {
		body.Truncated = true
		missing = append(missing, direction+": there was no room for a copy of all of it")
	}
	decoded, longer, err := readDecoded(b)
	if len(decoded) > 0 && errors.Is(err, io.ErrUnexpectedEOF) { // what came says what was said
		missing, err = append(missing, direction+": its encoding breaks off; what came before is kept decoded"), nil
		body.Truncated = body.Truncated || !cut // readers differ on what a whole body says whose encoding has no end
	}
	if err == nil && (!longer || body.Encoding == "") {
		body.Kept, body.Truncated = decoded, body.Truncated || longer
		return body, missing
	}
	why := fmt.Sprintf("it has more than %d bytes decoded, and is kept encoded", observed.MaxKept)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		why = "its encoding breaks off"
	} else if err != nil {
		why = "it cannot be decoded: " + inWords(err)
	}
	missing = append(missing, direction+": "+why)
	body.Refused = body.Encoding != ""
	raw, longer, err := readPlain(b)
	if err != nil {
		return body, append(missing, direction+": the copy cannot be read: "+inWords(err))
	}
	body.Kept, body.Truncated = raw, body.Truncated || longer
	return body, missing
}

// readDecoded reads what a record holds of a body, without its encoding. It reports whether the body is longer than that.
func readDecoded(b *relay.Body) (kept []byte, longer bool, err error) {
	if b.Encoding == "" || b.Encoding == "identity" {
		return readPlain(b)
	}
	kept, rest, err := decodeUpTo(b, observed.Beginning)
	if err == nil && rest > observed.MaxKept-observed.Beginning {
		return kept, true, nil
	}
	if err == nil && rest > 0 {
		kept, _, err = decodeUpTo(b, observed.Beginning+int(rest))
	}
	return kept, false, err
}

// decodeUpTo decodes n bytes, and counts how many more there are, up to one more than a record holds. What a broken encoding gives before it breaks counts, too.
func decodeUpTo(b *relay.Body, n int) (first []byte, rest int64, err error) {
	r, err := b.Decoded()
	if err != nil {
		return nil, 0, err
	}
	into := bytes.NewBuffer(make([]byte, 0, min(int64(n), 4*b.Kept)+bytes.MinRead))
	_, err = into.ReadFrom(io.LimitReader(r, int64(n)))
	if err == nil {
		rest, err = io.Copy(io.Discard, io.LimitReader(r, int64(observed.MaxKept+1-into.Len())))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && rest > 0 {
		err = nil // it breaks off behind what was asked for
	}
	return into.Bytes(), rest, errors.Join(err, r.Close())
}

// readPlain reads what a record holds of a body, as it passed.
func readPlain(b *relay.Body) (kept []byte, longer bool, err error) {
	n := b.Kept
	if longer = n > observed.MaxKept; longer {
		n = observed.Beginning
	}
	kept = make([]byte, n)
	if read, err := io.ReadFull(b.Open(), kept); err != nil {
		return nil, longer, fmt.Errorf("after %d of %d bytes: %v", read, n, err)
	}
	return kept, longer, nil
}

// kept are the headers that a record has beside the content type: those that the relay shows and whose value is in a closed form, since nobody can erase it there.
func kept(header http.Header) map[string]string {
	list := map[string]string{}
	for name, values := range header {
		value := strings.Join(values, ", ")
		if name = strings.ToLower(name); name != "content-type" && closedForm.MatchString(value) {
			list[name] = value
		}
	}
	return list
}

// typeOf returns the media types of headers, without parameters that could say anything. Of one that is none it says so.
func typeOf(values []string) string {
	var types []string
	for _, value := range values {
		list := []string{value}
		if _, _, err := mime.ParseMediaType(value); err != nil {
			list = strings.Split(value, ",") // as some readers do
		}
		for _, one := range list {
			kind, parameter, _ := strings.Cut(one, ";")
			kind, parameter = strings.TrimSpace(kind), strings.TrimSpace(parameter)
			if !mediaType.MatchString(kind) {
				kind = "unknown"
			}
			if charset.MatchString(parameter) {
				kind += "; " + parameter
			}
			types = append(types, kind)
		}
	}
	return strings.Join(types, ", ")
}

var (
	mediaType = regexp.MustCompile(`^[A-Za-z0-9]+/[A-Za-z0-9.+*-]+$`)
	charset   = regexp.MustCompile(`^(?i:charset="?(?:utf-8|utf-16|us-ascii|iso-8859-1)"?)$`)
	providers = regexp.MustCompile(`^[A-Za-z0-9_.:=/-]+$`)
)

// checkID refuses what is no id of a provider, but maybe a sentence.
func checkID(id string) error {
	if !providers.MatchString(id) {
		return errors.New("it is no id")
	}
	return nil
}

// closedForm is a value of a header that says nothing in words: a number, a time, a version, a digest or UUID, codings with their weights, media types that models use.
var closedForm = regexp.MustCompile(`^(?:[0-9a-fA-F:.,;=+ -]*|true|false|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-9]{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-9:]{8} GMT|` +
	`(?:(?:gzip|x-gzip|deflate|compress|br|zstd|identity|\*|\*/\*|application/(?:json|\*)|text/(?:event-stream|plain|\*))(?:[ \t]*;[ \t]*q=[0-9.]+)?(?:[ \t]*,[ \t]*|$))+)$`)

// place finds the chain of an act, and what it repeats. A request that comes again after it failed is of the same chain, also where the program does not say that
// this is another attempt.
func (e *exchange) place(act *observed.Act) {
	r, key := e.recorder, attempt{e.intent.Agent, e.call.Path, e.intent.SHA256}
	before, known := r.attempts.get(key)
	if known && act.Attempt > 1 {
		act.RetryOf = before.requestID
	}
	if act.ChainID == "" {
		s := e.said(act)
		fresh := s.fresh(e.intent.RecordID)
		if known && (act.Attempt > 1 || before.failed) {
			fresh = before.chain
		}
		act.ChainID = r.conversations.place(s, fresh)
		if act.ChainID == ChainOf(e.intent.Agent, e.intent.RecordID) {
			r.ends.set(act.ChainID, end{}) // no log has a chain that is made up now
		}
	}
	r.attempts.set(key, made{act.RequestID, act.ChainID, act.Status == 0 || act.Status >= http.StatusBadRequest || act.Ended != evidence.Complete})
	act.Request.Earlier = r.earlier(act.ChainID)
}

// earlier are the bodies from which the next request of a chain may copy.
func (r *Recorder) earlier(chain string) [][]byte {
	if body, known := r.bodies.get(chain); known {
		return [][]byte{body}
	}
	return nil
}

// callOf is an act as a reader of calls takes it. Bytes that are still encoded say nothing.
func callOf(act *observed.Act) observe.Call {
	c := observe.Call{Protocol: act.Protocol, Path: act.Path, Status: act.Status}
	if b := act.Request; b != nil && !b.Refused {
		c.Request, c.RequestType = b.Kept, b.Type
	}
	if b := act.Response; b != nil && !b.Refused {
		c.Response, c.ResponseType = b.Kept, b.Type
	}
	return c
}

// said is what a call says about its conversation.
func (e *exchange) said(act *observed.Act) said {
	s := said{agent: e.intent.Agent, trace: traceOf(e.call.Header.Get("Traceparent"))}
	c := callOf(act)
	p, err := observe.Project(c)
	if err != nil {
		return s
	}
	if s.kept = p.Conversation; s.kept != nil {
		return s
	}
	s.prompt = p.Asked
	if p.Complete && p.Error == "" {
		s.response, s.id = p.Answered, p.ProviderID
		for _, id := range p.Items {
			s.made = append(s.made, "item:"+id)
		}
	}
	if c.Protocol != observe.OpenAIResponses { // no other provider keeps conversations
		return s
	}
	facts, _ := observed.FactsOf(&evidence.Observed{Protocol: c.Protocol, Request: new(evidence.ObservedBody)}, c.Request, nil)
	for _, reference := range facts.Referred {
		switch kind, id, _ := strings.Cut(reference, ":"); kind {
		case "previous_response_id":
			s.previous = id
		case "conversation":
			s.refers, s.made = reference, append(s.made, reference)
		case "item":
			s.refers = cmp.Or(conversationIn(s.refers), reference) // the last one is the newest
		}
	}
	return s
}

// sealAct seals an act under a record id. An act that the format or the log refuses, whatever the reason, would be refused for ever, and would stop all calls of closed
// mode; so what can be sealed of it is sealed, and says so.
func (r *Recorder) sealAct(ctx context.Context, id string, act observed.Act) error {
	_, err := r.sealFitting(ctx, id, act)
	return once(err)
}

// sealFitting is sealAct, whose error has api.ErrConflict in its chain if the log has another record with the id. It reports whether the act was sealed with what was said,
// from which later ones may copy.
func (r *Recorder) sealFitting(ctx context.Context, id string, act observed.Act) (whole bool, err error) {
	err = r.sealWhole(ctx, id, act)
	_, refused := errors.AsType[*evidence.FieldError](err)
	if !refused && !errors.Is(err, errNoRecord) {
		return err == nil, err
	}
	r.Tell.Error("the record of a call was refused; it is sealed without what was said", "agent", act.Agent, "error", err)
	return false, r.sealWhole(ctx, id, bare(act, err))
}

// errNoRecord says that no record can have an act, whatever the log says.
var errNoRecord = errors.New("the act cannot be sealed")

func (r *Recorder) sealWhole(ctx context.Context, id string, act observed.Act) error {
	act.RecordID = id
	return r.sealNext(ctx, act.ChainID, func(last end) (*evidence.Draft, error) {
		act.Saw = last.named()
		if act.At.Before(last.at) {
			act.At = last.at
		}
		draft, err := observed.Draft(act)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRecord, err)
		}
		return draft, nil
	})
}

// bare is an act with nothing that others chose, but for the names that Begin has checked, and counts and digests.
func bare(a observed.Act, why error) observed.Act {
	b := observed.Act{Recorder: a.Recorder, Type: a.Type, Side: a.Side, RequestID: a.RequestID, ChainID: a.ChainID, Agent: a.Agent, Vantage: a.Vantage, Fidelity: a.Fidelity, Protocol: a.Protocol,
		At: a.At, Began: a.Began, Elapsed: a.Elapsed, FirstByte: a.FirstByte, Ended: a.Ended, Status: a.Status,
		Missing: append(a.Missing, "what was said: the record that had it was refused: "+inWords(why))}
	if a.Upstream != nil {
		b.Upstream = &evidence.Upstream{Origin: a.Upstream.Origin}
	}
	b.Request, b.Response = countsOf(a.Request), countsOf(a.Response)
	return b
}

// countsOf is a body without its bytes.
func countsOf(b *observed.Body) *observed.Body {
	if b == nil {
		return nil
	}
	return &observed.Body{Bytes: b.Bytes, SHA256: b.SHA256, Encoding: b.Encoding, Delivered: b.Delivered}
}

// An end is the last record of a chain. The next one names it, and claims no earlier time: a call that ended before it may be sealed after it, since it had more to read, or the log did not seal at the
// time. When a call itself began and ended stands in its record apart from that.
type end struct {
	digest evidence.Digest
	at     time.Time
}

// named is what the next record names, so that nobody can put another in the place of this one.
func (e end) named() []evidence.Digest {
	if e.digest.IsZero() {
		return nil
	}
	return []evidence.Digest{e.digest}
}

// sealNext seals the next record of a chain.
func (r *Recorder) sealNext(ctx context.Context, chain string, draftAfter func(last end) (*evidence.Draft, error)) error {
	leave, err := r.beginnings.enter(ctx, chain, func() bool { last, _ := r.ends.get(chain); return !last.digest.IsZero() })
	if err != nil {
		return err
	}
	defer leave()
	last, known := r.ends.get(chain)
	if !known {
		if last.digest, last.at, err = r.Log.Last(ctx, chain); err != nil {
			return err
		}
	}
	draft, err := draftAfter(last)
	if err != nil {
		return err
	}
	digest, err := r.Log.Seal(ctx, draft.SealingApart(r.apart(&draft.Payload)...))
	if err != nil {
		r.ends.forget(chain) // it may be in the log: the next one asks
		return err
	}
	r.ends.set(chain, end{digest, draft.Payload.Time()})
	return nil
}

// once takes the error that a record is in the log already for no error: the ids of calls and events are made once.
func once(err error) error {
	if errors.Is(err, api.ErrConflict) {
		return nil
	}
	return err
}

// apart lists the members with what the agent said and was told.
func (r *Recorder) apart(p *evidence.Payload) []string {
	if r.InTheRecord || !p.ActionType.Observes() {
		return nil
	}
	var list []string
	for pointer, v := range map[string][]byte{"/prompt": p.Prompt, "/context": p.Context, "/response": p.Response, "/tools_used": p.ToolsUsed,
		"/request_body": p.RequestBody, "/response_body": p.ResponseBody} {
		if len(bytes.TrimSpace(v)) > 0 {
			list = append(list, pointer)
		}
	}
	slices.Sort(list)
	return list
}
