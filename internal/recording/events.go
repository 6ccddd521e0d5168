package recording

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
)

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

// eventChain is the chain of what a recorder says about itself.
func eventChain(recorder string) string { return "recorder/" + url.PathEscape(recorder) }

func (r *Recorder) start() *observed.Event {
	return &observed.Event{Event: observed.Start, Mode: r.Mode, Vantage: r.Vantage, Version: r.Version, Configuration: r.Configuration}
}

// ending says that the recorder stops, and how many calls ended since its last sign of life. Nothing else counts calls any more.
func (r *Recorder) ending(reason string) *observed.Event {
	calls := r.calls.Load()
	return &observed.Event{Event: observed.Stop, Since: evidence.FormatTime(r.since), Calls: &calls, Reason: name(reason)}
}

// Remark seals what a reader must know of the recorder's settings beside their digest.
func (r *Recorder) Remark(ctx context.Context, settings evidence.Digest, remark string) error {
	_, err := r.sealEvent(ctx, "", "", r.Now(), &observed.Event{Event: observed.Configuration, Configuration: settings, Reason: name(remark)})
	return err
}

// sealEvent seals an event, and returns the time that the log has of it. "" stands for a new id, and for the chain of what the recorder says about itself.
func (r *Recorder) sealEvent(ctx context.Context, id, chain string, now time.Time, e *observed.Event) (at time.Time, err error) {
	if id == "" {
		if id, err = evidence.NewRecordID(now, rand.Reader); err != nil {
			return at, err
		}
	}
	payload, err := e.Payload(r.Name, evidence.FormatTime(now), cmp.Or(chain, eventChain(r.Name)))
	if err != nil {
		return at, fmt.Errorf("the event %s cannot be sealed: %w", e.Event, err)
	}
	payload.RecordID = id
	err = r.sealNext(ctx, payload.ChainID, func(last end) (*evidence.Draft, error) {
		payload.Saw = last.named()
		if payload.Time().Before(last.at) {
			payload.Timestamp = evidence.FormatTime(last.at)
		}
		return evidence.NewDraft(payload)
	})
	return payload.Time(), once(err)
}

// beat seals heartbeats, so that silence has a date. Each names the time of the sign of life before it, the start or a heartbeat: so a reader knows those of one process, where several have one name.
func (r *Recorder) beat(ctx context.Context) {
	for every(ctx, r.Heartbeat) {
		calls := r.calls.Swap(0)
		at, err := r.sealEvent(ctx, "", "", r.Now(), &observed.Event{Event: observed.Heartbeat, Since: evidence.FormatTime(r.since), Calls: &calls})
		if err != nil {
			r.calls.Add(calls) // the next one counts them
			r.Tell.Warn("the heartbeat could not be sealed", "error", err)
			continue
		}
		r.since = at
	}
}

// every waits, and reports whether the context still stands.
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
	id, chain, reason string
	missed            []observed.Missed
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

// count returns how many calls were missed and are not in the log.
func (g *gaps) count() (n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, missed := range g.counts {
		n += missed
	}
	if g.sealing != nil {
		for _, m := range g.sealing.missed {
			n += m.Calls
		}
	}
	return n
}

// mostGaps is how many counts are kept by chain. Beyond, those of all chains of an agent are one.
const mostGaps = 10_000

// mostMissed is how many counts one event has.
const mostMissed = 1000

// next returns what is to be sealed next: what an earlier attempt did not seal, or the counts of one chain. It is nil if nothing was missed.
func (g *gaps) next(newID func() (string, error)) (*sealedGap, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sealing != nil || len(g.counts) == 0 {
		return g.sealing, nil
	}
	id, err := newID()
	if err != nil {
		return nil, err
	}
	list := make([]gap, 0, len(g.counts))
	for of := range g.counts {
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b gap) int {
		return cmp.Or(cmp.Compare(a.chain, b.chain), a.minute.Compare(b.minute), cmp.Compare(a.agent, b.agent))
	})
	g.sealing = &sealedGap{id: id, chain: list[0].chain, reason: name(g.reason)}
	for _, of := range list {
		if of.chain != list[0].chain || len(g.sealing.missed) == mostMissed {
			break
		}
		g.sealing.missed = append(g.sealing.missed, observed.Missed{Agent: of.agent, Minute: evidence.FormatTime(of.minute), Calls: g.counts[of]})
		delete(g.counts, of)
	}
	return g.sealing, nil
}

// sealed forgets what next returned.
func (g *gaps) sealed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealing = nil
}

// name makes a text fit for a member that holds a name.
func name(text string) string {
	if evidence.CheckName(text) == nil {
		return text
	}
	return evidence.Abbreviate(fmt.Sprintf("%+q", text))
}

// sealGaps seals the counts of all that was missed so far.
func (r *Recorder) sealGaps(ctx context.Context) error {
	for {
		g, err := r.gaps.next(func() (string, error) { return evidence.NewRecordID(r.Now(), rand.Reader) })
		if g == nil || err != nil {
			return err
		}
		if _, err := r.sealEvent(ctx, g.id, g.chain, r.Now(), &observed.Event{Event: observed.Gap, Reason: g.reason, Missed: g.missed}); err != nil {
			return err
		}
		r.gaps.sealed()
	}
}
