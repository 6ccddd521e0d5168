package pages

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/jury"
)

// A Mark says what weakens a verdict.
type Mark string

const (
	Degraded      Mark = "degraded"
	Inconclusive  Mark = "inconclusive"
	Offline       Mark = "offline"        // rules sit in all seats
	PartlyOffline Mark = "partly_offline" // rules sit in some seats
	Broken        Mark = "broken"         // the records contradict each other

	// Why a person must see a verdict:
	TurnedByTalk Mark = Mark(jury.TurnedByTalk)
	OneExtreme   Mark = Mark(jury.OneExtreme)
	JudgeMilder  Mark = Mark(jury.JudgeMilder)
)

// A Court is the courtroom page of one trial.
type Court struct {
	trial.Summary
	State    api.State
	Nth      int           // how many of the trial's records it shows
	Since    int           // it shows only what is new since the record of this number; 0: everything
	Case     *subject.Case // nil: withheld, or not needed for this part
	Withheld string        // why there is no Case; "": there is one
	Broken   string        // how the acts contradict each other; "": they do not

	Settings   *jury.Settings // nil: no phase was opened yet
	Jurors     []*Juror
	Discussion []*Utterance // by round and seat, including absences
	Discussed  bool         // there was at least one round
	Waiting    []Who        // those who were asked and have not answered
	Messages   []Message
	Cited      []int  // the numbers of the messages that an answer cites
	First      First  // what the first screen says
	Proof      *Proof // what the proof rests on, as the server says of itself; nil: not shown

	Judgment     *jury.Judgment // the jury's; nil: none yet
	JudgmentAxes []Axis
	Judge        *Utterance // the final judge's own words
	Reading      *Utterance // and in phase 1, before it knew the jury's view
	Effective    *jury.EffectiveVotes
	SameVendor   []Who // jurors, and the judge, of the vendor of the accused's model
	Rules        int   // how many seats are filled by rules
	Cost         int64
	Calls        int
	Human        []Decision // people's decisions, and deliveries

	Events string    // the address of the events; "": no more events
	Reason string    // why it was interrupted or cancelled; "": unknown
	By     string    // who cancelled it
	Next   time.Time // the next automatic attempt; zero: none
	Ahead  int       // of a queued trial: how many wait before it
	Resume bool      // the viewer may continue it
	Cancel bool      // the viewer may stop it

	reading *trial.Said // what the judge said in phase 1; nil: nothing
}

// A Juror is a seat and the juror in it.
type Juror struct {
	trial.Seat
	Who
	Silent bool // the trial is over, and this juror gave no valid answer
	Rules  bool
	Alone  *Utterance
	Again  *Utterance // when it was asked a second time; nil: it was not
	Now    *jury.Evaluation
	Axes   []Axis

	VoteEnd *Vote // as the final judgment counted it; nil: it has no vote, or there is no judgment yet
}

// A Who is how pages name a juror or the judge, everywhere in the same way.
type Who struct {
	Name   string // the role's name; the id if it has none
	Beside string // the configured model; "": a rule
}

// A Vote is a juror's position at one time.
type Vote struct {
	Position jury.Position
	Score    int
	Fallback bool
}

// An Axis is a line of the rubric with its points.
type Axis struct {
	ID           string
	Score, Max   int
	Veto, Vetoed bool // fewer points than its veto prevent safe_pass; and that happened
}

// An Utterance is one answer of a seat, or its absence.
type Utterance struct {
	Anchor string
	Seat   *Juror // nil: the judge's
	Who
	Opens     bool   // it is the first of its round
	Record    string // record id
	At        time.Time
	Round     int
	Text      string // the statement; for an evaluation the rationale
	Reasoning string
	Position  jury.Position
	From      jury.Position // the previous position, if it changed
	Changed   bool
	Score     int
	HasScore  bool
	Conf      int // per cent
	Findings  []Finding
	Fallback  bool
	Absent    *jury.Absent
	Model     string
}

// A Finding is a juror's finding, checked against the evidence.
type Finding struct {
	trial.Finding
	FromWho *Who // the juror it was taken over from; nil: it is the seat's own
}

// A Message is a message of the conversation, with its citations.
type Message struct {
	*subject.Message
	Trial   string // its id
	CitedBy []Citation
}

// A Citation is a link from a message to an answer that cites it.
type Citation struct {
	Who
	Anchor string
}

// A Decision is a person's decision, or a delivery.
type Decision struct {
	Record  string
	Actor   string
	At      time.Time
	Action  evidence.ActionType
	Status  evidence.ApprovalStatus
	Changes string
	Text    string // the new or delivered text; "" for a decision on a verdict, which Verdict describes

	Verdict *jury.Decision // of a decision on a verdict; nil otherwise
}

// NewCourt makes the courtroom from a trial's chain, in log order. It returns an error if the chain does not begin
// with a submission, or holds a record that cannot be read.
func NewCourt(records []*evidence.Record) (*Court, error) {
	if len(records) == 0 || records[0].Payload.ActionType != evidence.Submission {
		return nil, errors.New("the chain does not begin with a submission, so it is no trial")
	}
	c := new(Court)
	c.evidence(records[0])
	v, err := trial.ViewOf(c.Case, records)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if !r.Payload.ActionType.InTrial() {
			c.Human = append(c.Human, NewDecision(r, v.Decisions[r.Payload.RecordID]))
		}
	}
	c.show(v, 0)
	c.First.Person = c.personsReason()
	for i := range c.Messages {
		c.Messages[i].CitedBy = c.citations(v, c.Messages[i].Number)
	}
	return c, nil
}

// NewNews makes the part of a courtroom that is new since the record of this number. It returns nil if the whole
// courtroom is needed: a person has decided since, or the trial has no such record.
func NewNews(v *trial.View, after int) *Court {
	if after < 1 || after > v.Records || after < v.Beside {
		return nil
	}
	c := &Court{Since: after}
	c.show(v, after)
	cited := map[int]bool{}
	for _, said := range v.SaidAfter(after) {
		for _, f := range said.Findings {
			if f.Here && !cited[f.Message] {
				cited[f.Message] = true
				c.Messages = append(c.Messages, Message{Message: &subject.Message{Number: f.Message}, CitedBy: c.citations(v, f.Message)})
			}
		}
	}
	return c
}

func (c *Court) evidence(first *evidence.Record) {
	material, withheld := first.Said("/response", first.Payload.Response)
	if withheld {
		c.Withheld = "apart"
		return
	}
	var err error
	if c.Case, err = subject.Parse(material); err != nil {
		c.Case, c.Withheld = nil, err.Error()
		return
	}
	for i := range c.Case.Messages {
		c.Messages = append(c.Messages, Message{Message: &c.Case.Messages[i], Trial: first.Payload.ChainID})
	}
}

// show fills in what was said after the record of this number, and the current state.
func (c *Court) show(v *trial.View, after int) {
	c.Summary, c.Nth, c.Broken, c.Settings, c.Cost, c.Calls = v.Summary, v.Records, v.Broken, v.Settings, v.Bill.Cost, v.Bill.Calls
	c.Discussed, c.Judgment, c.reading = v.Discussed, v.Judgment, v.Reading
	if c.State = api.BrokenOff; v.Over {
		c.State = api.Over
	}
	for _, seat := range v.Seats {
		c.Jurors = append(c.Jurors, c.juror(v, seat))
	}
	for _, j := range c.Jurors {
		j.Alone, j.Again = c.utterance(j.Seat.Alone), c.utterance(j.Seat.Again)
	}
	for _, said := range v.SaidSince(after) {
		if said.Discusses() {
			c.Discussion = append(c.Discussion, c.utterance(said))
		}
	}
	slices.SortStableFunc(c.Discussion, func(a, b *Utterance) int {
		return cmp.Or(a.Round-b.Round, a.Seat.Number-b.Seat.Number)
	})
	for i, u := range c.Discussion {
		u.Opens = i == 0 || c.Discussion[i-1].Round != u.Round
	}
	c.Judge, c.Reading = c.utterance(v.Judge), c.utterance(v.Reading)
	if result, err := v.Result(); err == nil {
		c.Effective = result.EffectiveVotes
		for _, id := range result.SameVendor {
			c.SameVendor = append(c.SameVendor, c.who(id))
		}
	}
	for _, id := range v.Waiting() {
		c.Waiting = append(c.Waiting, c.who(id))
	}
	if c.Judgment != nil && c.Settings != nil && len(c.Judgment.AxisScores) > 0 {
		c.JudgmentAxes = axes(c.Settings.Rubric, c.Judgment.AxisScores)
	}
	c.Cited, c.First = slices.Sorted(maps.Keys(v.Cited)), c.first(v)
}

func (c *Court) juror(v *trial.View, seat trial.Seat) *Juror {
	j := &Juror{Seat: seat, Who: whoOf(&seat.Seat), Rules: seat.Provider == jury.Offline, Now: v.Now[seat.JurorID],
		Silent: v.Over && seat.Reported == ""}
	if j.Rules {
		c.Rules++
	}
	if j.Now != nil {
		j.Axes = axes(c.Settings.Rubric, j.Now.AxisScores)
	}
	if c.Judgment != nil && seat.Number <= len(c.Judgment.Votes) {
		if vote := c.Judgment.Votes[seat.Number-1]; vote.Position != nil {
			j.VoteEnd = &Vote{*vote.Position, vote.TotalScore, vote.Fallback}
		}
	}
	return j
}

// whoOf names the juror of a seat. The model is the configured one, which stays the same in the whole trial.
func whoOf(seat *jury.Seat) Who {
	w := Who{Name: cmp.Or(seat.RoleName, seat.JurorID)}
	if seat.Provider != jury.Offline {
		w.Beside = seat.Model
	}
	return w
}

func (c *Court) who(id string) Who {
	for _, j := range c.Jurors {
		if j.JurorID == id {
			return j.Who
		}
	}
	if c.Settings != nil && c.Settings.Judge != nil && c.Settings.Judge.JurorID == id {
		return whoOf(c.Settings.Judge)
	}
	return Who{Name: id}
}

// utterance describes an answer of a seat for the page; nil stays nil.
func (c *Court) utterance(said *trial.Said) *Utterance {
	if said == nil {
		return nil
	}
	u := &Utterance{Anchor: c.anchor(said), Who: c.who(said.Juror), Record: said.Record, At: said.At, Round: said.Round, Model: said.Model}
	if said.Seat > 0 {
		u.Seat = c.Jurors[said.Seat-1]
	}
	switch body := said.Body.(type) {
	case *jury.Evaluation:
		u.opinion(&body.Opinion)
		u.Text, u.Fallback = body.Rationale, body.Fallback
	case *jury.Statement:
		u.Text, u.Reasoning, u.Position, u.Changed, u.From = body.Statement, body.Reasoning, body.Position, body.PositionChanged, said.From
		if e := body.UpdatedEvaluation; e != nil {
			u.opinion(&e.Opinion)
			u.Fallback = e.Fallback
		}
	case *jury.Absent:
		if u.Absent = body; u.Seat != nil {
			u.Model = ""
		}
	case *jury.Opinion:
		u.opinion(body)
		u.Text = body.Rationale
	}
	for _, f := range said.Findings {
		shown := Finding{Finding: f}
		if f.From != "" {
			shown.FromWho = new(c.who(f.From))
		}
		u.Findings = append(u.Findings, shown)
	}
	return u
}

func (c *Court) anchor(said *trial.Said) string {
	switch {
	case said == c.reading:
		return "reading"
	case said.Seat == 0:
		return "judge"
	case phaseOf(said) == jury.Repetition:
		return fmt.Sprintf("again-%d", said.Seat)
	}
	return fmt.Sprintf("said-%d-%d", said.Round, said.Seat)
}

func (u *Utterance) opinion(o *jury.Opinion) {
	u.Position, u.Score, u.HasScore, u.Conf = o.Position, o.TotalScore, true, int(o.Confidence*100+0.5)
}

func (c *Court) citations(v *trial.View, message int) (list []Citation) {
	for _, by := range v.Cited[message] {
		if one := (Citation{c.who(by.Juror), c.anchor(by)}); !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

func axes(rubric jury.Rubric, scores jury.Scores) []Axis {
	var list []Axis
	for _, a := range rubric {
		score, is := scores[a.ID]
		if is {
			list = append(list, Axis{ID: a.ID, Score: score, Max: a.Max, Veto: a.Veto > 0, Vetoed: score < a.Veto})
		}
	}
	return list
}

// NewDecision reads a review or a delivery. verdict is the review's decision on the verdict; nil: it concerns something else.
func NewDecision(r *evidence.Record, verdict *jury.Decision) Decision {
	p := &r.Payload
	d := Decision{Record: p.RecordID, Actor: p.Actor(), At: p.Time(), Action: p.ActionType, Status: p.ApprovalStatus, Verdict: verdict}
	for _, m := range members(r, "changes", p.Changes, "modified_response", p.ModifiedResponse, "response", p.Response) {
		switch {
		case m.Withheld:
		case m.Name == "changes":
			d.Changes = m.Text
		default:
			d.Text = m.Text
		}
	}
	if d.Verdict != nil && p.ModifiedResponse.Kind() == '{' {
		d.Text = "" // in older records it is the jury's judgment with another position, which Verdict describes
	}
	return d
}

// Title returns the name of the agent under trial, shortened if it is long; "" if the evidence is withheld.
func (c *Court) Title() string {
	switch {
	case c.Case != nil:
		return c.Case.Card.Name
	case c.Withheld != "":
		return ""
	}
	return c.Agent
}

func (c *Court) Live() bool { return c.Events != "" && c.State != api.Over }

// Asks reports whether jurors are asked now. Those whom a stopped trial had asked answer no more.
func (c *Court) Asks() bool {
	return len(c.Waiting) > 0 && c.State != api.BrokenOff && c.State != api.Cancelled
}

// Talked reports whether there is something to say of the discussion: what was said, how scores went, or that there was none.
func (c *Court) Talked() bool {
	return c.Settings != nil && (c.Discussed || c.First.Grid.Chart() != nil || c.Judgment != nil || c.State == api.Over)
}

// Inconclusive reports whether the jury came to no verdict.
func (c *Court) Inconclusive() bool { return c.Judgment != nil && c.Judgment.Inconclusive }

func (c *Court) AllRules() bool { return c.Rules > 0 && c.Rules == len(c.Jurors) }

func (c *Court) Dollars() string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", c.Cost/1e6, c.Cost%1e6), "0"), ".")
}

// Seconds returns the duration of the trial, by the claims of its first and last act.
func (c *Court) Seconds() string { return fmt.Sprintf("%.1f", c.Last.Sub(c.Submitted).Seconds()) }

// Marks lists what weakens the jury's verdict. Every place that shows the verdict shows these.
func (c *Court) Marks() []Mark {
	list := marks(c.Inconclusive(), Inconclusive, c.Degraded, Degraded, c.AllRules(), Offline, c.Rules > 0 && !c.AllRules(), PartlyOffline)
	return append(append(list, reasons(c.Outcome)...), marks(c.Broken != "", Broken)...)
}

func reasons(o *jury.TrialOutcome) (list []Mark) {
	if o != nil {
		for _, reason := range o.Verdict.Review {
			list = append(list, Mark(reason))
		}
	}
	return list
}

func marks(pairs ...any) (list []Mark) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] == true {
			list = append(list, pair[1].(Mark))
		}
	}
	return list
}
