// Package duties says which clauses of a law the records of an agent answer, and what they do not show.
//
// A [Mapping] has the clauses, and for each the members of records that answer it. [Gather] reads a log and counts the records of an agent by what they
// show; [Facts.Report] puts both together. The mapping of the EU AI Act is [AIAct]; another one is another value of Mapping.
//
// # A report claims no conformity
//
// Whether a duty is met is a legal question, and much of the answer is outside of any log. So the report has counts, records to look at and
// how they were verified, and for each clause what the records do not show. A clause without records says so.
//
// # Every count is of records
//
// Each line names the first and the last of the records that it counts, so that a reader can open them. What is counted is
// verified as a stranger would verify it; a line says how many of its records are proved, and not that they are true.
package duties

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	see "jurat/evidence/observed"
	"jurat/internal/log/ledger"
	"jurat/jury"
	"jurat/verify"
)

// A Fact is one kind of thing that records show.
type Fact int

// The facts. A record can show several.
const (
	Acts Fact = iota
	Seen
	Told
	Starts
	Stops
	Gaps
	Lost
	Failed
	Judged
	JudgedBadly
	Corrected
	OtherModel
	OtherSettings
	OtherTool
	Tried
	Reviewed
	Delivered
	Inputs
	Outputs
	Tools
	Models
	Periods

	facts // how many there are
)

// Facts are what a log has of an agent.
type Facts struct {
	Selection Selection

	shows   [facts][]ref // which records show a fact
	records []ref        // that show any fact
	people  []string     // who decided about what the agent said, each once
	missed  int64        // calls that passed without a record, by the gaps
	hidden  int          // trials whose evidence is sealed apart, so that their agent is not known here

	of     map[string]bool  // record ids of the agent's acts, and of verdicts on it
	trials map[string]bool  // chains of the agent's trials
	met    map[string]bool  // recorders that saw the agent
	model  map[string]model // the last model of each agent and chain

	waiting []waiting // events of recorders that are not known to have seen the agent

	bodies map[string][]holder // what of each chain other records can copy from, in log order
	cut    bool                // Verify did not look for all that records copy from
}

// A holder is a record with the bodies of a call. The record itself is not kept.
type holder struct {
	index             int64
	request, response evidence.Digest // zero: there is none
}

// mostPeople is how many people a report names.
const mostPeople = 100

// A ref names a record. The record itself is not kept.
type ref struct {
	index           int64
	id, time, chain string
}

type waiting struct {
	index  int64
	record *evidence.Record
}

// A Selection says of whom, and of which time.
type Selection struct {
	Agent    string    // "": every agent
	From, To time.Time // by the records' own time; zero: no bound. To is not included
}

// NewFacts returns Facts that have read nothing.
func NewFacts(s Selection) *Facts {
	return &Facts{Selection: s, of: map[string]bool{}, trials: map[string]bool{}, met: map[string]bool{}, model: map[string]model{}, bodies: map[string][]holder{}}
}

// Take reads the next record of the log, with its place. The caller gives all records, in log order: what came before Selection.From
// says what changed since.
func (f *Facts) Take(index int64, r *evidence.Record) {
	shown := f.shown(index, r)
	if len(shown) == 0 || !f.within(&r.Payload) {
		return
	}
	p := &r.Payload
	at := ref{index: index, id: p.RecordID, time: p.Timestamp, chain: p.ChainID}
	f.records = append(f.records, at)
	for _, fact := range shown {
		f.shows[fact] = append(f.shows[fact], at)
	}
}

// settle puts everything into log order: events of a recorder are read when the agent is first seen by it.
func (f *Facts) settle() {
	byPlace := func(a, b ref) int { return cmp.Compare(a.index, b.index) }
	slices.SortFunc(f.records, byPlace)
	for i := range f.shows {
		slices.SortFunc(f.shows[i], byPlace)
	}
}

func (f *Facts) within(p *evidence.Payload) bool {
	at := p.Time()
	return (f.Selection.From.IsZero() || !at.Before(f.Selection.From)) && (f.Selection.To.IsZero() || at.Before(f.Selection.To))
}

func (f *Facts) wants(agent string) bool {
	return agent != "" && (f.Selection.Agent == "" || f.Selection.Agent == agent)
}

// shown returns which facts a record shows.
func (f *Facts) shown(index int64, r *evidence.Record) []Fact {
	p := &r.Payload
	switch {
	case p.Observed != nil:
		return f.seen(index, p)
	case p.ActionType == evidence.RecorderEvent:
		return f.event(index, r)
	case p.ActionType == evidence.HumanReview:
		return f.review(p)
	case p.ActionType.InTrial():
		return f.trial(p)
	case p.Role() == evidence.RoleAgent && f.wants(p.AgentID):
		f.of[p.RecordID] = true
		if p.ActionType == evidence.Delivery {
			return []Fact{Acts, Outputs, Delivered}
		}
		return append([]Fact{Acts}, f.said(p, p.AgentID)...)
	}
	return nil
}

// said returns what an act of an agent says, whoever recorded it.
func (f *Facts) said(p *evidence.Payload, agent string) (shown []Fact) {
	apart := func(pointer string) bool { return slices.Contains(p.SealedApart, pointer) }
	if has(p.Prompt) || has(p.Context) || apart("/request_body") || has(p.RequestBody) {
		shown = append(shown, Inputs)
	}
	if has(p.Response) || apart("/response_body") || has(p.ResponseBody) {
		shown = append(shown, Outputs)
	}
	if has(p.ToolsUsed) && string(p.ToolsUsed) != "[]" || p.ActionType == evidence.ObservedTool {
		shown = append(shown, Tools)
	}
	if p.Model != "" || p.ModelVersion != "" {
		shown = append(shown, Models)
		if f.isOther(agent+"\x00"+p.ChainID, model{p.Model, p.ModelVersion}) {
			shown = append(shown, OtherModel)
		}
	}
	return shown
}

type model struct{ name, version string }

// isOther reports whether a model is another one than in the act before. What an act does not say is as before.
func (f *Facts) isOther(place string, now model) bool {
	last := f.model[place]
	other := last.name != "" && now.name != "" && last.name != now.name || last.version != "" && now.version != "" && last.version != now.version
	f.model[place] = model{cmp.Or(now.name, last.name), cmp.Or(now.version, last.version)}
	return other
}

func has(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// seen returns what an act shows that a recorder sealed.
func (f *Facts) seen(index int64, p *evidence.Payload) []Fact {
	o := p.Observed
	if !f.wants(o.Agent) {
		return nil
	}
	h := holder{index: index}
	if o.Request != nil {
		h.request = o.Request.Sealed()
	}
	if o.Response != nil {
		h.response = o.Response.Sealed()
	}
	f.bodies[p.ChainID] = append(f.bodies[p.ChainID], h)
	f.of[p.RecordID] = true
	f.meet(p.AgentID)
	shown := []Fact{Acts, Told}
	if o.Fidelity == evidence.ByBytes {
		shown[1] = Seen
	}
	switch {
	case o.Ended == evidence.LostInCrash:
		shown = append(shown, Lost)
	case o.Ended != evidence.Complete || o.Status >= 400:
		shown = append(shown, Failed)
	}
	if o.EndedMS != nil {
		shown = append(shown, Periods)
	}
	return append(shown, f.said(p, o.Agent)...)
}

// meet takes in that a recorder saw the agent. What the recorder did before, it did for this agent, too.
func (f *Facts) meet(recorder string) {
	if f.met[recorder] {
		return
	}
	f.met[recorder] = true
	events := f.waiting
	f.waiting = nil
	for _, w := range events {
		f.Take(w.index, w.record)
	}
}

// event returns what an event of a recorder shows. Gaps and crashes name agents; the rest is of every agent that the recorder saw.
func (f *Facts) event(index int64, r *evidence.Record) []Fact {
	p := &r.Payload
	e, err := see.ParseEvent(p.Response)
	if err != nil {
		return nil // it is of another form than readers of these acts accept
	}
	fact, of := eventFacts[e.Event]
	switch {
	case e.Event == see.Gap:
		return f.gap(p, e)
	case !of: // such as a sign of life
		return nil
	case fact != Lost && fact != OtherTool && !f.met[p.AgentID]:
		f.waiting = append(f.waiting, waiting{index, r})
		return nil
	case (fact == Lost || fact == OtherTool) && !f.wants(e.Agent):
		return nil
	}
	return []Fact{fact}
}

// eventFacts are what events of recorders show, beside gaps.
var eventFacts = map[see.EventName]Fact{see.LostInCrash: Lost, see.ToolDefinitionChanged: OtherTool, see.Start: Starts, see.Stop: Stops,
	see.Configuration: OtherSettings, see.ModeChanged: OtherSettings}

func (f *Facts) gap(p *evidence.Payload, e *see.Event) []Fact {
	calls := int64(0)
	for _, m := range e.Missed {
		if f.wants(m.Agent) {
			calls += m.Calls
		}
	}
	if calls == 0 {
		return nil
	}
	if f.within(p) {
		f.missed += calls
	}
	return []Fact{Gaps}
}

// review returns what a person's decision shows, if it is about the agent.
func (f *Facts) review(p *evidence.Payload) []Fact {
	if !f.of[p.OriginalResponseID] {
		return nil
	}
	f.of[p.RecordID] = true // a later decision can be about this one
	if f.within(p) && !slices.Contains(f.people, p.ReviewerID) && len(f.people) < mostPeople {
		f.people = append(f.people, p.ReviewerID)
	}
	if p.ApprovalStatus == evidence.Approved {
		return []Fact{Reviewed}
	}
	return []Fact{Reviewed, Corrected}
}

// trial returns what an act of a trial shows, if the agent is on trial.
func (f *Facts) trial(p *evidence.Payload) []Fact {
	switch p.ActionType {
	case evidence.Submission:
		name := verify.AgentOnTrial(p.Response)
		if !f.wants(name) && (f.Selection.Agent != "" || name != "") {
			if name == "" && slices.Contains(p.SealedApart, "/response") && f.within(p) {
				f.hidden++
			}
			return nil
		}
		f.trials[p.ChainID] = true
		return []Fact{Tried}
	case evidence.FinalJudgment:
		if !f.trials[p.ChainID] {
			return nil
		}
		f.of[p.RecordID] = true
		body, err := jury.DecodeBody(p.ActionType, p.Response)
		if j, is := body.(*jury.Judgment); err == nil && is && j.Position == jury.SafePass && len(j.Review) == 0 && !j.Degraded && !j.Inconclusive {
			return []Fact{Judged}
		}
		return []Fact{Judged, JudgedBadly}
	}
	return nil
}

// Gather reads a log. progress is told how many records are read, and may be nil.
func Gather(ctx context.Context, l *ledger.Ledger, s Selection, progress func(done, total int64)) (*Facts, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	f := NewFacts(s)
	for r, err := range l.Records(ctx, 0) {
		if err != nil {
			return nil, err
		}
		f.Take(r.Index, r.Record)
		if progress != nil {
			progress(r.Index+1, size)
		}
	}
	f.settle()
	return f, nil
}

// Sizes of what is verified at once. Tests have smaller ones.
var (
	together    = 2000 // records of one chain
	apart       = 500  // records of no chain
	mostSources = 8000 // further records of the chain, from which these copy
)

// A Verifier verifies records of a log as a stranger would.
type Verifier struct {
	Ledger   *ledger.Ledger
	Options  verify.Options
	Disclose func(ctx context.Context, records []*evidence.Record) ([]*evidence.Record, error) // adds what was sealed apart; nil: nothing is disclosed
	Progress func(done, total int64)                                                           // may be nil
}

// Verify verifies every record that the facts rest on.
func (v *Verifier) Verify(ctx context.Context, f *Facts) (Found, error) {
	type question struct {
		id string
		of verify.Guarantee
	}
	answers := map[question]verify.Status{}
	done := int64(0)
	for _, part := range f.parts() {
		report, err := v.part(ctx, f, part)
		if err != nil {
			return nil, err
		}
		found := report.Answers()
		for _, r := range part {
			for _, g := range observed {
				if status := found.For(g, r.id).Status; status != verify.NotProved {
					answers[question{r.id, g}] = status
				}
			}
		}
		if done += int64(len(part)); v.Progress != nil {
			v.Progress(done, int64(len(f.records)))
		}
	}
	return func(id string, g verify.Guarantee) verify.Status {
		if status, known := answers[question{id, g}]; known {
			return status
		}
		return verify.NotProved
	}, nil
}

func (f *Facts) parts() (list [][]ref) {
	chains := map[string][]ref{}
	for _, r := range f.records {
		chains[r.chain] = append(chains[r.chain], r)
	}
	for _, chain := range slices.Sorted(maps.Keys(chains)) {
		most := together
		if chain == "" {
			most = apart
		}
		list = slices.AppendSeq(list, slices.Chunk(chains[chain], most))
	}
	return list
}

func (v *Verifier) part(ctx context.Context, f *Facts, part []ref) (*verify.Report, error) {
	at := make([]int64, len(part))
	for i, r := range part {
		at[i] = r.index
	}
	records, err := v.read(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := v.addSources(ctx, f, records, f.bodies[part[0].chain]); err != nil {
		return nil, err
	}
	var sorted []*evidence.Record
	for _, index := range slices.Sorted(maps.Keys(records)) {
		sorted = append(sorted, records[index])
	}
	bundle, err := v.Ledger.Prove(ctx, sorted...)
	if err != nil {
		return nil, err
	}
	return verify.Bundle(bundle, v.Options), nil
}

// addSources adds the records from whose bodies others copy, and those from which these copy: the bytes of a call rest on them. It goes back in the chain as
// far as something is needed.
func (v *Verifier) addSources(ctx context.Context, f *Facts, records map[int64]*evidence.Record, chain []holder) error {
	places := slices.Sorted(maps.Keys(records))
	first, last := places[0], places[len(places)-1]
	needed, added := map[evidence.Digest]bool{}, 0
	for _, h := range slices.Backward(chain) {
		r := records[h.index]
		switch {
		case h.index > last || r == nil && !needed[h.request] && !needed[h.response]:
			if h.index < first && len(needed) == 0 {
				return nil
			}
			continue
		case r == nil && added == mostSources:
			f.cut = true
			return nil
		case r == nil:
			one, err := v.read(ctx, []int64{h.index})
			if err != nil {
				return err
			}
			if r, added = one[h.index], added+1; r == nil {
				continue // it has expired meanwhile
			}
			records[h.index] = r
		}
		delete(needed, h.request)
		delete(needed, h.response)
		copied(r, "/request_body", r.Payload.RequestBody, needed)
		copied(r, "/response_body", r.Payload.ResponseBody, needed)
	}
	return nil
}

// copied notes from which bodies a body copies. Of one that is not there, or in no form, nothing is known.
func copied(r *evidence.Record, pointer string, value jsontext.Value, from map[evidence.Digest]bool) {
	body, withheld := r.Said(pointer, value)
	if withheld || len(body) == 0 {
		return
	}
	pieces, err := evidence.ParseBody(body)
	if err != nil {
		return // the verifier says so
	}
	for _, p := range pieces {
		if !p.From.IsZero() {
			from[p.From] = true
		}
	}
}

func (v *Verifier) read(ctx context.Context, at []int64) (map[int64]*evidence.Record, error) {
	found := map[int64]*evidence.Record{}
	for page := range slices.Chunk(at, 100) {
		rows, err := v.Ledger.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		records := make([]*evidence.Record, len(rows))
		for i := range rows {
			if records[i], err = rows[i].Record(); err != nil {
				return nil, fmt.Errorf("reading record %d of the log: %w", rows[i].Index, err)
			}
		}
		if v.Disclose != nil {
			if records, err = v.Disclose(ctx, records); err != nil {
				return nil, err
			}
		}
		for i := range rows {
			found[rows[i].Index] = records[i]
		}
	}
	return found, nil
}
