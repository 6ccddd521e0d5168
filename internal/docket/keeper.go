// Package docket makes what people and programs see of a log: lines of trials and records, tables of them, two
// trials side by side, chains of recorded calls, and what the log has about one agent. Pages, the command line and the
// API show the same.
//
// Keeper keeps the index of words at the end of the log in the background. Lines, Hits, Compare and History turn what
// was found into the answers of package api, for the server and for the command line alike.
//
// # A table is text, and nothing in it is computed
//
// A cell of CSV that begins with = + - @, a tab or a carriage return would be a formula to spreadsheet programs. An
// apostrophe before it makes it text. Numbers that jurat writes itself stay numbers.
//
// # The messages are those of the jury
//
// A recorded chain is read as package subject reads it for a trial: each message once, however often it was sent
// again. So what a person reads is what jurors would get, and message numbers are the same.
//
// # Nothing is verified here
//
// What stands here is what the records say. Whether they are whole, and whose they are, is for package verify to say.
// What the records about an agent prove is for package reputation: [ReadConduct] hands them on as the bundles that a
// stranger gets, and reads these alone, however long the log is.
package docket

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/find"
	"jurat/internal/ledger"
	"jurat/internal/stats"
	"jurat/internal/trial"
	"jurat/verify/trust"
)

// A Keeper keeps the index of words of a log at the end of the log, while searches use it. Its methods may be called
// concurrently.
type Keeper struct {
	Ledger *ledger.Ledger
	Path   string       // of the file; "": in memory
	Log    *slog.Logger // nil: no log

	mu      sync.Mutex // held while the index is opened
	index   *find.Index
	closed  bool
	failing bool // the last attempt failed, and the log has it; used by Run alone
}

const (
	followEvery = time.Second
	catchUp     = 200 * time.Millisecond // for which a search waits for the newest records
)

// Run opens the index and follows the log until ctx ends, then closes the index. An error is logged, and the next
// attempt comes a second later: a server without an index seals and judges as before.
func (k *Keeper) Run(ctx context.Context) {
	defer k.Close()
	for tick := time.NewTicker(followEvery); ; {
		err := k.follow(ctx)
		if ctx.Err() != nil {
			tick.Stop()
			return
		}
		k.report(err)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (k *Keeper) report(err error) {
	if err != nil && !k.failing && k.Log != nil {
		k.Log.Error("the index of words does not follow the log, so searches may miss records; delete its file if it is damaged", "file", k.Path, "error", err)
	}
	k.failing = err != nil
}

func (k *Keeper) follow(ctx context.Context) error {
	x, err := k.Open(ctx)
	if err != nil {
		return err
	}
	return x.Follow(ctx, k.teller())
}

// tellEvery is how often the log says how far an index has come that is far behind, such as one that is made again after an update of the
// program.
const tellEvery = 5 * time.Second

func (k *Keeper) teller() func(done, total int64) {
	last := time.Now()
	return func(done, total int64) {
		if k.Log != nil && time.Since(last) >= tellEvery {
			last = time.Now()
			k.Log.Info("the index of words is being made from the log; searches find what it has so far", "file", k.Path, "records", done, "of", total)
		}
	}
}

var errClosed = errors.New("the index of words is closed")

// Open returns the index. The first call opens it. Its errors are those of the file and of reading the log.
func (k *Keeper) Open(ctx context.Context) (*find.Index, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errClosed
	}
	var err error
	if k.index == nil {
		k.index, err = find.Open(ctx, k.Ledger, k.Path)
	}
	return k.index, err
}

// Close closes the index.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.index == nil {
		return nil
	}
	x := k.index
	k.index = nil
	return x.Close()
}

// Ready returns the index for a search, and what it does not have. It waits for the newest records, but not for long.
func (k *Keeper) Ready(ctx context.Context) (*find.Index, api.IndexState, error) {
	x, err := k.Open(ctx)
	if err != nil {
		return nil, api.IndexState{}, err
	}
	soon, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	_ = x.Follow(soon, nil) // what it did not read counts as behind, and Run logs why
	size, err := k.Ledger.Size(ctx)
	done, _ := x.Progress()
	return x, api.IndexState{Behind: max(0, size-done)}, err
}

// A Reader is who searches, and what they may read.
type Reader struct {
	Scope   find.Scope
	Visible func(*trial.Summary) bool                  // the trials that lists show them; nil: all
	MayRead func(r *evidence.Record) (bool, error)     // asked about each hit; nil: all
	States  func([]trial.Summary) ([]api.State, error) // of trials, as the queue has them; nil: not known
}

// Trials answers a search for trials. get returns its parameters. Its errors are FieldErrors, and those of the index and
// of the log.
func (k *Keeper) Trials(ctx context.Context, get func(string) string, t *trial.Index, by *Reader) (list api.TrialList, err error) {
	q, err := find.ReadTrials(get)
	if err != nil {
		return list, err
	}
	var x *find.Index
	var state api.IndexState
	if q.NeedsIndex() {
		if x, state, err = k.Ready(ctx); err != nil {
			return api.TrialList{}, err
		}
	}
	found, err := q.Trials(ctx, t, x, by.Visible)
	if err != nil {
		return api.TrialList{}, err
	}
	list = List(found)
	list.Index = state
	return list, by.mark(list.Trials, found.Trials)
}

// mark notes the states of trials in their lines.
func (by *Reader) mark(lines []api.TrialLine, trials []trial.Summary) error {
	if by.States == nil || len(trials) == 0 {
		return nil
	}
	states, err := by.States(trials)
	for i := range states {
		lines[i].State = states[i]
	}
	return err
}

// Records answers a search for records. Its errors are those of Trials.
func (k *Keeper) Records(ctx context.Context, get func(string) string, t *trial.Index, by *Reader, trusted *trust.Trust) (api.HitList, error) {
	q, err := find.ReadRecords(get)
	if err != nil {
		return api.HitList{}, err
	}
	x, state, err := k.Ready(ctx)
	if err != nil {
		return api.HitList{}, err
	}
	found, err := x.Records(ctx, q, by.Scope, by.MayRead)
	if err != nil {
		return api.HitList{}, err
	}
	list, err := Hits(found, trusted, t, by.Visible)
	list.Index = state
	return list, err
}

// ScopeOf limits a search to the trials that a party may see, and to its own records if it is an agent.
func ScopeOf(trials []trial.Summary, by interface {
	Name() string
	Has(access.Role) bool
}) find.Scope {
	in := find.Scope{Trials: map[string]bool{}}
	for i := range trials {
		in.Trials[trials[i].ID] = true
	}
	if by.Has(access.Agent) {
		in.Agent = by.Name()
	}
	return in
}

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

// measured is of how many of an agent's newest finished trials a history has numbers: they are read whole, which takes some 2 ms each.
const measured = 25

// History returns the history of the agent with this name, among trials that its reader may see (nil: all). after is the
// cursor of the page before. Its errors are FieldErrors for a wrong cursor, and those of reading the log.
func History(ctx context.Context, l *ledger.Ledger, t *trial.Index, agent, after string, visible func(*trial.Summary) bool) (api.AgentHistory, error) {
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
	s, err := measure(ctx, l, newest)
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

func measure(ctx context.Context, l *ledger.Ledger, list []trial.Summary) (*stats.Stats, error) {
	tally := stats.New()
	for _, s := range list {
		chain, err := l.Chain(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		_ = tally.Add(chain) // an error says that it has no result, or that its acts contradict each other: the trial's page says so
	}
	return tally.Stats(), nil
}
