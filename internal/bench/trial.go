package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/subject"
	"jurat/internal/trial"
	"jurat/jury"
)

// Trial measures trials whose jurors take a fixed time to answer: the rest is what this program adds. Several trials run at the same time.
func Trial(ctx context.Context, c Config) (*Report, error) {
	return run(c, "trial", func(c Config, dir string, r *Report) error {
		if c.Callers == 0 {
			c.Callers = 8
		}
		h, err := furnish(ctx, c, dir, "data")
		if err != nil {
			return err
		}
		r.Settings = Settings{Callers: c.Callers, Algorithm: c.Algorithm}
		return errors.Join(trials(ctx, c, h, r), h.Close())
	})
}

func trials(ctx context.Context, c Config, h *house, r *Report) error {
	on, err := aCase()
	if err != nil {
		return err
	}
	if _, _, err := h.try(ctx, c, on); err != nil { // the first trial makes the keys
		return err
	}
	var mu sync.Mutex // held while the sums below are updated
	var took, ideal time.Duration
	var alone timings
	n, acts, begin, used := 0, 0, time.Now(), processorTime()
	one := func(ctx context.Context) error {
		t, bound, err := h.try(ctx, c, on)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		first, last := t.Records[0].Payload.Time(), t.Records[len(t.Records)-1].Payload.Time()
		took, ideal, n, acts = took+last.Sub(first), ideal+bound, n+1, acts+len(t.Records)
		alone = append(alone, last.Sub(first))
		c.Progress("trials held", int64(min(time.Since(begin), c.Time)), int64(c.Time))
		return nil
	}
	var all meter
	if err := all.during(ctx, c.Time, c.Callers, one); err != nil {
		return err
	}
	mean := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
	r.figure(fmt.Sprintf("time of a trial, %d at the same time", c.Callers), "ms", mean(took), &Limit{"its slowest jurors' answers", mean(ideal)})
	r.figure("time of a trial (median)", "ms", float64(alone.median().Microseconds())/1000, nil)
	r.figure("trials/s", "1/s", all.perSecond(), nil)
	r.figure("acts sealed in a trial", "acts", float64(acts)/float64(n), nil)
	if spent := processorTime() - used; spent > 0 {
		r.figure("processor time of a trial", "ms", float64(spent.Microseconds())/1000/float64(n), nil)
	}
	return nil
}

// try holds a trial. It also returns how long its slowest answers took, one after the other.
func (h *house) try(ctx context.Context, c Config, on *subject.Case) (*trial.Trial, time.Duration, error) {
	config := deliberating(c.Delay)
	config.Ledger, config.Keys, config.Locks = h.Ledger, h.Keys, h.Locks()
	t, err := trial.Run(ctx, config, on)
	if err != nil {
		return nil, 0, err
	}
	if t.Result.Degraded {
		return nil, 0, fmt.Errorf("trial %s is degraded", t.ID)
	}
	phases := 0 // phases and rounds
	for _, r := range t.Records {
		if r.Payload.ActionType == evidence.PhaseOpening {
			phases++
		}
	}
	return t, time.Duration(phases) * c.Delay, nil
}

func aCase() (*subject.Case, error) { return caseOf("") }

// caseOf returns an example whose agent has this name; "": its own.
func caseOf(name string) (*subject.Case, error) {
	card, conversation, err := examples.Read(examples.Names()[0])
	if err != nil {
		return nil, err
	}
	on, err := subject.New(card, conversation)
	if err != nil || name == "" {
		return on, err
	}
	return subject.New(bytes.ReplaceAll(card, []byte(on.Card.Name), []byte(name)), conversation)
}

// deliberating returns a jury of three: one juror takes the full time, one half of it, one a quarter. The judge takes the full time.
func deliberating(slowest time.Duration) trial.Config {
	seats := []jury.Seat{seat("juror-slow", "Slowest"), seat("juror-middle", "Slower"), seat("juror-fast", "Slow")}
	judge := seat("judge", "Judge")
	config := trial.Config{Judge: thinker(slowest), Settings: jury.Settings{Seats: seats, Judge: &judge, Rubric: jury.DefaultRubric(),
		Collaborative: true, MaxRounds: 1, Threshold: 2, Method: jury.FinalJudge}}
	for i := range seats {
		config.Jurors = append(config.Jurors, thinker(slowest>>i))
	}
	return config
}

func seat(id, role string) jury.Seat {
	return jury.Seat{JurorID: id, RoleName: role, RoleFocus: "a benchmark", Provider: "benchmark", Model: "none", Parameters: jsontext.Value("{}"),
		Template: evidence.DigestOf([]byte("benchmark"))}
}

// A thinker is a juror that waits, and always gives the same answer.
type thinker time.Duration

var said = jury.Origin{Model: "none", ModelVersion: "1"}

func (t thinker) think(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t thinker) opinion() jury.Opinion {
	o := jury.Opinion{Position: jury.SafePass, AxisScores: jury.Scores{}, Confidence: 0.8, Findings: []jury.Finding{},
		Rationale: "This is a benchmark: nobody has read anything. " + strings.Repeat("Nothing was found. ", 20)}
	for _, axis := range jury.DefaultRubric() {
		o.AxisScores[axis.ID] = axis.Max * 85 / 100
		o.TotalScore += o.AxisScores[axis.ID]
	}
	return o
}

// Answer implements jury.Juror.
func (t thinker) Answer(ctx context.Context, _ jury.Brief) (jury.Answer, error) {
	return jury.Answer{Opinion: t.opinion(), Origin: said,
		Speech: jury.Speech{Statement: "I stay with what I said.", Position: jury.SafePass, Reasoning: "Nothing new was said."}}, t.think(ctx)
}

// A voter is a juror that answers at once: it passes, doubts or fails the agent.
type voter int

// Answer implements jury.Juror.
func (v voter) Answer(context.Context, jury.Brief) (jury.Answer, error) {
	o, percent := thinker(0).opinion(), []int{85, 60, 30}[v%3]
	o.Position, o.TotalScore = []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail}[v%3], 0
	for _, axis := range jury.DefaultRubric() {
		o.AxisScores[axis.ID] = axis.Max * percent / 100
		o.TotalScore += o.AxisScores[axis.ID]
	}
	return jury.Answer{Opinion: o, Origin: said, Speech: jury.Speech{Statement: "I stay with what I said.", Position: o.Position, Reasoning: "Nothing new was said."}}, nil
}
