package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/webhook"
	"jurat/internal/log/filestore"
	"jurat/internal/log/lock"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/jury"
)

const (
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	day    = 24 * time.Hour
)

func check(t testing.TB, err error) {
	t.Helper()
	must.Do(t, err)
}

// A hall is a log with a scheduler, a clock that a test sets, a receiver, and what processes of an installation share.
type hall struct {
	*jurattest.House
	trials *schedule.Scheduler
	files  filestore.Store
	locks  lock.Locks
	pager  *httptest.Server

	mu      sync.Mutex
	now     time.Time
	finds   jury.Position
	status  int // with which the receiver answers
	ids     []string
	heard   []string // TRIAL AGENT POSITION WHY
	onHeard func()
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{House: jurattest.New(t), now: jurattest.Start.Add(time.Hour), locks: lock.NewFolder(t.TempDir()), files: filestore.NewFolder(t.TempDir()), status: http.StatusOK}
	h.Now = h.clock
	t.Cleanup(func() { check(t, h.locks.Close()) })
	h.pager = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.receive(t, w, r) }))
	t.Cleanup(h.pager.Close)
	var err error
	h.trials, err = schedule.Open(t.Context(), schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Locks: h.locks, Now: h.clock, Sit: h.sit, Poll: 5 * time.Millisecond, Lease: 100 * time.Millisecond})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.trials.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

func (h *hall) receive(t *testing.T, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	by, failed := standardwebhooks.NewWebhook(secret)
	must.Hold(t, err == nil && failed == nil && by.VerifyIgnoringTimestamp(body, r.Header) == nil, "a message that is not signed: %s, %v", body, err)
	var m message
	if err := json.Unmarshal(body, &m, json.RejectUnknownMembers(true)); err != nil || m.Type != "review.arrived" || m.Data.RecordID != r.Header.Get("webhook-id") ||
		m.Data.Page != "https://jurat.example/reviews/"+m.Data.RecordID || m.Data.Log != h.Ledger.Origin() {
		t.Errorf("%s: %v", body, err)
	}
	record, err := h.Ledger.Record(r.Context(), m.Data.RecordID)
	must.Hold(t, err == nil && record.Digest == m.Data.Digest, "%s: %v", body, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	a := m.Data.Arrival
	h.ids, h.heard = append(h.ids, m.Data.RecordID), append(h.heard, fmt.Sprint(a.Trial, " ", a.Position, " ", a.Why))
	if h.onHeard != nil {
		h.onHeard()
	}
	w.WriteHeader(h.status)
}

func (h *hall) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *hall) answer(status int)    { h.set(func() { h.status = status }) }
func (h *hall) pass(d time.Duration) { h.set(func() { h.now = h.now.Add(d) }) }

func (h *hall) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// took compares what the receiver got since the last call.
func (h *hall) took(t *testing.T, what string, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	must.Hold(t, slices.Equal(h.heard, want), "%s: the receiver got %q, want %q", what, h.heard, want)
	h.heard = nil
}

func (h *hall) sit(*subject.Case, int64) trial.Config {
	s := jurattest.Settings(jury.MajorityVote)
	s.Collaborative = false
	h.mu.Lock()
	defer h.mu.Unlock()
	var jurors []jury.Juror
	for range s.Seats {
		jurors = append(jurors, &jurattest.Juror{Opinion: jurattest.Opine(h.finds, 90)})
	}
	return trial.Config{Settings: s, Jurors: jurors}
}

// teller is one of a process that starts.
func (h *hall) teller(t *testing.T, change ...func(*webhook.Config)) *arrivalTeller {
	t.Helper()
	c := webhook.Config{URL: h.pager.URL, Secrets: []string{secret}, Inward: true}
	for _, one := range change {
		one(&c)
	}
	r, err := webhook.New(c)
	check(t, err)
	return &arrivalTeller{Scheduler: h.trials, Ledger: h.Ledger, Files: h.files, Locks: h.locks, Receiver: r, URL: "https://jurat.example", Log: slog.New(slog.DiscardHandler), Now: h.clock}
}

// try tries a case before jurors who find this, and returns the trial.
func (h *hall) try(t *testing.T, finds jury.Position) trial.Summary {
	t.Helper()
	h.set(func() { h.finds = finds })
	id, err := h.trials.Submit(t.Context(), schedule.Order{Case: jurattest.Case(t)})
	check(t, err)
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		x, err := h.trials.Trials(t.Context())
		check(t, err)
		if s, known := x.Get(id); known && s.Over {
			return s
		}
		must.Need(t, !time.Now().After(end), "the trial does not end")
	}
}

// arrivalOf is what the receiver hears of a case that a jury left undecided.
func arrivalOf(s trial.Summary) string { return s.ID + " needs_review [needs_review]" }

// decide seals a person's decision on a verdict.
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

// TestArrivalsAreTold: the receiver is told once of each case that needs a person, also if no process ran between the end of its trial and the telling, and
// whatever restarts after it. It is not told of a case that the jury decided.
func TestArrivalsAreTold(t *testing.T) {
	h := newHall(t)
	h.try(t, jury.SafePass)
	first := h.try(t, jury.NeedsReview)
	w := h.teller(t)
	check(t, w.Tell(t.Context()))
	h.took(t, "the first", arrivalOf(first))
	for range 2 {
		check(t, w.Tell(t.Context()))
		w = h.teller(t)
	}
	h.took(t, "after a restart")
	second := h.try(t, jury.NeedsReview)
	check(t, w.Tell(t.Context()))
	h.took(t, "the second", arrivalOf(second))
	must.Equal(t, w.Waiting(), 0)
}

// TestArrivalsAfterACrash: a process that ends while the receiver answers leaves the message to the next one, under the same id.
func TestArrivalsAfterACrash(t *testing.T) {
	h := newHall(t)
	id := h.try(t, jury.NeedsReview).Outcome.Verdict.Record
	ctx, kill := context.WithCancel(t.Context())
	h.set(func() { h.onHeard = kill })
	err := h.teller(t).Tell(ctx)
	must.Hold(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
	h.set(func() { h.onHeard = nil })
	for range 3 {
		check(t, h.teller(t).Tell(t.Context()))
	}
	n := len(h.ids)
	must.Hold(t, n >= 1 && n <= 2 && !slices.ContainsFunc(h.ids, func(one string) bool { return one != id }), "messages %q, want those of %s", h.ids, id)
}

// TestArrivalsAreRetried: a receiver that refuses gets the message again after growing pauses, always under the same id, and at last no more. What follows
// waits until then, so that the order stays.
func TestArrivalsAreRetried(t *testing.T) {
	h := newHall(t)
	first, second := h.try(t, jury.NeedsReview), h.try(t, jury.NeedsReview)
	w := h.teller(t)
	h.answer(http.StatusInternalServerError)
	check(t, w.Tell(t.Context()))
	for _, pause := range pauses {
		h.took(t, "an attempt", arrivalOf(first))
		h.pass(pause - time.Second)
		check(t, w.Tell(t.Context()))
		h.took(t, "too early")
		n := w.Waiting()
		must.Need(t, n == 2, "%d messages wait", n)
		h.pass(time.Second)
		check(t, w.Tell(t.Context()))
	}
	h.took(t, "the last attempt, and what waited for it", arrivalOf(first), arrivalOf(second))
	h.answer(http.StatusOK)
	h.pass(day)
	check(t, w.Tell(t.Context()))
	check(t, h.teller(t).Tell(t.Context()))
	h.took(t, "what waited", arrivalOf(second))
}

// TestArrivalDecidedMeanwhile: the receiver is not told of a case that a person decided before it took the message.
func TestArrivalDecidedMeanwhile(t *testing.T) {
	h := newHall(t)
	decided, open := h.try(t, jury.NeedsReview), h.try(t, jury.NeedsReview)
	w := h.teller(t)
	h.answer(http.StatusInternalServerError)
	check(t, w.Tell(t.Context()))
	h.took(t, "one attempt", arrivalOf(decided))
	h.decide(t, decided, evidence.ApprovedWithModifications, jury.SafePass)
	h.answer(http.StatusOK)
	h.pass(pauses[0])
	check(t, w.Tell(t.Context()))
	h.took(t, "what is still open", arrivalOf(open))
	must.Hold(t, len(w.tried) <= 1, "it keeps attempts for %v", w.tried)
}

// TestArrivalLeftOpen: a decision that leaves open what a jury decided is an arrival, too.
func TestArrivalLeftOpen(t *testing.T) {
	h := newHall(t)
	passed := h.try(t, jury.SafePass)
	w := h.teller(t)
	check(t, w.Tell(t.Context()))
	h.took(t, "before it")
	objection := h.decide(t, passed, evidence.Rejected, "")
	check(t, w.Tell(t.Context()))
	check(t, w.Tell(t.Context()))
	h.took(t, "after it", passed.ID+" safe_pass [left_open]")
	must.Equal(t, h.ids[0], objection.Payload.RecordID)
}

// TestOldArrivals: a server that begins to tell says nothing of cases that have waited for more than a week, and stops telling after a week. The file
// forgets them.
func TestOldArrivals(t *testing.T) {
	h := newHall(t)
	h.try(t, jury.NeedsReview)
	h.pass(8 * day)
	late := h.try(t, jury.NeedsReview)
	w := h.teller(t)
	h.answer(http.StatusServiceUnavailable)
	check(t, w.Tell(t.Context()))
	h.took(t, "within the week", arrivalOf(late))
	h.pass(8 * day)
	check(t, w.Tell(t.Context()))
	h.took(t, "a week later")
	h.answer(http.StatusOK)
	for range 2 {
		last := h.try(t, jury.NeedsReview)
		check(t, w.Tell(t.Context()))
		h.took(t, "a new one", arrivalOf(last))
		text, err := h.files.Read(t.Context(), toldFile)
		must.Hold(t, err == nil && strings.Count(string(text), ":\"") == 1 && strings.Contains(string(text), last.Outcome.Verdict.Record), "%s: %v", text, err)
		h.pass(8 * day)
	}
}

// TestArrivalIsGone: a receiver that is gone is not told again of that case.
func TestArrivalIsGone(t *testing.T) {
	h := newHall(t)
	s := h.try(t, jury.NeedsReview)
	w := h.teller(t)
	h.answer(http.StatusGone)
	check(t, w.Tell(t.Context()))
	h.pass(day)
	check(t, w.Tell(t.Context()))
	check(t, h.teller(t).Tell(t.Context()))
	h.took(t, "messages", arrivalOf(s))
}

// TestArrivalsOfTwoProcesses: processes that tell at the same time tell of each case once.
func TestArrivalsOfTwoProcesses(t *testing.T) {
	h := newHall(t)
	s := h.try(t, jury.NeedsReview)
	var both sync.WaitGroup
	for range 4 {
		w := h.teller(t)
		both.Go(func() {
			for range 10 {
				must.Want(t, w.Tell(t.Context()), nil)
			}
		})
	}
	both.Wait()
	h.took(t, "messages", arrivalOf(s))
}

// TestArrivalsDoNotLeadInward: nothing is sent to a name that leads inward, nor where a redirect leads; the message waits.
func TestArrivalsDoNotLeadInward(t *testing.T) {
	h := newHall(t)
	s := h.try(t, jury.NeedsReview)
	away := httptest.NewServer(http.RedirectHandler(h.pager.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	for _, to := range []webhook.Config{{URL: "https://localhost" + strings.TrimPrefix(h.pager.URL, "http://127.0.0.1")}, {URL: away.URL, Inward: true}} {
		w := h.teller(t, func(c *webhook.Config) { c.URL, c.Inward = to.URL, to.Inward })
		check(t, w.Tell(t.Context()))
		must.Hold(t, w.Waiting() == 1, "%s: %d messages wait", to.URL, w.Waiting())
	}
	h.took(t, "nothing")
	check(t, h.teller(t).Tell(t.Context()))
	h.took(t, "the right address", arrivalOf(s))
}

// fullDisk refuses to replace files.
type fullDisk struct{ filestore.Store }

func (fullDisk) Replace(context.Context, string, []byte) error {
	return errors.New("no space left on device")
}

// TestArrivalsOnAFullDisk: where it cannot be noted that the receiver was told, this is an error, and this process does not tell it again.
func TestArrivalsOnAFullDisk(t *testing.T) {
	h := newHall(t)
	s := h.try(t, jury.NeedsReview)
	w := h.teller(t)
	w.Files = fullDisk{h.files}
	err := w.Tell(t.Context())
	must.Hold(t, err != nil && strings.Contains(err.Error(), "no space left"), "%v", err)
	check(t, w.Tell(t.Context()))
	h.took(t, "messages", arrivalOf(s))
}

// TestArrivalsRun: a teller that runs tells, and ends with its context.
func TestArrivalsRun(t *testing.T) {
	h := newHall(t)
	h.try(t, jury.NeedsReview)
	ctx, cancel := context.WithCancel(t.Context())
	h.set(func() { h.onHeard = cancel })
	h.teller(t).Run(ctx)
	must.Equal(t, len(h.ids), 1)
}
