package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"jurat/evidence"
	"jurat/internal/witness"
)

// A metricsConfig says where the gauges come from. All fields but Trials are needed.
type metricsConfig struct {
	Records  func(context.Context) (int64, error)              // records in the log
	Waiting  func(context.Context) (int, error)                // trials that wait, in all processes
	UnderWay func() int                                        // trials that this process conducts
	Cosigned func(context.Context) (*witness.Cosigning, error) // the last checkpoint that witnesses cosigned; nil without one
	Trials   *TrialMetrics                                     // nil: none, as on a server that holds no trials
	Domain   domain
}

// metrics are those of one server. Their labels have few values: routes, statuses, action types, and no name or id. They are safe for concurrent use.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	seals    *prometheus.CounterVec
}

// newMetrics makes the metrics of one server.
func newMetrics(c metricsConfig) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_http_requests_total", Help: "Answered requests."},
			[]string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jurat_http_request_seconds", Help: "How long answers took; of streams, how long they ran.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"route"}),
		seals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_records_sealed_total", Help: "Records that were sealed or accepted over HTTP."},
			[]string{"action_type"}),
	}
	m.registry.MustRegister(m.requests, m.latency, m.seals)
	// Metrics of the process itself: memory, goroutines, open files.
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC)))
	m.gauge("jurat_ledger_records", "Records in the log; -1 while it cannot be read.", func() float64 { return countOf(c.Records) })
	m.gauge("jurat_trials_waiting", "Trials that wait for their turn, in all processes together; -1 while that cannot be read.", func() float64 { return countOf(c.Waiting) })
	m.gauge("jurat_trials_under_way", "Trials that are being conducted in this process.", func() float64 { return float64(c.UnderWay()) })
	m.witnesses(c)
	m.domain(c.Domain)
	if c.Trials != nil {
		m.registry.MustRegister(c.Trials)
	}
	return m
}

func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// countOf returns -1 if the count fails. Prometheus passes no context.
func countOf[N int | int64](count func(context.Context) (N, error)) float64 {
	n, err := count(context.Background())
	if err != nil {
		return -1
	}
	return float64(n)
}

// witnesses adds gauges that show whether the witnesses keep up.
func (m *metrics) witnesses(c metricsConfig) {
	kept := func(value func(*witness.Cosigning) float64) func() float64 {
		return func() float64 {
			last, err := c.Cosigned(context.Background()) // Prometheus passes no context
			if err != nil || last == nil {
				return 0
			}
			return value(last)
		}
	}
	m.gauge("jurat_log_cosigned_records", "Records under the last checkpoint that witnesses have cosigned; 0 without witnesses.",
		kept(func(k *witness.Cosigning) float64 { return float64(k.Size) }))
	m.gauge("jurat_log_cosignatures", "Witnesses that have cosigned that checkpoint.", kept(func(k *witness.Cosigning) float64 { return float64(k.Cosigned()) }))
	m.gauge("jurat_log_quorum", "Witnesses that must have cosigned a checkpoint for it to count.", kept(func(k *witness.Cosigning) float64 { return float64(k.Quorum) }))
}

// Untold adds the gauge of messages that the webhook has not taken yet. Call it once.
func (m *metrics) Untold(waiting func() int64) {
	m.gauge("jurat_webhook_messages_waiting", "Messages that the webhook has not taken yet.", func() float64 { return float64(waiting()) })
}

// Sealed counts a record that was sealed or accepted.
func (m *metrics) Sealed(action evidence.ActionType) { m.seals.WithLabelValues(string(action)).Inc() }

// Answered counts an answer.
func (m *metrics) Answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

// ServeHTTP answers with all metrics, in Prometheus' text format.
func (m *metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
}
