package server

import (
	"cmp"
	"context"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jurat/evidence"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/witness"
	"jurat/jury"
)

// metered may read the metrics. They are not public, because they show how busy the server is.
var metered = Who{Roles: []access.Role{access.Auditor, access.Operator}}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	w.Header().Set("Cache-Control", "no-store")
	s.metrics.ServeHTTP(w, r)
	return nil
}

// gaugeSources say where the gauges come from. All fields but Trials are needed.
type gaugeSources struct {
	Records  func(context.Context) (int64, error)              // records in the log
	Waiting  func(context.Context) (int, error)                // trials that wait, in all processes
	UnderWay func() int                                        // trials that this process conducts
	Cosigned func(context.Context) (*witness.Cosigning, error) // the last checkpoint that witnesses cosigned; nil without one
	Owing    func(context.Context) ([]storage.Owed, error)     // records that wait for time stamps
	Open     func(context.Context) ([]time.Time, error)        // when the trials were submitted that need a person, the oldest first
	Grants   func(context.Context) ([]access.Grant, error)     // tokens
	Trials   *TrialMetrics                                     // nil: none, as on a server that holds no trials
	Now      func() time.Time
}

// metrics are those of one server. Their labels have few values: routes, statuses, action types, and no name or id. They are safe for concurrent use.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	seals    *prometheus.CounterVec
	refusals *prometheus.CounterVec
}

func newMetrics(c gaugeSources) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: counter("jurat_http_requests_total", "Answered requests.", "route", "status"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jurat_http_request_seconds", Help: "How long answers took, and how long streams ran.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"route"}),
		seals:    counter("jurat_records_sealed_total", "Records that were sealed or accepted over HTTP.", "action_type"),
		refusals: counter("jurat_requests_refused_total", "Requests that were refused, and why.", "route", "problem"),
	}
	m.registry.MustRegister(m.requests, m.latency, m.seals, m.refusals)
	// Metrics of the process itself: memory, goroutines, open files.
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC)))
	m.registry.MustRegister(owing{&c}, build())
	m.gauges(&c)
	m.witnesses(&c)
	if c.Trials != nil {
		m.registry.MustRegister(c.Trials.verdicts, c.Trials.absences, c.Trials.answers, c.Trials.cost)
	}
	return m
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// gauge adds a gauge, which is -1 while its value cannot be read.
func gauge[N int | int64 | float64](m *metrics, name, help string, value func(context.Context) (N, error)) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		n, err := value(context.Background()) // Prometheus passes no context
		if err != nil {
			return -1
		}
		return float64(n)
	}))
}

const soon = 7 * 24 * time.Hour

// gauges adds those of the log, of trials, and of what waits for people.
func (m *metrics) gauges(c *gaugeSources) {
	gauge(m, "jurat_ledger_records", "Records in the log; -1 while it cannot be read.", c.Records)
	gauge(m, "jurat_trials_waiting", "Trials that wait for their turn, in all processes together; -1 while that cannot be read.", c.Waiting)
	gauge(m, "jurat_trials_under_way", "Trials that are being conducted in this process.", func(context.Context) (int, error) { return c.UnderWay(), nil })
	gauge(m, "jurat_reviews_open", "Trials that need a person; -1 while that cannot be read.", func(ctx context.Context) (int, error) {
		open, err := c.Open(ctx)
		return len(open), err
	})
	const oldest = "Time since the oldest of them was submitted; 0 if there are none, -1 while that cannot be read."
	gauge(m, "jurat_reviews_oldest_age_seconds", oldest, func(ctx context.Context) (float64, error) {
		open, err := c.Open(ctx)
		if len(open) == 0 {
			return 0, err
		}
		return max(c.Now().Sub(open[0]).Seconds(), 0), err
	})
	tokens := func(within time.Duration) func(context.Context) (float64, error) {
		return func(ctx context.Context) (n float64, err error) {
			grants, err := c.Grants(ctx)
			for _, g := range grants {
				if g.Ended == nil && !g.Session && (within == 0 || g.Until.Sub(c.Now()) < within) {
					n++
				}
			}
			return n, err
		}
	}
	gauge(m, "jurat_access_tokens", "Valid tokens without sessions of browsers; -1 while that cannot be read.", tokens(0))
	gauge(m, "jurat_access_tokens_expiring", "Those of them that end within seven days.", tokens(soon))
}

// witnesses adds gauges that show whether the witnesses keep up. They are 0 where no checkpoint is cosigned or can be read.
func (m *metrics) witnesses(c *gaugeSources) {
	kept := func(value func(*witness.Cosigning) int64) func(context.Context) (int64, error) {
		return func(ctx context.Context) (int64, error) {
			last, err := c.Cosigned(ctx)
			if err != nil || last == nil {
				return 0, nil
			}
			return value(last), nil
		}
	}
	gauge(m, "jurat_log_cosigned_records", "Records under the last checkpoint that witnesses have cosigned; 0 without witnesses.",
		kept(func(k *witness.Cosigning) int64 { return k.Size }))
	gauge(m, "jurat_log_cosignatures", "Witnesses that have cosigned that checkpoint.", kept(func(k *witness.Cosigning) int64 { return int64(k.Cosigned()) }))
	gauge(m, "jurat_log_quorum", "Witnesses that must cosign a checkpoint for it to count.", kept(func(k *witness.Cosigning) int64 { return int64(k.Quorum) }))
}

// Untold adds the gauge of messages that the webhook has not taken yet. Call it once.
func (m *metrics) Untold(waiting func() int64) {
	gauge(m, "jurat_webhook_messages_waiting", "Messages that the webhook has not taken yet.", func(context.Context) (int64, error) { return waiting(), nil })
}

func (m *metrics) Sealed(action evidence.ActionType) { m.seals.WithLabelValues(string(action)).Inc() }

func (m *metrics) Refused(route, problem string) { m.refusals.WithLabelValues(route, problem).Inc() }

func (m *metrics) Answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
}

// owing are gauges of the records that wait for time stamps. The label authority has as many values as the operator has configured authorities.
type owing struct{ *gaugeSources }

var (
	stampsWaiting = prometheus.NewDesc("jurat_stamps_waiting", "Records that wait for a time stamp of this authority.", []string{"authority"}, nil)
	stampsOldest  = prometheus.NewDesc("jurat_stamps_oldest_age_seconds", "How long the first of them has waited.", []string{"authority"}, nil)
)

func (o owing) Describe(to chan<- *prometheus.Desc) {
	to <- stampsWaiting
	to <- stampsOldest
}

// Collect implements prometheus.Collector. If the log cannot be read, the gauges are absent.
func (o owing) Collect(to chan<- prometheus.Metric) {
	owed, err := o.Owing(context.Background()) // Prometheus passes no context
	if err != nil {
		return
	}
	for _, one := range owed {
		to <- prometheus.MustNewConstMetric(stampsWaiting, prometheus.GaugeValue, float64(one.Records), one.Authority)
		to <- prometheus.MustNewConstMetric(stampsOldest, prometheus.GaugeValue, max(o.Now().Sub(one.Since).Seconds(), 0), one.Authority)
	}
}

// build says which program this is, in the labels of a gauge.
func build() prometheus.Collector {
	version, revision, goVersion := "(devel)", "", ""
	if info, known := debug.ReadBuildInfo(); known {
		goVersion, version = info.GoVersion, cmp.Or(info.Main.Version, version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "jurat_build_info", Help: "The program: always 1."}, []string{"version", "revision", "goversion"})
	g.WithLabelValues(version, revision, goVersion).Set(1)
	return g
}

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

// NewTrialMetrics makes metrics that count from now on: what happened before another process may have counted.
func NewTrialMetrics(now time.Time) *TrialMetrics {
	t := &TrialMetrics{began: now, heard: map[string]int64{}, models: map[string]bool{},
		verdicts: counter("jurat_verdicts_total", "Verdicts of juries in this process.", "position"),
		absences: counter("jurat_juror_absences_total", "Answers that jurors and judges did not give in this process.", "reason"),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jurat_juror_answer_seconds", Help: "How long a seat took for an answer or for " +
			"giving none, with repetitions and waits, by the seat's model.", Buckets: []float64{.01, .1, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300}}, []string{"model"}),
		cost: counter("jurat_juror_cost_dollars_total", "What the answers cost in US dollars by the operator's price table, by the seat's model.", "model"),
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

// Hear counts an event of a trial. What was counted before the trial went on is not counted again.
func (t *TrialMetrics) Hear(e trial.Event) {
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

// mostModels bounds the values of the label model: these are names that the operator configured.
const mostModels = 100

// Measured returns a juror or judge that is measured as of a model.
func (t *TrialMetrics) Measured(juror jury.Juror, model string) jury.Juror {
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

func (m measured) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	began := time.Now()
	answer, err := m.Juror.Answer(ctx, b)
	m.took.Observe(time.Since(began).Seconds())
	if effort, unread := jury.ReadEffort(answer.Origin.Metadata); unread == nil { // the trial refuses what cannot be read
		var bill jury.Bill
		bill.Add(effort)
		m.cost.Add(max(float64(bill.Cost), 0) / 1e6)
	}
	return answer, err
}
