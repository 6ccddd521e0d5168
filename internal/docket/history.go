package docket

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"jurat/api"
	"jurat/internal/find"
	"jurat/internal/ledger"
	"jurat/internal/stats"
	"jurat/internal/trial"
)

// measured is of how many of an agent's newest finished trials a history has numbers: they are read whole, which takes some 2 ms each.
const measured = 25

// keptHistories is how many agents' numbers are kept.
const keptHistories = 256

// Histories makes histories of agents. It keeps the numbers of each until a trial of the agent has a new record. It is
// safe for concurrent use.
type Histories struct {
	mu   sync.Mutex // held while the field below is used
	kept map[string]history
}

type history struct {
	of    string // the trials that were measured, with the number of their acts
	tally *stats.Stats
}

// Of returns the history of the agent with this name, among trials that its reader may see (nil: all). after is the
// cursor of the page before. Its errors are FieldErrors for a wrong cursor, and those of reading the log.
func (h *Histories) Of(ctx context.Context, l *ledger.Ledger, t *trial.Index, agent, after string, visible func(*trial.Summary) bool) (api.AgentHistory, error) {
	q := &find.Trials{Exact: agent, Sort: find.Newest, After: after}
	found, err := q.Trials(ctx, t, nil, visible)
	if err != nil {
		return api.AgentHistory{}, err
	}
	newest, _, err := t.Before("", measured, func(s *trial.Summary) bool {
		return s.Agent == agent && s.Over && s.Fault == "" && (visible == nil || visible(s))
	})
	if err != nil {
		return api.AgentHistory{}, err
	}
	s, err := h.stats(ctx, l, agent, newest)
	if err != nil {
		return api.AgentHistory{}, err
	}
	out := api.AgentHistory{Trials: List(found), Measured: s.Trials, Changes: s.Changes, Turned: s.ChangedByTalk, Kappa: s.AfterPhase1.Kappa.Value, Jurors: []api.HistoryOfJuror{}}
	if s.Trials > 0 {
		out.Agreement = &s.AfterPhase1.Level
	}
	for _, j := range s.Jurors {
		out.Cost += j.Cost
		out.Jurors = append(out.Jurors, api.HistoryOfJuror{JurorID: j.JurorID, Asked: j.Asked, Answered: j.Answered, Changes: j.Changes, Cost: j.Cost})
	}
	return out, nil
}

func (h *Histories) stats(ctx context.Context, l *ledger.Ledger, agent string, list []trial.Summary) (*stats.Stats, error) {
	var of strings.Builder
	for _, s := range list {
		fmt.Fprintf(&of, "%s %d %d\n", s.ID, s.Acts, s.Reviews)
	}
	h.mu.Lock()
	kept, is := h.kept[agent]
	h.mu.Unlock()
	if is && kept.of == of.String() {
		return kept.tally, nil
	}
	tally := stats.New()
	for _, s := range list {
		v, err := viewOf(ctx, l, s.ID)
		if err != nil {
			return nil, err
		}
		if v != nil {
			_ = tally.AddView(v) // an error says that it has no result
		}
	}
	made := history{of.String(), tally.Stats()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil || len(h.kept) >= keptHistories {
		h.kept = map[string]history{}
	}
	h.kept[agent] = made
	return made.tally, nil
}

// viewOf reads a trial. It returns nil if its acts contradict each other: the trial's page says so.
func viewOf(ctx context.Context, l *ledger.Ledger, id string) (*trial.View, error) {
	chain, err := l.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	v, err := trial.ViewOf(nil, chain)
	if err != nil {
		return nil, nil
	}
	return v, nil
}
