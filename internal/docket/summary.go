package docket

import (
	"slices"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/verify"
)

// A ChainSummary is what acts of a chain come to.
type ChainSummary struct {
	Agent      string        `json:"agent"` // who acted; of several, the first
	First      string        `json:"first"` // the time of its first record
	Last       string        `json:"last"`
	Records    int           `json:"records"`
	Calls      int           `json:"calls"` // acts of the agent
	Failed     int           `json:"failed"`
	Gaps       int           `json:"gaps"`   // records that say that something is missing
	Models     []string      `json:"models"` // that answered, or were asked for
	Seen       []verify.Seen `json:"seen"`   // who saw it, from where
	Tokens     *Tokens       `json:"tokens,omitzero"`
	Cost       *int64        `json:"cost_micros,omitzero"` // of the calls whose price is known
	Unpriced   int           `json:"unpriced"`             // calls of which no price or no count of tokens is known
	SecondHand bool          `json:"second_hand"`          // nobody saw the bytes of some of it
}

// maxModels bounds the models that a summary names.
const maxModels = 20

// Sum sums up the acts of a part.
func (p *ChainPart) Sum() ChainSummary {
	s := ChainSummary{Models: []string{}, Seen: []verify.Seen{}}
	for i := range p.Acts {
		s.add(&p.Acts[i])
	}
	return s
}

// add counts one act.
func (s *ChainSummary) add(a *RecordedAct) {
	s.Records++
	if s.First == "" {
		s.First = a.Time
	}
	s.Last = a.Time
	if e := a.Event; e != nil && (e.Event == observed.Gap || e.Event == observed.LostInCrash) {
		s.Gaps++
	}
	o := a.Observed
	if o == nil {
		return
	}
	s.Calls++
	if s.Agent == "" {
		s.Agent = o.Agent
	}
	switch {
	case o.Ended == evidence.LostInCrash:
		s.Gaps++
	case o.Ended != evidence.Complete || o.Status >= 400:
		s.Failed++
	}
	s.SecondHand = s.SecondHand || o.Fidelity != evidence.ByBytes
	s.note(a)
	s.count(a)
}

// note takes in which model answered, and who saw it.
func (s *ChainSummary) note(a *RecordedAct) {
	model := a.ModelVersion
	if model == "" {
		model = a.Model
	}
	if model != "" && len(s.Models) < maxModels && !slices.Contains(s.Models, model) {
		s.Models = append(s.Models, model)
	}
	for i := range s.Seen {
		if seen := &s.Seen[i]; seen.Recorder == a.Recorder && seen.Vantage == a.Observed.Vantage && seen.Fidelity == a.Observed.Fidelity {
			seen.Records++
			return
		}
	}
	s.Seen = append(s.Seen, verify.Seen{Recorder: a.Recorder, Vantage: a.Observed.Vantage, Fidelity: a.Observed.Fidelity, Records: 1})
}

// count adds tokens and costs.
func (s *ChainSummary) count(a *RecordedAct) {
	if t := a.Tokens; t != nil {
		if s.Tokens == nil {
			s.Tokens = new(Tokens)
		}
		s.Tokens.Input, s.Tokens.Cached, s.Tokens.Output = s.Tokens.Input+t.Input, s.Tokens.Cached+t.Cached, s.Tokens.Output+t.Output
	}
	if a.Cost == nil {
		s.Unpriced++
		return
	}
	if s.Cost == nil {
		s.Cost = new(int64)
	}
	*s.Cost += *a.Cost
}
