package duties

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	see "jurat/evidence/observed"
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
	shown := []Fact{Acts}
	if o.Fidelity == evidence.ByBytes {
		shown = append(shown, Seen)
	} else {
		shown = append(shown, Told)
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
	switch e.Event {
	case see.Gap:
		return f.gap(p, e)
	case see.Heartbeat: // a sign of life shows no fact, and there are too many to keep
		return nil
	case see.LostInCrash:
		if f.wants(e.Agent) {
			return []Fact{Lost}
		}
		return nil
	case see.ToolDefinitionChanged:
		if f.wants(e.Agent) {
			return []Fact{OtherTool}
		}
		return nil
	}
	if !f.met[p.AgentID] {
		f.waiting = append(f.waiting, waiting{index, r})
		return nil
	}
	switch e.Event {
	case see.Start:
		return []Fact{Starts}
	case see.Stop:
		return []Fact{Stops}
	case see.Configuration, see.ModeChanged:
		return []Fact{OtherSettings}
	}
	return nil
}

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
