package continuous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/conduct"
	"jurat/internal/config"
	"jurat/internal/webhook"
	"jurat/reputation"
	"jurat/verify/trust"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A pager is a receiver that a test tells how to answer.
type pager struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	status  int
	ids     []string
	heard   []string // AGENT CLASS FROM>TO
	onHeard func()
}

func newPager(t *testing.T) *pager {
	p := &pager{t: t, status: http.StatusOK}
	p.server = httptest.NewServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	by, err := standardwebhooks.NewWebhook(secret)
	if err == nil {
		err = by.VerifyIgnoringTimestamp(body, r.Header)
	}
	if err != nil {
		p.t.Errorf("the receiver's library refuses the message: %v", err)
	}
	var m message
	if err := json.Unmarshal(body, &m, json.RejectUnknownMembers(true)); err != nil || m.Type != "reputation.crossed" && m.Type != arrivedType || m.Data.RecordID != r.Header.Get("webhook-id") {
		p.t.Errorf("%s: %v", body, err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = append(p.ids, r.Header.Get("webhook-id"))
	if c := m.Data.Crossing; c != nil {
		p.heard = append(p.heard, fmt.Sprintf("%s %s %s>%s", c.Agent, c.Class, c.From, c.To))
	} else if a := m.Data.Arrival; m.Data.Page == "https://jurat.example/reviews/"+m.Data.RecordID {
		p.heard = append(p.heard, fmt.Sprint(a.Trial, " ", a.Agent, " ", a.Position, " ", a.Why))
	}
	if p.onHeard != nil {
		p.onHeard()
	}
	w.WriteHeader(p.status)
}

func (p *pager) answer(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// took returns what the receiver has heard since the last call.
func (p *pager) took() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := p.heard
	p.heard = nil
	return heard
}

// A scene is a reputation that a test sets.
type scene struct {
	mu   sync.Mutex
	view *reputation.View
	err  error
	n    int
}

func (s *scene) set(classes ...reputation.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view, s.err = &reputation.View{Classes: classes}, nil
}

func (s *scene) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view, s.err = nil, err
}

func (s *scene) look(context.Context, string, *trust.Trust) (*reputation.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.view, s.err
}

func people(bounds ...int64) reputation.Class {
	c := reputation.Class{Class: reputation.People}
	if len(bounds) > 0 {
		c.Bounds = &reputation.Bounds{Lower: bounds[0], Upper: bounds[1]}
	}
	return c
}

func models(panel string, lower, upper int64) reputation.Class {
	return reputation.Class{Class: reputation.Models, Panel: &reputation.Panel{Digest: evidence.DigestOf([]byte(panel))}, Bounds: &reputation.Bounds{Lower: lower, Upper: upper}}
}

var watching = config.Continuous{Thresholds: []config.Threshold{{Agent: "desk", Percent: 80}}, Webhooks: []config.Webhook{{ID: "pager", URL: "https://pager.example/"}}}

// watch makes a service that tells a pager of a scene. url is the pager's own, or another's in its place.
func (h *hall) watch(t *testing.T, on *scene, url string) *Service {
	t.Helper()
	r, err := webhook.New(webhook.Config{URL: url, Secrets: []string{secret}, Inward: true})
	check(t, err)
	return h.serve(t, watching, func(c *Config) {
		c.View, c.Receivers, c.URL = on.look, map[string]*webhook.Receiver{"pager": r}, "https://jurat.example"
	})
}

// round lets the next look be due, and goes round once.
func (h *hall) round(t *testing.T, s *Service) {
	t.Helper()
	h.pass(lookAgain)
	check(t, s.told.round(t.Context()))
}

// acts returns the acts about crossings that the log has, one word for each.
func (h *hall) acts(t *testing.T) (events []string) {
	t.Helper()
	b := newBook()
	check(t, b.follow(t.Context(), h.Ledger))
	records, err := h.Ledger.Chain(t.Context(), operator.ReputationChain)
	check(t, err)
	for _, r := range records {
		body, err := operator.ReadReputationEvent(&r.Payload)
		check(t, err)
		events = append(events, string(body.Event))
	}
	return events
}

func equal(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("%s: %q, want %q", what, have, want)
	}
}

// TestCrossings: each change of side is sealed and told once, class by class, whatever restarts in between.
func TestCrossings(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	s := h.watch(t, on, p.server.URL)
	h.output(t, "desk", "", "a")
	on.fail(conduct.ErrUnknown)
	h.round(t, s)
	equal(t, "nothing is known", p.took())
	for _, c := range []struct {
		classes []reputation.Class
		want    []string
	}{
		{[]reputation.Class{people()}, nil},
		{[]reputation.Class{people(8000, 9000)}, []string{"desk people none>above"}},
		{[]reputation.Class{people(8100, 9000)}, nil},
		{[]reputation.Class{people(7999, 9000)}, []string{"desk people above>across"}},
		{[]reputation.Class{people(7000, 8000)}, nil},
		{[]reputation.Class{people(7000, 7999)}, []string{"desk people across>below"}},
		{[]reputation.Class{people(7000, 7999), models("a", 9000, 9500)}, []string{"desk models none>above"}},
		{[]reputation.Class{people(7000, 7999), models("a", 9000, 9500), models("b", 1, 2)}, []string{"desk models none>below"}},
		{[]reputation.Class{people(9000, 9999), models("a", 9000, 9500), models("b", 1, 2)}, []string{"desk people below>above"}},
		{[]reputation.Class{people(9000, 9999), models("b", 1, 2)}, []string{"desk models above>none"}}, // of the panel a, nothing counts any more
		{[]reputation.Class{people(), models("b", 1, 2)}, []string{"desk people above>none"}},
		{[]reputation.Class{}, []string{"desk models below>none"}},
	} {
		on.set(c.classes...)
		h.round(t, s)
		equal(t, fmt.Sprint(c.classes), p.took(), c.want...)
		s = h.watch(t, on, p.server.URL) // as after a restart
		h.round(t, s)
		equal(t, "after a restart", p.took())
	}
	if acts := h.acts(t); len(acts) != 18 {
		t.Errorf("%d acts: %q", len(acts), acts)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ids := slices.Compact(slices.Sorted(slices.Values(p.ids))); len(ids) != 9 {
		t.Errorf("%d ids of %d messages", len(ids), len(p.ids))
	}
}

// TestOneLookForNoNews: an agent of which the log has nothing new is looked at once an hour. A review of
// what a recorder saw it do is news of it.
func TestOneLookForNoNews(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	s := h.watch(t, on, p.server.URL)
	on.set(people())
	for range 5 {
		h.pass(time.Minute)
		check(t, s.told.round(t.Context()))
	}
	if on.n != 1 {
		t.Errorf("looked %d times", on.n)
	}
	h.output(t, "another", "", "b")
	check(t, s.told.round(t.Context()))
	if on.n != 1 {
		t.Errorf("looked %d times after another's record", on.n)
	}
	h.output(t, "desk", "", "c")
	check(t, s.told.round(t.Context()))
	h.pass(time.Hour)
	check(t, s.told.round(t.Context()))
	if on.n != 3 {
		t.Errorf("looked %d times", on.n)
	}
	now := evidence.FormatTime(h.Now())
	seen := h.Seal(t, evidence.Payload{ActionType: evidence.ObservedCall, AgentID: "gate", RequestID: "r", Timestamp: now,
		Observed: &evidence.Observed{Agent: "desk", Began: now, Ended: evidence.Complete, Fidelity: evidence.Parsed, Judged: evidence.JudgedAgent, Protocol: "other/1", Vantage: evidence.InProcess}})
	check(t, s.told.round(t.Context()))
	if on.n != 3 {
		t.Errorf("looked %d times after a recorded act", on.n)
	}
	h.Seal(t, evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "noa", Timestamp: now, OriginalResponseID: seen.Payload.RecordID, ApprovalStatus: evidence.Rejected, Saw: []evidence.Digest{seen.Digest}})
	check(t, s.told.round(t.Context()))
	if on.n != 4 {
		t.Errorf("looked %d times after a review of a recorded act", on.n)
	}
}

// TestUnknownBounds: while bounds cannot be computed, nothing was crossed, and the fault is shown.
func TestUnknownBounds(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	s := h.watch(t, on, p.server.URL)
	h.output(t, "desk", "", "a")
	on.set(people(9000, 9500))
	h.round(t, s)
	p.took()
	on.fail(fmt.Errorf("%w: more than 3", conduct.ErrTooMany))
	h.round(t, s)
	equal(t, "too many records", p.took())
	status := s.Status()
	if len(status.Thresholds) != 1 || !strings.Contains(status.Thresholds[0].Fault, "more than 3") || status.Thresholds[0].Side != "above" || status.Thresholds[0].RecordID == "" {
		t.Errorf("%+v", status.Thresholds)
	}
	on.fail(errors.New("the disk is on fire"))
	h.pass(lookAgain)
	if err := s.told.round(t.Context()); err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("%v", err)
	}
	equal(t, "the disk is on fire", p.took())
}

// TestRetries: a receiver that refuses is asked again at growing pauses, always with the same id, and at last is told no more. Another
// crossing waits until then, so that the order stays.
func TestRetries(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	s := h.watch(t, on, p.server.URL)
	p.answer(http.StatusInternalServerError)
	on.set(people(9000, 9500))
	check(t, s.told.round(t.Context()))
	on.set(people(1000, 1500))
	h.output(t, "desk", "", "b")
	for _, pause := range pauses {
		before := len(p.took())
		if before != 1 {
			t.Fatalf("%d attempts before a pause of %v", before, pause)
		}
		h.pass(pause - time.Second)
		check(t, s.told.round(t.Context()))
		equal(t, "too early", p.took())
		h.pass(time.Second)
		check(t, s.told.round(t.Context()))
	}
	if status := s.Status(); status.Webhooks[0].Fault == "" {
		t.Errorf("%+v", status.Webhooks)
	}
	events := h.acts(t)
	if n := count(events, "untold"); n != 1 {
		t.Errorf("%q", events)
	}
	equal(t, "the last attempt", p.took(), "desk people none>above")
	check(t, s.told.round(t.Context()))
	equal(t, "what waited for it", p.took(), "desk people above>below")
	p.answer(http.StatusOK)
	h.pass(day)
	check(t, s.told.round(t.Context()))
	if events := h.acts(t); count(events, "told") != 1 || count(events, "crossed") != 2 {
		t.Errorf("%q", events)
	}
	if status := s.Status(); status.Webhooks[0].Fault != "" || status.Webhooks[0].Waiting != 0 {
		t.Errorf("%+v", status.Webhooks)
	}
}

func count(list []string, word string) (n int) {
	for _, one := range list {
		if one == word {
			n++
		}
	}
	return n
}

// TestGone: a receiver that answers 410 is not asked about that crossing again.
func TestGone(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	s := h.watch(t, on, p.server.URL)
	p.answer(http.StatusGone)
	on.set(people(9000, 9500))
	check(t, s.told.round(t.Context()))
	h.pass(day)
	check(t, s.told.round(t.Context()))
	equal(t, "messages", p.took(), "desk people none>above")
	equal(t, "acts", h.acts(t), "crossed", "untold")
}

// TestToldAfterACrash: a process that ends between the crossing and its message, or between the message and the act about it, leaves the
// message to the next one. The receiver knows it by its id.
func TestToldAfterACrash(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	on.set(people(9000, 9500))
	nowhere := httptest.NewServer(nil)
	nowhere.Close()
	check(t, h.watch(t, on, nowhere.URL).told.round(t.Context()))
	equal(t, "acts", h.acts(t), "crossed")
	ctx, kill := context.WithCancel(t.Context())
	p.onHeard = kill // it ends while the receiver answers
	h.watch(t, on, p.server.URL).told.round(ctx)
	p.mu.Lock()
	p.onHeard = nil
	p.mu.Unlock()
	check(t, h.watch(t, on, p.server.URL).told.round(t.Context()))
	check(t, h.watch(t, on, p.server.URL).told.round(t.Context()))
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(slices.Compact(slices.Clone(p.ids))); n != 1 || len(p.ids) > 2 || len(p.ids) < 1 {
		t.Errorf("messages %q", p.ids)
	}
	equal(t, "acts", h.acts(t), "crossed", "told")
}

// TestTooLate: a receiver that puts a message off for longer than a week is told no more of it, and an act says so.
func TestTooLate(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	s := h.watch(t, on, p.server.URL)
	p.answer(http.StatusServiceUnavailable)
	on.set(people(9000, 9500))
	check(t, s.told.round(t.Context()))
	h.pass(8 * day)
	check(t, s.told.round(t.Context()))
	equal(t, "acts", h.acts(t), "crossed", "untold")
	check(t, h.watch(t, on, p.server.URL).told.round(t.Context()))
	equal(t, "messages", p.took(), "desk people none>above")
}

// TestTwoTellers: processes that watch at the same time seal and tell each crossing once.
func TestTwoTellers(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	on.set(people(9000, 9500))
	var both sync.WaitGroup
	for range 4 {
		s := h.watch(t, on, p.server.URL)
		both.Go(func() {
			for range 10 {
				if err := s.told.round(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	equal(t, "messages", p.took(), "desk people none>above")
	equal(t, "acts", h.acts(t), "crossed", "told")
}

// TestSealedMeanwhile: a process seals nothing that another has sealed since it read the log.
func TestSealedMeanwhile(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	on.set(people(9000, 9500))
	slow, fast := h.watch(t, on, p.server.URL), h.watch(t, on, p.server.URL)
	check(t, slow.told.book.follow(t.Context(), h.Ledger))
	check(t, slow.told.lookAll(t.Context()))
	check(t, fast.told.round(t.Context()))
	check(t, slow.told.compareAll(t.Context()))
	equal(t, "acts", h.acts(t), "crossed", "told")
}

// TestRun: a service that runs tries, tells, shows what fails, and ends with its context.
func TestRun(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	r := h.output(t, "desk", "", "a")
	on.set(people(9000, 9500))
	receiver, err := webhook.New(webhook.Config{URL: p.server.URL, Secrets: []string{secret}, Inward: true})
	check(t, err)
	settings := watching
	settings.Sampled, settings.Drawn, settings.TrialsADay = 1, 10, 10
	s := h.serve(t, settings, func(c *Config) {
		c.View, c.Receivers, c.Every = on.look, map[string]*webhook.Receiver{"pager": receiver}, time.Millisecond
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	for end := time.Now().Add(time.Minute); ; {
		status := s.Status()
		if status.Owed == 0 && status.Trials == 1 && len(status.Webhooks) == 1 && status.Webhooks[0].Waiting == 0 && len(status.Thresholds) == 1 && status.Thresholds[0].Side == "above" &&
			len(status.Faults) == 1 && strings.Contains(status.Faults[0], "no witness") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v is not tried: %+v", r.Digest, status)
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	equal(t, "messages", p.took(), "desk people none>above")
}

// TestSideWithoutBounds: while judgments are not proved to be in the log, an agent has no bounds. Its side is then the last that the log has.
func TestSideWithoutBounds(t *testing.T) {
	h, p, on := newHall(t, 0), newPager(t), new(scene)
	h.output(t, "desk", "", "a")
	s := h.watch(t, on, p.server.URL)
	on.set(people(9000, 9500))
	check(t, s.told.round(t.Context()))
	unproved := people()
	unproved.Status = reputation.Unproved
	on.set(unproved)
	on.view.Completeness = []reputation.LogView{{Judgments: reputation.Completeness{Rule: "unproved"}}}
	h.pass(2 * lookAgain)
	check(t, s.told.round(t.Context()))
	if one := s.Status().Thresholds; len(one) != 1 || one[0].Side != "above" || one[0].Lower != nil || one[0].Upper != nil {
		t.Errorf("%+v", one)
	}
	equal(t, "acts", h.acts(t), "crossed", "told")
}
