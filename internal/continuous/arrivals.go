package continuous

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/trial"
)

const arrivedType = "review.arrived"

// An arrival is what receivers get about a case that needs a person. It has nothing that anybody said in the trial.
type arrival struct {
	Trial     string   `json:"trial"`
	Agent     string   `json:"agent,omitzero"` // by its card, or its records; "": they name none
	Submitter string   `json:"submitter"`
	Position  string   `json:"position"` // the jury's, as score and method
	Score     int      `json:"score"`
	Method    string   `json:"method"`
	Why       []string `json:"why"`
}

// arrivals finds the cases that need a person. They follow from the log, whoever conducted the trial, and whether that process still runs.
// A case on which a person has decided meanwhile is no longer one.
func (t *telling) arrivals(ctx context.Context) error {
	if !t.service.config.Settings.Arrivals {
		return nil
	}
	waiting, err := t.service.config.Scheduler.Summaries(ctx, func(s *trial.Summary) bool { return s.NeedsPerson() })
	if err != nil {
		return err
	}
	before, since := t.arrived, t.service.config.Now().Add(-tellFor)
	known := map[string]*news{}
	for _, n := range before {
		known[n.id] = n
	}
	t.arrived = nil
	for i := range waiting {
		s := &waiting[i]
		one, err := t.arrivalOf(ctx, known, s, since)
		if err != nil {
			return fmt.Errorf("trial %s: %w", s.ID, err)
		}
		if one != nil {
			t.arrived = append(t.arrived, one)
		}
	}
	t.forgetDecided(before)
	return nil
}

// arrivalOf returns the news of a case that needs a person: the one that is known already, or a new one. It returns nil if the case has
// waited for too long to be told of, or its record is no longer there.
func (t *telling) arrivalOf(ctx context.Context, known map[string]*news, s *trial.Summary, since time.Time) (*news, error) {
	id, at, err := arrivedBy(s)
	if err != nil {
		return nil, err
	}
	if one := known[id]; one != nil || !at.After(since) {
		return one, nil
	}
	record, err := t.service.config.Ledger.Briefs().ByID(ctx, id)
	switch {
	case errors.Is(err, ledger.ErrExpired), errors.Is(err, ledger.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	v := &s.Outcome.Verdict
	return &news{id: id, of: record.Digest, at: at, arrival: &arrival{Trial: s.ID, Agent: s.Agent, Submitter: s.Submitter,
		Position: string(v.Position), Score: v.Score, Method: string(v.Method), Why: s.WhyOpen()}}, nil
}

// arrivedBy returns the id of the record since which a case needs a person, and when it came: the jury's verdict, when the trial ended, or
// a person's decision that leaves the case open.
func arrivedBy(s *trial.Summary) (id string, at time.Time, err error) {
	d := s.Outcome.Decision
	if d == nil {
		return s.Outcome.Verdict.Record, s.Last, nil
	}
	at, err = evidence.ParseTime(d.At)
	return d.Record, at, err
}

// forgetDecided forgets attempts to tell of cases that no longer need a person.
func (t *telling) forgetDecided(before []*news) {
	still := map[*news]bool{}
	for _, n := range t.arrived {
		still[n] = true
	}
	for _, n := range before {
		if !still[n] {
			for id := range t.service.config.Receivers {
				delete(t.tried, delivery{n.of, id})
			}
		}
	}
}

// isArrival reports whether an act is the arrival of a case.
func (t *telling) isArrival(of evidence.Digest) bool {
	return slices.ContainsFunc(t.arrived, func(n *news) bool { return n.of == of })
}
