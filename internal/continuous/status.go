package continuous

import (
	"maps"
	"slices"

	"jurat/api"
	"jurat/reputation/draw"
)

// shownDebts is how many debts a status lists: the oldest.
const shownDebts = 200

// A shown is what is shown of a Service. Its slices are replaced and never changed.
type shown struct {
	api.ContinuousTrial
	faults map[string]string // by what failed
}

func (s *Service) note(change func(*shown)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.shown)
}

// fail notes that something failed, or, with "", that it succeeded.
func (v *shown) fail(what, why string) {
	if v.faults == nil {
		v.faults = map[string]string{}
	}
	if v.faults[what] = why; why == "" {
		delete(v.faults, what)
	}
	v.Faults = []string{}
	for _, what := range slices.Sorted(maps.Keys(v.faults)) {
		v.Faults = append(v.Faults, what+": "+v.faults[what])
	}
}

// Status returns what is to be shown. The caller must not change it. Of nil, it is that of a server which tries nothing unasked.
func (s *Service) Status() api.ContinuousTrial {
	if s == nil {
		return api.ContinuousTrial{Debts: []api.TrialDebt{}, Missing: []api.MissingDraws{}, Thresholds: []api.ThresholdState{}, Webhooks: []api.WebhookState{}, Faults: []string{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.ContinuousTrial
}

// begin sets what a status says before the first round.
func (s *Service) begin() {
	s.shown.ContinuousTrial = (*Service)(nil).Status()
	settings := s.config.Settings
	s.shown.On, s.shown.Drawn, s.shown.Sampled, s.shown.TrialsADay, s.shown.MicroADay = true, settings.Drawn, settings.Sampled, settings.TrialsADay, settings.MicroDollars()
}

// report notes what is owed.
func (s *Service) report(b budget) {
	debts := []api.TrialDebt{}
	for _, d := range s.picked.debts[:min(shownDebts, len(s.picked.debts))] {
		_, begun := s.config.Scheduler.Summary(draw.TrialChain(d.of))
		debts = append(debts, api.TrialDebt{Record: d.of, Index: d.index, Agent: d.agent, Trial: draw.TrialChain(d.of), Begun: begun,
			Witnesses: append([]string{}, d.witnesses...), Why: d.why})
	}
	missing := []api.MissingDraws{}
	lacking := s.picked.missing()
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		missing = append(missing, api.MissingDraws{Witness: name, Blocks: lacking[name]})
	}
	s.note(func(v *shown) {
		v.Owed, v.Debts, v.Missing, v.Trials, v.Micro = len(s.picked.debts), debts, missing, b.trials, b.micro
	})
}
