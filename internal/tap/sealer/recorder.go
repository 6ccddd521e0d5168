package sealer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/kit/plural"
	"jurat/internal/tap/relay"
)

// A Log is where a recorder's acts go.
type Log interface {
	// Seal makes a draft durable, and returns the digest of its record. Its error has api.ErrConflict in its chain if the log has another record
	// with its id.
	Seal(ctx context.Context, draft *evidence.Draft) (evidence.Digest, error)
	// Last returns the digest of a chain's last record and the time that it claims, or zero if there is no such chain. The time is zero if the content is gone.
	Last(ctx context.Context, chain string) (evidence.Digest, time.Time, error)
	// RequestOf reports whether the log has a record with this id, and returns the digest of the request that it states; zero if it has expired.
	RequestOf(ctx context.Context, recordID string) (request evidence.Digest, known bool, err error)
}

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
	start := &observed.Event{Event: observed.Start, Mode: r.Mode, Vantage: r.Vantage, Version: r.Version, Configuration: r.Configuration}
	var err error
	if r.since, err = r.sealEvent(ctx, start); err != nil {
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
	waiting, _ := r.unsealed.state()
	if n := r.gaps.count() + int64(waiting); err != nil && n > 0 {
		err = fmt.Errorf("%s could not be sealed, and the log does not count them: %w", plural.Of(n, "call"), err)
	}
	calls := r.calls.Load() // nothing else counts calls any more
	_, failed := r.sealEvent(ctx, &observed.Event{Event: observed.Stop, Since: evidence.FormatTime(r.since), Calls: &calls, Reason: name(reason)})
	return errors.Join(err, failed, r.leave())
}

// AgentOf says whose a token is, or a call without one. Its error may be a *relay.Refusal.
func (r *Recorder) AgentOf(ctx context.Context, token string) (agent string, err error) {
	reason := "nobody says which agent calls: send the header 'Jurat-Agent: Bearer TOKEN', or put /r/TOKEN before the path"
	switch {
	case token == "" && r.Agent != "":
		return r.Agent, nil
	case token == "":
	case r.WhoIs == nil:
		reason = "this recorder takes no tokens: it records one agent alone"
	default:
		if agent, err = r.WhoIs(ctx, token); err == nil {
			return agent, nil
		}
		reason = "the token does not say which agent calls: " + err.Error()
	}
	return "", &relay.Refusal{Status: http.StatusUnauthorized, Reason: reason}
}

func (r *Recorder) Begin(ctx context.Context, call *relay.Call) (relay.Exchange, error) {
	agent, err := r.AgentOf(ctx, call.Token)
	if err != nil {
		return nil, err
	}
	kind, known := kinds[call.Speaks]
	if !known {
		return nil, fmt.Errorf("calls of the protocol %q are not recorded here", call.Speaks.Name)
	}
	chain := r.chainOf(agent, call)
	if err := sealable(chain, call.Origin); err != nil {
		return nil, err
	}
	if call.Upgrade != "" {
		return nil, relay.ErrUpgrade
	}
	if _, why := r.unsealed.state(); why != nil && r.Mode == relay.Closed {
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
	var side evidence.Side // which of two agents is recorded, where messages are
	if kind.act == evidence.ObservedMessage {
		side = cmp.Or(r.Side, evidence.Asked)
	}
	e := &exchange{recorder: r, call: call, intent: &intent{RecordID: id, Agent: agent, Chain: chain, Began: call.Began, CallID: call.ID, Method: methodOf(call),
		Origin: call.Origin, Path: fitting(observed.PathInClear(call.Path), evidence.CheckPath), Type: kind.act, Side: side, Protocol: cmp.Or(kind.protocol(call), "http"), Bytes: call.Request.Bytes, SHA256: evidence.Digest(call.Request.SHA256), Vantage: call.Vantage}}
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

func (r *Recorder) Missed(call *relay.Call, why error) {
	agent, err := r.AgentOf(context.Background(), call.Token)
	if err != nil {
		agent = unknownAgent
	}
	r.Tell.Error("a call passed without a record; it is counted, and the log says so as soon as it seals", "agent", agent, "error", why)
	r.gaps.add(gap{r.chainOf(agent, call), agent, call.Began}, why)
}

// unknownAgent stands in gaps for who did not say who it is.
const unknownAgent = "unknown"

// chainOf is the chain that a call names, or else the configuration; "": there is none. Before an agent that answers, callers without its token are
// strangers: they could put what they like into a chain that a jury is to try.
func (r *Recorder) chainOf(agent string, call *relay.Call) string {
	name := cmp.Or(call.Chain, r.Chain)
	if r.Side == evidence.Answered && call.Token == "" {
		name = r.Chain
	}
	if name == "" {
		return ""
	}
	return ChainOf(agent, name)
}

// ChainOf is the chain of a conversation of an agent. Two agents never share one. A digest stands for an agent whose name is too long for it.
func ChainOf(agent, name string) string {
	agent = url.PathEscape(agent)
	if len(agent) > longestAgent {
		agent = evidence.DigestOf([]byte(agent)).String()
	}
	return "recorded/" + agent + "/" + name
}

// longestAgent leaves room in the name of a chain for the name of a conversation.
const longestAgent = 100

func eventChain(recorder string) string { return "recorder/" + url.PathEscape(recorder) }

// Remark seals what a reader must know of the recorder's settings beside their digest.
func (r *Recorder) Remark(ctx context.Context, settings evidence.Digest, remark string) error {
	_, err := r.sealEvent(ctx, &observed.Event{Event: observed.Configuration, Configuration: settings, Reason: name(remark)})
	return err
}

// sealEvent seals what happened to the recorder now, and returns the time that the log has of it.
func (r *Recorder) sealEvent(ctx context.Context, e *observed.Event) (at time.Time, err error) {
	return r.sealEventAs(ctx, "", "", r.Now(), e)
}

// sealEventAs seals an event of a time. "" stands for a new id, and for the chain of what the recorder says about itself.
func (r *Recorder) sealEventAs(ctx context.Context, id, chain string, at time.Time, e *observed.Event) (time.Time, error) {
	payload, err := e.Payload(r.Name, evidence.FormatTime(at), cmp.Or(chain, eventChain(r.Name)))
	if err != nil {
		return at, fmt.Errorf("the event %s cannot be sealed: %w", e.Event, err)
	}
	if payload.RecordID = id; id == "" {
		if payload.RecordID, err = evidence.NewRecordID(at, rand.Reader); err != nil {
			return at, err
		}
	}
	return r.seal(ctx, observed.Act{Payload: payload})
}

// beat seals heartbeats, so that silence has a date. Each names the time of the start or heartbeat before it: so a reader can separate processes of one name.
func (r *Recorder) beat(ctx context.Context) {
	for every(ctx, r.Heartbeat) {
		calls := r.calls.Swap(0)
		at, err := r.sealEvent(ctx, &observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(r.since), Calls: &calls})
		if err != nil {
			r.calls.Add(calls) // the next one counts them
			r.Tell.Warn("the heartbeat could not be sealed", "error", err)
			continue
		}
		r.since = at
	}
}

func every(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	}
}

// gaps counts the calls that passed without a record.
type gaps struct {
	mu      sync.Mutex
	counts  map[gap]int64
	reason  string
	sealing *sealedGap // what is being sealed, under one id until it is in the log
}

type gap struct {
	chain, agent string
	minute       time.Time
}

type sealedGap struct {
	id, chain string
	event     *observed.Event
}

func (g *gaps) add(of gap, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts = map[gap]int64{}
	}
	of.minute = of.minute.UTC().Truncate(time.Minute)
	if _, known := g.counts[of]; !known && len(g.counts) >= mostGaps { // callers name chains as they like
		of.chain = ""
	}
	g.counts[of]++
	g.reason = "unknown"
	if why != nil {
		g.reason = inWords(why)
	}
}

func (g *gaps) count() (n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, missed := range g.counts {
		n += missed
	}
	if g.sealing != nil {
		for _, m := range g.sealing.event.Missed {
			n += m.Calls
		}
	}
	return n
}

// mostGaps is how many counts are kept by chain. Beyond, those of all chains of an agent are one.
const mostGaps = 10_000

const mostMissed = 1000

// next returns what is to be sealed next: what an earlier attempt did not seal, or else the counts of one chain, under an id. It is nil if nothing was missed.
func (g *gaps) next(id string) *sealedGap {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealing != nil || len(g.counts) == 0 {
		return g.sealing
	}
	list := slices.SortedFunc(maps.Keys(g.counts), func(a, b gap) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), a.minute.Compare(b.minute), cmp.Compare(a.agent, b.agent))
	})
	e := &observed.Event{Event: observed.Gap, Reason: name(g.reason)}
	for _, of := range list {
		if of.chain != list[0].chain || len(e.Missed) == mostMissed {
			break
		}
		e.Missed = append(e.Missed, observed.Missed{Agent: of.agent, Minute: evidence.FormatTime(of.minute), Calls: g.counts[of]})
		delete(g.counts, of)
	}
	g.sealing = &sealedGap{id, list[0].chain, e}
	return g.sealing
}

func (g *gaps) sealed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealing = nil
}

func name(text string) string {
	if evidence.CheckName(text) == nil {
		return text
	}
	return evidence.Abbreviate(fmt.Sprintf("%+q", text))
}

func (r *Recorder) sealGaps(ctx context.Context) error {
	for {
		id, err := evidence.NewRecordID(r.Now(), rand.Reader)
		if err != nil {
			return err
		}
		g := r.gaps.next(id)
		if g == nil {
			return nil
		}
		if _, err := r.sealEventAs(ctx, g.id, g.chain, r.Now(), g.event); err != nil {
			return err
		}
		r.gaps.sealed()
	}
}
