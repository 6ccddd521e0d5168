package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jurat/internal/trial"
	"jurat/jury"
)

// TrialMetrics are metrics of the trials that this process holds. They are safe for concurrent use.
type TrialMetrics struct {
	verdicts *prometheus.CounterVec
	absences *prometheus.CounterVec
	answers  *prometheus.HistogramVec
	cost     *prometheus.CounterVec
	began    time.Time

	mu     sync.Mutex       // guards the fields below
	heard  map[string]int64 // for each trial that is not over: the number of the last event that was counted
	models map[string]bool  // that are labels
}

// NewTrialMetrics makes metrics that count from now on: what happened before stands in the log, and another process may have
// counted it.
func NewTrialMetrics(now time.Time) *TrialMetrics {
	t := &TrialMetrics{began: now, heard: map[string]int64{}, models: map[string]bool{},
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_verdicts_total", Help: "Verdicts of juries in this process."}, []string{"position"}),
		absences: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_juror_absences_total", Help: "Answers that jurors and judges did not give in this process."}, []string{"reason"}),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jurat_juror_answer_seconds", Help: "How long a seat took for an answer or for giving none, with repetitions and waits, by the seat's model.",
			Buckets: []float64{.01, .1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300}}, []string{"model"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_juror_cost_dollars_total", Help: "What the answers cost in US dollars by the operator's price table, by the seat's model."}, []string{"model"}),
	}
	for _, position := range []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail} {
		t.verdicts.WithLabelValues(string(position))
	}
	for _, reason := range reasons {
		t.absences.WithLabelValues(string(reason))
	}
	return t
}

var reasons = []jury.AbsenceReason{jury.TimedOut, jury.Blocked, jury.Invalid, jury.Failed, jury.Ceiling}

// Listen returns a function that counts the events of one trial. A trial that goes on is heard from its beginning again,
// so what was counted is not counted twice.
func (t *TrialMetrics) Listen() func(trial.Event) { return t.hear }

func (t *TrialMetrics) hear(e trial.Event) {
	head := e.Head()
	if _, later := e.(trial.PersonDecided); later { // after the end
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if head.Seq <= t.heard[head.SubmissionID] {
		return
	}
	t.heard[head.SubmissionID] = head.Seq
	if _, over := e.(trial.TrialClosed); over {
		delete(t.heard, head.SubmissionID)
	}
	if head.At.Before(t.began) {
		return
	}
	switch e := e.(type) {
	case trial.Judged:
		t.verdicts.WithLabelValues(string(e.Judgment.Position)).Inc()
	case trial.JurorAbsent:
		t.absences.WithLabelValues(string(e.Reason)).Inc()
	}
}

// Seated returns the configuration of a trial whose jurors and judge are measured.
func (t *TrialMetrics) Seated(c trial.Config) trial.Config {
	jurors := make([]jury.Juror, len(c.Jurors))
	for i, juror := range c.Jurors {
		model := ""
		if i < len(c.Settings.Seats) { // otherwise the trial refuses the configuration
			model = c.Settings.Seats[i].Model
		}
		jurors[i] = t.measured(juror, model)
	}
	c.Jurors = jurors
	if c.Judge != nil && c.Settings.Judge != nil {
		c.Judge = t.measured(c.Judge, c.Settings.Judge.Model)
	}
	return c
}

// mostModels bounds the values of the label model: these are names that the operator configured.
const mostModels = 100

func (t *TrialMetrics) measured(juror jury.Juror, model string) jury.Juror {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.models[model] && len(t.models) >= mostModels {
		model = "other"
	}
	t.models[model] = true
	return measured{juror, t.answers.WithLabelValues(model), t.cost.WithLabelValues(model)}
}

// A measured juror answers as the one within.
type measured struct {
	jury.Juror
	took prometheus.Observer
	cost prometheus.Counter
}

// Answer implements jury.Juror.
func (m measured) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	began := time.Now()
	answer, err := m.Juror.Answer(ctx, b)
	m.took.Observe(time.Since(began).Seconds())
	if effort, unread := jury.ReadEffort(answer.Origin.Metadata); unread == nil { // the trial refuses what cannot be read
		for _, attempt := range effort.Attempts {
			m.cost.Add(max(float64(attempt.Cost), 0) / 1e6)
		}
	}
	return answer, err
}

// Describe implements prometheus.Collector.
func (t *TrialMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range t.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (t *TrialMetrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range t.collectors() {
		c.Collect(to)
	}
}

func (t *TrialMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.verdicts, t.absences, t.answers, t.cost}
}
