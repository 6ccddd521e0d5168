package continuous

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/conduct"
	"jurat/internal/ledger"
	"jurat/internal/webhook"
	"jurat/reputation"
)

const (
	tellLock  = "reputation-thresholds"
	lookAgain = time.Hour // after which an agent's bounds are computed again though nothing new was said of it: they fade, and keys are revoked
	tellFor   = 7 * day   // for so long after a crossing, receivers are told of it
)

// pauses are those between attempts, as the Standard Webhooks convention recommends. After the last, the receiver is not told.
var pauses = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// telling compares bounds with thresholds, and tells receivers what was crossed.
type telling struct {
	service *Service
	book    *book
	arrived []*news         // verdicts that need a person, and of which somebody is still to be told
	looked  map[string]look // by agent
	tried   map[delivery]attempts
	fault   map[string]string // by webhook: why the last message was not taken
}

// A look is when an agent's bounds were last computed.
type look struct {
	size  int64
	at    time.Time
	trust evidence.Digest  // fingerprint of the trust file
	view  *reputation.View // nil: the log has nothing about the agent, or why says more
	why   string           // why the bounds are not known; "": they are, or there are none

	unsettled bool // judgments are not proved to be in the log yet, so nothing is compared
}

type delivery struct {
	of      evidence.Digest // the act of which a webhook is told
	webhook string
}

type attempts struct {
	n    int64
	next time.Time
}

func newTelling(s *Service) *telling {
	return &telling{service: s, book: newBook(), looked: map[string]look{}, tried: map[delivery]attempts{}, fault: map[string]string{}}
}

// round compares, and tells.
func (t *telling) round(ctx context.Context) error {
	if settings := t.service.config.Settings; len(settings.Thresholds) == 0 && !settings.Arrivals {
		return nil
	}
	err := t.book.follow(ctx, t.service.config.Ledger)
	if err == nil {
		err = t.lookAll(ctx)
	}
	if err == nil {
		err = t.service.alone(ctx, tellLock, func(ctx context.Context) error {
			return errors.Join(t.compareAll(ctx), t.arrivals(ctx), t.tellAll(ctx))
		})
	}
	t.report()
	return err
}

// lookAll computes the bounds of agents about whom the log has something new.
func (t *telling) lookAll(ctx context.Context) error {
	c := &t.service.config
	for _, agent := range t.agents() {
		before, known := t.looked[agent]
		size, err := c.Ledger.Size(ctx)
		if err != nil {
			return err
		}
		if known && c.Now().Sub(before.at) < lookAgain {
			news, err := c.Ledger.CountsFrom(ctx, evidence.RoleAgent, agent, before.size)
			if err != nil {
				return err
			}
			if !news {
				continue
			}
		}
		by, err := c.Trust(ctx)
		if err != nil {
			return err
		}
		fingerprint, err := by.Fingerprint()
		if err != nil {
			return err
		}
		now := look{size: size, at: c.Now(), trust: fingerprint}
		now.view, err = c.View(ctx, agent, by)
		switch {
		case errors.Is(err, conduct.ErrUnknown): // it has no bounds
		case errors.Is(err, conduct.ErrTooMany), errors.Is(err, reputation.ErrIdentity):
			now.why = err.Error()
		case err != nil:
			return err
		}
		if now.unsettled = now.view != nil && now.view.Unsettled(); now.unsettled {
			now.at = time.Time{} // so that it is looked at again in the next round
		}
		t.looked[agent] = now
	}
	return nil
}

func (t *telling) agents() (names []string) {
	for _, one := range t.service.config.Settings.Thresholds {
		if !slices.Contains(names, one.Agent) {
			names = append(names, one.Agent)
		}
	}
	return names
}

// compareAll seals an act for each threshold that was crossed since the last act about it. Another process may have done so since this one
// read the log.
func (t *telling) compareAll(ctx context.Context) error {
	if err := t.book.follow(ctx, t.service.config.Ledger); err != nil {
		return err
	}
	for _, one := range t.service.config.Settings.Thresholds {
		if seen := t.looked[one.Agent]; seen.why != "" || seen.unsettled {
			continue // it is not known where the bounds are, and the last that was said stands
		}
		for _, act := range t.crossed(one.Agent, one.Parts()) {
			if err := t.seal(ctx, act); err != nil {
				return err
			}
			t.service.config.Log.Warn("the reputation of an agent has crossed a threshold", "agent", act.Agent, "class", act.Class, "threshold", act.Threshold, "from", act.From, "to", act.To)
		}
	}
	return t.book.follow(ctx, t.service.config.Ledger)
}

// bounds returns what is compared with a threshold: the classes of the agent's view, and those of which the log says something, with their
// bounds, as far as there are any.
func (t *telling) bounds(agent string, threshold int64) (order []watched, now map[watched]*operator.ReputationBounds) {
	now = map[watched]*operator.ReputationBounds{}
	if view := t.looked[agent].view; view != nil {
		for i := range view.Classes {
			c := &view.Classes[i]
			w := watched{agent: agent, class: string(c.Class), threshold: threshold}
			if c.Panel != nil && c.Class != reputation.People {
				w.panel = c.Panel.Digest
			}
			if order = append(order, w); c.Bounds != nil {
				now[w] = &operator.ReputationBounds{Lower: c.Bounds.Lower, Upper: c.Bounds.Upper}
			}
		}
	}
	for _, c := range t.book.order { // of a class that the view no longer has, there are no bounds
		if w := watchedBy(c.crossing); w.agent == agent && w.threshold == threshold && !slices.Contains(order, w) {
			order = append(order, w)
		}
	}
	return order, now
}

// crossed returns an act for each class whose bounds are not where the log last said.
func (t *telling) crossed(agent string, threshold int64) (acts []operator.ReputationEventBody) {
	seen := t.looked[agent]
	order, now := t.bounds(agent, threshold)
	for _, w := range order {
		if from, to := t.book.side(w), operator.SideOf(now[w], threshold); from != to && seen.size > 0 {
			acts = append(acts, operator.ReputationEventBody{Event: operator.ReputationCrossed, Agent: agent, Class: w.class, Panel: w.panel, Threshold: threshold,
				Bounds: now[w], From: from, To: to, Size: seen.size, Trust: seen.trust})
		}
	}
	return acts
}

func (t *telling) seal(ctx context.Context, body operator.ReputationEventBody) error {
	c := &t.service.config
	act, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.ReputationEvent, ChainID: operator.ReputationChain, Timestamp: evidence.FormatTime(c.Now())}, body)
	if err != nil {
		return err
	}
	if _, err := (ledger.Operator{Ledger: c.Ledger, Keys: c.Keys}).Seal(ctx, act); err != nil {
		return fmt.Errorf("recording that a threshold was %s: %w", body.Event, err)
	}
	return nil
}

// An outcome is how a delivery ended.
type outcome struct {
	delivery
	err error
}

// tellAll tells each receiver what it is to be told now: all receivers at the same time, each in the order of the news.
func (t *telling) tellAll(ctx context.Context) error {
	var sending sync.WaitGroup
	var mu sync.Mutex
	var ended []outcome
	now := t.service.config.Now()
	for id, receiver := range t.service.config.Receivers {
		due := t.due(id, now)
		sending.Go(func() {
			for _, c := range due {
				err := t.send(ctx, receiver, c)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				ended = append(ended, outcome{delivery{c.of, id}, err})
				mu.Unlock()
				if err != nil {
					return // what follows would come before it
				}
			}
		})
	}
	sending.Wait()
	// What was taken is noted even if the caller has given up since: otherwise the receiver would get it again.
	ctx = context.WithoutCancel(ctx)
	for _, o := range append(ended, t.late(now)...) {
		if err := t.conclude(ctx, o); err != nil {
			return err
		}
	}
	return t.book.follow(ctx, t.service.config.Ledger)
}

// due lists of what a receiver is to be told now. What follows a message that is to be tried again later waits with it: the order stays.
func (t *telling) due(receiver string, now time.Time) []*news {
	list := t.untold(receiver, now.Add(-tellFor))
	if i := slices.IndexFunc(list, func(c *news) bool { return now.Before(t.tried[delivery{c.of, receiver}].next) }); i >= 0 {
		list = list[:i]
	}
	return list
}

// errLate ends attempts that a receiver has put off for too long.
var errLate = errors.New("it did not take the message within a week")

// late lists what was tried, and is too old to be tried again.
func (t *telling) late(now time.Time) (list []outcome) {
	for _, n := range t.news() {
		for id := range t.service.config.Receivers {
			if d := (delivery{n.of, id}); t.tried[d].n > 0 && !n.at.After(now.Add(-tellFor)) {
				list = append(list, outcome{d, errLate})
			}
		}
	}
	return list
}

// news lists all of which somebody may have to be told, the oldest first.
func (t *telling) news() []*news {
	return slices.SortedStableFunc(slices.Values(slices.Concat(t.book.order, t.arrived)), func(a, b *news) int { return a.at.Compare(b.at) })
}

func (t *telling) untold(receiver string, since time.Time) []*news {
	return t.book.untold(receiver, t.news(), since)
}

// conclude seals that a receiver was told, or is told no more, or notes when it is told again.
func (t *telling) conclude(ctx context.Context, o outcome) error {
	a := t.tried[o.delivery]
	a.n++
	body := operator.ReputationEventBody{Event: operator.ReputationTold, Crossing: o.of, Webhook: o.webhook, Attempts: a.n}
	if t.isArrival(o.of) {
		body.Arrival, body.Crossing = o.of, evidence.Digest{}
	}
	delete(t.fault, o.webhook)
	if o.err != nil {
		t.fault[o.webhook] = o.err.Error()
		t.service.config.Log.Warn("a webhook did not take a message", "webhook", o.webhook, "attempt", a.n, "error", o.err)
		if a.n <= int64(len(pauses)) && !errors.Is(o.err, webhook.ErrGone) && !errors.Is(o.err, errLate) {
			a.next = t.service.config.Now().Add(max(pauses[a.n-1], retryAfter(o.err)))
			t.tried[o.delivery] = a
			return nil
		}
		body.Event, body.Reason = operator.ReputationUntold, evidence.Abbreviate(o.err.Error())
	}
	delete(t.tried, o.delivery)
	return t.seal(ctx, body)
}

func retryAfter(err error) time.Duration {
	var refused *webhook.RefusedError
	if errors.As(err, &refused) {
		return refused.After
	}
	return 0
}

// A message is what receivers get.
type message struct {
	Type      string      `json:"type"` // "reputation.crossed" or "review.arrived"
	Timestamp string      `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	Log      string                        `json:"log"`
	RecordID string                        `json:"record_id"`
	Digest   evidence.Digest               `json:"digest"`
	Page     string                        `json:"page,omitzero"`
	Crossing *operator.ReputationEventBody `json:"crossing,omitzero"`
	Arrival  *arrival                      `json:"arrival,omitzero"`
}

func (t *telling) send(ctx context.Context, to *webhook.Receiver, c *news) error {
	s := &t.service.config
	m := message{Type: "reputation.crossed", Timestamp: evidence.FormatTime(c.at), Data: messageData{Log: s.Ledger.Origin(), RecordID: c.id, Digest: c.of, Crossing: c.crossing, Arrival: c.arrival}}
	switch {
	case c.arrival != nil:
		if m.Type = arrivedType; s.URL != "" {
			m.Data.Page = s.URL + "/reviews/" + url.PathEscape(c.id)
		}
	case s.URL != "":
		m.Data.Page = s.URL + "/agents/" + url.PathEscape(c.crossing.Agent)
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return err
	}
	return to.Send(ctx, c.id, s.Now(), body)
}

// report notes what is shown of thresholds and webhooks.
func (t *telling) report() {
	states := []api.ThresholdState{}
	for _, one := range t.service.config.Settings.Thresholds {
		states = append(states, t.states(one.Agent, one.Parts())...)
	}
	hooks := []api.WebhookState{}
	since := t.service.config.Now().Add(-tellFor)
	for _, w := range t.service.config.Settings.Webhooks {
		hooks = append(hooks, api.WebhookState{ID: w.ID, Waiting: len(t.untold(w.ID, since)), Fault: t.fault[w.ID]})
	}
	t.service.note(func(v *shown) { v.Thresholds, v.Webhooks = states, hooks })
}

// states returns where an agent's bounds are, and since when the log says so.
func (t *telling) states(agent string, threshold int64) (list []api.ThresholdState) {
	order, now := t.bounds(agent, threshold)
	for _, w := range order {
		state := api.ThresholdState{Agent: agent, Class: w.class, Panel: w.panel, Threshold: threshold, Side: string(t.book.side(w)), Fault: t.looked[agent].why}
		if b := now[w]; b != nil {
			state.Lower, state.Upper = &b.Lower, &b.Upper
		}
		if c := t.book.last[w]; c != nil {
			state.Since, state.RecordID = evidence.FormatTime(c.at), c.id
		}
		list = append(list, state)
	}
	if list == nil {
		list = []api.ThresholdState{{Agent: agent, Threshold: threshold, Side: string(operator.SideNone), Fault: t.looked[agent].why}}
	}
	return list
}
