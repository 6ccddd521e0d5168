package docket

import (
	"context"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/trial"
)

// Recordings answers a search for chains in which recorders saw something. Its errors are those of Trials.
func (k *Keeper) Recordings(ctx context.Context, get func(string) string, t *trial.Index, by *Reader) (api.Recordings, error) {
	q, err := find.ReadRecordings(get)
	if err != nil {
		return api.Recordings{}, err
	}
	x, state, err := k.Ready(ctx)
	if err != nil {
		return api.Recordings{}, err
	}
	found, err := x.Recordings(ctx, q)
	if err != nil {
		return api.Recordings{}, err
	}
	list := api.Recordings{Recordings: []api.Recording{}, Next: found.Next, Index: state}
	for i := range found.Recordings {
		line, err := Recording(&found.Recordings[i], t, by)
		if err != nil {
			return api.Recordings{}, err
		}
		list.Recordings = append(list.Recordings, line)
	}
	return list, nil
}

// Recording is a recorded chain in a list, with the trials that its reader may see. Its error is that of the reader's States.
func Recording(r *find.Recording, t *trial.Index, by *Reader) (api.Recording, error) {
	line := api.Recording{Chain: r.Chain, Agents: r.Agents, Recorders: r.Recorders, Models: r.Models, Protocols: r.Protocols, Vantages: r.Vantages,
		First: moment(r.First), Last: moment(r.Last), Acts: r.Acts, Calls: r.Calls, Broken: r.Broken, Lost: r.Lost, Missed: r.Missed, Trials: []api.TrialLine{}}
	if line.Models == nil {
		line.Models = []string{}
	}
	if r.Counted > 0 {
		line.Tokens = &api.TokenCounts{Input: r.Input, Output: r.Output, Calls: r.Counted}
	}
	var seen []trial.Summary
	for _, id := range r.Trials {
		if s, is := t.Get(id); is && (by.Visible == nil || by.Visible(&s)) {
			seen, line.Trials = append(seen, s), append(line.Trials, Line(&s))
		}
	}
	return line, by.mark(line.Trials, seen)
}

func moment(milliseconds int64) string {
	return evidence.FormatTime(time.UnixMilli(milliseconds).UTC())
}
