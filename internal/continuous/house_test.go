package continuous

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/config"
	"jurat/internal/ledger"
	"jurat/internal/lock"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify/trust"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A hall is a log with a scheduler, a clock that a test sets, and locks that its services share.
type hall struct {
	*jurattest.House
	trials    *schedule.Scheduler
	cosigners []*operator.Cosigner
	locks     lock.Locks

	mu    sync.Mutex
	now   time.Time
	finds jury.Position // what jurors find; "": that the agent is safe
}

func newHall(t *testing.T, witnesses int) *hall {
	t.Helper()
	h := &hall{House: jurattest.New(t), now: jurattest.Start.Add(time.Hour), locks: lock.NewFolder(t.TempDir())}
	h.Now = h.clock
	var err error
	t.Cleanup(func() { check(t, h.locks.Close()) })
	for n := range witnesses {
		c, err := operator.GenerateCosigner(bytes.NewReader(bytes.Repeat([]byte{byte(n + 1)}, 32)), fmt.Sprintf("witness.example/w%d", n+1))
		check(t, err)
		h.cosigners = append(h.cosigners, c)
	}
	h.trials, err = schedule.Open(t.Context(), schedule.Config{Ledger: h.Ledger, Keys: h.Keys, Locks: h.locks, Now: h.clock, Sit: h.sit, Poll: 5 * time.Millisecond, Lease: 100 * time.Millisecond})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.trials.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

func (h *hall) find(p jury.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finds = p
}

func (h *hall) sit(string, int64) (trial.Config, error) {
	s := jurattest.Settings(jury.MajorityVote)
	s.Collaborative = false
	h.mu.Lock()
	defer h.mu.Unlock()
	var jurors []jury.Juror
	for range s.Seats {
		jurors = append(jurors, &jurattest.Juror{Opinion: jurattest.Opine(cmp.Or(h.finds, jury.SafePass), 90)})
	}
	return trial.Config{Settings: s, Jurors: jurors}, nil
}

func (h *hall) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hall) pass(long time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(long)
}

func (h *hall) trust(t *testing.T) func(context.Context) (*trust.Trust, error) {
	return func(context.Context) (*trust.Trust, error) {
		by := h.Options(t).Trust
		for _, c := range h.cosigners {
			by.Witnesses = append(by.Witnesses, c.Witness.String())
		}
		return by, nil
	}
}

// serve makes a service, as a process that starts does.
func (h *hall) serve(t *testing.T, settings config.Continuous, change ...func(*Config)) *Service {
	t.Helper()
	c := Config{Settings: &settings, Ledger: h.Ledger, Keys: h.Keys, Trust: h.trust(t), Scheduler: h.trials, Locks: h.locks, Secret: []byte("secret"), Log: slog.New(slog.DiscardHandler), Now: h.clock}
	for _, one := range change {
		one(&c)
	}
	s, err := New(c)
	check(t, err)
	return s
}

// output seals what an agent says in a chain, an hour before the clock begins.
func (h *hall) output(t *testing.T, agent, chain, text string, more ...string) *evidence.Record {
	t.Helper()
	said, err := jsontext.AppendQuote(nil, text+strings.Join(more, ""))
	check(t, err)
	p := evidence.Payload{ActionType: evidence.ModelOutput, AgentID: agent, RequestID: text, Timestamp: evidence.FormatTime(jurattest.Start), Model: "m", ModelVersion: "m-1",
		Parameters: jsontext.Value("{}"), Prompt: jsontext.Value(`"Where is parcel 17?"`), Response: said, ChainID: chain}
	return h.Seal(t, p)
}

// settleAll goes round until no trial waits or is under way.
func (h *hall) settleAll(t *testing.T, s *Service) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		check(t, s.try(t.Context()))
		check(t, h.trials.Follow(t.Context()))
		b, err := s.budget(t.Context())
		check(t, err)
		if b.waiting == 0 {
			check(t, s.try(t.Context()))
			check(t, h.trials.Follow(t.Context()))
			if b, err = s.budget(t.Context()); err == nil && b.waiting == 0 { // otherwise that has begun others
				return
			}
			check(t, err)
		}
		if time.Now().After(end) {
			t.Fatalf("%d trials do not end", b.waiting)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// draw seals the draws of a block by witnesses.
func (h *hall) draw(t *testing.T, end int64, by ...*operator.Cosigner) {
	t.Helper()
	root, err := h.Ledger.Root(t.Context(), end)
	check(t, err)
	var body operator.DrawsBody
	for _, c := range by {
		signature, err := c.Draw(operator.Checkpoint{Origin: h.Ledger.Origin(), Size: end, Root: root})
		check(t, err)
		body.Draws = append(body.Draws, operator.Draw{Root: root[:], Signature: signature, Size: end, Witness: c.Witness.String()})
	}
	h.sealDraws(t, body)
}

func (h *hall) sealDraws(t *testing.T, body operator.DrawsBody) {
	t.Helper()
	act, err := ledger.OperatorAct(evidence.Payload{ActionType: evidence.Draw, ChainID: operator.DrawsChain, Timestamp: evidence.FormatTime(h.clock())}, body)
	check(t, err)
	_, err = (ledger.Operator{Ledger: h.Ledger, Keys: h.Keys}).Seal(t.Context(), act)
	check(t, err)
}
