package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"jurat/api"
	"jurat/internal/continuous"
)

// Continuous adds metrics of what is tried without being asked. Call it once.
func (m *Metrics) Continuous(service *continuous.Service) {
	gauge := func(name, help string, value func(*api.ContinuousTrial) float64) {
		m.gauge(name, help, func() float64 {
			status := service.Status()
			return value(&status)
		})
	}
	gauge("jurat_continuous_debts", "Records that are to be tried and were not.", func(v *api.ContinuousTrial) float64 { return float64(v.Owed) })
	gauge("jurat_continuous_trials", "Trials that were begun without being asked within 24 hours.", func(v *api.ContinuousTrial) float64 { return float64(v.Trials) })
	gauge("jurat_continuous_dollars", "What these trials have cost in US dollars; those that are not over count with the most that they may cost.", func(v *api.ContinuousTrial) float64 { return float64(v.Micro) / 1e6 })
	gauge("jurat_continuous_draws_missing", "Draws of witnesses without which it is not known which records are to be tried.", func(v *api.ContinuousTrial) float64 {
		var n int64
		for _, one := range v.Missing {
			n += one.Blocks
		}
		return float64(n)
	})
	gauge("jurat_continuous_faults", "What fails at present of the continuous trial: rounds, webhooks and agents whose reputation is not known.", func(v *api.ContinuousTrial) float64 {
		n := len(v.Faults)
		for _, one := range v.Webhooks {
			n += min(len(one.Fault), 1)
		}
		for _, one := range v.Thresholds {
			n += min(len(one.Fault), 1)
		}
		return float64(n)
	})
	gauge("jurat_webhook_messages_waiting", "Messages that webhooks have not taken yet.", func(v *api.ContinuousTrial) float64 {
		n := 0
		for _, one := range v.Webhooks {
			n += one.Waiting
		}
		return float64(n)
	})
	m.registry.MustRegister(reputations{service})
}

// reputations are metrics of the agents for which the operator has set thresholds: they have the agents' names, of which there are as many
// as the operator's configuration names.
type reputations struct{ service *continuous.Service }

var (
	reputationLower = prometheus.NewDesc("jurat_reputation_lower", "Lower bound of the reputation of an agent for which a threshold is set, from 0 to 1; absent without bounds.", []string{"agent", "class", "panel", "threshold"}, nil)
	reputationUpper = prometheus.NewDesc("jurat_reputation_upper", "Upper bound, likewise.", []string{"agent", "class", "panel", "threshold"}, nil)
)

// Describe implements prometheus.Collector.
func (r reputations) Describe(to chan<- *prometheus.Desc) {
	to <- reputationLower
	to <- reputationUpper
}

// Collect implements prometheus.Collector.
func (r reputations) Collect(to chan<- prometheus.Metric) {
	status := r.service.Status()
	for _, one := range status.Thresholds {
		if one.Lower == nil || one.Upper == nil {
			continue
		}
		panel := ""
		if !one.Panel.IsZero() {
			panel = one.Panel.Short()
		}
		labels := []string{one.Agent, one.Class, panel, strconv.FormatFloat(float64(one.Threshold)/10_000, 'f', -1, 64)}
		to <- prometheus.MustNewConstMetric(reputationLower, prometheus.GaugeValue, float64(*one.Lower)/10_000, labels...)
		to <- prometheus.MustNewConstMetric(reputationUpper, prometheus.GaugeValue, float64(*one.Upper)/10_000, labels...)
	}
}
