package docket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
	"jurat/internal/log/ledger"
	"jurat/internal/tap/convo"
	"jurat/internal/tap/traffic"
	"jurat/internal/web/find"
	"jurat/verify"
)

// A ChainPart is some records of a chain as people read them, one after the other.
type ChainPart struct {
	Chain  string        `json:"chain"`
	From   int64         `json:"from"`            // the number of the first record in the chain, from 1
	Next   int64         `json:"next,omitzero"`   // the number of the record after the last one; 0: there is none
	Acts   []RecordedAct `json:"acts"`            // with the messages that are new in each
	Events []RecordedAct `json:"events,omitzero"` // what recorders said of themselves meanwhile
}

// erased says that the operator erased the bytes.
const erased = "erased"

type PartOrder struct {
	From, N int64 // the number of the first record, from 1; how many
	Prices  llm.Prices
	// Open returns a record with what its reader may read of it. It is called from the first record on: bodies copy from earlier ones.
	Open func(*evidence.Record) (*evidence.Record, error)
}

const (
	// wholeUpTo is up to which number messages of a part have the numbers that they have in the whole chain.
	wholeUpTo = 200
	// before is how many records before a later part are read, so that what they have is not shown again.
	before = 16
)

// ReadPart reads a part of a chain. A record that cannot be read has a Fault. Its errors are those of the records and of Open.
func ReadPart(chain string, records iter.Seq2[*evidence.Record, error], o PartOrder) (*ChainPart, error) {
	p := &ChainPart{Chain: chain, From: o.From, Acts: []RecordedAct{}}
	from := o.From - before
	if o.From <= wholeUpTo {
		from = 1
	}
	t, number := subject.NewTranscript(), int64(0)
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if number++; number == o.From+o.N {
			p.Next = number
			break
		}
		if r, err = o.Open(r); err != nil {
			return nil, err
		}
		if number < from {
			t.Skip(r)
			continue
		}
		fault := t.Take(r)
		if number >= o.From {
			act := actOf(r, o.Prices)
			act.Number = number
			if fault != nil {
				act.Fault = fault.Error()
			}
			p.Acts = append(p.Acts, act)
		}
	}
	said := t.Acts()
	for i := range p.Acts {
		p.Acts[i].take(said[p.Acts[i].Digest])
	}
	if from > 1 {
		p.unnumbered()
	}
	return p, nil
}

func (a *RecordedAct) take(said subject.Act) {
	a.Messages = append(a.Messages, said.Messages...)
	for _, m := range said.Messages {
		a.Description = cmp.Or(m.Head, a.Description)
	}
	a.Repeats, a.Again = len(said.Repeated), said.Again
	a.Lacks = append(a.Lacks, said.Lacks...)
	p := &said.Said // what the bytes say beside the messages
	a.Error, a.Problem, a.Finish, a.Alternatives = p.Error, p.Problem, p.Finish, p.Alternatives
	if a.Observed != nil && len(a.Lacks) > 0 && p.State == traffic.Failed {
		a.Problem = "" // the lack says it
	}
}

// unnumbered removes the numbers of messages, which are not those of the whole chain.
func (p *ChainPart) unnumbered() {
	for i := range p.Acts {
		a := &p.Acts[i]
		a.Again = min(a.Again, 1)
		for j := range a.Messages {
			m := &a.Messages[j]
			m.Number, m.CallNumber, m.CallPlace = 0, 0, 0
			for k := range m.ToolCalls {
				m.ToolCalls[k].Result = 0
			}
		}
	}
}

// RecordedEvent makes an act of what a recorder said of itself.
func RecordedEvent(r *evidence.Record) (RecordedAct, error) {
	if r.Payload.ActionType != evidence.RecorderEvent {
		return RecordedAct{}, fmt.Errorf("record %s: %s is no event of a recorder", r.Payload.RecordID, r.Payload.ActionType)
	}
	return actOf(r, nil), nil
}

// FindErased looks up which bytes that are not here were erased, and says so. Its errors are those of the index.
func (p *ChainPart) FindErased(ctx context.Context, x *find.Index) error {
	var lacking []evidence.Digest
	for i := range p.Acts {
		if len(p.Acts[i].Withheld) > 0 {
			lacking = append(lacking, p.Acts[i].Digest)
		}
	}
	erased, err := x.Erased(ctx, lacking)
	if err == nil {
		p.MarkErased(erased)
	}
	return err
}

// MarkErased says of bytes that are not here that they were erased, if they were: pointers are those that the operator erased of each record.
func (p *ChainPart) MarkErased(pointers map[evidence.Digest][]string) {
	for i := range p.Acts {
		a := &p.Acts[i]
		for j := range a.Lacks {
			if slices.Contains(pointers[a.Digest], "/"+a.Lacks[j].Direction+"_body") && a.Lacks[j].Why == subject.Withheld {
				a.Lacks[j].Why = erased
			}
		}
		for _, pointer := range a.Withheld {
			if slices.Contains(pointers[a.Digest], pointer) {
				a.Erased = append(a.Erased, pointer)
			}
		}
	}
}

// A RecordedAct is one record of a chain: what a recorder saw, or an event of its own.
type RecordedAct struct {
	Record    string              `json:"record"`
	Digest    evidence.Digest     `json:"digest"`
	Action    evidence.ActionType `json:"action"`
	Time      string              `json:"time"` // the record's own, by the recorder's clock
	Recorder  string              `json:"recorder"`
	RequestID string              `json:"request_id,omitzero"`

	Event *observed.Event `json:"event,omitzero"` // of a recorder_event whose response is one

	// Of what was seen:
	Observed     *evidence.Observed `json:"observed,omitzero"`
	Model        string             `json:"model,omitzero"`         // as asked for
	ModelVersion string             `json:"model_version,omitzero"` // that answered, by the provider's word
	Parameters   jsontext.Value     `json:"parameters,omitzero"`
	Tokens       *Tokens            `json:"tokens,omitzero"`      // nil: none were reported, or in words that nobody knows
	Cost         *int64             `json:"cost_micros,omitzero"` // millionths of a US dollar, by the price table; nil: no price is known
	Description  string             `json:"description"`          // what the jury is told of the record
	Messages     []subject.Message  `json:"messages"`             // that were not shown before
	Withheld     []string           `json:"withheld,omitempty"`   // members that were sealed apart and are not here: erased, or held back
	Erased       []string           `json:"erased,omitempty"`     // of these, those that the operator erased, as far as that was looked up

	Number       int64          `json:"number,omitzero"`       // in the chain, from 1; 0: in another one
	Repeats      int            `json:"repeats,omitzero"`      // how many messages of its prompt were shown before
	Again        int            `json:"again,omitzero"`        // its answer is that of the message with this number again; 1 where messages have none
	Lacks        []subject.Lack `json:"lacks,omitempty"`       // bytes that cannot be read
	Error        string         `json:"error,omitzero"`        // the provider's
	Problem      string         `json:"problem,omitzero"`      // what of the bytes could not be read as the protocol has it
	Finish       string         `json:"finish,omitzero"`       // why the model stopped, in the provider's word
	Alternatives int            `json:"alternatives,omitzero"` // further answers that the agent got
	Fault        string         `json:"fault,omitzero"`        // why the record cannot be read
}

// Tokens are counts that the provider reported.
type Tokens struct {
	Input  int64 `json:"input"`           // those from a cache included
	Cached int64 `json:"cached,omitzero"` // of these, from a cache
	Output int64 `json:"output"`          // reasoning included
}

func actOf(r *evidence.Record, prices llm.Prices) RecordedAct {
	p := &r.Payload
	a := RecordedAct{Record: p.RecordID, Digest: r.Digest, Action: p.ActionType, Time: p.Timestamp, Recorder: p.Actor(), RequestID: p.RequestID,
		Observed: p.Observed, Model: p.Model, ModelVersion: p.ModelVersion, Parameters: p.Parameters, Messages: []subject.Message{}, Withheld: withheld(r)}
	if p.ActionType == evidence.RecorderEvent {
		a.Event, _ = observed.ParseEvent(p.Response) // a response that is no event is shown as it is
	}
	if p.Observed == nil {
		return a
	}
	used, known := convo.ReadUsage(p.Observed.Usage)
	if !known {
		return a
	}
	a.Tokens = &Tokens{used.Input, used.Cached, used.Output}
	if price, known := prices.For(withoutVendor(p.Model), withoutVendor(p.ModelVersion)); known {
		if cost, priced := price.Cost(used); priced {
			a.Cost = &cost
		}
	}
	return a
}

// withoutVendor removes the vendor that programs put before the name of a model: openai:gpt-4o, openai/gpt-4o. Google's own names begin with
// models/. Behind any other name, another seller may ask another price.
func withoutVendor(model string) string {
	if i := strings.IndexAny(model, ":/"); i > 0 && slices.Contains([]string{"openai", "anthropic", "google", "gemini", "models"}, model[:i]) {
		return model[i+1:]
	}
	return model
}

// withheld lists the members of a record that are sealed apart and not disclosed.
func withheld(r *evidence.Record) (list []string) {
	for _, pointer := range r.Payload.SealedApart {
		if !slices.ContainsFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer }) {
			list = append(list, pointer)
		}
	}
	return list
}

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

const maxModels = 20

func (p *ChainPart) Sum() ChainSummary {
	s := ChainSummary{Models: []string{}, Seen: []verify.Seen{}}
	for i := range p.Acts {
		s.add(&p.Acts[i])
	}
	return s
}

func (s *ChainSummary) add(a *RecordedAct) {
	s.Records++
	s.First, s.Last = cmp.Or(s.First, a.Time), a.Time
	if e := a.Event; e != nil && (e.Event == observed.Gap || e.Event == observed.LostInCrash) {
		s.Gaps++
	}
	o := a.Observed
	if o == nil {
		return
	}
	s.Calls++
	s.Agent = cmp.Or(s.Agent, o.Agent)
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
	if model := cmp.Or(a.ModelVersion, a.Model); model != "" && len(s.Models) < maxModels && !slices.Contains(s.Models, model) {
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

func (s *ChainSummary) count(a *RecordedAct) {
	if t := a.Tokens; t != nil {
		now := cmp.Or(s.Tokens, new(Tokens))
		s.Tokens = &Tokens{now.Input + t.Input, now.Cached + t.Cached, now.Output + t.Output}
	}
	if a.Cost == nil {
		s.Unpriced++
		return
	}
	s.Cost = cmp.Or(s.Cost, new(int64))
	*s.Cost += *a.Cost
}

// A Recorder is what a log says of one recorder, by the events that it sealed.
type Recorder struct {
	Name      string           `json:"name"`
	Started   string           `json:"started,omitzero"` // its last start; "": the log has none
	Mode      observed.Mode    `json:"mode,omitzero"`
	Vantage   evidence.Vantage `json:"vantage,omitzero"`
	Version   string           `json:"version,omitzero"`
	Stopped   string           `json:"stopped,omitzero"` // its end; "": it runs, or died
	Reason    string           `json:"reason,omitzero"`  // of the end
	Heartbeat string           `json:"heartbeat,omitzero"`
	Calls     int64            `json:"calls"`         // since the start, by its heartbeats and its end
	Counted   bool             `json:"calls_counted"` // all Calls: the end counts those since the last heartbeat, and no recorder of this name counted meanwhile
	Missed    int64            `json:"missed"`        // calls that passed without a record, ever
	Gaps      int              `json:"gaps"`          // acts about these
	LastGap   string           `json:"last_gap,omitzero"`
	Lost      int64            `json:"lost"` // calls among its last records that were lost in a crash
	Of        int              `json:"lost_of"`

	runs map[string]run // that may go on, by the time of the last sign of life
}

// A run is a recorder from its start to its end. Several of one name may run at a time.
type run struct {
	began string
	calls int64
}

// NewestCalls is how many of a recorder's records are looked at for calls that were lost.
const NewestCalls = 1000

// Recorders returns what a log says of each recorder that sealed in it, by name. It reads each record's index entry, and these acts. progress may be nil.
func Recorders(ctx context.Context, l *ledger.Ledger, progress func(done, total int64)) ([]Recorder, error) {
	size, err := l.Size(ctx)
	if err != nil {
		return nil, err
	}
	var events []int64
	for b, err := range l.Briefs().List(ctx, 0, "") {
		if err != nil {
			return nil, err
		}
		if progress != nil {
			progress(b.Index, size)
		}
		if b.Action == evidence.RecorderEvent {
			events = append(events, b.Index)
		}
	}
	known := map[string]*Recorder{}
	for page := range slices.Chunk(events, 100) {
		rows, err := l.RowsAt(ctx, page)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			var event *observed.Event
			record, err := rows[i].Record()
			if err == nil {
				event, err = observed.ParseEvent(record.Payload.Response)
			}
			if err != nil {
				return nil, fmt.Errorf("reading the recorder_event at index %d: %w", rows[i].Index, err)
			}
			name := record.Payload.AgentID
			if known[name] == nil {
				known[name] = &Recorder{Name: name, runs: map[string]run{}}
			}
			known[name].take(event, record.Payload.Timestamp)
		}
	}
	list := []Recorder{}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if err := known[name].countLost(ctx, l); err != nil {
			return nil, err
		}
		list = append(list, *known[name])
	}
	return list, nil
}

func (r *Recorder) take(e *observed.Event, at string) {
	switch e.Event {
	case observed.Start:
		r.runs[at] = run{began: at}
		r.Started, r.Mode, r.Vantage, r.Version = at, e.Mode, e.Vantage, e.Version
		r.Stopped, r.Reason, r.Heartbeat, r.Calls, r.Counted = "", "", "", 0, false
	case observed.ModeChanged:
		r.Mode = e.Mode
	case observed.Stop:
		r.Stopped, r.Reason = at, e.Reason
		if e.Calls != nil {
			r.Calls += *e.Calls
			last := r.counts(e, "")
			r.Counted = last.began != "" && last.began == r.Started && last.calls == r.Calls
		}
	case observed.Heartbeat:
		r.Heartbeat = at
		r.Stopped, r.Reason, r.Counted = "", "", false // after an end, another of this name goes on
		r.Calls += *e.Calls
		r.counts(e, at)
	case observed.Gap:
		r.Gaps++
		r.LastGap = at
		for _, m := range e.Missed {
			r.Missed += m.Calls
		}
	}
}

// counts notes that a run goes on until a time, or ends if that is "", and returns what is known of it.
func (r *Recorder) counts(e *observed.Event, until string) run {
	one := r.runs[e.Since]
	delete(r.runs, e.Since)
	one.calls += *e.Calls
	if one.began != "" && until != "" {
		r.runs[until] = one
	}
	return one
}

// countLost counts the calls that were lost in a crash, among the recorder's last records.
func (r *Recorder) countLost(ctx context.Context, l *ledger.Ledger) error {
	last, err := l.LastOfActor(ctx, evidence.RoleRecorder, r.Name, NewestCalls)
	for _, c := range last {
		if c.Record == nil {
			continue // it has expired
		}
		if r.Of++; c.Record.Payload.Observed != nil && c.Record.Payload.Observed.Ended == evidence.LostInCrash {
			r.Lost++
		}
	}
	return err
}

// ErrNotRecorded says that no recorder saw anything of what is asked for.
var ErrNotRecorded = errors.New("no recorder saw anything of it")

// FindChain finds what a name stands for: a chain of the log, from its first record on, or a record in one, by its id or digest, with its
// number in the chain. number is 0 for a chain. It returns ErrNone, or the ledger's ErrNotFound, wrapped, if there is nothing to show.
func FindChain(ctx context.Context, l *ledger.Ledger, name string) (chain string, number int64, err error) {
	for r, err := range l.ChainRecords(ctx, name) {
		if err != nil {
			return "", 0, err
		}
		if verify.ByRecorder(r) {
			return name, 0, nil
		}
		return "", 0, ErrNotRecorded
	}
	find, digest := l.Record, evidence.Digest{}
	if digest.UnmarshalText([]byte(name)) == nil {
		find = func(ctx context.Context, _ string) (*evidence.Record, error) { return l.RecordByDigest(ctx, digest) }
	}
	r, err := find(ctx, name)
	switch {
	case err != nil:
		return "", 0, err
	case !verify.ByRecorder(r) || r.Payload.ChainID == "":
		return "", 0, ErrNotRecorded
	}
	for other, err := range l.ChainRecords(ctx, r.Payload.ChainID) {
		if err != nil {
			return "", 0, err
		}
		if number++; other.Digest == r.Digest {
			break
		}
	}
	return r.Payload.ChainID, number, nil
}
