package server

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"jurat/internal/access"
	"jurat/internal/ledger/storage"
)

// A domain says where the gauges of what waits for people and authorities come from. All fields are needed.
type domain struct {
	Owing  func(context.Context) ([]storage.Owed, error)  // records that wait for time stamps
	Open   func(context.Context) ([]time.Time, error)     // when the trials were submitted that need a person, the oldest first
	Grants func(context.Context) ([]access.Listed, error) // tokens
	Now    func() time.Time
}

// soon is before when a token expires soon.
const soon = 7 * 24 * time.Hour

// domain adds these gauges. The label authority has as many values as the operator has configured authorities.
func (m *metrics) domain(d domain) {
	m.registry.MustRegister(owing{d}, build{})
	m.gauge("jurat_reviews_open", "Trials that need a person; -1 while that cannot be read.", func() float64 {
		return countOf(func(ctx context.Context) (int, error) { open, err := d.Open(ctx); return len(open), err })
	})
	m.gauge("jurat_reviews_oldest_age_seconds", "Time since the oldest of them was submitted; 0 if there are none, -1 while that cannot be read.", func() float64 {
		open, err := d.Open(context.Background()) // Prometheus passes no context
		switch {
		case err != nil:
			return -1
		case len(open) == 0:
			return 0
		}
		return max(d.Now().Sub(open[0]).Seconds(), 0)
	})
	tokens := func(within time.Duration) func() float64 {
		return func() float64 {
			return countOf(func(ctx context.Context) (n int, err error) {
				grants, err := d.Grants(ctx)
				for _, g := range grants {
					if g.Ended == nil && !g.Session && (within == 0 || g.Until.Sub(d.Now()) < within) {
						n++
					}
				}
				return n, err
			})
		}
	}
	m.gauge("jurat_access_tokens", "Valid tokens without sessions of browsers; -1 while that cannot be read.", tokens(0))
	m.gauge("jurat_access_tokens_expiring", "Those of them that end within seven days.", tokens(soon))
}

// owing are gauges of the records that wait for time stamps.
type owing struct{ domain }

var (
	stampsWaiting = prometheus.NewDesc("jurat_stamps_waiting", "Records that wait for a time stamp of this authority.", []string{"authority"}, nil)
	stampsOldest  = prometheus.NewDesc("jurat_stamps_oldest_age_seconds", "How long the first of them has waited.", []string{"authority"}, nil)
)

// Describe implements prometheus.Collector.
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

// build says which program this is.
type build struct{}

var buildInfo = prometheus.NewDesc("jurat_build_info", "The program: always 1.", []string{"version", "revision", "goversion"}, nil)

// Describe implements prometheus.Collector.
func (build) Describe(to chan<- *prometheus.Desc) { to <- buildInfo }

// Collect implements prometheus.Collector.
func (build) Collect(to chan<- prometheus.Metric) {
	version, revision, goVersion := "(devel)", "", ""
	if info, known := debug.ReadBuildInfo(); known {
		if goVersion = info.GoVersion; info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	to <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, version, revision, goVersion)
}
