package continuous

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/config"
	"jurat/internal/trial"
	"jurat/internal/webhook"
	"jurat/jury"
)

var arriving = config.Continuous{Arrivals: true, Webhooks: watching.Webhooks}

// reception makes a service that tells a receiver of arrivals, as a process that starts does.
func (h *hall) reception(t *testing.T, c webhook.Config) *Service {
	t.Helper()
	c.Secrets = []string{secret}
	r, err := webhook.New(c)
	check(t, err)
	return h.serve(t, arriving, func(to *Config) {
		to.Receivers, to.URL = map[string]*webhook.Receiver{"pager": r}, "https://jurat.example"
	})
}

func (p *pager) inward() webhook.Config { return webhook.Config{URL: p.server.URL, Inward: true} }

// tryOne tries what an agent says, by jurors who find what is said, and returns the trial.
func (h *hall) tryOne(t *testing.T, text string, finds jury.Position) trial.Summary {
	t.Helper()
	h.find(finds)
	h.output(t, "desk", "", text)
	h.settleAll(t, h.serve(t, all))
	trials, err := h.trials.Summaries(t.Context(), nil)
	check(t, err)
	return trials[len(trials)-1]
}

// decide seals a person's decision on a verdict, or on an earlier decision on it.
func (h *hall) decide(t *testing.T, s trial.Summary, status evidence.ApprovalStatus, given jury.Position) *evidence.Record {
	t.Helper()
	on, err := h.Ledger.Record(t.Context(), s.Outcome.Verdict.Record)
	check(t, err)
	p := evidence.Payload{ActionType: evidence.HumanReview, ReviewerID: "reviewer", OriginalResponseID: on.Payload.RecordID, PreviousRecord: on.Digest,
		ApprovalStatus: status, Changes: []byte(`"a reason"`), Timestamp: evidence.FormatTime(h.clock()), ChainID: s.ID}
	if given != "" {
		p.ModifiedResponse = jury.ModifiedVerdict(given)
	}
	return h.Seal(t, p)
}

// TestArrivals: each case that needs a person is told once, also if no process ran between the end of its trial and the telling, and
// whatever restarts after it. A case in which the jury decides is not told.
func TestArrivals(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	h.tryOne(t, "a", jury.SafePass)
	first := h.tryOne(t, "b", jury.NeedsReview)
	want := fmt.Sprintf("%s desk needs_review [needs_review]", first.ID)
	s := h.reception(t, p.inward())
	check(t, s.told.round(t.Context()))
	equal(t, "the first", p.took(), want)
	equal(t, "acts", h.acts(t), "told")
	if hooks := s.Status().Webhooks; len(hooks) != 1 || hooks[0].Waiting != 0 || hooks[0].Fault != "" {
		t.Errorf("%+v", hooks)
	}
	for range 2 {
		check(t, s.told.round(t.Context()))
		s = h.reception(t, p.inward())
	}
	equal(t, "after a restart", p.took())
	second := h.tryOne(t, "c", jury.NeedsReview)
	check(t, s.told.round(t.Context()))
	equal(t, "the second", p.took(), fmt.Sprintf("%s desk needs_review [needs_review]", second.ID))
	told, err := h.Ledger.Chain(t.Context(), operator.ReputationChain)
	check(t, err)
	verdict, err := h.Ledger.Record(t.Context(), first.Outcome.Verdict.Record)
	check(t, err)
	body, err := operator.ReadReputationEvent(&told[0].Payload)
	check(t, err)
	if body.Arrival != verdict.Digest || !body.Crossing.IsZero() || body.Webhook != "pager" || body.Attempts != 1 {
		t.Errorf("%+v", body)
	}
}

// TestArrivalAfterACrash: a process that ends while the receiver answers leaves the message to the next one, under the same id.
func TestArrivalAfterACrash(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	id := h.tryOne(t, "a", jury.NeedsReview).Outcome.Verdict.Record
	ctx, kill := context.WithCancel(t.Context())
	p.mu.Lock()
	p.onHeard = kill
	p.mu.Unlock()
	h.reception(t, p.inward()).told.round(ctx)
	p.mu.Lock()
	p.onHeard = nil
	p.mu.Unlock()
	for range 3 {
		check(t, h.reception(t, p.inward()).told.round(t.Context()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ids); n < 1 || n > 2 || slices.ContainsFunc(p.ids, func(one string) bool { return one != id }) {
		t.Errorf("messages %q, want those of %s", p.ids, id)
	}
	equal(t, "acts", h.acts(t), "told")
}

// TestArrivalIsTriedAgain: a receiver that refuses gets the message again after a pause, under the same id, and the status says what waits.
// Nobody is told of a case that was decided meanwhile.
func TestArrivalIsTriedAgain(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	decided, open := h.tryOne(t, "a", jury.NeedsReview), h.tryOne(t, "b", jury.NeedsReview)
	s := h.reception(t, p.inward())
	p.answer(http.StatusInternalServerError)
	check(t, s.told.round(t.Context()))
	if hooks := s.Status().Webhooks; hooks[0].Waiting != 2 || hooks[0].Fault == "" {
		t.Errorf("%+v", hooks)
	}
	check(t, s.told.round(t.Context()))
	equal(t, "one attempt", p.took(), fmt.Sprintf("%s desk needs_review [needs_review]", decided.ID))
	h.decide(t, decided, evidence.ApprovedWithModifications, jury.SafePass)
	p.answer(http.StatusOK)
	h.pass(pauses[0])
	check(t, s.told.round(t.Context()))
	equal(t, "what is still open", p.took(), fmt.Sprintf("%s desk needs_review [needs_review]", open.ID))
	equal(t, "acts", h.acts(t), "told")
	if len(s.told.tried) != 0 {
		t.Errorf("%v", s.told.tried)
	}
}

// TestArrivalByAPerson: a decision that leaves open what a jury decided is an arrival, too.
func TestArrivalByAPerson(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	passed := h.tryOne(t, "a", jury.SafePass)
	s := h.reception(t, p.inward())
	check(t, s.told.round(t.Context()))
	equal(t, "before it", p.took())
	objection := h.decide(t, passed, evidence.Rejected, "")
	check(t, s.told.round(t.Context()))
	check(t, s.told.round(t.Context()))
	equal(t, "after it", p.took(), fmt.Sprintf("%s desk safe_pass [left_open]", passed.ID))
	if p.ids[0] != objection.Payload.RecordID {
		t.Errorf("%q", p.ids)
	}
}

// TestOldArrivals: of cases that have waited for more than a week, a server that begins to tell says nothing; and what it tried for a
// week is told no more, which an act says.
func TestOldArrivals(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	h.tryOne(t, "a", jury.NeedsReview)
	h.pass(8 * day)
	late := h.tryOne(t, "b", jury.NeedsReview)
	s := h.reception(t, p.inward())
	p.answer(http.StatusServiceUnavailable)
	check(t, s.told.round(t.Context()))
	equal(t, "messages", p.took(), fmt.Sprintf("%s desk needs_review [needs_review]", late.ID))
	h.pass(8 * day)
	check(t, s.told.round(t.Context()))
	check(t, s.told.round(t.Context()))
	equal(t, "acts", h.acts(t), "untold")
	equal(t, "a week later", p.took())
}

// TestArrivalsGoNotInward: nothing is sent to a name that leads inward, nor where a redirect leads; the fault is shown, and the message waits.
func TestArrivalsGoNotInward(t *testing.T) {
	h, p := newHall(t, 0), newPager(t)
	h.tryOne(t, "a", jury.NeedsReview)
	if _, err := webhook.New(webhook.Config{URL: "https://127.0.0.1/", Secrets: []string{secret}}); err == nil {
		t.Error("an inward address is taken")
	}
	away := httptest.NewServer(http.RedirectHandler(p.server.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	for _, c := range []struct {
		to    webhook.Config
		fault string
	}{
		{webhook.Config{URL: "https://localhost" + strings.TrimPrefix(p.server.URL, "http://127.0.0.1")}, "not one of the public Internet"},
		{webhook.Config{URL: away.URL, Inward: true}, "status 307"},
	} {
		s := h.reception(t, c.to)
		check(t, s.told.round(t.Context()))
		if hooks := s.Status().Webhooks; hooks[0].Waiting != 1 || !strings.Contains(hooks[0].Fault, c.fault) {
			t.Errorf("%+v, want %s", hooks, c.fault)
		}
	}
	equal(t, "messages", p.took())
	check(t, h.reception(t, p.inward()).told.round(t.Context()))
	if heard := p.took(); len(heard) != 1 {
		t.Errorf("%q", heard)
	}
}
