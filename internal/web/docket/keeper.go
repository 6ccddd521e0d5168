// Package docket makes what people and programs see of a log: lines of trials and records, tables of them, two trials side by side, chains of
// recorded calls, and what the log has about one agent. Pages, the command line and the API show the same, in the answers of package api.
//
// # A table is text, and nothing in it is computed
//
// A cell of CSV that begins with = + - @, a tab or a carriage return would be a formula to spreadsheet programs. An apostrophe before it makes it
// text. Numbers that jurat writes itself stay numbers.
//
// # The messages are those of the jury
//
// A recorded chain is read as package subject reads it for a trial: each message once, however often it was sent again. So what a person reads is
// what jurors would get, and message numbers are the same.
//
// # Nothing is verified here
//
// What stands here is what the records say. Whether they are whole, and whose they are, is for package verify to say. What the records about an
// agent prove is for package reputation: [ReadConduct] hands them on as the bundles that a stranger gets, and reads these alone, however long the log is.
package docket

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/stats"
	"jurat/internal/court/trial"
	"jurat/internal/kit/inorder"
	"jurat/internal/log/access"
	"jurat/internal/log/ledger"
	"jurat/internal/web/find"
	"jurat/verify"
	"jurat/verify/trust"
)

// A Keeper keeps the index of words of a log at its end, while searches use it. Its methods may be called concurrently.
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

// tellEvery is how often the log says how far an index has come that is far behind, as after an update of the program.
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
	go func() {
		defer cancel()
		_ = x.Follow(soon, nil) // what it did not read counts as behind, and Run logs why
	}()
	<-soon.Done() // a transaction cannot be interrupted
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

// Trials answers a search for trials by its parameters. Its errors are FieldErrors, and those of the index and of the log.
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
func (k *Keeper) Records(ctx context.Context, get func(string) string, t *trial.Index, by *Reader, trusted *trust.Trust) (list api.HitList, err error) {
	q, err := find.ReadRecords(get)
	if err != nil {
		return list, err
	}
	x, state, err := k.Ready(ctx)
	if err != nil {
		return list, err
	}
	found, err := x.Records(ctx, q, by.Scope, by.MayRead)
	if err != nil {
		return list, err
	}
	list, err = Hits(found, trusted, t, by.Visible)
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

func Line(s *trial.Summary) api.TrialLine {
	l := api.TrialLine{ID: s.ID, Agent: s.Agent, Submitter: s.Submitter, Submitted: evidence.FormatTime(s.Submitted), Last: evidence.FormatTime(s.Last),
		NeedsPerson: s.NeedsPerson(), Degraded: s.Degraded, Offline: s.Offline, Case: s.Case.String()}
	if now := s.Taken(); now != nil {
		l.Taken = &api.Taken{Reviewer: now.Reviewer, Since: evidence.FormatTime(now.At), By: now.By, Reason: now.Reason}
	}
	if s.Over {
		l.State = api.Over
	}
	if o := s.Outcome; o != nil {
		score := o.Verdict.Score
		l.Verdict, l.Score, l.Outcome, l.By, l.Inconclusive = o.Verdict.Position, &score, o.Position, o.By, o.Verdict.Inconclusive
		if o.Decision != nil {
			l.Reviewer = o.Decision.Reviewer
		}
	}
	return l
}

// List is a page of trials, without what the index could not see.
func List(found *find.Listed) api.TrialList {
	list := api.TrialList{Trials: []api.TrialLine{}, Next: found.Next, Counts: found.Counts}
	for i := range found.Trials {
		list.Trials = append(list.Trials, Line(&found.Trials[i]))
	}
	return list
}

// Hits is a page of records. Who said it and when is verified by a trust file, on all cores. trials are those whose outcomes
// the reader may see; visible selects them, nil: all. Its error is that of a panic while a record is verified.
func Hits(found *find.Found, by *trust.Trust, trials *trial.Index, visible func(*trial.Summary) bool) (api.HitList, error) {
	list := api.HitList{Hits: []api.Hit{}, Next: found.Next}
	err := inorder.Each(found.Hits, func(h find.Hit) (api.Hit, error) { return hit(&h, by), nil }, func(h api.Hit) error {
		if t, is := trials.Get(h.Chain); is && (visible == nil || visible(&t)) {
			h.Outcome = t.Outcome
		}
		list.Hits = append(list.Hits, h)
		return nil
	})
	if err != nil {
		return api.HitList{}, fmt.Errorf("verifying what was found: %w", err)
	}
	return list, nil
}

// Proved says whether it is proved who sealed a record, when, and that it is unchanged, and why not.
func Proved(report *verify.Report) (status verify.Status, why string) {
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
		if f := report.Of(g); f.Status != verify.Proved {
			return f.Status, string(g) + " is " + string(f.Status) + ": " + f.Reason
		}
	}
	return verify.Proved, ""
}

func hit(found *find.Hit, by *trust.Trust) api.Hit {
	p := &found.Record.Payload
	h := api.Hit{Record: p.RecordID, Action: string(p.ActionType), Role: string(p.Role()), Actor: p.Actor(), Chain: p.ChainID, Claimed: p.Timestamp,
		Place: found.Pointer, Said: found.Pointer != "" && found.Said(), Line: found.Excerpt}
	if p.Observed != nil {
		h.Agent = p.Observed.Agent
	}
	report := verify.Record(found.Record, verify.Options{Trust: by})
	status, why := Proved(report)
	if h.Status, h.Why = string(status), why; status != verify.Proved {
		return h
	}
	if at, ok := report.Answers().TimeOf(p.RecordID); ok {
		h.Proved, h.Authority, h.Clock = evidence.FormatTime(at.Time), at.Authority, string(at.Clock)
	}
	return h
}

// A Table has a head and rows of one length.
type Table struct {
	Head []string
	Rows [][]string
}

// WriteCSV writes a table as RFC 4180 has it, but with LF at the end of lines, in UTF-8. No cell is a formula. Its error is the writer's.
func (t *Table) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = inertCell(cell)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func (t *Table) CSV() []byte {
	var doc bytes.Buffer
	_ = t.WriteCSV(&doc) // a buffer takes everything
	return doc.Bytes()
}

// inertCell puts an apostrophe before what a spreadsheet program would compute: at the beginning of the cell, and wherever a program begins
// one that takes another character for the separator, and so does not see the quotation marks.
func inertCell(cell string) string {
	if _, err := strconv.ParseInt(cell, 10, 64); err == nil {
		return cell
	}
	var out strings.Builder
	for i := range len(cell) {
		if i == 0 && computed(cell, " ", "=+-@\t\r\n|%") || i > 0 && strings.IndexByte(";|\t\r\n", cell[i-1]) >= 0 && computed(cell[i:], " \"", "=+-@%") {
			out.WriteByte('\'')
		}
		out.WriteByte(cell[i])
	}
	return out.String()
}

// computed reports whether a cell begins with one of these characters, or a wide form of one. Some programs skip others before it.
func computed(cell, skipped, begins string) bool {
	bare := strings.TrimLeft(cell, skipped+"\u00a0\u3000\ufeff")
	return strings.IndexAny(bare, begins+"＝＋－＠") == 0
}

func TrialTable(list []api.TrialLine) *Table {
	t := &Table{Head: strings.Fields("submitted agent outcome by reviewer verdict score needs_person degraded inconclusive offline submitter last trial case taken_by")}
	for _, l := range list {
		score := ""
		if l.Score != nil {
			score = strconv.Itoa(*l.Score)
		}
		holder := ""
		if l.Taken != nil {
			holder = l.Taken.Reviewer
		}
		t.Rows = append(t.Rows, []string{l.Submitted, l.Agent, string(l.Outcome), string(l.By), l.Reviewer, string(l.Verdict), score, strconv.FormatBool(l.NeedsPerson),
			strconv.FormatBool(l.Degraded), strconv.FormatBool(l.Inconclusive), strconv.FormatBool(l.Offline), l.Submitter, l.Last, l.ID, l.Case, holder})
	}
	return t
}

func HitTable(list []api.Hit) *Table {
	t := &Table{Head: strings.Fields("claimed proved authority role actor action record chain outcome by reviewer verdict place said line why agent")}
	for _, h := range list {
		outcome := Line(&trial.Summary{Outcome: h.Outcome})
		t.Rows = append(t.Rows, []string{h.Claimed, h.Proved, h.Authority, h.Role, h.Actor, h.Action, h.Record, h.Chain, string(outcome.Outcome), string(outcome.By),
			outcome.Reviewer, string(outcome.Verdict), h.Place, strconv.FormatBool(h.Said), h.Line, h.Why, h.Agent})
	}
	return t
}

// Sheet reads a trial from the log and makes its sheet. Its errors are those of trial.Reopen.
func Sheet(ctx context.Context, l *ledger.Ledger, id string) (api.TrialSheet, error) {
	t, err := trial.Reopen(ctx, l, id)
	if err != nil {
		return api.TrialSheet{}, err
	}
	t.Check(t.Case)
	return SheetOf(t.View), nil
}

func SheetOf(v *trial.View) api.TrialSheet {
	s := api.TrialSheet{TrialLine: Line(&v.Summary), Axes: []string{}, Seats: []api.TrialSeat{}, Findings: findings(v), Cost: v.Bill.Cost, Calls: v.Bill.Calls,
		Took: v.Took().Milliseconds(), Broken: v.Broken}
	if v.Settings != nil {
		for _, axis := range v.Settings.Rubric {
			s.Axes = append(s.Axes, axis.ID)
		}
	}
	if j := v.Judgment; j != nil {
		s.Method, s.Rationale = j.Method, j.Rationale
	}
	if v.Outcome != nil {
		s.Decision = v.Outcome.Decision
	}
	for i := range v.Seats {
		s.Seats = append(s.Seats, seatOf(v, &v.Seats[i]))
	}
	return s
}

func seatOf(v *trial.View, seat *trial.Seat) api.TrialSeat {
	out := api.TrialSeat{JurorID: seat.JurorID, Role: seat.RoleName, Model: seat.Model, Scores: map[string]int{}, Abstained: seat.Abstains}
	if e := v.Now[seat.JurorID]; e != nil {
		out.Position, out.Score, out.Reason, out.Fallback = e.Position, e.TotalScore, e.Rationale, e.Fallback
		maps.Copy(out.Scores, e.AxisScores)
	}
	return out
}

// findings lists each finding once, with the jurors who had it, in the order of the acts.
func findings(v *trial.View) []api.TrialFinding {
	list, known := []api.TrialFinding{}, map[string]int{}
	for _, said := range v.Said {
		for _, f := range said.Findings {
			exactly := key(f.Message, f.Rule, f.Quote)
			at, seen := known[exactly]
			if !seen {
				at = len(list)
				known[exactly] = at
				list = append(list, api.TrialFinding{Message: f.Message, Quote: f.Quote, Rule: f.Rule, Axis: f.Axis, Severity: f.Severity, Stands: f.Stands})
			}
			if !slices.Contains(list[at].Jurors, said.Juror) {
				list[at].Jurors = append(list[at].Jurors, said.Juror)
			}
		}
	}
	return list
}

// key joins values so that no two lists have the same key.
func key(message int, texts ...string) string {
	out := strconv.Itoa(message)
	for _, text := range texts {
		out += strconv.Quote(text)
	}
	return out
}

func Compare(a, b api.TrialSheet) api.TrialComparison {
	c := api.TrialComparison{A: a, B: b, SameCase: a.Case == b.Case, Both: []api.TrialFinding{}, OnlyA: []api.TrialFinding{}, OnlyB: []api.TrialFinding{}}
	same := func(f api.TrialFinding) string {
		if c.SameCase {
			return key(f.Message, f.Rule, f.Quote)
		}
		return key(0, f.Rule, f.Axis)
	}
	inA, inB := map[string]bool{}, map[string]bool{}
	for _, f := range a.Findings {
		inA[same(f)] = true
	}
	for _, f := range b.Findings {
		if inB[same(f)] = true; !inA[same(f)] {
			c.OnlyB = append(c.OnlyB, f)
		}
	}
	for _, f := range a.Findings {
		if inB[same(f)] {
			c.Both = append(c.Both, f)
		} else {
			c.OnlyA = append(c.OnlyA, f)
		}
	}
	return c
}

func SeatTable(s *api.TrialSheet) *Table {
	t := &Table{Head: []string{"juror", "role", "model", "position", "score"}}
	for _, axis := range s.Axes {
		t.Head = append(t.Head, "axis_"+axis)
	}
	t.Head = append(t.Head, "fallback", "abstained", "reason")
	for _, seat := range s.Seats {
		row := []string{seat.JurorID, seat.Role, seat.Model, string(seat.Position), strconv.Itoa(seat.Score)}
		for _, axis := range s.Axes {
			row = append(row, strconv.Itoa(seat.Scores[axis]))
		}
		t.Rows = append(t.Rows, append(row, strconv.FormatBool(seat.Fallback), strconv.FormatBool(seat.Abstained), seat.Reason))
	}
	return t
}
