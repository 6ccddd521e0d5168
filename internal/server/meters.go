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
	"jurat/internal/access"
)

// metered may read the metrics. They are not public, because they show how busy the server is.
var metered = Who{Roles: []access.Role{access.Auditor, access.Operator}}

// meters holds the metrics. Their labels have few values: routes, statuses, action types, and no name or id but those of agents for which
// the operator's configuration has thresholds.
type meters struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	seals    *prometheus.CounterVec
}

// newMeters makes the metrics of one server. size returns the number of records in the log, waiting the number of
// trials that wait in all processes, underWay the number that this process holds.
func newMeters(size func(context.Context) (int64, error), waiting func(context.Context) (int, error), underWay func() int) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_http_requests_total", Help: "Answered requests."},
			[]string{"route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "jurat_http_request_seconds", Help: "How long answers took; of streams, how long they ran.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60}}, []string{"route"}),
		seals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "jurat_records_sealed_total", Help: "Records that were sealed or accepted over HTTP."},
			[]string{"action_type"}),
	}
	ledgerSize := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jurat_ledger_records", Help: "Records in the log; -1 while it cannot be read."},
		func() float64 { return countOf(size) })
	m.registry.MustRegister(m.requests, m.latency, m.seals, ledgerSize)
	// Metrics of the process itself: memory, goroutines, open files.
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC)))
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jurat_trials_waiting", Help: "Trials that wait for their turn, in all processes together; -1 while that cannot be read."},
			func() float64 { return countOf(waiting) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "jurat_trials_under_way", Help: "Trials that are being conducted in this process."},
			func() float64 { return float64(underWay()) }))
	return m
}

// countOf returns -1 if the count fails. Prometheus passes no context.
func countOf[N int | int64](count func(context.Context) (N, error)) float64 {
	n, err := count(context.Background())
	if err != nil {
		return -1
	}
	return float64(n)
}

func (m *meters) sealed(action evidence.ActionType) { m.seals.WithLabelValues(string(action)).Inc() }

func (m *meters) answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	w.Header().Set("Cache-Control", "no-store")
	promhttp.HandlerFor(s.meters.registry, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(w, r)
	return nil
}

// watched is a ResponseWriter that stores the status. Unwrap gives access to the other abilities of the writer below.
type watched struct {
	http.ResponseWriter
	status int
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if w.status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}
